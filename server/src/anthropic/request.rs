//! A request to `/v1/messages` or `/v1/messages/count_tokens`.

use super::messages::{self, MESSAGE, SYSTEM};
use super::tools::{CHOICE, TOOL, tool_choice, tools};
use crate::asked::Asked;
use crate::caller::Caller;
use crate::chat::turn::TurnRequest;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, inner, like, list, object, refused, whole};
use crate::form::{AnswerForm, FORMAT};
use crate::limits;
use crate::sampling::{self, SAMPLING, STOPS};
use crate::scope::MODEL;
use crate::state::ServerState;
use kernmill_chat::{Conversation, Effort, TurnOptions};
use serde_json::json;

/// Fields of a request.
pub const MESSAGES: Shape = object(&[
    field("messages", Shape::List(&MESSAGE, 1, limits::MESSAGES)),
    whole("max_tokens", 1, limits::TOKENS),
    field("system", SYSTEM),
    list("tools", &TOOL, limits::TOOLS),
    field("tool_choice", CHOICE),
    inner(
        "thinking",
        &["type"],
        &[
            like("type", || json!({ "enum": ["disabled", "adaptive", "enabled"] })),
            whole("budget_tokens", 1, limits::TOKENS),
        ],
    ),
    inner(
        "output_config",
        &[],
        &[
            field("effort", Shape::Words("low, medium, high, xhigh or max", &["none", "minimal"])),
            field("format", FORMAT),
        ],
    ),
    field("output_format", FORMAT).about("The older place of output_config.format"),
    like("thread", || json!({ "type": "null" })).about("Is not served: send all messages"),
    field("stop_sequences", STOPS),
    flag("stream"),
    refused("mcp_servers", "[]", "the server connects to nobody; offer their tools as functions"),
])
.named("MessagesRequest", &["model", "messages", "max_tokens"])
.passing("metadata betas cache_control inference_geo")
.with(&[&MODEL, &SAMPLING]);

/// Fields of a request whose tokens are counted.
pub const COUNTED: Shape = object(&[]).named("CountTokensRequest", &["model", "messages"]).with(&[&MESSAGES]);

/// Budgets of thinking below the first mean little effort, and from the second on much.
const BUDGETS: [u64; 2] = [2048, 8192];

/// Reads the body of a request. Where only tokens are counted, `max_tokens` may be missing.
///
/// # Errors
/// When the body is no JSON, or a field is wrong.
pub fn read(
    state: &ServerState,
    caller: &Caller,
    body: &[u8],
    counts_only: bool,
) -> Result<Asked<TurnRequest>, ApiError> {
    let scope = state.scope(caller);
    let mut fields = Fields::of_body(if counts_only { &COUNTED } else { &MESSAGES }, body)?;
    let (model, adapters) = scope.model(&mut fields)?;
    let max_tokens = fields.whole("max_tokens")?;
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
    let wishes = TurnOptions {
        choice,
        one_call,
        // The count of a prompt has no answer.
        continues: continues && !counts_only,
        stop: sampling::stops_of(&mut fields, "stop_sequences")?,
        ..TurnOptions::default()
    };
    let ask = TurnRequest {
        wishes,
        form_field: wanted.field,
        // The count of a prompt needs no room for an answer.
        max_tokens: max_tokens.filter(|_| !counts_only).map(|tokens| tokens as u32),
        ..TurnRequest::new(conversation, "messages", scope.request(&mut fields, adapters)?)
    };
    fields.refuse()?;
    Ok(Asked { ask, shows: (), model, streams, unknown: fields.rest() })
}

/// How long the model is to reason. The form of the answer, which is beside it, goes to `wanted`.
fn effort(fields: &mut Fields, wanted: &mut AnswerForm) -> Result<Effort, ApiError> {
    let mut effort = Effort::default();
    if let Some(mut output) = fields.object("output_config")? {
        wanted.take(&mut output, "format")?;
        if let Some(name) = output.text("effort")? {
            effort = Effort::named(&name).ok_or_else(|| output.unlisted("effort", &name))?;
        }
    }
    let Some(mut thinking) = fields.object("thinking")? else { return Ok(effort) };
    let kind = thinking.needed_text("type")?;
    match kind.as_str() {
        "disabled" => Ok(Effort::None),
        "adaptive" => Ok(effort),
        "enabled" => {
            let budget = thinking.whole("budget_tokens")?;
            Ok(match budget.ok_or_else(|| thinking.missing("budget_tokens"))? {
                budget if budget < BUDGETS[0] => Effort::Low,
                budget if budget >= BUDGETS[1] => Effort::High,
                _ => Effort::Medium,
            })
        }
        _ => Err(thinking.wrong("type", &json!(kind), "enabled, disabled or adaptive")),
    }
}
