//! The trace of a request. No text of a client is in it.

use std::time::{Duration, SystemTime};

/// A request that has ended.
#[derive(Debug)]
pub struct Ended<'a> {
    /// Name of the request.
    pub id: &'a str,
    /// The name that its client or a gateway gave it.
    pub client: Option<&'a str>,
    /// Route of the request.
    pub route: &'static str,
    /// Status of the response; 0 if the client left before there was one.
    pub status: u16,
    /// The model or adapter that was asked for, if there is one of that name.
    pub model: Option<&'a str>,
    /// The model that served it.
    pub served: &'a str,
    /// The adapter that this means.
    pub adapter: Option<&'a str>,
    /// When it came.
    pub began: SystemTime,
    /// How long it took.
    pub total: Duration,
    /// The request to the backend, if there was one.
    pub asked: Option<TracedRequest>,
    /// Tokens of prompts; each prompt counts once.
    pub tokens_in: u64,
    /// Tokens of answers.
    pub tokens_out: u64,
    /// Tokens of prompts that were cached, of all answers.
    pub tokens_cached: u64,
    /// How long its parts took.
    pub parts: RequestTimes,
    /// Why its answers ended.
    pub finish: &'a [&'static str],
    /// The moments on the way, each as time after `began`.
    pub moments: Moments,
}

/// The parameters of a request. Of several answers, each is asked for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TracedRequest {
    /// Answers, to all prompts.
    pub answers: u64,
    /// Tokens that an answer may have.
    pub max_tokens: u64,
    /// How much chance has a say.
    pub temperature: f32,
    /// The part of the likelihood that is chosen from.
    pub top_p: f32,
}

/// How long the parts of a request took, of its first answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestTimes {
    /// Until it first ran.
    pub queue: Option<Duration>,
    /// From then to the first token.
    pub prefill: Option<Duration>,
    /// From there to the end.
    pub decode: Option<Duration>,
}

/// When something happened to a request, after it came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The request was handed to the backend.
    pub queued: Option<Duration>,
    /// The first token came.
    pub first_token: Option<Duration>,
    /// The last answer ended.
    pub done: Option<Duration>,
}
