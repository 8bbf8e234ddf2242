//! A request to `/api/chat` or `/api/generate`.

use super::messages::{self, IMAGES, MESSAGE, no_images};
use crate::asked::Asked;
use crate::chat::tools::{CUSTOM, FUNCTION, Tools, tools};
use crate::chat::turn::TurnRequest;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, is, like, list, number, object, passed, text, whole};
use crate::form::AnswerForm;
use crate::limits;
use crate::sampling::{self, DRAWN, STOPS};
use crate::scope::{RequestScope, class};
use kernmill_chat::{Conversation, Effort, Item, TurnOptions};
use kernmill_runtime::AdapterUse;
use kernmill_serve::Request;
use serde_json::{Value, json};

/// Fields of a request to `/api/chat`.
pub const CHAT: Shape = object(&[
    list("messages", &MESSAGE, limits::MESSAGES),
    list("tools", &TOOL, limits::TOOLS),
    list("functions", &FUNCTION, limits::TOOLS).about("The older name of tools"),
])
.named("OllamaChatRequest", &["model"])
.with(&[&COMMON]);

const TOOL: Shape = object(&[
    is("type", "function"),
    field("function", FUNCTION),
    field("custom", CUSTOM).about("Is not served: /v1/chat/completions takes it"),
])
.needs(&["function"]);

/// Fields of a request to `/api/generate`.
pub const GENERATE: Shape = object(&[
    text("prompt"),
    text("system"),
    flag("raw").about("The prompt goes to the model as it stands"),
    field("suffix", NO_TEXT).about("Is not served"),
    field("template", NO_TEXT).about("Is not served"),
    field("context", IMAGES).about("Is not served"),
    field("images", IMAGES).about("Is not served"),
])
.named("OllamaGenerateRequest", &["model"])
.with(&[&COMMON]);

const NO_TEXT: Shape = Shape::Json(|| json!({ "enum": ["", null] }));

/// Fields that both routes have.
const COMMON: Shape = object(&[
    text("model"),
    like("format", || json!({ "anyOf": [{ "enum": ["json", "", null] }, { "type": "object" }] }))
        .about("`json`, or a JSON schema"),
    field("options", OPTIONS),
    flag("stream").about("True without it"),
    like(
        "think",
        || json!({ "enum": [true, false, "none", "minimal", "low", "medium", "high", "xhigh", "max", null] }),
    ),
    flag("logprobs"),
    whole("top_logprobs", 0, limits::TOP_LOGPROBS).about("Needs logprobs"),
    passed("keep_alive").about("Is taken, and changes nothing: the model stays"),
    text("service_tier"),
]);

/// Sampling by Ollama's names, and what says how a machine shall run a model.
const OPTIONS: Shape = object(&[
    field("num_predict", Shape::Any(&[Shape::Whole(1, limits::TOKENS), NO_LIMIT]))
        .about("-2, -1 and 0 are no limit"),
    number("repeat_penalty", 0.01, 100.0),
    field("stop", STOPS),
])
.named("OllamaOptions", &[])
.passing(
    "numa num_batch num_gpu main_gpu num_thread low_vram f16_kv logits_all vocab_only use_mmap use_mlock \
     embedding_only",
)
.with(&[&DRAWN]);

const NO_LIMIT: Shape = Shape::Json(|| json!({ "enum": [-2, -1, 0] }));

/// Which of the two routes a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaRoute {
    /// A conversation.
    Chat,
    /// One text of the user's.
    Generate,
}

/// The tag of a model's name that means the same as none.
const LATEST: &str = ":latest";

/// Reads the body of a request. One that asks for no text asks whether the model is loaded.
///
/// # Errors
/// When the body is no JSON, or a field is wrong.
pub fn read(
    scope: &RequestScope<'_>,
    route: OllamaRoute,
    body: &[u8],
) -> Result<Asked<Option<TurnRequest>>, ApiError> {
    let mut fields = Fields::of_body(if route == OllamaRoute::Chat { &CHAT } else { &GENERATE }, body)?;
    let name = fields.text("model")?;
    let (model, adapters) = model(scope, name)?;
    let streams = fields.flag("stream")?.unwrap_or(true);
    let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
    let mut continues = false;
    let (is_empty, raw) = match route {
        OllamaRoute::Chat => {
            let list = fields.list("messages")?.unwrap_or_default();
            let is_empty = list.is_empty();
            continues = messages::read(&mut fields, list, &mut conversation)?;
            let Tools { tools, customs, .. } = tools(&mut fields)?;
            if let Some(name) = customs.first() {
                let message = format!(
                    "`tools` has the custom tool `{name}`, expected functions: /v1/chat/completions takes it"
                );
                return Err(ApiError::field("tools", message));
            }
            conversation.tools = tools;
            (is_empty, None)
        }
        OllamaRoute::Generate => prompt(&mut fields, &mut conversation)?,
    };
    conversation.effort = effort(&mut fields)?;
    let wanted = format(&mut fields)?;
    conversation.format = wanted.schema;
    let logprobs = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.whole("top_logprobs")?;
    if top.is_some() && !logprobs {
        return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
    }
    let options = fields.take("options").unwrap_or_else(|| json!({}));
    let mut options = fields.within("options", options)?;
    // By the API, -1 is a fresh seed.
    options.pass_over_if("seed", |value| value.as_i64() == Some(-1));
    let request = Request {
        sampler: sampling::sampler_with(&mut options, scope.facts.vocab, "repeat_penalty")?,
        logprobs: logprobs.then(|| top.unwrap_or(0) as u32),
        class: class(&mut fields)?,
        ..scope.usual(adapters)
    };
    let stop = sampling::stops(&mut options)?;
    let param = if route == OllamaRoute::Chat { "messages" } else { "prompt" };
    let ask = TurnRequest {
        wishes: TurnOptions { continues, stop, ..TurnOptions::default() },
        form_field: wanted.field,
        max_tokens: max_tokens(&mut options)?,
        raw,
        ..TurnRequest::new(conversation, param, request)
    };
    Ok(Asked { ask: (!is_empty).then_some(ask), shows: (), model, streams, unknown: fields.rest() })
}

/// The model that is asked for: its name as the request has it, and the adapters that it stands for. A name
/// means the same with the tag `latest`.
///
/// # Errors
/// When none is named, or there is no such model.
pub fn model(scope: &RequestScope<'_>, name: Option<String>) -> Result<(String, Vec<AdapterUse>), ApiError> {
    let meant = name.as_ref().and_then(|name| {
        let plain = name.strip_suffix(LATEST).map(str::to_owned);
        let names = [Some(name.clone()), plain, Some(format!("{name}{LATEST}"))];
        names.into_iter().flatten().find(|name| scope.knows(name))
    });
    let (found, adapters) = scope.named(meant.or_else(|| name.clone()))?;
    Ok((name.unwrap_or(found), adapters))
}

/// A model's name as Ollama lists it.
pub fn tagged(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("{name}{LATEST}") }
}

/// Reads the prompt of `/api/generate`: whether it is empty, and the part that goes to the model as it
/// stands.
fn prompt(fields: &mut Fields, conversation: &mut Conversation) -> Result<(bool, Option<String>), ApiError> {
    let text = fields.text("prompt")?.unwrap_or_default();
    let system = fields.text("system")?.filter(|text| !text.is_empty());
    no_images(fields)?;
    for (field, instead) in [
        ("suffix", "the model only goes on from a prompt"),
        ("template", "the model has its own, which `raw` leaves out"),
    ] {
        if fields.text(field)?.is_some_and(|text| !text.is_empty()) {
            let name = fields.name(field);
            return Err(ApiError::field(&name, format!("`{name}` is not served: {instead}")));
        }
    }
    match fields.take("context") {
        None => {}
        Some(Value::Array(ids)) if ids.is_empty() => {}
        Some(_) => {
            let message = "`context` is not served: send what was said to /api/chat";
            return Err(ApiError::field("context", message));
        }
    }
    let is_empty = text.is_empty();
    if fields.flag("raw")?.unwrap_or(false) {
        if system.is_some() {
            let message = "`system` does not go with `raw`: the prompt goes to the model as it stands";
            return Err(ApiError::field("system", message));
        }
        return Ok((is_empty, Some(text)));
    }
    conversation.items.extend(system.map(Item::Instructions));
    conversation.items.push(Item::User { name: None, text });
    Ok((is_empty, None))
}

/// Tokens that are generated at most. Of the API's numbers, -1, -2 and 0 are no limit.
fn max_tokens(options: &mut Fields) -> Result<Option<u32>, ApiError> {
    options.pass_over_if("num_predict", |value| matches!(value.as_i64(), Some(-2..=0)));
    Ok(options.whole("num_predict")?.map(|tokens| tokens as u32))
}

/// How long the model is to reason.
fn effort(fields: &mut Fields) -> Result<Effort, ApiError> {
    let expected = "true, false, low, medium or high";
    match fields.take("think") {
        None | Some(Value::Bool(true)) => Ok(Effort::default()),
        Some(Value::Bool(false)) => Ok(Effort::None),
        Some(given) => {
            let effort = given.as_str().and_then(Effort::named);
            effort.ok_or_else(|| fields.wrong("think", &given, expected))
        }
    }
}

/// The form that the answer shall have.
fn format(fields: &mut Fields) -> Result<AnswerForm, ApiError> {
    let (mut wanted, field) = (AnswerForm::default(), "format");
    match fields.take(field) {
        None => {}
        Some(Value::String(name)) if name.is_empty() => {}
        Some(Value::String(name)) if name == "json" => wanted.any_object(field.to_owned())?,
        Some(schema @ Value::Object(_)) => wanted.schema(field.to_owned(), "answer", None, schema)?,
        Some(other) => return Err(fields.wrong(field, &other, "\"json\" or a JSON schema")),
    }
    Ok(wanted)
}
