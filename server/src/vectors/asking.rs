//! Parts that the routes of vectors and scores share: how requests are read and run.

use crate::backend::BackendInfo;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, object, text};
use crate::limits;
use crate::scope::{MODEL, RequestScope, class, salt};
use crate::state::ServerState;
use kernmill_runtime::AdapterUse;
use kernmill_serve::{Answer, EndReason, Finish, Request, RequestEvent};
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests of one client's request that wait or run at the same time.
const AT_ONCE: usize = 32;

/// Fields that all of these routes have.
pub(super) const COMMON: Shape =
    object(&[text("service_tier")]).named("VectorFields", &[]).passing("user").with(&[&MODEL]);

/// Properties of a route's requests besides their prompts.
pub(super) struct Usual<'a> {
    scope: &'a RequestScope<'a>,
    /// The model, as the request names it.
    pub model: String,
    adapters: Vec<AdapterUse>,
    salt: [u8; 16],
    class: kernmill_serve::Class,
}

impl<'a> Usual<'a> {
    /// Reads the fields that all routes have.
    pub fn take(scope: &'a RequestScope<'a>, fields: &mut Fields) -> Result<Usual<'a>, ApiError> {
        let named = scope.model(fields)?;
        Usual::of_model(scope, named, fields)
    }

    /// Reads them for a model and its adapters that were found already.
    pub fn of_model(
        scope: &'a RequestScope<'a>,
        (model, adapters): (String, Vec<AdapterUse>),
        fields: &mut Fields,
    ) -> Result<Usual<'a>, ApiError> {
        Ok(Usual { scope, model, adapters, salt: salt(fields)?, class: class(fields)? })
    }

    /// A request with them, as its caller may have it.
    fn of(&self, request: Request) -> Request {
        Request {
            adapters: self.adapters.clone(),
            salt: self.salt,
            class: self.class,
            tenant: self.scope.tenant,
            within: self.scope.within,
            ..request
        }
    }

    /// All requests with them, whose tokens are counted.
    pub fn all(&self, requests: Vec<Request>, field: &str) -> Result<Vec<Request>, ApiError> {
        if let Some(record) = &self.scope.record {
            record.prompts(requests.len());
        }
        let tokens: usize = requests.iter().map(|request| request.prompt.len()).sum();
        if tokens > limits::INPUT_TOKENS {
            let most = limits::INPUT_TOKENS;
            let message =
                format!("`{field}` has {tokens} tokens in all, expected at most {most}: send less at once");
            return Err(ApiError::field(field, message));
        }
        Ok(requests.into_iter().map(|request| self.of(request)).collect())
    }
}

/// Refuses what a model of texts does not make.
pub(super) fn check_makes_vectors(facts: &BackendInfo) -> Result<(), ApiError> {
    match facts.vectors {
        Some(_) => Ok(()),
        None => Err(ApiError::not_found(
            "this model makes texts, and no embeddings: start the server with --vectors last, or with a model \
             for embeddings, which may stand beside this one (--also)",
        )),
    }
}

/// Runs requests, a few at a time, and waits for all answers, which come in their order.
pub(super) async fn run(
    state: &Arc<ServerState>,
    caller: &Caller,
    requests: Vec<Request>,
) -> Result<Vec<Answer>, ApiError> {
    let tokens = requests.iter().map(|request| request.prompt.len()).sum();
    state.charge(caller, tokens)?;
    let (mut waiting, mut running) = (requests.into_iter(), VecDeque::new());
    let mut answers = Vec::new();
    loop {
        while running.len() < AT_ONCE
            && let Some(request) = waiting.next()
        {
            running.push_back(state.submit(request, &caller.record));
        }
        let Some(mut next) = running.pop_front() else { return Ok(answers) };
        next.accepted().await?;
        let answer = loop {
            match next.next().await {
                Some(RequestEvent::Token(_)) => {}
                Some(RequestEvent::Done(answer)) => break *answer,
                None => return Err(ApiError::internal("the engine has failed: the log says why")),
            }
        };
        check(&answer)?;
        state.metrics.ended("stop", 0, answer.first_token, answer.took);
        answers.push(answer);
    }
}

/// Refuses an answer that has ended without its numbers.
fn check(answer: &Answer) -> Result<(), ApiError> {
    match &answer.finish {
        _ if !answer.values.is_empty() => Ok(()),
        Finish::Ended(EndReason::Draining) => Err(ApiError::drained()),
        Finish::Ended(reason) => Err(ApiError::unavailable(format!("the request was ended: {reason}"))),
        Finish::Failed(why) => Err(ApiError::internal(why.clone())),
        Finish::Unavailable(why) => Err(ApiError::stage_lost(why)),
        Finish::Astray(why) => Err(ApiError::invalid(why.clone())),
        _ => Err(ApiError::internal("the request has ended without its numbers")),
    }
}

/// Tokens of the prompts of these answers.
pub(super) fn tokens(answers: &[Answer]) -> u64 {
    answers.iter().map(|answer| u64::from(answer.prompt_tokens)).sum()
}
