//! A request to `/v1/messages` or `/v1/messages/count_tokens`.

use super::messages;
use super::tools::{tool_choice, tools};
use crate::caller::Caller;
use crate::chat::request::class;
use crate::chat::turn::TurnRequest;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::AnswerForm;
use crate::sampling;
use crate::scope::salt;
use crate::state::ServerState;
use kernmill_chat::{Conversation, Effort};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A request that was read.
pub struct MessagesRequest {
    /// The turn that is asked of the model.
    pub ask: TurnRequest,
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
        state: &ServerState,
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
        // No answer is kept here. Where one would go on from it, clients then send all messages again.
        if !counts_only && fields.take("thread").is_some() {
            return Err(ApiError::thread());
        }
        let continues = messages::read(&mut fields, &mut conversation)?;
        conversation.tools = tools(&mut fields)?;
        let mut wanted = AnswerForm::default();
        conversation.effort = effort(&mut fields, &mut wanted)?;
        // The name that the field had before.
        wanted.take(&mut fields, "output_format")?;
        conversation.format = wanted.schema;
        let (choice, one_call) = tool_choice(&mut fields, &conversation)?;
        let streams = fields.flag("stream")?.unwrap_or(false);
        let ask = TurnRequest {
            known: BTreeMap::new(),
            customs: BTreeSet::new(),
            choice,
            allowed: None,
            one_call,
            // The count of a prompt has no answer.
            continues: continues && !counts_only,
            form: None,
            form_field: wanted.field,
            drafts: true,
            prediction: None,
            // The count of a prompt needs no room for an answer.
            max_tokens: max_tokens.filter(|_| !counts_only).map(|tokens| tokens as u32),
            param: "messages",
            sampler: sampling::sampler(&mut fields, scope.facts.vocab)?,
            stop: sampling::stops_of(&mut fields, "stop_sequences")?,
            stop_tokens: Vec::new(),
            logprobs: None,
            adapters,
            tenant: caller.tenant,
            salt: salt(&mut fields)?,
            class: class(&mut fields)?,
            within: scope.within,
            conversation,
        };
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        fields.refuse(
            "mcp_servers",
            is_empty,
            "the server connects to nobody; offer their tools as functions",
        )?;
        fields.pass_over(&PASSED_OVER);
        Ok(MessagesRequest { ask, model, streams, unknown: fields.rest() })
    }
}

/// How long the model is to reason. The form of the answer, which is beside it, goes to `wanted`.
fn effort(fields: &mut Fields, wanted: &mut AnswerForm) -> Result<Effort, ApiError> {
    let mut effort = Effort::default();
    if let Some(mut output) = fields.object("output_config")? {
        wanted.take(&mut output, "format")?;
        if let Some(name) = output.text("effort")? {
            let expected = "low, medium, high, xhigh or max";
            effort =
                Effort::named(&name).ok_or_else(|| output.wrong("effort", &Value::String(name), expected))?;
        }
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
