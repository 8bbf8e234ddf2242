//! What is asked for, and what comes of it.

use crate::constrain::Constraint;
use kernmill_runtime::{AdapterUse, DraftStats, Logprobs, SamplerParams, StopReason, Tenant};
use kernmill_scheduler::{Class, EndReason};
use std::time::Duration;

/// A text to be made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// Tokens that are generated at most, at least one.
    pub max_tokens: u32,
    /// How tokens are chosen. The text depends on this and on the prompt, never on what else runs.
    pub sampler: SamplerParams,
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
    /// What the text is held to, if it is: a constraint of a text that has not begun. It is compiled before,
    /// away from the engine's thread.
    pub constraint: Option<Constraint>,
    /// Whether steps may check guesses of how the text goes on, so that several tokens come at once. The text
    /// is the same.
    pub drafts: bool,
    /// Tokens that the text is likely to repeat, such as those of a file that is to be edited: another place
    /// where such guesses come from.
    pub prediction: Vec<u32>,
    /// The adapters of all tokens, added up.
    pub adapters: Vec<AdapterUse>,
    /// Whose share of the machine the request uses, and whose cached prompts it finds.
    pub tenant: u64,
    /// Name of a cache of its own, in which this request finds nothing of other names, not even what belongs
    /// to everybody. Zeros are the cache of all who name none.
    pub salt: [u8; 16],
    /// The kind of work.
    pub class: Class,
    /// Each step up doubles the request's claim within its class; -4 to 4.
    pub priority: i32,
    /// The time from the arrival after which the text is cut.
    pub within: Option<Duration>,
}

impl Request {
    /// A request of class interactive for at most `max_tokens` tokens after `prompt`, each the likeliest.
    pub fn greedy(prompt: Vec<u32>, max_tokens: u32) -> Request {
        Request {
            prompt,
            max_tokens,
            sampler: SamplerParams::default(),
            logprobs: None,
            scores_prompt: false,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            shows_special: false,
            constraint: None,
            drafts: true,
            prediction: Vec::new(),
            adapters: Vec::new(),
            tenant: 0,
            salt: [0; 16],
            class: Class::Interactive,
            priority: 0,
            within: None,
        }
    }

    /// Whose cached prompts this request finds.
    pub(super) fn cache_of(&self) -> Tenant {
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

/// Why a text ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    /// The text ended by itself, or has all tokens that were asked for.
    Stop(StopReason),
    /// The scheduler ended it. What was made stands.
    Ended(EndReason),
    /// A step with it failed, for this reason.
    Failed(String),
    /// Another stage of the model is lost, for this reason, and with it what it held of the request. It can
    /// be asked for again.
    Unavailable(String),
    /// What the request asks for cannot be followed any further, for this reason: its constraint is too much
    /// work, or it forbids every token.
    Astray(String),
}

/// A text that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text; empty without a tokenizer.
    pub text: String,
    /// The tokens generated, a stop token not included.
    pub tokens: Vec<u32>,
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
    /// Why it ended.
    pub finish: Finish,
    /// The time from the arrival until the request first ran, if it did.
    pub queued: Option<Duration>,
    /// The time from the arrival to the first token, if there is one.
    pub first_token: Option<Duration>,
    /// The time from the arrival to the end.
    pub took: Duration,
}
