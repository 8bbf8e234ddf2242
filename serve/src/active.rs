//! A request on its way.

use crate::finish::Finish;
use crate::guide::ConstraintFollower;
use crate::request::{Answer, Request};
use crate::text_maker::{StoppedText, TextMaker};
use crate::values::ValueMaker;
use kernmill_plan::program::ModelInfo;
use kernmill_runtime::draft::{Draft, Drafting, StepCosts};
use kernmill_runtime::sampler::SamplerError;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{
    Drafter, Guide, GuideError, Guided, LogitRows, Logprobs, Sampler, SeqId, TokenMask, Tokenizer,
};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A request that waits or runs.
pub(crate) struct Active {
    pub request: Request,
    /// Prompt and generated tokens.
    pub known: Vec<u32>,
    /// While it runs.
    pub sequence: Option<SeqId>,
    pub sampler: Sampler,
    /// By token of the prompt but the first, as far as they are known.
    pub prompt_logprobs: Vec<Option<Logprobs>>,
    /// Makes numbers of the prompt, where no text is wanted.
    pub values: Option<ValueMaker>,
    pub guided: Option<Guided>,
    pub drafting: Option<Drafting>,
    /// The draft that may come next, for the scheduler to place.
    pub draft: Draft,
    /// How many of the known tokens the drafts have followed.
    followed: usize,
    maker: TextMaker,
    text: String,
    /// Tokens of the prompt that were cached at the first start, and those of them that came from the disk.
    pub cached: Option<[u32; 2]>,
    pub arrived: Duration,
    /// The time until it first ran.
    pub queued: Option<Duration>,
    first_token: Option<Duration>,
    /// Steps that ran tokens of the text, and how many tokens these were.
    ran: [u32; 2],
}

impl Active {
    pub(crate) fn new(
        mut request: Request,
        model: &ModelInfo,
        tokenizer: Option<&Tokenizer>,
        drafter: Option<Box<dyn Drafter>>,
        arrived: Duration,
    ) -> Result<Active, TextError> {
        let mut sampler = Sampler::new(request.sampler.clone(), model.vocab as usize)?;
        sampler.prompt(&request.prompt);
        sampler.resume(&request.written);
        let constraint = request.constraint.take();
        let follower =
            constraint.map(|constraint| Box::new(ConstraintFollower(constraint)) as Box<dyn Guide>);
        let guided = follower.or_else(|| request.guide.take()).map(Guided::new).transpose()?;
        let maker = TextMaker::new(tokenizer, &request.prompt, &request.stop, request.shows_special)?;
        let scored = if request.scores_prompt { request.prompt.len() - 1 } else { 0 };
        Ok(Active {
            prompt_logprobs: vec![None; scored],
            known: request.prompt.clone(),
            values: ValueMaker::of(&request.wanted, model),
            request,
            sequence: None,
            sampler,
            guided,
            drafting: drafter.map(Drafting::new),
            draft: Draft::default(),
            followed: 0,
            maker,
            text: String::new(),
            cached: None,
            arrived,
            queued: None,
            first_token: None,
            ran: [0; 2],
        })
    }

    /// The tokens generated so far.
    pub(crate) fn generated(&self) -> &[u32] {
        &self.known[self.request.prompt.len()..]
    }

    /// Whether all of the prompt is computed: nothing of it is found in the prefix cache.
    pub(crate) fn needs_all(&self) -> bool {
        self.request.scores_prompt || self.values.as_ref().is_some_and(ValueMaker::needs_all)
    }

    /// Whether its caller has set the flag that ends it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.request.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Notes a step that ran `tokens` tokens of the text.
    pub(crate) fn note_step(&mut self, tokens: usize) {
        self.ran = [self.ran[0] + 1, self.ran[1] + tokens as u32];
    }

    /// Notes that the prompt has been run.
    pub(crate) fn note_prompt(&mut self, now: Duration) {
        self.first_token.get_or_insert(now.saturating_sub(self.arrived));
    }

    /// Rows of logits that a part of its tokens is to give.
    pub(crate) fn rows(&self, from: usize, samples: bool, drafts: usize) -> LogitRows {
        if let Some(values) = &self.values {
            return values.rows(from, samples);
        }
        match (samples, from < self.prompt_logprobs.len()) {
            (_, true) => LogitRows::All,
            (true, false) => LogitRows::LastN(1 + drafts as u32),
            (false, false) => LogitRows::None,
        }
    }

    /// Masks of the tokens that may follow each token of a part from `from` on, its last known one and
    /// `drafts` of its draft. Empty where all logits are wanted: the text is held to no form, or
    /// log-probabilities are asked for, which are of whole rows.
    pub(crate) fn masks(&self, from: usize, drafts: usize) -> Vec<&TokenMask> {
        if let Some(values) = &self.values {
            return values.mask().into_iter().collect();
        }
        let is_scored = self.request.logprobs.is_some() || from < self.prompt_logprobs.len();
        let Some(guided) = self.guided.as_ref().filter(|_| !is_scored) else { return Vec::new() };
        let drafted = (0..drafts).map(|at| self.draft.allowed(at));
        std::iter::once(Some(guided.allowed())).chain(drafted).collect::<Option<_>>().unwrap_or_default()
    }

    /// Makes the draft that is worth checking behind the known tokens, in a step with `others` tokens of
    /// others, and says how long it is.
    pub(crate) fn make_draft(&mut self, costs: &StepCosts, others: u32, context: u32, vocab: u32) -> u32 {
        let Some(drafting) = &mut self.drafting else { return 0 };
        drafting.follow(&self.known[self.followed..]);
        self.followed = self.known.len();
        let made = self.known.len() - self.request.prompt.len();
        // One of the tokens that are wanted is chosen behind the draft, and needs no room.
        let wanted = (self.request.max_tokens as usize).saturating_sub(made + 1);
        let most = wanted.min((context as usize).saturating_sub(self.known.len()));
        self.draft = drafting.draft(self.guided.as_ref(), costs, others, most, vocab);
        self.draft.tokens().len() as u32
    }

    /// The next token that must come, without being chosen. The penalties count it.
    pub(crate) fn next_forced(&mut self) -> Option<u32> {
        let token = self.guided.as_mut()?.next_forced()?;
        self.sampler.accept(token);
        Some(token)
    }

    /// Adds a token; the text that it releases, and why the request ends with it, if it does.
    pub(crate) fn push(
        &mut self,
        token: u32,
        tokenizer: Option<&Tokenizer>,
        context: u32,
        now: Duration,
    ) -> Result<(String, Option<Finish>), TextError> {
        self.note_prompt(now);
        let stop = if self.request.stop_tokens.contains(&token) {
            Some(Finish::Token(token))
        } else {
            self.maker.stop_of(token).map(Finish::Text)
        };
        let (mut piece, mut end) = (String::new(), stop);
        if end.is_none() {
            self.known.push(token);
            let StoppedText { text, stop } = self.maker.push(tokenizer, token)?;
            piece = text;
            end = stop.map(Finish::Text);
            if end.is_none()
                && let Some(guided) = &mut self.guided
                && guided.accept(token)?
            {
                end = Some(Finish::Complete);
            }
            let (made, length) = (self.generated().len(), self.known.len());
            if end.is_none() && made >= self.request.max_tokens as usize {
                end = Some(Finish::MaxTokens);
            } else if end.is_none() && length > context as usize {
                end = Some(Finish::Context);
            }
        }
        if let Some(reason) = &mut end {
            let StoppedText { text, stop } = self.maker.finish(tokenizer)?;
            piece.push_str(&text);
            if let Some(stop) = stop {
                *reason = Finish::Text(stop);
            }
        }
        self.text.push_str(&piece);
        Ok((piece, end))
    }

    /// The answer when the request has ended.
    pub(crate) fn answer(self, finish: Finish, now: Duration) -> Answer {
        let [cached_tokens, disk_tokens] = self.cached.unwrap_or_default();
        // Right tokens of a draft behind the end are not part of the text.
        let [steps, stepped] = [self.ran[0], self.ran[1].min(self.generated().len() as u32)];
        Answer {
            tokens: self.generated().to_vec(),
            text: self.text,
            values: if self.first_token.is_some() {
                self.values.map_or_else(Vec::new, ValueMaker::finish)
            } else {
                Vec::new()
            },
            prompt_tokens: self.request.prompt.len() as u32,
            prompt_logprobs: self.prompt_logprobs.into_iter().map_while(|found| found).collect(),
            cached_tokens,
            disk_tokens,
            drafts: self.drafting.as_ref().map(Drafting::stats).unwrap_or_default(),
            steps,
            stepped,
            finish,
            queued: self.queued,
            first_token: self.first_token,
            took: now.saturating_sub(self.arrived),
        }
    }
}

/// Why a request cannot be taken up, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Guide(#[from] GuideError),
}
