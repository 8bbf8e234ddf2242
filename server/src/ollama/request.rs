//! A request to `/api/chat` or `/api/generate`.

use super::messages::{self, no_images};
use crate::chat::request::class;
use crate::chat::tools::{Tools, tools};
use crate::chat::turn::{PreparedTurn, TurnRequest};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::AnswerForm;
use crate::limits;
use crate::sampling;
use crate::scope::RequestScope;
use kernmill_chat::{Conversation, Effort, Item, ToolChoice};
use kernmill_runtime::AdapterUse;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Which of the two routes a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaRoute {
    /// A conversation.
    Chat,
    /// One text of the user's.
    Generate,
}

/// A request that was read.
pub struct OllamaRequest {
    /// The turn that is asked of the model; `None` asks whether it is loaded.
    pub ask: Option<TurnRequest>,
    /// A prompt that goes to the model as it stands.
    pub raw: Option<String>,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Whether the answer comes in lines.
    pub streams: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}

/// Options that say how a machine shall run a model. They are taken, and change nothing of a text.
pub const OF_THE_MACHINE: [&str; 12] = [
    "numa",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "low_vram",
    "f16_kv",
    "logits_all",
    "vocab_only",
    "use_mmap",
    "use_mlock",
    "embedding_only",
];

/// The tag of a model's name that means the same as none.
const LATEST: &str = ":latest";

impl OllamaRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When the body is no JSON, or a field is wrong.
    pub fn read(
        scope: &RequestScope<'_>,
        route: OllamaRoute,
        body: &[u8],
    ) -> Result<OllamaRequest, ApiError> {
        let mut fields = Fields::of_body(body)?;
        let name = fields.text("model")?;
        let (model, adapters) = model(scope, name)?;
        let streams = fields.flag("stream")?.unwrap_or(true);
        let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
        let mut continues = false;
        let (is_empty, raw) = match route {
            OllamaRoute::Chat => {
                let list = fields.list("messages", limits::MESSAGES)?.unwrap_or_default();
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
        let top = fields.whole("top_logprobs", 0..=limits::TOP_LOGPROBS)?;
        if top.is_some() && !logprobs {
            return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs` to be true"));
        }
        let options = fields.take("options").unwrap_or_else(|| json!({}));
        let mut options = fields.within("options", options)?;
        let ask = TurnRequest {
            known: BTreeMap::new(),
            customs: BTreeSet::new(),
            choice: ToolChoice::Auto,
            allowed: None,
            one_call: false,
            continues,
            form: None,
            form_field: wanted.field,
            drafts: true,
            prediction: None,
            max_tokens: max_tokens(&mut options)?,
            param: if route == OllamaRoute::Chat { "messages" } else { "prompt" },
            sampler: {
                // By the API, -1 is a fresh seed.
                options.pass_over_if("seed", |value| value.as_i64() == Some(-1));
                sampling::sampler_with(&mut options, scope.facts.vocab, "repeat_penalty")?
            },
            stop: sampling::stops(&mut options)?,
            stop_tokens: Vec::new(),
            logprobs: logprobs.then(|| top.unwrap_or(0) as u32),
            adapters,
            tenant: scope.tenant,
            // The API has no field for one.
            salt: [0; 16],
            class: class(&mut fields)?,
            within: scope.within,
            conversation,
        };
        // A model that is served stays.
        fields.pass_over(&["keep_alive"]);
        options.pass_over(&OF_THE_MACHINE);
        Ok(OllamaRequest { ask: (!is_empty).then_some(ask), raw, model, streams, unknown: fields.rest() })
    }

    /// The turn that is asked for, if one is.
    ///
    /// # Errors
    /// As [`PreparedTurn::new`].
    pub fn prepare(&self, scope: &RequestScope<'_>) -> Result<Option<PreparedTurn>, ApiError> {
        let Some(ask) = self.ask.clone() else { return Ok(None) };
        let param = ask.param;
        let prepared = match &self.raw {
            Some(text) => PreparedTurn::raw(scope.facts, text, ask),
            None => PreparedTurn::new(scope.facts, ask),
        };
        prepared.map(Some).map_err(|error| error.renamed("messages", param))
    }
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
    Ok(options.whole("num_predict", 1..=u64::from(u32::MAX))?.map(|tokens| tokens as u32))
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
