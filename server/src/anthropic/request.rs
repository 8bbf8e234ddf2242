//! A request to `/v1/messages` or `/v1/messages/count_tokens`.

use super::messages;
use crate::caller::Caller;
use crate::chat::messages::{check_names, tool_with};
use crate::chat::request::{check_choice, class};
use crate::chat::turn::Ask;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::limits;
use crate::sampling;
use crate::scope::salt;
use crate::state::State;
use kernmill::chat::ToolChoice;
use kernmill::chat::{Conversation, Effort, Tool};
use serde_json::Value;
use std::collections::BTreeMap;

/// A request that was read.
pub struct MessagesRequest {
    /// What is asked of the model.
    pub ask: Ask,
    /// Name of the model or adapter, as the answer repeats it.
    pub model: String,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Names of fields that mean nothing here.
    pub unknown: Vec<String>,
}

/// Budgets of thinking below the first mean little effort, and from the second on much.
const BUDGETS: [u64; 2] = [2048, 8192];

/// Fields of Anthropic's API that are taken and change nothing.
const PASSED_OVER: [&str; 4] = ["metadata", "betas", "cache_control", "inference_geo"];

impl MessagesRequest {
    /// Reads the body of a request. Where only tokens are counted, `max_tokens` may be missing.
    ///
    /// # Errors
    /// When the body is no JSON, or a field is wrong.
    pub fn read(
        state: &State,
        caller: &Caller,
        body: &[u8],
        counts_only: bool,
    ) -> Result<MessagesRequest, ApiError> {
        let scope = state.scope(caller);
        let mut fields = Fields::of_body(body)?;
        let (model, adapters) = scope.model(&mut fields)?;
        let max_tokens = fields.whole("max_tokens", 1..=u64::from(u32::MAX))?;
        if max_tokens.is_none() && !counts_only {
            return Err(fields.missing("max_tokens"));
        }
        let mut conversation = Conversation { date: scope.date, ..Conversation::default() };
        messages::read(&mut fields, &mut conversation)?;
        conversation.tools = tools(&mut fields)?;
        conversation.effort = effort(&mut fields)?;
        let choice = tool_choice(&mut fields, &conversation)?;
        let streams = fields.flag("stream")?.unwrap_or(false);
        let ask = Ask {
            known: BTreeMap::new(),
            choice,
            form: None,
            drafts: true,
            prediction: None,
            // The count of a prompt needs no room for an answer.
            max_tokens: max_tokens.filter(|_| !counts_only).map(|tokens| tokens as u32),
            param: "messages",
            sampler: sampling::sampler(&mut fields, scope.facts.vocab)?,
            stop: sampling::stops_of(&mut fields, "stop_sequences")?,
            logprobs: None,
            adapters,
            tenant: caller.tenant,
            salt: salt(&mut fields)?,
            class: class(&mut fields)?,
            within: scope.within,
            conversation,
        };
        fields.pass_over(&PASSED_OVER);
        Ok(MessagesRequest { ask, model, streams, unknown: fields.rest() })
    }
}

/// Functions that the model may call. Tools of other types run at Anthropic alone, and are left out.
fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools", limits::TOOLS)?.unwrap_or_default();
    let mut tools = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        let mut tool = Fields::of(tool, &format!("{}[{at}].", fields.name("tools")))?;
        if tool.text("type")?.is_none_or(|kind| kind == "custom") {
            tools.push(tool_with(&mut tool, "input_schema")?);
        }
    }
    check_names(&tools, &fields.name("tools"))?;
    Ok(tools)
}

fn tool_choice(fields: &mut Fields, conversation: &Conversation) -> Result<ToolChoice, ApiError> {
    let Some(mut given) = fields.object("tool_choice")? else { return Ok(ToolChoice::Auto) };
    let kind = given.text("type")?.ok_or_else(|| given.missing("type"))?;
    let choice = match kind.as_str() {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Function(given.text("name")?.ok_or_else(|| given.missing("name"))?),
        _ => return Err(given.wrong("type", &Value::String(kind), "auto, any, tool or none")),
    };
    check_choice(&choice, conversation)?;
    Ok(choice)
}

/// How long the model is to reason.
fn effort(fields: &mut Fields) -> Result<Effort, ApiError> {
    let mut effort = Effort::default();
    if let Some(mut output) = fields.object("output_config")?
        && let Some(name) = output.text("effort")?
    {
        let expected = "low, medium, high or max";
        effort = Effort::named(&name)
            .ok_or_else(|| output.wrong("effort", &Value::String(name.clone()), expected))?;
    }
    let Some(mut thinking) = fields.object("thinking")? else { return Ok(effort) };
    let kind = thinking.text("type")?.ok_or_else(|| thinking.missing("type"))?;
    match kind.as_str() {
        "disabled" => Ok(Effort::None),
        "adaptive" => Ok(effort),
        "enabled" => {
            let budget = thinking.whole("budget_tokens", 1..=u64::from(u32::MAX))?;
            Ok(match budget.ok_or_else(|| thinking.missing("budget_tokens"))? {
                budget if budget < BUDGETS[0] => Effort::Low,
                budget if budget >= BUDGETS[1] => Effort::High,
                _ => Effort::Medium,
            })
        }
        _ => Err(thinking.wrong("type", &Value::String(kind), "enabled, disabled or adaptive")),
    }
}
