//! A request to `/v1/responses`.

use super::calls;
use super::store::GeneratedIds;
use super::tools::{Declared, NAME, TOOL};
use crate::asked::Asked;
use crate::backend::BackendInfo;
use crate::caller::Caller;
use crate::chat::messages::{self, ARGUMENTS, CONTENT};
use crate::chat::request::EFFORT;
use crate::chat::tools::{CHOICE, tool_choice};
use crate::chat::turn::{TurnRequest, tokenizer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, free, inner, like, list, name, object, text, whole, words};
use crate::form::{AnswerExtras, AnswerForm, FORMAT, FORMS};
use crate::ids;
use crate::limits;
use crate::sampling::{self, SAMPLING, VLLM};
use crate::scope::MODEL;
use crate::state::ServerState;
use kernmill_chat::{AnswerPart, Conversation, Effort, Item, TurnOptions};
use kernmill_runtime::SamplerParams;
use kernmill_serve::{Class, Request};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Fields of a request.
pub const RESPONSES: Shape = object(&[
    field("input", Shape::Any(&[Shape::Text, Shape::List(&ITEM, 1, limits::MESSAGES)])),
    text("instructions"),
    text("previous_response_id"),
    list("tools", &TOOL, limits::TOOLS),
    field("tool_choice", CHOICE),
    inner("text", &[], &[text("verbosity"), field("format", FORMAT)]),
    inner("reasoning", &[], &[field("effort", EFFORT)]),
    whole("max_output_tokens", 1, limits::TOKENS),
    free("metadata"),
    list("include", &Shape::Text, limits::MESSAGES).about("reasoning.encrypted_content is known"),
    flag("stream"),
    flag("store"),
    like("background", || json!({ "enum": [false, null] })).about("Is not served"),
    whole("top_logprobs", 0, limits::TOP_LOGPROBS).about("0 alone is served"),
    like("conversation", || json!({ "type": "null" })).about("Is not served"),
    like("prompt", || json!({ "type": "null" })).about("Is not served"),
    flag("parallel_tool_calls"),
    text("prompt_cache_key"),
    text("safety_identifier"),
    text("user"),
])
.named("ResponsesRequest", &["model", "input"])
.passing(
    "truncation max_tool_calls stream_options prompt_cache_retention \
     client_metadata context_management moderation",
)
.with(&[&MODEL, &SAMPLING, &FORMS, &VLLM]);

/// A part of reasoning.
const PART: Shape = object(&[text("type"), text("text")]).needs(&["text"]);

/// An item of the input.
const ITEM: Shape = object(&[
    words(
        "type",
        "message, reasoning, function_call, function_call_output, custom_tool_call, \
             custom_tool_call_output, item_reference or compaction",
    ),
    field("id", Shape::Anything),
    field("status", Shape::Anything),
    words("role", "user, assistant, system or developer"),
    text("phase"),
    field("content", Shape::Any(&[CONTENT, Shape::List(&PART, 0, limits::MESSAGES)])),
    list("summary", &PART, limits::MESSAGES),
    text("encrypted_content").about("By this server, since its start, for the same key"),
    text("call_id"),
    name(NAME),
    text("namespace"),
    field("arguments", ARGUMENTS),
    text("input").about("Of a custom tool"),
    field("output", CONTENT),
])
.named("InputItem", &[]);

/// The parts that a response shows, and those that are kept.
pub struct Shows {
    /// Fields that the response repeats.
    pub echo: Map<String, Value>,
    /// Items that the request brought along, each with an id.
    pub input: Vec<Value>,
    /// The conversation so far, without the instructions of this request.
    pub said: Vec<Item>,
    /// Ids of what the model said of it, as far as they are known.
    pub generated: GeneratedIds,
    /// Functions in namespaces by the names that the model is told: their namespaces and names.
    pub spaces: BTreeMap<String, [String; 2]>,
    /// Whether the response can be asked for again.
    pub stores: bool,
    /// Whether items of reasoning bring their ids along.
    pub seals: bool,
}

/// Reads the body of a request.
///
/// # Errors
/// When the body is no JSON, a field is wrong, or the previous response is not there.
pub fn read(
    state: &ServerState,
    caller: &Caller,
    body: &[u8],
) -> Result<Asked<TurnRequest, Shows>, ApiError> {
    let scope = state.scope(caller);
    let mut fields = Fields::of_body(&RESPONSES, body)?;
    let (model, adapters) = scope.model(&mut fields)?;
    refuse(&mut fields)?;
    let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
    let previous = fields.text("previous_response_id")?;
    let mut generated = GeneratedIds::new();
    if let Some(id) = &previous {
        let stored = state.responses.get(caller.tenant, id);
        let stored = stored.ok_or_else(|| ApiError::response(id, Some("previous_response_id")))?;
        conversation.items.extend(stored.items.iter().cloned());
        generated.extend_from_slice(stored.generated_by(&state.backend.facts().model));
    }
    let (input, sealed) = ItemReader { state, caller }.items(&mut fields, &mut conversation)?;
    generated.extend(sealed);
    let said = conversation.items.clone();
    let instructions = fields.text("instructions")?;
    if let Some(text) = instructions.clone().filter(|text| !text.is_empty()) {
        conversation.items.insert(0, Item::Instructions(text));
    }
    let Declared { tools, customs, shown: shown_tools, spaces } = Declared::take(&mut fields)?;
    conversation.tools = tools;
    let shown_choice = fields.look("tool_choice").unwrap_or_else(|| json!("auto"));
    let (choice, allowed) = tool_choice(&mut fields, "tool_choice", &conversation)?;
    let AnswerExtras { mut wanted, drafts } = AnswerExtras::take(&scope, &mut fields)?;
    let text = form(&mut fields, &mut wanted)?;
    fields.refuse()?;
    conversation.format = wanted.schema;
    conversation.effort = effort(&mut fields)?;
    let max_tokens = fields.whole("max_output_tokens")?;
    let request = scope.request(&mut fields, adapters)?;
    let streams = fields.flag("stream")?.unwrap_or(false);
    let stores = fields.flag("store")?.unwrap_or(true);
    let metadata = fields.take("metadata").unwrap_or_else(|| json!({}));
    if !metadata.is_object() {
        return Err(fields.wrong("metadata", &metadata, "an object"));
    }
    let is_parallel = fields.flag("parallel_tool_calls")?.unwrap_or(true);
    let mut echo = Map::new();
    let mut put = |name: &str, value: Value| drop(echo.insert(name.to_owned(), value));
    put("background", json!(false));
    put("instructions", json!(instructions));
    put("max_output_tokens", json!(max_tokens));
    put("max_tool_calls", Value::Null);
    put("metadata", metadata);
    put("model", json!(model));
    put("parallel_tool_calls", json!(is_parallel));
    put("previous_response_id", json!(previous));
    put("prompt_cache_key", json!(fields.text("prompt_cache_key")?));
    put("reasoning", json!({ "effort": conversation.effort.name(), "summary": null }));
    put("safety_identifier", json!(fields.text("safety_identifier")?));
    put("service_tier", json!(if request.class == Class::Batch { "flex" } else { "default" }));
    put("store", json!(stores));
    put_sampler(&mut put, &request.sampler);
    put("text", text);
    put("tool_choice", shown_choice);
    put("tools", json!(shown_tools));
    put("top_logprobs", json!(0));
    put("truncation", json!("disabled"));
    put("user", json!(fields.text("user")?));
    let seals = includes_seals(&mut fields)?;
    let known =
        known(scope.facts, &conversation, &generated, instructions.is_some_and(|text| !text.is_empty()))?;
    let stop_tokens = sampling::stop_tokens(&mut fields, scope.facts.vocab)?;
    let wishes =
        TurnOptions { choice, allowed, one_call: !is_parallel, form: wanted.text, ..TurnOptions::default() };
    let ask = TurnRequest {
        known,
        customs,
        wishes,
        form_field: wanted.field,
        max_tokens: max_tokens.map(|tokens| tokens as u32),
        ..TurnRequest::new(conversation, "input", Request { stop_tokens, drafts, ..request })
    };
    let shows = Shows { echo, input, said, generated, spaces, stores, seals };
    Ok(Asked { ask, shows, model, streams, unknown: fields.rest() })
}

fn put_sampler(put: &mut impl FnMut(&str, Value), sampler: &SamplerParams) {
    // The number as it was sent: 0.7 is no sum of powers of two, and a wider type would show that.
    let short = |value: f32| json!(value.to_string().parse::<f64>().unwrap_or(f64::from(value)));
    put("temperature", short(sampler.temperature));
    put("top_p", short(sampler.top_p));
    put("presence_penalty", short(sampler.presence_penalty));
    put("frequency_penalty", short(sampler.frequency_penalty));
}

/// Refuses fields that would change the answer, and that this server does nothing about.
fn refuse(fields: &mut Fields) -> Result<(), ApiError> {
    if fields.flag("background")? == Some(true) {
        let message = "`background` is true, expected false: ask with `stream` for long answers";
        return Err(ApiError::field("background", message));
    }
    if fields.whole("top_logprobs")?.is_some_and(|top| top > 0) {
        let message = "`top_logprobs` is not 0: /v1/chat/completions has logprobs";
        return Err(ApiError::field("top_logprobs", message));
    }
    for (name, help) in
        [("conversation", "send `previous_response_id` or all items"), ("prompt", "send `instructions`")]
    {
        if fields.take(name).is_some() {
            return Err(ApiError::field(name, format!("`{name}` names nothing that is kept here: {help}")));
        }
    }
    Ok(())
}

/// Whether `include` asks for the ids of reasoning. Its other values ask for things that are in a response
/// anyway, or that this server lacks.
fn includes_seals(fields: &mut Fields) -> Result<bool, ApiError> {
    let list = fields.list("include")?.unwrap_or_default();
    Ok(list.iter().any(|name| name == "reasoning.encrypted_content"))
}

/// Ids of messages that the model generated, by the place of their item, as far as the items behind the
/// reasoning are still those.
fn known(
    facts: &BackendInfo,
    conversation: &Conversation,
    generated: &GeneratedIds,
    is_instructed: bool,
) -> Result<BTreeMap<usize, Vec<u32>>, ApiError> {
    let mut known = BTreeMap::new();
    for (at, ids) in generated {
        // Instructions stand before all items.
        let at = at + usize::from(is_instructed);
        let messages = facts.format.messages(tokenizer(facts)?, conversation, ids);
        let messages = messages.map_err(|error| ApiError::field("input", error.to_string()))?;
        for ((place, item), (part, text, ids)) in conversation.items.iter().enumerate().skip(at).zip(messages)
        {
            let is_same = match (item, &part) {
                (Item::Reasoning(own), AnswerPart::Reasoning)
                | (Item::Preamble(own), AnswerPart::Preamble) => *own == text,
                (Item::Call(call), AnswerPart::Call { name, is_builtin }) => {
                    (&call.name, call.is_builtin) == (name, *is_builtin) && is_same(&call.arguments, &text)
                }
                _ => false,
            };
            if !is_same {
                break;
            }
            known.insert(place, ids);
        }
    }
    Ok(known)
}

/// Whether arguments are the same: those of custom tools are written anew.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == other || read(one).is_some_and(|value| read(other) == Some(value))
}

/// The context in which items are read.
struct ItemReader<'a> {
    state: &'a ServerState,
    caller: &'a Caller,
}

/// Items as they are shown, and the places of reasoning whose ids came along.
type ReadItems = (Vec<Value>, GeneratedIds);

impl ItemReader<'_> {
    /// Appends the items of `input` to a conversation, and gives them as they are shown.
    fn items(&self, fields: &mut Fields, conversation: &mut Conversation) -> Result<ReadItems, ApiError> {
        let list = match fields.take("input") {
            None => return Err(fields.missing("input")),
            Some(Value::String(text)) => vec![json!({ "type": "message", "role": "user", "content": text })],
            Some(Value::Array(list)) if (1..=limits::MESSAGES).contains(&list.len()) => list,
            Some(other) => {
                let expected = format!("a string, or a list of 1 to {} items", limits::MESSAGES);
                return Err(fields.wrong("input", &other, &expected));
            }
        };
        let (mut input, mut sealed) = (Vec::new(), Vec::new());
        for (at, value) in list.into_iter().enumerate() {
            let (value, ids) = self.resolved(value, &format!("{}[{at}]", fields.name("input")))?;
            sealed.extend(ids.map(|ids| (conversation.items.len(), ids)));
            let mut item = fields.within(&format!("input[{at}]"), value.clone())?;
            item.pass_over(&["id", "status", "created_by"]);
            let kind = item.text("type")?.unwrap_or_else(|| "message".to_owned());
            match kind.as_str() {
                "message" => message(&mut item, conversation)?,
                "reasoning" => {
                    let place = conversation.items.len();
                    let ids = self.reasoning(&mut item, conversation)?;
                    sealed.extend(ids.map(|ids| (place, ids)));
                }
                "compaction" => conversation.items.push(self.summary(&mut item)?),
                "function_call" => calls::function(&mut item, conversation)?,
                "custom_tool_call" => calls::custom(&mut item, conversation)?,
                "function_call_output" | "custom_tool_call_output" => {
                    calls::output(&mut item, conversation)?;
                }
                _ => return Err(item.unlisted("type", &kind)),
            }
            input.push(shown(value, &kind));
        }
        messages::order_results(&mut conversation.items);
        Ok((input, sealed))
    }

    /// The item that stands for a value of the input, with the ids of its reasoning where they are known:
    /// that of a stored response, where the value only names it.
    fn resolved(&self, value: Value, param: &str) -> Result<(Value, Option<Vec<u32>>), ApiError> {
        let is_named = match value["type"].as_str() {
            Some(kind) => kind == "item_reference",
            None => value["role"].is_null() && value["id"].is_string(),
        };
        if !is_named {
            return Ok((value, None));
        }
        let Some(id) = value["id"].as_str() else {
            return Err(Fields::of(&ITEM, value, &format!("{param}."))?.missing("id"));
        };
        let model = &self.state.backend.facts().model;
        let found = self.state.responses.item(self.caller.tenant, id, model);
        found.ok_or_else(|| ApiError::item(id, param))
    }

    /// Reads reasoning of an earlier answer: its content, or else its summary, or else what its ids say.
    /// Gives the ids, if they came along.
    fn reasoning(
        &self,
        item: &mut Fields,
        conversation: &mut Conversation,
    ) -> Result<Option<Vec<u32>>, ApiError> {
        let ids = match item.text("encrypted_content")? {
            None => None,
            Some(sealed) => {
                let ids = self.state.seal.open_ids(self.caller.tenant, &sealed);
                Some(ids.ok_or_else(|| foreign(item))?)
            }
        };
        let mut text = String::new();
        for (field, expected) in [("content", "reasoning_text"), ("summary", "summary_text")] {
            for (at, part) in item.list(field)?.unwrap_or_default().into_iter().enumerate() {
                let mut part = item.within(&format!("{field}[{at}]"), part)?;
                let kind = part.text("type")?.unwrap_or_else(|| expected.to_owned());
                if kind != expected && kind != "text" {
                    return Err(part.wrong("type", &Value::String(kind), &format!("\"{expected}\"")));
                }
                text.push_str(&part.needed_text("text")?);
            }
            if !text.is_empty() {
                break;
            }
        }
        item.pass_over(&["summary"]);
        if let Some(ids) = ids.as_ref().filter(|_| text.is_empty()) {
            let facts = self.state.backend.facts();
            let messages = facts.format.messages(tokenizer(facts)?, conversation, ids);
            let messages = messages.map_err(|error| ApiError::field("input", error.to_string()))?;
            let own = messages.into_iter().next().filter(|(part, ..)| *part == AnswerPart::Reasoning);
            text = own.map(|(_, text, _)| text).unwrap_or_default();
        }
        if text.is_empty() {
            return Ok(None);
        }
        conversation.items.push(Item::Reasoning(text));
        Ok(ids)
    }

    /// The summary of an earlier conversation. The model reads it as something that it is told, not as the
    /// operator's instructions: it was made of what users said.
    fn summary(&self, item: &mut Fields) -> Result<Item, ApiError> {
        let sealed = item.needed_text("encrypted_content")?;
        let text = self.state.seal.open_text(self.caller.tenant, &sealed).ok_or_else(|| foreign(item))?;
        Ok(Item::User { name: None, text: format!("Summary of the conversation so far:\n\n{text}") })
    }
}

/// An error about a content that this server has not sealed for the caller.
fn foreign(item: &Fields) -> ApiError {
    let name = item.name("encrypted_content");
    let message = format!(
        "`{name}` is not by this model for this key, or from before the server's last start: send the item without it"
    );
    ApiError::field(name, message)
}

/// An item of the input as it is shown later: with its type, an id, and content in parts.
fn shown(mut item: Value, kind: &str) -> Value {
    let prefix = match kind {
        "message" => "msg_",
        "reasoning" => "rs_",
        "compaction" => "cmp_",
        "function_call" => "fc_",
        "custom_tool_call" => "ctc_",
        "custom_tool_call_output" => "ctco_",
        _ => "fco_",
    };
    if let Some(object) = item.as_object_mut() {
        object.insert("type".to_owned(), json!(kind));
        if !object.get("id").is_some_and(Value::is_string) {
            object.insert("id".to_owned(), json!(ids::new(prefix)));
        }
        if !object.get("status").is_some_and(Value::is_string) {
            object.insert("status".to_owned(), json!("completed"));
        }
        if let Some(Value::String(text)) = object.get("content") {
            let is_answer = object.get("role").is_some_and(|role| role == "assistant");
            let part = if is_answer {
                json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
            } else {
                json!({ "type": "input_text", "text": text })
            };
            object.insert("content".to_owned(), json!([part]));
        }
    }
    item
}

fn message(item: &mut Fields, conversation: &mut Conversation) -> Result<(), ApiError> {
    let role = item.needed_text("role")?;
    let text = messages::content(item)?.ok_or_else(|| item.missing("content"))?;
    conversation.items.push(match role.as_str() {
        "user" => Item::User { name: None, text },
        "system" | "developer" => Item::Instructions(text),
        "assistant" if item.text("phase")?.as_deref() == Some("commentary") => Item::Preamble(text),
        "assistant" => Item::Answer(text),
        _ => return Err(item.unlisted("role", &role)),
    });
    Ok(())
}

/// Reads the form that the answer shall have, and gives it as it is shown.
fn form(fields: &mut Fields, wanted: &mut AnswerForm) -> Result<Value, ApiError> {
    let mut shown = json!({ "format": { "type": "text" }, "verbosity": "medium" });
    let Some(mut text) = fields.object("text")? else { return Ok(shown) };
    // No other length than this one can be asked for.
    text.pass_over_if("verbosity", |verbosity| verbosity == "medium");
    if let Some(verbosity) = text.look("verbosity") {
        shown["verbosity"] = verbosity;
    }
    let given = text.look("format").unwrap_or_default();
    wanted.take(&mut text, "format")?;
    if given["type"] != "text" && given.is_object() {
        shown["format"] = given;
    }
    if shown["format"]["type"] == "json_schema" {
        let format = &mut shown["format"];
        for (name, usual) in
            [("name", json!("answer")), ("description", Value::Null), ("strict", json!(true))]
        {
            if format[name].is_null() {
                format[name] = usual;
            }
        }
    }
    Ok(shown)
}

fn effort(fields: &mut Fields) -> Result<Effort, ApiError> {
    let Some(mut reasoning) = fields.object("reasoning")? else { return Ok(Effort::default()) };
    let Some(effort) = reasoning.text("effort")? else { return Ok(Effort::default()) };
    Effort::named(&effort).ok_or_else(|| reasoning.unlisted("effort", &effort))
}
