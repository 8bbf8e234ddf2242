//! How large what comes from outside may be. `docs/user/serve.md` prints this table.

/// Bytes of a request's body, unless the configuration says another number.
pub const BODY_BYTES: usize = 8 << 20;
/// Messages of a conversation.
pub const MESSAGES: usize = 4096;
/// Tools that a request may declare.
pub const TOOLS: usize = 128;
/// Stop strings of a request.
pub const STOPS: usize = 16;
/// Bytes of a stop string.
pub const STOP_BYTES: usize = 256;
/// Answers to one request.
pub const ANSWERS: u64 = 8;
/// Prompts of a request to `/v1/completions`.
pub const PROMPTS: usize = 128;
/// Members of `logit_bias`.
pub const BIASES: usize = 1024;
/// Likeliest tokens that are listed at each token.
pub const TOP_LOGPROBS: u64 = 20;
/// Responses of `/v1/responses` that are stored at most; the oldest goes first.
pub const RESPONSES: usize = 1000;
/// Bytes of all stored responses, with what was said before them.
pub const RESPONSE_BYTES: usize = 64 << 20;
/// Bytes of a request's head: its headers with their names.
pub const HEAD_BYTES: usize = 16 << 10;
/// Connections at the same time.
pub const CONNECTIONS: usize = 1024;
/// Seconds in which a request's head must come.
pub const HEAD_SECONDS: u64 = 10;
/// Seconds in which a request's body must come.
pub const BODY_SECONDS: u64 = 60;
