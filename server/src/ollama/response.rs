//! Answers of `/api/chat` and `/api/generate`, whole or in lines.

use super::events::AnswerEvents;
use super::request::{self, OllamaRoute};
use crate::caller::Caller;
use crate::chat::pieces::AnswerPiece;
use crate::chat::turn::{PreparedTurn, RunningTurn};
use crate::error::ApiError;
use crate::reply::{self, ReplyStream};
use crate::state::ServerState;
use axum::response::Response;
use std::sync::Arc;

/// Answers a request to `/api/chat`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn answer(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    respond(state, caller, OllamaRoute::Chat, body).await
}

/// Answers a request to `/api/generate`.
///
/// # Errors
/// When the request is wrong or not taken up.
pub async fn generate(state: Arc<ServerState>, caller: Caller, body: Vec<u8>) -> Result<Response, ApiError> {
    respond(state, caller, OllamaRoute::Generate, body).await
}

async fn respond(
    state: Arc<ServerState>,
    caller: Caller,
    route: OllamaRoute,
    body: Vec<u8>,
) -> Result<Response, ApiError> {
    let record = caller.record.clone();
    let worker = state.clone();
    let (request, prepared) = reply::blocking(move || {
        let request = request::read(&worker.scope(&caller), route, &body)?;
        let facts = worker.backend.facts();
        let prepared = request.ask.clone().map(|ask| PreparedTurn::new(facts, ask)).transpose()?;
        if let Some(prepared) = &prepared {
            worker.charge(&caller, prepared.prompt_tokens())?;
        }
        Ok((request, prepared))
    })
    .await?;
    let answer = AnswerEvents::new(route, request.model);
    let Some(prepared) = prepared else {
        return Ok(reply::with_warnings(reply::json(&answer.loaded()), &request.unknown));
    };
    let mut turn = prepared.start(state.backend.clone(), |request| state.submit(request, &record));
    turn.ready(request.streams).await?;
    let response = if request.streams {
        let (stream, response) = ReplyStream::lines();
        tokio::spawn(run(state, turn, answer, stream));
        response
    } else {
        whole(&state, turn, answer).await?
    };
    Ok(reply::with_warnings(response, &request.unknown))
}

async fn whole(
    state: &ServerState,
    mut turn: RunningTurn,
    mut answer: AnswerEvents,
) -> Result<Response, ApiError> {
    while let Some(piece) = turn.next().await {
        let AnswerPiece::Done(outcome) = piece else {
            answer.take(state.backend.facts(), piece);
            continue;
        };
        if let Some(error) = outcome.error() {
            return Err(error);
        }
        state.ended(&outcome);
        return Ok(reply::json(&answer.whole(&outcome)));
    }
    Err(ApiError::internal("the answer has no end"))
}

/// Sends lines as they come. Ends early if nobody listens any more.
async fn run(state: Arc<ServerState>, mut turn: RunningTurn, mut answer: AnswerEvents, stream: ReplyStream) {
    loop {
        // A client that is gone ends the turn, also while nothing comes.
        let piece = tokio::select! {
            piece = turn.next() => piece,
            () = stream.closed() => return,
        };
        let line = match piece {
            None => return,
            Some(AnswerPiece::Done(outcome)) => Some(match outcome.error() {
                Some(error) => error.ollama(),
                None => {
                    state.ended(&outcome);
                    answer.end(&outcome)
                }
            }),
            Some(piece) => answer.take(state.backend.facts(), piece),
        };
        if let Some(line) = line
            && stream.send_line(&line).is_none()
        {
            return;
        }
    }
}
