//! Requests for texts, and their answers.

use crate::finish::Finish;
use crate::values::Wanted;
use kernmill_constrain::Constraint;
use kernmill_runtime::{AdapterUse, DraftStats, Drafter, Guide, Logprobs, SamplerParams, Tenant};
use kernmill_scheduler::Class;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A text to be made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// The result that is wanted: a text, or numbers, for which no token is generated.
    pub wanted: Wanted,
    /// Tokens that are generated at most. With 0 the prompt is run, and stays in the prefix cache.
    pub max_tokens: u32,
    /// How tokens are chosen. The text depends on this and on the prompt, never on what else runs.
    pub sampler: SamplerParams,
    /// Tokens of the prompt that are an earlier part of the text, and how often each occurs there: what
    /// penalties count as generated.
    pub written: Vec<(u32, u32)>,
    /// How many of the likeliest tokens are given with the logarithms of their probabilities, at every
    /// generated token; 0 gives that of the token alone, `None` nothing.
    pub logprobs: Option<u32>,
    /// Whether those logarithms are also given for the prompt's tokens. The prompt is then computed whole:
    /// nothing of it is found in the prefix cache, or left there.
    pub scores_prompt: bool,
    /// Strings that end the text; they are not part of it.
    pub stop: Vec<String>,
    /// Tokens that end the text; they are not part of it.
    pub stop_tokens: Vec<u32>,
    /// Whether special tokens are part of the text.
    pub shows_special: bool,
    /// The constraint of the text, if it has one: that of a text that has not begun. It is compiled before,
    /// away from the engine's thread.
    pub constraint: Option<Constraint>,
    /// A guide for the text in place of a constraint; it stands before the first token.
    pub guide: Option<Box<dyn Guide>>,
    /// Whether steps may check guesses of how the text goes on, so that several tokens come at once. The text
    /// is the same.
    pub drafts: bool,
    /// Tokens that the text is likely to repeat, such as those of a file that is to be edited: another place
    /// where such guesses come from.
    pub prediction: Vec<u32>,
    /// A drafter in place of all these, such as a small model; it has followed nothing yet.
    pub drafter: Option<Box<dyn Drafter>>,
    /// The adapters of all tokens, added up.
    pub adapters: Vec<AdapterUse>,
    /// Whose share of the machine the request uses, and whose cached prompts it finds.
    pub tenant: u64,
    /// Name of a separate cache, in which this request finds nothing of other names, not even what belongs
    /// to everybody. Zeros are the cache of all who name none.
    pub salt: [u8; 16],
    /// The kind of work.
    pub class: Class,
    /// Each step up doubles the request's claim within its class; -4 to 4.
    pub priority: i32,
    /// The time from the arrival after which the text is cut.
    pub within: Option<Duration>,
    /// Ends the text before its next step once it is set, by any thread or a handler of a signal.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl Request {
    /// A request of class interactive for at most `max_tokens` tokens after `prompt`, each the likeliest.
    pub fn greedy(prompt: Vec<u32>, max_tokens: u32) -> Request {
        Request {
            prompt,
            wanted: Wanted::Text,
            max_tokens,
            sampler: SamplerParams::default(),
            written: Vec::new(),
            logprobs: None,
            scores_prompt: false,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            shows_special: false,
            constraint: None,
            guide: None,
            drafts: true,
            prediction: Vec::new(),
            drafter: None,
            adapters: Vec::new(),
            tenant: 0,
            salt: [0; 16],
            class: Class::Interactive,
            priority: 0,
            within: None,
            cancelled: None,
        }
    }

    /// A request of class interactive for numbers.
    pub fn values(prompt: Vec<u32>, wanted: Wanted) -> Request {
        Request { wanted, drafts: false, ..Request::greedy(prompt, 0) }
    }

    /// Whose cached prompts this request finds.
    pub(crate) fn cache_of(&self) -> Tenant {
        cache_of(self.tenant, self.salt)
    }
}

/// Whose cached prompts the requests of a tenant with this salt find ([`Request::tenant`],
/// [`Request::salt`]). Tenant 0 is everybody.
pub fn cache_of(tenant: u64, salt: [u8; 16]) -> Tenant {
    let mut name = [0; 32];
    name[..8].copy_from_slice(&tenant.to_le_bytes());
    Tenant { name, salt }
}

/// A text that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text; empty without a tokenizer.
    pub text: String,
    /// The tokens generated, a stop token not included.
    pub tokens: Vec<u32>,
    /// The numbers that were wanted ([`Request::wanted`]), if it was no text and the prompt was run.
    pub values: Vec<f32>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// The logarithms for every token of the prompt but the first, where they were asked for
    /// ([`Request::scores_prompt`]); fewer if the request ended before.
    pub prompt_logprobs: Vec<Logprobs>,
    /// Tokens of the prompt that were cached when the request first started, and were not run.
    pub cached_tokens: u32,
    /// Tokens among those that only the store on disk had.
    pub disk_tokens: u32,
    /// Tokens of drafts that were checked, and how many were right.
    pub drafts: DraftStats,
    /// Steps that ran tokens of the text: fewer than tokens where its form left no choice, or drafts were
    /// right.
    pub steps: u32,
    /// Tokens of the text that these steps ran.
    pub stepped: u32,
    /// Why it ended.
    pub finish: Finish,
    /// The time from the arrival until the request first ran, if it did.
    pub queued: Option<Duration>,
    /// The time from the arrival to the first token, if there is one.
    pub first_token: Option<Duration>,
    /// The time from the arrival to the end.
    pub took: Duration,
}

impl Answer {
    /// A text without tokens that ended so.
    pub fn empty(finish: Finish) -> Answer {
        Answer {
            text: String::new(),
            tokens: Vec::new(),
            values: Vec::new(),
            prompt_tokens: 0,
            prompt_logprobs: Vec::new(),
            cached_tokens: 0,
            disk_tokens: 0,
            drafts: DraftStats::default(),
            steps: 0,
            stepped: 0,
            finish,
            queued: None,
            first_token: None,
            took: Duration::ZERO,
        }
    }

    /// Seconds from the arrival to the first token, or to the end if no token came.
    pub fn prefill_seconds(&self) -> f64 {
        self.first_token.unwrap_or(self.took).as_secs_f64()
    }

    /// Seconds from the first token to the end.
    pub fn decode_seconds(&self) -> f64 {
        self.took.saturating_sub(self.first_token.unwrap_or(self.took)).as_secs_f64()
    }

    /// Tokens per second at decode; 0 when none were decoded.
    pub fn decode_rate(&self) -> f64 {
        if self.stepped == 0 { 0.0 } else { f64::from(self.stepped) / self.decode_seconds() }
    }

    /// Prompt tokens per second, of those that were run.
    pub fn prefill_rate(&self) -> f64 {
        f64::from(self.prompt_tokens - self.cached_tokens) / self.prefill_seconds()
    }
}
