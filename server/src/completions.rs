//! `/v1/completions`: texts that go on from prompts, with the logarithms that evaluations need.

use crate::backend::{Facts, Running};
use crate::caller::Caller;
use crate::chat::request::{PASSED_OVER, class, has_usage};
use crate::chat::turn::{held_to, tokenizer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::Own;
use crate::head::Head;
use crate::reply::{self, Stream};
use crate::scope::salt;
use crate::state::State;
use crate::{limits, prompt, sampling};
use axum::response::Response;
use kernmill::Logprobs;
use kernmill::runtime::{StopReason, Tokenizer};
use kernmill::serve::{Answer, EndReason, Event, Finish, Request};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request that was read.
struct Completion {
    model: String,
    /// By prompt and answer, in the order of the choices.
    requests: Vec<Request>,
    prompts: Vec<Vec<u32>>,
    /// Answers to each prompt.
    n: usize,
    echo: bool,
    /// Whether nothing is to be generated.
    only_prompt: bool,
    logprobs: bool,
    streams: bool,
    has_usage: bool,
    unknown: Vec<String>,
}

impl Completion {
    fn read(state: &State, caller: &Caller, body: &[u8]) -> Result<Completion, ApiError> {
        let facts = state.backend.facts();
        let mut fields = Fields::of_body(body)?;
        let scope = state.scope(caller);
        let (model, adapters) = scope.model(&mut fields)?;
        let prompts = prompts(facts, &mut fields)?;
        if let Some(record) = &caller.record {
            record.prompts(prompts.len());
        }
        let echo = fields.flag("echo")?.unwrap_or(false);
        let asked = fields.whole("max_tokens", 0..=u64::from(u32::MAX))?.unwrap_or(16) as u32;
        if asked == 0 && !echo {
            return Err(ApiError::field(
                "max_tokens",
                "`max_tokens` is 0, expected at least 1 without `echo`",
            ));
        }
        // Some clients send true for "those of the tokens".
        let logprobs = match fields.take("logprobs") {
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(0),
            Some(value) => {
                let top = value.as_u64().filter(|top| *top <= limits::TOP_LOGPROBS);
                let expected = format!("a whole number up to {}", limits::TOP_LOGPROBS);
                Some(top.ok_or_else(|| fields.wrong("logprobs", &value, &expected))? as u32)
            }
        };
        let n = fields.whole("n", 1..=limits::ANSWERS)?.unwrap_or(1);
        if let Some(best_of) = fields.whole("best_of", 1..=limits::ANSWERS)?
            && best_of != n
        {
            return Err(ApiError::field(
                "best_of",
                format!("`best_of` is {best_of}, expected {n}, which is `n`"),
            ));
        }
        if let Some(suffix) = fields.text("suffix")?
            && !suffix.is_empty()
        {
            return Err(ApiError::field(
                "suffix",
                "`suffix` is not served: the model only goes on from a prompt",
            ));
        }
        let streams = fields.flag("stream")?.unwrap_or(false);
        let has_usage = has_usage(&mut fields)?;
        let sampler = sampling::sampler(&mut fields, facts.vocab)?;
        let stop = sampling::stops(&mut fields)?;
        let goes_on = fields.flag("ignore_eos")?.unwrap_or(false);
        let mut stop_tokens = if goes_on { Vec::new() } else { facts.end_tokens.clone() };
        stop_tokens.extend(sampling::stop_tokens(&mut fields, facts.vocab)?);
        let class = class(&mut fields)?;
        let salt = salt(&mut fields)?;
        let Own { mut wanted, drafts } = Own::take(&scope, &mut fields)?;
        wanted.take(&mut fields, "response_format")?;
        let rule = wanted.rule();
        sampling::refuse(&mut fields)?;
        fields.pass_over(&PASSED_OVER);
        let mut requests = Vec::new();
        for prompt in &prompts {
            let room = facts.context.saturating_sub(prompt.len() as u32);
            // To score a prompt, no room for an answer is needed: one token is made all the same.
            let least = if asked == 0 { 0 } else { 1 };
            if asked > room || room < least || prompt.len() > facts.context as usize {
                return Err(ApiError::context("prompt", prompt.len(), Some(asked), facts.context));
            }
            for at in 0..n {
                let mut sampler = sampler.clone();
                sampler.seed = sampler.seed.map(|seed| seed.wrapping_add(at));
                let constraint = rule.as_ref().map(|rule| held_to(facts, rule, &wanted.field)).transpose()?;
                requests.push(Request {
                    constraint,
                    drafts,
                    sampler,
                    logprobs,
                    scores_prompt: echo && logprobs.is_some(),
                    stop: stop.clone(),
                    stop_tokens: stop_tokens.clone(),
                    adapters: adapters.clone(),
                    tenant: caller.tenant,
                    salt,
                    class,
                    within: state.config.longest_answer,
                    ..Request::greedy(prompt.clone(), asked.max(1))
                });
            }
        }
        let (only_prompt, logprobs, n) = (asked == 0, logprobs.is_some(), n as usize);
        let unknown = fields.rest();
        Ok(Completion {
            model,
            requests,
            prompts,
            n,
            echo,
            only_prompt,
            logprobs,
            streams,
            has_usage,
            unknown,
        })
    }
}

/// Prompts: one or several, as texts or ids.
fn prompts(facts: &Facts, fields: &mut Fields) -> Result<Vec<Vec<u32>>, ApiError> {
    let expected = "a string, a list of strings, token ids, or a list of lists of token ids";
    let value = fields.take("prompt").ok_or_else(|| fields.missing("prompt"))?;
    let wrong = |value: &Value| fields.wrong("prompt", value, expected);
    let read = |value: &Value| -> Result<Vec<u32>, ApiError> {
        let ids = match value {
            Value::String(text) => prompt::encode(facts, "prompt", text)?,
            Value::Array(ids) => {
                let id =
                    |id: &Value| id.as_u64().filter(|id| *id < u64::from(facts.vocab)).map(|id| id as u32);
                let message = || {
                    let most = facts.vocab - 1;
                    ApiError::field(
                        "prompt",
                        format!("`prompt` has a member that is no token id from 0 to {most}"),
                    )
                };
                ids.iter().map(|value| id(value).ok_or_else(message)).collect::<Result<_, _>>()?
            }
            other => return Err(wrong(other)),
        };
        if ids.is_empty() {
            return Err(ApiError::field("prompt", "`prompt` has no tokens, expected at least one"));
        }
        Ok(ids)
    };
    let list = match &value {
        Value::Array(list) if list.first().is_some_and(|first| first.is_string() || first.is_array()) => list,
        single => return Ok(vec![read(single)?]),
    };
    if list.len() > limits::PROMPTS {
        let message = format!("`prompt` has {} members, expected at most {}", list.len(), limits::PROMPTS);
        return Err(ApiError::field("prompt", message));
    }
    list.iter().map(read).collect()
}

/// Answers a request to `/v1/completions`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<State>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let mut completion = reply::blocking(move || {
        let completion = Completion::read(&worker, &caller, &body)?;
        worker.charge(&caller, completion.prompts.iter().map(Vec::len).sum())?;
        Ok(completion)
    })
    .await?;
    let mut running = Vec::new();
    for request in std::mem::take(&mut completion.requests) {
        running.push(state.submit(request, &record));
    }
    // All are taken up, before the first one has begun.
    for (at, running) in running.iter_mut().enumerate().rev() {
        running.ready(completion.streams && at == 0).await?;
    }
    let unknown = std::mem::take(&mut completion.unknown);
    let head = Head::new("cmpl-", &completion.model, state.backend.facts());
    let response = if completion.streams {
        stream(state, completion, running, head)
    } else {
        whole(&state, &completion, running, &head).await?
    };
    Ok(reply::with_warnings(response, &unknown))
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
        Finish::Stop(StopReason::MaxTokens | StopReason::Context) => Ok("length"),
        Finish::Stop(_) => Ok("stop"),
        Finish::Ended(EndReason::Draining) if answer.tokens.is_empty() => Err(ApiError::drained()),
        Finish::Ended(EndReason::Expired | EndReason::Draining) => Ok("length"),
        Finish::Ended(reason) => Err(ApiError::internal(reason.to_string())),
        Finish::Failed(why) => Err(ApiError::internal(why.clone())),
        Finish::Unavailable(why) => Err(ApiError::stage_lost(why)),
        Finish::Astray(why) => Err(ApiError::invalid(why.clone())),
    }
}

fn usage(prompt: u64, completion: u64, cached: u64) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}

/// Waits for all answers.
async fn whole(
    state: &State,
    completion: &Completion,
    running: Vec<Running>,
    head: &Head,
) -> Result<Response, ApiError> {
    let tokenizer = tokenizer(state.backend.facts())?;
    let mut choices = Vec::new();
    let [mut generated, mut cached] = [0, 0];
    for (index, mut running) in running.into_iter().enumerate() {
        let prompt = &completion.prompts[index / completion.n];
        let mut scored = Vec::new();
        let answer = loop {
            match running.next().await {
                Some(Event::Token(token)) => scored.push((token.id, token.logprobs)),
                Some(Event::Done(answer)) => break answer,
                None => return Err(ApiError::internal("the engine has failed: the log says why")),
            }
        };
        let reason = finish(&answer)?;
        let made = if completion.only_prompt { 0 } else { answer.tokens.len() };
        let mut text = String::new();
        if completion.echo {
            text = tokenizer.decode(prompt).map_err(|error| ApiError::internal(error.to_string()))?;
        }
        if !completion.only_prompt {
            text.push_str(&answer.text);
        }
        let listed = completion.logprobs.then(|| {
            let mut listed = Listed::default();
            if completion.echo {
                for (at, id) in prompt.iter().enumerate() {
                    let logprobs = at.checked_sub(1).and_then(|at| answer.prompt_logprobs.get(at));
                    listed.push(tokenizer, *id, logprobs);
                }
            }
            for (id, logprobs) in scored.iter().take(made) {
                listed.push(tokenizer, *id, logprobs.as_ref());
            }
            listed.json()
        });
        generated += made as u64;
        cached += u64::from(answer.cached_tokens);
        state.metrics.ended(reason, made, answer.first_token, answer.took);
        choices.push(json!({ "index": index, "text": text, "logprobs": listed, "finish_reason": reason }));
    }
    let prompt: usize = completion.prompts.iter().map(Vec::len).sum();
    let mut object = head.object("text_completion", json!(choices));
    object.insert("usage".to_owned(), usage(prompt as u64, generated, cached));
    Ok(reply::json(&Value::Object(object)))
}

/// Answers in pieces, as they come.
fn stream(state: Arc<State>, completion: Completion, running: Vec<Running>, head: Head) -> Response {
    let (stream, response) = Stream::new();
    tokio::spawn(async move {
        let completion = Arc::new(completion);
        let tasks: Vec<_> = running
            .into_iter()
            .enumerate()
            .map(|(index, running)| {
                let part = Part {
                    state: state.clone(),
                    completion: completion.clone(),
                    head: head.clone(),
                    stream: stream.clone(),
                    index,
                };
                tokio::spawn(part.run(running))
            })
            .collect();
        let [mut generated, mut cached] = [0, 0];
        for task in tasks {
            let Ok(Some(answer)) = task.await else { return };
            generated += answer.tokens.len() as u64;
            cached += u64::from(answer.cached_tokens);
        }
        if completion.has_usage {
            let prompt: usize = completion.prompts.iter().map(Vec::len).sum();
            let mut object = head.object("text_completion", json!([]));
            object.insert("usage".to_owned(), usage(prompt as u64, generated, cached));
            // Who is gone needs no figures.
            let _ = stream.send(&Value::Object(object));
        }
        stream.done();
    });
    response
}

/// One of the answers of a stream.
struct Part {
    state: Arc<State>,
    completion: Arc<Completion>,
    head: Head,
    stream: Stream,
    index: usize,
}

impl Part {
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
                Some(Event::Token(token)) => {
                    let listed = token.logprobs.map_or(Value::Null, |logprobs| {
                        let mut listed = Listed::default();
                        listed.push(tokenizer, token.id, Some(&logprobs));
                        listed.json()
                    });
                    if !token.text.is_empty() || !listed.is_null() {
                        self.send(&token.text, listed, None)?;
                    }
                }
                Some(Event::Done(answer)) => match finish(&answer) {
                    Ok(reason) => {
                        self.send("", Value::Null, Some(reason))?;
                        self.state.metrics.ended(
                            reason,
                            answer.tokens.len(),
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
    use crate::state::Config;
    use kernmill::serve::{EndReason, Finish};
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
            let none = state(Scripted::new(&[], drained.clone()), Config::default());
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
            // What has begun is cut.
            let some = state(Scripted::new(&["Hel"], drained.clone()), Config::default());
            let (status, _, text) = send(&some, "POST", path, "", &body).await;
            assert_eq!(status, 200, "{path}: {text}");
            assert!(text.contains("Hel"), "{path}: {text}");
        }
    }
}
