//! Responses that were stored, and the items of their requests.

use super::store::StoredResponse;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::reply;
use crate::state::ServerState;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// Input items that are listed at once, unless the query says another number, and at most.
const PAGE: [usize; 2] = [20, 100];

/// The stored response `id`.
///
/// # Errors
/// When no response has the name.
pub fn stored(state: &ServerState, caller: &Caller, id: &str) -> Result<Response, ApiError> {
    Ok(reply::json(&found(state, caller, id)?.response))
}

/// Forgets the stored response `id`.
///
/// # Errors
/// When no response has the name.
pub fn delete(state: &ServerState, caller: &Caller, id: &str) -> Result<Response, ApiError> {
    if !state.responses.remove(caller.tenant, id) {
        return Err(ApiError::response(id, None));
    }
    Ok(reply::json(&json!({ "id": id, "object": "response", "deleted": true })))
}

/// Says how a response is cancelled: the stored ones have ended.
///
/// # Errors
/// Always.
pub fn cancel(state: &ServerState, caller: &Caller, id: &str) -> Result<Response, ApiError> {
    found(state, caller, id)?;
    let message =
        format!("the response `{id}` has ended: a running one is cancelled by closing its connection");
    Err(ApiError::invalid(message))
}

/// The items of the request that the stored response `id` answers, by the page that the query asks for.
///
/// # Errors
/// When no response has the name, or the query is wrong.
pub fn items(state: &ServerState, caller: &Caller, id: &str, query: &str) -> Result<Response, ApiError> {
    Ok(reply::json(&input_items(&found(state, caller, id)?.input, query)?))
}

fn found(state: &ServerState, caller: &Caller, id: &str) -> Result<Arc<StoredResponse>, ApiError> {
    state.responses.get(caller.tenant, id).ok_or_else(|| ApiError::response(id, None))
}

/// A page of the items of a request, from the last to the first unless the query says `order=asc`.
fn input_items(input: &[Value], query: &str) -> Result<Value, ApiError> {
    let [mut limit, most] = PAGE;
    let (mut is_ascending, mut after) = (false, None);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "limit" => {
                let found = value.parse().ok().filter(|limit| (1..=most).contains(limit));
                limit = found.ok_or_else(|| {
                    let message = format!("`limit` is {value}, expected a whole number from 1 to {most}");
                    ApiError::field("limit", message)
                })?;
            }
            "order" if matches!(value, "asc" | "desc") => is_ascending = value == "asc",
            "order" => {
                return Err(ApiError::field("order", format!("`order` is {value}, expected asc or desc")));
            }
            "after" => after = Some(value),
            _ => {}
        }
    }
    let mut items: Vec<&Value> = input.iter().collect();
    if !is_ascending {
        items.reverse();
    }
    if let Some(after) = after {
        let at = items.iter().position(|item| item["id"] == after).ok_or_else(|| {
            ApiError::field("after", format!("`after` is {after}, which is no item of this response"))
        })?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let id = |item: Option<&&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    Ok(json!({
        "object": "list",
        "data": items,
        "first_id": id(items.first()),
        "last_id": id(items.last()),
        "has_more": has_more,
    }))
}
