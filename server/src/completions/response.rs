//! Answers of `/v1/completions`, whole or in pieces.

use super::request::{self, COMPLETION, Shows};
use crate::backend::{BackendInfo, Running};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::head::AnswerHead;
use crate::prompt::tokenizer;
use crate::reply::{self, ReplyStream};
use crate::state::ServerState;
use axum::response::Response;
use kernmill_runtime::Logprobs;
use kernmill_runtime::Tokenizer;
use kernmill_serve::{Answer, EndReason, Finish, RequestEvent, Token};
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers a request to `/v1/completions`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let asked = reply::blocking(move || {
        let asked = request::take(&worker.scope(&caller), Fields::of_body(&COMPLETION, &body)?)?;
        worker.charge(&caller, asked.shows.prompts.iter().map(Vec::len).sum())?;
        Ok(asked)
    })
    .await?;
    let mut running = Vec::new();
    for request in asked.ask {
        running.push(state.submit(request, &record));
    }
    // All are taken up, before the first one has begun.
    for (at, running) in running.iter_mut().enumerate().rev() {
        running.ready(asked.streams && at == 0).await?;
    }
    let head = AnswerHead::new("cmpl-", &asked.model, state.backend.facts());
    let response = if asked.streams {
        stream(state, asked.shows, running, head)
    } else {
        whole(&state, &asked.shows, running, &head).await?
    };
    Ok(reply::with_warnings(response, &asked.unknown))
}

/// Tokens with their logarithms, as the API lists them.
#[derive(Default)]
struct Listed {
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f32>>,
    top: Vec<Value>,
    offsets: Vec<usize>,
    length: usize,
}

impl Listed {
    fn push(&mut self, tokenizer: &Tokenizer, id: u32, logprobs: Option<&Logprobs>) {
        let text = |id: u32| {
            let bytes = tokenizer.token_bytes(id).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_else(|error| {
                // As OpenAI's API writes a token that is no text.
                let bytes = error.into_bytes();
                bytes.iter().fold("bytes:".to_owned(), |text, byte| format!("{text}\\x{byte:02x}"))
            })
        };
        let own = text(id);
        self.offsets.push(self.length);
        // Special tokens are not part of the text.
        let is_special = tokenizer.special_token_id(&own) == Some(id);
        self.length += if is_special { 0 } else { own.chars().count() };
        self.tokens.push(own);
        self.token_logprobs.push(logprobs.map(|logprobs| logprobs.token));
        self.top.push(logprobs.map_or(Value::Null, |logprobs| {
            Value::Object(logprobs.top.iter().map(|(id, logprob)| (text(*id), json!(logprob))).collect())
        }));
    }

    fn json(self) -> Value {
        json!({
            "tokens": self.tokens,
            "token_logprobs": self.token_logprobs,
            "top_logprobs": self.top,
            "text_offset": self.offsets,
        })
    }
}

/// Why an answer ended, as the API names it.
///
/// # Errors
/// When the server is at fault, or the request leaves no way on.
fn finish(answer: &Answer) -> Result<&'static str, ApiError> {
    match &answer.finish {
        Finish::MaxTokens | Finish::Context => Ok("length"),
        Finish::Token(_) | Finish::Text(_) | Finish::Complete => Ok("stop"),
        Finish::Ended(EndReason::Draining) if answer.tokens.is_empty() => Err(ApiError::drained()),
        Finish::Ended(EndReason::Expired | EndReason::Draining) => Ok("length"),
        Finish::Ended(reason) => Err(ApiError::internal(reason.to_string())),
        Finish::Failed(why) => Err(ApiError::internal(why.clone())),
        Finish::Unavailable(why) => Err(ApiError::stage_lost(why)),
        Finish::Astray(why) => Err(ApiError::invalid(why.clone())),
    }
}

/// An answer in the making: what comes before its end.
#[derive(Default)]
pub struct PendingCompletion(Vec<(u32, Option<Logprobs>)>);

impl PendingCompletion {
    /// Takes the next token.
    pub fn take(&mut self, token: Token) {
        self.0.push((token.id, token.logprobs));
    }

    /// The choice `index` of a completion, whose answer has ended.
    ///
    /// # Errors
    /// When the text has no answer.
    pub fn choice(
        self,
        facts: &BackendInfo,
        completion: &Shows,
        index: usize,
        answer: &Answer,
    ) -> Result<Value, ApiError> {
        let (reason, prompt) = (finish(answer)?, &completion.prompts[index / completion.n]);
        let mut text = String::new();
        if completion.echo {
            let decoded = tokenizer(facts)?.decode(prompt);
            text = decoded.map_err(|error| ApiError::internal(error.to_string()))?;
        }
        if !completion.only_prompt {
            text.push_str(&answer.text);
        }
        let list = || -> Result<Value, ApiError> {
            let (tokenizer, mut listed) = (tokenizer(facts)?, Listed::default());
            if completion.echo {
                for (at, id) in prompt.iter().enumerate() {
                    let logprobs = at.checked_sub(1).and_then(|at| answer.prompt_logprobs.get(at));
                    listed.push(tokenizer, *id, logprobs);
                }
            }
            // Also one that ends the text, as in a stream: evaluations drop the last one, whatever it is.
            for (id, logprobs) in self.0.iter().filter(|_| !completion.only_prompt) {
                listed.push(tokenizer, *id, logprobs.as_ref());
            }
            Ok(listed.json())
        };
        let listed = completion.logprobs.then(list).transpose()?;
        Ok(json!({ "index": index, "text": text, "logprobs": listed, "finish_reason": reason }))
    }
}

impl Shows {
    /// Tokens of an answer that were asked for.
    pub fn made<'a>(&self, answer: &'a Answer) -> &'a [u32] {
        if self.only_prompt { &[] } else { &answer.tokens }
    }

    /// Tokens of the prompts and of these answers.
    fn usage(&self, answers: &[Answer]) -> Value {
        let prompt: usize = self.prompts.iter().map(Vec::len).sum();
        let made: usize = answers.iter().map(|answer| self.made(answer).len()).sum();
        let cached: u64 = answers.iter().map(|answer| u64::from(answer.cached_tokens)).sum();
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": made,
            "total_tokens": prompt + made,
            "prompt_tokens_details": { "cached_tokens": cached },
        })
    }

    /// The completion with its choices and figures.
    pub fn object(&self, head: &AnswerHead, choices: Vec<Value>, answers: &[Answer]) -> Value {
        let mut object = head.object("text_completion", Value::Array(choices));
        object.insert("usage".to_owned(), self.usage(answers));
        Value::Object(object)
    }
}

/// Waits for all answers.
async fn whole(
    state: &ServerState,
    completion: &Shows,
    running: Vec<Running>,
    head: &AnswerHead,
) -> Result<Response, ApiError> {
    let (mut choices, mut answers) = (Vec::new(), Vec::new());
    for (index, mut running) in running.into_iter().enumerate() {
        let mut draft = PendingCompletion::default();
        let answer = loop {
            match running.next().await {
                Some(RequestEvent::Token(token)) => draft.take(token),
                Some(RequestEvent::Done(answer)) => break *answer,
                None => return Err(ApiError::internal("the engine has failed: the log says why")),
            }
        };
        choices.push(draft.choice(state.backend.facts(), completion, index, &answer)?);
        let made = completion.made(&answer).len();
        state.metrics.ended(finish(&answer)?, made, answer.first_token, answer.took);
        answers.push(answer);
    }
    Ok(reply::json(&completion.object(head, choices, &answers)))
}

/// Answers in pieces, as they come.
fn stream(state: Arc<ServerState>, completion: Shows, running: Vec<Running>, head: AnswerHead) -> Response {
    let (stream, response) = ReplyStream::new();
    tokio::spawn(async move {
        let completion = Arc::new(completion);
        let tasks: Vec<_> = running
            .into_iter()
            .enumerate()
            .map(|(index, running)| {
                let part = StreamedChoice {
                    state: state.clone(),
                    completion: completion.clone(),
                    head: head.clone(),
                    stream: stream.clone(),
                    index,
                };
                tokio::spawn(part.run(running))
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            let Ok(Some(answer)) = task.await else { return };
            answers.push(*answer);
        }
        if completion.has_usage {
            // A client that is gone needs no figures.
            let _ = stream.send(&completion.object(&head, Vec::new(), &answers));
        }
        stream.done();
    });
    response
}

/// One of the answers of a stream.
struct StreamedChoice {
    state: Arc<ServerState>,
    completion: Arc<Shows>,
    head: AnswerHead,
    stream: ReplyStream,
    index: usize,
}

impl StreamedChoice {
    /// Passes on an answer. `None` if nobody listens any more, or it has failed.
    async fn run(self, mut running: Running) -> Option<Box<Answer>> {
        let tokenizer = tokenizer(self.state.backend.facts()).ok()?;
        if self.completion.echo {
            let prompt = &self.completion.prompts[self.index / self.completion.n];
            self.send(&tokenizer.decode(prompt).ok()?, Value::Null, None)?;
        }
        loop {
            if let Err(error) = running.accepted().await {
                return self.fail(&error.into());
            }
            let event = tokio::select! {
                event = running.next() => event,
                () = self.stream.closed() => return None,
            };
            match event {
                Some(RequestEvent::Token(token)) => {
                    let listed = token.logprobs.map_or(Value::Null, |logprobs| {
                        let mut listed = Listed::default();
                        listed.push(tokenizer, token.id, Some(&logprobs));
                        listed.json()
                    });
                    let is_asked = !self.completion.only_prompt;
                    if is_asked && (!token.text.is_empty() || !listed.is_null()) {
                        self.send(&token.text, listed, None)?;
                    }
                }
                Some(RequestEvent::Done(answer)) => match finish(&answer) {
                    Ok(reason) => {
                        self.send("", Value::Null, Some(reason))?;
                        self.state.metrics.ended(
                            reason,
                            self.completion.made(&answer).len(),
                            answer.first_token,
                            answer.took,
                        );
                        return Some(answer);
                    }
                    Err(error) => return self.fail(&error),
                },
                None => return self.fail(&ApiError::internal("the engine has failed: the log says why")),
            }
        }
    }

    fn fail(&self, error: &ApiError) -> Option<Box<Answer>> {
        self.stream.send(&error.json())?;
        self.stream.done();
        None
    }

    fn send(&self, text: &str, logprobs: Value, finish: Option<&str>) -> Option<()> {
        let choice =
            json!({ "index": self.index, "text": text, "logprobs": logprobs, "finish_reason": finish });
        let mut object = self.head.object("text_completion", json!([choice]));
        if self.completion.has_usage {
            object.insert("usage".to_owned(), Value::Null);
        }
        self.stream.send(&Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use crate::scripted::{Scripted, send, state};
    use crate::state::ServerConfig;
    use kernmill_serve::{EndReason, Finish};
    use serde_json::json;

    #[tokio::test]
    async fn what_a_drain_has_not_begun_is_to_be_sent_again() {
        let drained = Finish::Ended(EndReason::Draining);
        let messages = json!([{ "role": "user", "content": "Hi" }]);
        for (path, body) in [
            ("/v1/completions", json!({ "prompt": "Hi" })),
            ("/v1/chat/completions", json!({ "messages": messages })),
            ("/v1/responses", json!({ "input": "Hi" })),
            ("/v1/messages", json!({ "messages": messages, "max_tokens": 5 })),
            ("/api/chat", json!({ "messages": messages })),
            ("/api/generate", json!({ "prompt": "Hi" })),
        ] {
            let none = state(Scripted::new(&[], drained.clone()), ServerConfig::default());
            for streams in [false, true] {
                let mut asked = body.clone();
                asked["stream"] = json!(streams);
                let (status, headers, text) = send(&none, "POST", path, "", &asked).await;
                assert_eq!(status, 503, "{path}: {text}");
                assert!(text.contains("send it again"), "{path}: {text}");
                assert_eq!(headers["retry-after"], "5", "{path}");
            }
            let mut body = body;
            body["stream"] = json!(false);
            // An answer that has begun is cut.
            let some = state(Scripted::new(&["Hel"], drained.clone()), ServerConfig::default());
            let (status, _, text) = send(&some, "POST", path, "", &body).await;
            assert_eq!(status, 200, "{path}: {text}");
            assert!(text.contains("Hel"), "{path}: {text}");
        }
    }
}
