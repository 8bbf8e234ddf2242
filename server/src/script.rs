//! Answers from a script in place of a model: for tests of the server, and of programs that use it.
//!
//! A script is an object of JSON: `tokenizer`, the path of a tokenizer.json beside it; `model`, `context`,
//! `adapters` and `token_seconds`, which may be left out; and `rules`. The first rule whose regular
//! expression `match` is found in the last message answers, with `reasoning`, `answer` or `call` (`name`,
//! `arguments`). A request's constraint is kept: a token that may not come is left out.

use crate::backend::{Backend, BackendInfo, BackendLoad, Pending, Running};
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, inner, list, number, object, text, whole};
use fancy_regex::Regex;
use kernmill::Error;
use kernmill_chat::{Format, Vocabulary};
use kernmill_constrain::Constraint;
use kernmill_os::files::{read_named, read_regular};
use kernmill_plan::chat::ChatTemplates;
use kernmill_runtime::Logprobs;
use kernmill_runtime::TokenizerHandle;
use kernmill_runtime::tokenizer::Tokenizer;
use kernmill_serve::{Answer, Finish, Request, RequestEvent, Token};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Bytes of a script, and of its tokenizer, at most.
const MOST_BYTES: u64 = 64 << 20;

const SCRIPT: Shape = object(&[
    text("tokenizer"),
    whole("vocab", 1, 1 << 24),
    text("model"),
    whole("context", 1, 1 << 24),
    list("rules", &RULE, 10_000),
    list("adapters", &Shape::Text, 1000),
    number("token_seconds", 0.0, 60.0),
])
.needs(&["tokenizer"]);

const RULE: Shape = object(&[
    text("match"),
    text("reasoning"),
    text("answer"),
    inner("call", &["name"], &[text("name"), field("arguments", Shape::Anything)]),
]);

/// A model whose answers stand in a file.
pub struct ScriptBackend {
    facts: Arc<BackendInfo>,
    rules: Arc<[ScriptRule]>,
    adapters: Mutex<Vec<String>>,
    token_time: Duration,
    load: Arc<Mutex<BackendLoad>>,
    start: Instant,
}

/// The answer to a message.
struct ScriptRule {
    pattern: Regex,
    ids: Vec<u32>,
}

impl ScriptBackend {
    /// Reads a script.
    ///
    /// # Errors
    /// When the file or its tokenizer cannot be read, or a field is wrong.
    pub fn open(path: &Path) -> Result<ScriptBackend, Error> {
        let bytes = read_named(path, MOST_BYTES).map_err(Error::read(path))?;
        ScriptBackend::read(&bytes, path).map_err(|what| Error::input(path, what))
    }

    /// Reads a script of a file at `path`; other files are beside it.
    pub(crate) fn read(bytes: &[u8], path: &Path) -> Result<ScriptBackend, String> {
        let say = |error: crate::error::ApiError| error.message().to_owned();
        let mut fields = Fields::of_body(&SCRIPT, bytes).map_err(say)?;
        let file =
            fields.text("tokenizer").map_err(say)?.ok_or("`tokenizer` is missing: a tokenizer.json")?;
        let file = path.parent().unwrap_or(Path::new(".")).join(file);
        let json = read_regular(&file, MOST_BYTES);
        let json = json.map_err(|error| format!("{}: {error}", file.display()))?;
        let vocab = fields.whole("vocab").map_err(say)?.unwrap_or(201_088) as u32;
        let fingerprint = format!("script-{}", blake3::hash(bytes).to_hex().split_at(16).0);
        let model = fields.text("model").map_err(say)?.unwrap_or_else(|| "script".to_owned());
        let context = fields.whole("context").map_err(say)?.unwrap_or(131_072) as u32;
        let facts = facts(&json, vocab, &model, context, fingerprint)?;
        let tokenizer = facts.tokenizer()?;
        let mut rules = Vec::new();
        for (at, rule) in fields.list("rules").map_err(say)?.unwrap_or_default().into_iter().enumerate() {
            let mut rule = Fields::of(&RULE, rule, &format!("rules[{at}].")).map_err(say)?;
            rules.push(ScriptRule::read(&mut rule, tokenizer, &facts.format)?);
        }
        let adapters = fields.list("adapters").map_err(say)?.unwrap_or_default();
        let adapters = adapters.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let token_time = fields.number("token_seconds").map_err(say)?.unwrap_or(0.0);
        if let Some(unknown) = fields.rest().first() {
            return Err(format!(
                "`{unknown}` is not known, expected tokenizer, vocab, model, context, adapters, token_seconds or rules"
            ));
        }
        Ok(ScriptBackend {
            facts: Arc::new(facts),
            rules: rules.into(),
            adapters: Mutex::new(adapters),
            token_time: Duration::from_secs_f64(token_time),
            load: Arc::default(),
            start: Instant::now(),
        })
    }
}

/// The facts of a model that is nothing but a tokenizer.json.
///
/// # Errors
/// When the tokenizer cannot be read.
pub fn facts(
    json: &[u8],
    vocab: u32,
    model: &str,
    context: u32,
    fingerprint: String,
) -> Result<BackendInfo, String> {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    let tokenizer = Tokenizer::from_json(json, vocab).map_err(|error| say(&error))?;
    let end_tokens = tokenizer.end_tokens();
    let (templates, handle) = (ChatTemplates::default(), Some(TokenizerHandle::from(tokenizer)));
    let facts = BackendInfo::new(model, [context, vocab], handle, &templates, &end_tokens, fingerprint);
    facts.map_err(|error| say(&error))
}

impl ScriptRule {
    fn read(fields: &mut Fields, tokenizer: &Tokenizer, format: &Format) -> Result<ScriptRule, String> {
        let say = |error: crate::error::ApiError| error.message().to_owned();
        let pattern = fields.text("match").map_err(say)?.unwrap_or_default();
        let pattern = Regex::new(&pattern).map_err(|error| format!("`{}`: {error}", fields.name("match")))?;
        let reasoning = fields.text("reasoning").map_err(say)?;
        let answer = fields.text("answer").map_err(say)?;
        let call = fields.object("call").map_err(say)?;
        let (mut ids, mut wrong) = (Vec::new(), None);
        let mut push = |marked: bool, text: &str| {
            let made = match marked {
                true => tokenizer.encode_marked(text),
                false => Vocabulary::encode_ordinary(tokenizer, text),
            };
            match made {
                Ok(made) => ids.extend(made),
                Err(error) => wrong = Some(error.to_string()),
            }
        };
        let is_harmony = matches!(format, Format::Harmony);
        if let (Some(text), true) = (&reasoning, is_harmony) {
            push(true, "<|channel|>analysis<|message|>");
            push(false, text);
            push(true, "<|end|><|start|>assistant");
        }
        if let Some(mut call) = call {
            let name = call.text("name").map_err(say)?.ok_or("a call has no `name`")?;
            let arguments = call.take("arguments").unwrap_or_default();
            let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            push(true, "<|channel|>");
            push(false, &format!("commentary to=functions.{name} "));
            push(true, "<|constrain|>json<|message|>");
            push(false, &arguments);
            push(true, "<|call|>");
        } else {
            if is_harmony {
                push(true, "<|channel|>final<|message|>");
            }
            push(false, answer.as_deref().unwrap_or_default());
            if is_harmony {
                push(true, "<|return|>");
            }
        }
        match wrong {
            None => Ok(ScriptRule { pattern, ids }),
            Some(wrong) => Err(wrong),
        }
    }
}

impl Backend for ScriptBackend {
    fn facts(&self) -> &BackendInfo {
        &self.facts
    }

    fn adapters(&self) -> Vec<String> {
        self.adapters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn submit(&self, request: Request) -> Running {
        let (events, inbox) = mpsc::unbounded_channel();
        let (accepted, answer) = oneshot::channel();
        // The sender of a request listens.
        let _ = accepted.send(Ok(()));
        let (facts, rules, load) = (self.facts.clone(), self.rules.clone(), self.load.clone());
        let token_time = self.token_time;
        let task = tokio::spawn(async move {
            let _running = Counted::new(load.clone());
            play(&facts, &rules, request, token_time, &events, &load).await;
        });
        let task = task.abort_handle();
        Running::new(answer, inbox, move || task.abort())
    }

    fn load(&self) -> BackendLoad {
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner).clone();
        BackendLoad { uptime_seconds: self.start.elapsed().as_secs_f64(), ..load }
    }

    fn load_adapter(&self, name: String, _: PathBuf) -> Pending<'_, Result<(), String>> {
        self.adapters.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Box::pin(async { Ok(()) })
    }

    fn unload_adapter(&self, name: String) -> Pending<'_, bool> {
        let mut adapters = self.adapters.lock().unwrap_or_else(PoisonError::into_inner);
        let before = adapters.len();
        adapters.retain(|own| *own != name);
        let is_gone = adapters.len() < before;
        Box::pin(async move { is_gone })
    }

    fn drain(&self, _: Duration) {
        self.load.lock().unwrap_or_else(PoisonError::into_inner).is_draining = true;
    }
}

/// A request that runs, for the figures.
struct Counted(Arc<Mutex<BackendLoad>>);

impl Counted {
    fn new(load: Arc<Mutex<BackendLoad>>) -> Counted {
        load.lock().unwrap_or_else(PoisonError::into_inner).running[2] += 1;
        Counted(load)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).running[2] -= 1;
    }
}

/// Plays the answer to a request.
async fn play(
    facts: &BackendInfo,
    rules: &[ScriptRule],
    request: Request,
    token_time: Duration,
    events: &mpsc::UnboundedSender<RequestEvent>,
    load: &Mutex<BackendLoad>,
) {
    let start = Instant::now();
    let Ok(tokenizer) = facts.tokenizer() else { return };
    let last = last_message(tokenizer, &request.prompt);
    let rule = rules.iter().find(|rule| rule.pattern.is_match(&last).unwrap_or(false));
    let mut script = rule.map(|rule| rule.ids.iter().copied()).into_iter().flatten().peekable();
    let mut constraint = request.constraint;
    let (mut tokens, mut first_token) = (Vec::new(), None);
    let finish = loop {
        if tokens.len() >= request.max_tokens as usize {
            break Finish::MaxTokens;
        }
        let Some(id) = next(tokenizer, &mut script, &mut constraint) else { break Finish::Complete };
        if !token_time.is_zero() {
            tokio::time::sleep(token_time).await;
        }
        first_token.get_or_insert(start.elapsed());
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let is_end = request.stop_tokens.contains(&id);
        let text = if is_end { String::new() } else { String::from_utf8_lossy(&bytes).into_owned() };
        let logprobs = request.logprobs.map(|_| Logprobs { token: 0.0, rank: 0, top: vec![(id, 0.0)] });
        // Where nobody listens, the task is about to be ended.
        let _ = events.send(RequestEvent::Token(Token { id, text, logprobs }));
        load.lock().unwrap_or_else(PoisonError::into_inner).generated_tokens += 1;
        if is_end {
            break Finish::Token(id);
        }
        tokens.push(id);
        tokio::task::yield_now().await;
    };
    let prompt_tokens = request.prompt.len() as u32;
    load.lock().unwrap_or_else(PoisonError::into_inner).prompt_tokens += u64::from(prompt_tokens);
    let _ = events.send(RequestEvent::Done(Box::new(Answer {
        text: tokenizer.decode(&tokens).unwrap_or_default(),
        tokens,
        prompt_tokens,
        queued: Some(Duration::ZERO),
        first_token,
        took: start.elapsed(),
        ..Answer::empty(finish)
    })));
}

/// The script's next token, if it may come; else one that brings the text nearer to its end. `None` where
/// nothing follows.
fn next(
    tokenizer: &Tokenizer,
    script: &mut std::iter::Peekable<impl Iterator<Item = u32>>,
    constraint: &mut Option<Constraint>,
) -> Option<u32> {
    let Some(constraint) = constraint else { return script.next() };
    if constraint.is_done() {
        return None;
    }
    let mask = constraint.mask().ok()?;
    // A script that has strayed is gone through until it fits again, or left.
    let fitting =
        script.next_if(|id| mask.allows(*id)).or_else(|| script.by_ref().find(|id| mask.allows(*id)));
    let closing = || mask.ids().min_by_key(|id| std::cmp::Reverse(closes(tokenizer, *id)));
    let id = fitting.or_else(closing)?;
    constraint.accept(id).ok()?;
    Some(id)
}

/// How much a token does to end what has begun: special tokens most, then what ends strings, objects and
/// lists.
fn closes(tokenizer: &Tokenizer, id: u32) -> u8 {
    if tokenizer.token(id).is_some_and(|token| tokenizer.special_token_id(&token) == Some(id)) {
        return 4;
    }
    match tokenizer.token_bytes(id).unwrap_or_default().first() {
        Some(b'"') => 3,
        Some(b'}' | b']') => 2,
        Some(b'0'..=b'9') => 1,
        _ => 0,
    }
}

/// The text of a prompt's last message, with its header.
fn last_message(tokenizer: &Tokenizer, prompt: &[u32]) -> String {
    let start = tokenizer.special_token_id("<|start|>");
    let starts: Vec<usize> = (0..prompt.len()).filter(|at| Some(prompt[*at]) == start).collect();
    // The last one is the answer's.
    let range = match starts[..] {
        [.., begin, end] => begin + 1..end,
        _ => 0..prompt.len(),
    };
    let bytes: Vec<u8> =
        prompt[range].iter().flat_map(|id| tokenizer.token_bytes(*id).unwrap_or_default()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
