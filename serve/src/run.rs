//! One step of the engine, as the scheduler planned it.

use crate::active::{Active, TextError};
use crate::error::Result;
use crate::event::{RequestEvent, Token};
use crate::finish::Finish;
use crate::flight::{EntryInFlight, StepInFlight};
use crate::serving::Serving;
use crate::values::ValueMaker;
use kernmill_runtime::draft::{Chosen, DraftCheck};
use kernmill_runtime::kv::KvError;
use kernmill_runtime::sampler::SamplerError;
use kernmill_runtime::{
    BegunSequence, EngineError, Guided, LogitRow, Logprobs, SequenceTokens, StepStats, TokenMask,
};
use kernmill_scheduler::{EntryOutcome, PlannedStep, RequestId, StepFault, StepReport};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// By part of a step, the tokens that were chosen behind it, if any were.
type ChosenByPart = Vec<Option<Vec<Chosen>>>;

/// A sampler on its way through a step, and what it chose.
struct SamplerChoice<'a> {
    check: DraftCheck<'a>,
    samples: bool,
    /// Tokens before the part, and known ones that it runs.
    before: usize,
    tokens: usize,
    prompt: &'a [u32],
    prompt_logprobs: &'a mut [Option<Logprobs>],
    values: Option<&'a mut ValueMaker>,
}

impl SamplerChoice<'_> {
    /// Takes the logits after one of the part's tokens.
    fn take(&mut self, token: usize, logits: &[f32]) {
        if let Some(values) = &mut self.values {
            return values.take(token, logits);
        }
        let next = self.before + token + 1;
        if let (Some(place), Some(id)) = (self.prompt_logprobs.get_mut(next - 1), self.prompt.get(next)) {
            *place = self.check.logprobs(logits, *id).ok();
        }
        if self.samples && token + 1 >= self.tokens {
            self.check.take(token + 1 - self.tokens, logits);
        }
    }
}

impl Serving {
    /// Starts sequences and begins the step of the entries; whether it has begun.
    pub(crate) fn begin(
        &mut self,
        step: &PlannedStep,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> Result<bool> {
        for started in &step.started {
            self.start(started.id)?;
        }
        let mut parts = Vec::new();
        for entry in &step.entries {
            let Some(active) = self.active.get_mut(&entry.id) else { continue };
            let Some(sequence) = active.sequence else { continue };
            // More may be cached than the plan knew; with less, the next plan goes on.
            let from = self.engine.length(sequence)? as usize;
            if from < entry.from as usize {
                self.scheduler.found(entry.id, from as u32);
                continue;
            }
            let to = (entry.to as usize).max(from);
            let drafts = if entry.samples { entry.drafts as usize } else { 0 };
            active.draft.truncate(drafts);
            let drafts = active.draft.tokens().len();
            parts.push(EntryInFlight { id: entry.id, sequence, from, to, samples: entry.samples, drafts });
        }
        let start = (self.clock)();
        if let Err(error) = self.begin_parts(&parts) {
            self.failed(&parts, error, on_event)?;
            return Ok(false);
        }
        self.flights.push_back(StepInFlight { parts, start });
        Ok(true)
    }

    /// Ends the oldest step that has begun, and hands out what its entries gave.
    pub(crate) fn finish(&mut self, on_event: &mut dyn FnMut(RequestId, RequestEvent)) -> Result<()> {
        let Some(StepInFlight { parts, start }) = self.flights.pop_front() else { return Ok(()) };
        let (chosen, ran) = match self.end_parts(&parts) {
            Ok(ended) => ended,
            Err(EngineError::Stage(lost)) => {
                self.flights.push_front(StepInFlight { parts, start });
                self.lose(&lost.to_string(), (self.clock)(), on_event);
                return Ok(());
            }
            Err(error) => return self.failed(&parts, error, on_event),
        };
        let now = (self.clock)();
        let took = now.saturating_sub(start);
        let running = || parts.iter().filter(|part| part.from < part.to);
        let is_decode = running().all(|part| part.samples && part.to - part.from == 1);
        let given = chosen.iter().flatten().map(|chosen| chosen.len() as u64).sum();
        self.note_step(start, now, running().count(), ran, is_decode.then_some(given));
        let others = running().count().saturating_sub(1) as u32;
        let mut outcomes = Vec::new();
        for (part, chosen) in parts.iter().zip(chosen) {
            outcomes.push(self.outcome(part, chosen, others, now, on_event));
        }
        self.scheduler.report(now, &StepReport { took, outcomes, fault: None });
        Ok(())
    }

    /// Notes a step of so many sequences, what it ran, and the tokens that it gave if it decoded only.
    pub(crate) fn note_step(
        &mut self,
        start: Duration,
        now: Duration,
        width: usize,
        ran: StepStats,
        decoded: Option<u64>,
    ) {
        self.stats.steps += 1;
        // Steps may overlap: no time counts twice.
        let since = self.stepped.replace(now).unwrap_or(start);
        self.stats.busy += now.saturating_sub(since.max(start));
        self.stats.note(width, decoded, now.saturating_sub(since));
        self.stats.tokens += u64::from(ran.tokens);
        if ran.tokens > 0 {
            self.costs.note(ran.tokens, ran.rows, now.saturating_sub(start).as_secs_f64());
        }
    }

    /// Gives a request a sequence, with what the cache has. That may be less than the plan counts on: another
    /// start of this plan has taken room from the cache, or the disk has failed.
    fn start(&mut self, id: RequestId) -> Result<()> {
        let now = (self.clock)();
        let Some(active) = self.active.get_mut(&id) else { return Ok(()) };
        active.queued.get_or_insert(now.saturating_sub(active.arrived));
        if let Some(values) = &mut active.values {
            values.begin();
        }
        if active.needs_all() {
            // The cache has no rows of a prompt, so that all of it is computed.
            active.sequence = Some(self.engine.create_with(&active.request.adapters)?);
            return Ok(());
        }
        let tenant = active.request.cache_of();
        let BegunSequence { sequence, cached_tokens, disk_tokens } =
            self.engine.begin(&active.known, &active.request.adapters, tenant)?;
        active.sequence = Some(sequence);
        let of_prompt = |tokens: u32| tokens.min(active.request.prompt.len() as u32);
        active.cached.get_or_insert([cached_tokens, disk_tokens].map(of_prompt));
        self.stats.hits += u64::from(cached_tokens > 0);
        Ok(())
    }

    /// Begins to run the parts, if any of them has tokens to run.
    fn begin_parts(&mut self, parts: &[EntryInFlight]) -> std::result::Result<(), EngineError> {
        let with_draft = |part: &EntryInFlight| match self.active.get(&part.id).filter(|_| part.drafts > 0) {
            Some(active) => [&active.known[part.from..part.to], active.draft.tokens()].concat(),
            None => Vec::new(),
        };
        let drafted: Vec<Vec<u32>> = parts.iter().map(with_draft).collect();
        let masks_of = |part: &EntryInFlight| {
            self.active.get(&part.id).map_or_else(Vec::new, |active| active.masks(part.from, part.drafts))
        };
        let masks: Vec<Vec<&TokenMask>> = parts.iter().map(masks_of).collect();
        // The plan's order, which is that of adapters.
        let entries = parts.iter().zip(&drafted).zip(&masks).filter(|((part, _), _)| part.from < part.to);
        let entries = entries.filter_map(|((part, drafted), allowed)| {
            let active = self.active.get(&part.id)?;
            let logits = active.rows(part.from, part.samples, part.drafts);
            let known = &active.known[part.from..part.to];
            let tokens = if part.drafts > 0 { &drafted[..] } else { known };
            Some(SequenceTokens { sequence: part.sequence, tokens, logits, allowed })
        });
        let entries: Vec<SequenceTokens<'_>> = entries.collect();
        if entries.is_empty() { Ok(()) } else { self.engine.begin_step(&entries) }
    }

    /// Ends the step of the parts; by part, the tokens that were chosen behind it, and what the step ran.
    fn end_parts(
        &mut self,
        parts: &[EntryInFlight],
    ) -> std::result::Result<(ChosenByPart, StepStats), EngineError> {
        let mut choices: Vec<Option<Mutex<SamplerChoice<'_>>>> = parts.iter().map(|_| None).collect();
        // Samplers and tokens of different requests, borrowed at once.
        for (id, active) in &mut self.active {
            let Some(at) = parts.iter().position(|part| part.id == *id) else { continue };
            let part = &parts[at];
            if part.from == part.to {
                continue;
            }
            choices[at] = Some(Mutex::new(SamplerChoice {
                check: DraftCheck::new(
                    &mut active.sampler,
                    &active.draft,
                    active.guided.as_ref().map(Guided::allowed),
                    part.to as u64,
                    active.request.logprobs,
                ),
                samples: part.samples,
                before: part.from,
                tokens: part.to - part.from,
                prompt: &active.request.prompt,
                prompt_logprobs: &mut active.prompt_logprobs,
                values: active.values.as_mut(),
            }));
        }
        // Which part each of the step's entries is.
        let places: Vec<usize> = (0..parts.len()).filter(|at| choices[*at].is_some()).collect();
        let mut ran = StepStats::default();
        if !places.is_empty() {
            let take = |_: usize, row: LogitRow<'_>| {
                if let Some(choice) = &choices[places[row.entry]] {
                    let mut choice = choice.lock().unwrap_or_else(PoisonError::into_inner);
                    choice.take(row.token, row.logits);
                }
            };
            ran = self.engine.end_step(&take)?;
        }
        let chosen = |choice: Mutex<SamplerChoice<'_>>| {
            let choice = choice.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(values) = choice.values {
                values.step_ended();
                return choice.samples.then(Vec::new);
            }
            choice.samples.then(|| choice.check.finish())
        };
        Ok((choices.into_iter().map(|choice| choice.and_then(chosen)).collect(), ran))
    }

    /// Takes the outcome of a part: its tokens go to the request, which may end.
    pub(crate) fn outcome(
        &mut self,
        part: &EntryInFlight,
        chosen: Option<Vec<Chosen>>,
        others: u32,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> EntryOutcome {
        let mut outcome = EntryOutcome { id: part.id, tokens: 0, accepted: 0, drafts: 0, ended: false };
        let (Some(chosen), Some(active)) = (chosen, self.active.get_mut(&part.id)) else { return outcome };
        let begins = active.generated().is_empty();
        if begins {
            // The next turn of this text begins with this prompt. The sequence is there: no error.
            let _ = self.engine.checkpoint(part.sequence);
            active.note_prompt(now);
        }
        let finish = match active.request.max_tokens {
            _ if active.values.is_some() => Some(Finish::MaxTokens),
            0 => Some(Finish::MaxTokens),
            _ => self.take_all(part, chosen, &mut outcome, now, on_event),
        };
        if let Some(active) = self.active.get_mut(&part.id).filter(|_| !begins) {
            // A text that has lost its place runs its prompt once more.
            let from = part.from.max(active.request.prompt.len());
            active.note_step(part.to - from + outcome.accepted as usize);
        }
        self.take_back(part, outcome.accepted);
        match finish {
            Some(finish) => {
                outcome.ended = true;
                self.end(part.id, finish, now, on_event);
            }
            None => outcome.drafts = self.draft(part.id, others),
        }
        outcome
    }

    /// Gives chosen tokens to a request, and what must follow them; why the request ends, if it does.
    fn take_all(
        &mut self,
        part: &EntryInFlight,
        chosen: Vec<Chosen>,
        outcome: &mut EntryOutcome,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> Option<Finish> {
        let last = chosen.len() - 1;
        for (row, chosen) in chosen.into_iter().enumerate() {
            let (token, logprobs) = match chosen {
                Ok(chosen) => chosen,
                Err(error @ SamplerError::NoneLeft) => return Some(Finish::Astray(error.to_string())),
                Err(error) => return Some(Finish::Failed(error.to_string())),
            };
            outcome.accepted += u32::from(row < last);
            self.active.get_mut(&part.id)?.sampler.accept(token);
            outcome.tokens += 1;
            if let Some(finish) = self.push(part.id, (token, logprobs), now, on_event) {
                return Some(finish);
            }
        }
        // Tokens that must follow come with them, and run in the next step together.
        while let Some(token) = self.active.get_mut(&part.id).and_then(Active::next_forced) {
            outcome.tokens += 1;
            if let Some(finish) = self.push(part.id, (token, None), now, on_event) {
                return Some(finish);
            }
        }
        None
    }

    /// Notes what came of a part's draft, and takes back what it has wrong, or behind the text's end.
    fn take_back(&mut self, part: &EntryInFlight, accepted: u32) {
        let Some(active) = self.active.get_mut(&part.id).filter(|_| part.drafts > 0) else { return };
        let right = (part.to + accepted as usize).min(active.known.len());
        if let Some(drafting) = &mut active.drafting {
            drafting.note(part.drafts, accepted as usize);
        }
        active.draft.clear();
        self.stats.checked(part.drafts, accepted as usize);
        // The sequence has these tokens and the keys before them: no error.
        let _ = self.engine.truncate(part.sequence, right as u32);
    }

    /// Makes a request's next draft; how long it is.
    fn draft(&mut self, id: RequestId, others: u32) -> u32 {
        let (context, vocab) = (self.engine.context(), self.engine.model().vocab);
        let active = self.active.get_mut(&id);
        active.map_or(0, |active| active.make_draft(&self.costs, others, context, vocab))
    }

    /// Adds a token to a request; why it ends, if it does.
    fn push(
        &mut self,
        id: RequestId,
        (token, logprobs): (u32, Option<Logprobs>),
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> Option<Finish> {
        let context = self.engine.context();
        // Every request that was taken up has found it read.
        let tokenizer = self.tokenizer.as_ref().and_then(|tokenizer| tokenizer.get().ok());
        self.stats.generated += 1;
        let active = self.active.get_mut(&id)?;
        match active.push(token, tokenizer, context, now) {
            Ok((text, end)) => {
                on_event(id, RequestEvent::Token(Token { id: token, text, logprobs }));
                end
            }
            Err(TextError::Guide(error)) => Some(Finish::Astray(error.to_string())),
            Err(error) => Some(Finish::Failed(error.to_string())),
        }
    }

    /// A step that has not run: a request at fault ends, and the next plan knows why it failed.
    pub(crate) fn failed(
        &mut self,
        parts: &[EntryInFlight],
        error: EngineError,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> Result<()> {
        let now = (self.clock)();
        let (entry, cause) = match &error {
            EngineError::Entry { entry, source } => (Some(*entry), &**source),
            other => ((parts.len() == 1).then_some(0), other),
        };
        if let EngineError::Stage(lost) = cause {
            self.scheduler
                .report(now, &StepReport { fault: Some(StepFault::Other), ..StepReport::default() });
            self.lose(&lost.to_string(), now, on_event);
            return Ok(());
        }
        if let EngineError::Kv(KvError::OutOfBlocks { .. }) = cause {
            let report = StepReport { fault: Some(StepFault::OutOfMemory), ..StepReport::default() };
            self.scheduler.report(now, &report);
            return Ok(());
        }
        let ran: Vec<&EntryInFlight> = parts.iter().filter(|part| part.from < part.to).collect();
        let Some(part) = entry.and_then(|entry| ran.get(entry)) else { return Err(error.into()) };
        let (id, why) = (part.id, cause.to_string());
        self.scheduler.report(now, &StepReport { fault: Some(StepFault::Other), ..StepReport::default() });
        self.scheduler.cancel(id);
        self.end(id, Finish::Failed(why), now, on_event);
        Ok(())
    }
}
