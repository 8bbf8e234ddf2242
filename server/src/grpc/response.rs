//! Responses of `vllm.Inference`: what a client asked to see of a prompt, of tokens, and of the end.

use crate::backend::BackendInfo;
use crate::error::ApiError;
use crate::limits;
use kernmill_runtime::Logprobs;
use kernmill_serve::{Answer, EndReason, Finish};
use prost::Message;
use vllm_proto::candidate_token_info::TokenInfo;
use vllm_proto::finish_info::{FinishReason, StopReason as Reason};
use vllm_proto::{CandidateTokenInfo, FinishInfo, GenerateResponse, PromptInfo, SequenceOutput};

/// The parts that the responses to a request show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shows {
    /// Ids of the prompt.
    pub prompt_ids: bool,
    /// Logarithms of the prompt's tokens.
    pub prompt_logprobs: bool,
    /// How many of the likeliest tokens are listed at each token of the prompt.
    pub prompt_top: Option<u32>,
    /// The text.
    pub text: bool,
    /// Ids of the tokens.
    pub ids: bool,
    /// Logarithms of the tokens.
    pub logprobs: bool,
    /// How many of the likeliest tokens are listed at each token.
    pub top: Option<u32>,
    /// Whether the text has the stop string that ends it.
    pub stop_strings: bool,
    /// Tokens that end a sequence and are no part of it.
    pub stop_ids: Vec<u32>,
}

impl Shows {
    /// Whether the prompt's tokens are looked at one by one.
    pub fn scores_prompt(&self) -> bool {
        self.prompt_logprobs || self.prompt_top.is_some()
    }

    /// How many of the likeliest tokens the backend is to list; `None` where no logarithms are needed.
    pub fn listed(&self) -> Option<u32> {
        let needs = self.logprobs || self.top.is_some() || self.scores_prompt();
        needs.then(|| self.top.max(self.prompt_top).unwrap_or(0))
    }

    /// The description of a prompt. Its first token has no logarithm: zeros stand there.
    pub fn prompt(&self, ids: &[u32], logprobs: &[Logprobs]) -> PromptInfo {
        let mut info = PromptInfo { num_prompt_tokens: ids.len() as u32, ..PromptInfo::default() };
        if self.prompt_ids {
            info.token_ids = ids.to_vec();
        }
        if self.prompt_logprobs {
            info.logprobs = std::iter::once(0.0).chain(logprobs.iter().map(|found| found.token)).collect();
            info.ranks = std::iter::once(0).chain(logprobs.iter().map(|found| found.rank + 1)).collect();
        }
        if let Some(top) = self.prompt_top {
            let rest = ids.iter().skip(1).zip(logprobs).map(|(id, found)| candidates(*id, found, top));
            info.candidate_tokens = std::iter::once(CandidateTokenInfo::default()).chain(rest).collect();
        }
        info
    }

    /// Adds a token to a piece of a sequence.
    pub fn add(&self, piece: &mut SequenceOutput, id: u32, logprobs: Option<&Logprobs>) {
        piece.num_tokens += 1;
        if self.ids {
            piece.token_ids.push(id);
        }
        let Some(found) = logprobs else { return };
        if self.logprobs {
            piece.logprobs.push(found.token);
            piece.ranks.push(found.rank + 1);
        }
        if let Some(top) = self.top {
            piece.candidate_tokens.push(candidates(id, found, top));
        }
    }

    /// Whether a piece has something to show, besides the number of its tokens.
    pub fn is_due(&self, piece: &SequenceOutput) -> bool {
        let lists = self.ids || self.logprobs || self.top.is_some();
        !piece.text.is_empty() || (lists && piece.num_tokens > 0)
    }
}

/// The likeliest tokens, without the one that is there.
fn candidates(id: u32, found: &Logprobs, top: u32) -> CandidateTokenInfo {
    let ranked = found.top.iter().zip(1..).take(top as usize).filter(|((other, _), _)| *other != id);
    let tokens = ranked.map(|((id, logprob), rank)| TokenInfo { id: *id, logprob: *logprob, rank });
    CandidateTokenInfo { tokens: tokens.collect() }
}

/// The description of an end, and its name in the figures. `has_deadline` says whether the client gave the
/// call a time.
///
/// # Errors
/// When the server is at fault, there was no room or no time, or the request leaves no way on.
pub fn finish(
    facts: &BackendInfo,
    answer: &Answer,
    has_deadline: bool,
) -> Result<(FinishInfo, &'static str), ApiError> {
    let mut info = FinishInfo {
        num_output_tokens: answer.tokens.len() as u32,
        num_cached_tokens: Some(answer.cached_tokens),
        ..FinishInfo::default()
    };
    let reason = match &answer.finish {
        Finish::MaxTokens | Finish::Context => FinishReason::Length,
        Finish::Token(id) => {
            let is_end = facts.end_tokens.contains(id);
            info.stop_reason = Some(if is_end { Reason::EosTokenId(*id) } else { Reason::StopTokenId(*id) });
            FinishReason::Stop
        }
        Finish::Text(text) => {
            info.stop_reason = Some(Reason::StopString(text.clone()));
            FinishReason::Stop
        }
        Finish::Complete => FinishReason::Stop,
        Finish::Ended(EndReason::Cancelled) => FinishReason::Aborted,
        Finish::Ended(EndReason::Draining) if answer.tokens.is_empty() => return Err(ApiError::drained()),
        Finish::Ended(EndReason::Draining) => FinishReason::Aborted,
        Finish::Ended(EndReason::Expired) if !has_deadline => FinishReason::Length,
        Finish::Ended(EndReason::Expired | EndReason::Unreachable) => return Err(ApiError::deadline()),
        Finish::Ended(EndReason::TooLarge | EndReason::OutOfMemory) => {
            return Err(ApiError::exhausted(
                "the KV cache has no room for this text: send less, or ask for less",
            ));
        }
        Finish::Ended(reason) => return Err(ApiError::internal(reason.to_string())),
        Finish::Failed(why) => return Err(ApiError::internal(why.clone())),
        Finish::Unavailable(why) => return Err(ApiError::stage_lost(why)),
        Finish::Astray(why) => return Err(ApiError::invalid(why.clone())),
    };
    info.set_finish_reason(reason);
    let name = match reason {
        FinishReason::Length => "length",
        FinishReason::Aborted => "abort",
        _ => "stop",
    };
    Ok((info, name))
}

/// Checks that a response is no larger than a message may be.
///
/// # Errors
/// When it is.
pub fn check_size(response: &GenerateResponse) -> Result<(), ApiError> {
    let (bytes, most) = (response.encoded_len(), limits::MESSAGE_BYTES);
    if bytes <= most {
        return Ok(());
    }
    Err(ApiError::exhausted(format!(
        "the response has {bytes} bytes, and a message {most} at most: ask for fewer tokens, logarithms or candidates"
    )))
}

/// Adds a response to those before it, so that one has all of a sequence.
pub fn merge(whole: &mut GenerateResponse, next: GenerateResponse) {
    if next.prompt_info.is_some() {
        whole.prompt_info = next.prompt_info;
    }
    let Some(next) = next.outputs else { return };
    let outputs = whole.outputs.get_or_insert_default();
    outputs.index = next.index;
    outputs.text.push_str(&next.text);
    outputs.num_tokens += next.num_tokens;
    outputs.token_ids.extend(next.token_ids);
    outputs.logprobs.extend(next.logprobs);
    outputs.ranks.extend(next.ranks);
    outputs.candidate_tokens.extend(next.candidate_tokens);
    outputs.finish_info = next.finish_info.or(outputs.finish_info.take());
}
