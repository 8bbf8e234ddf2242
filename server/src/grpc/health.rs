//! `grpc.health.v1`: whether calls are taken up, as `/ready` of HTTP says it.

use crate::backend::BackendLoad;
use crate::state::ServerState;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

/// How often the state is looked at for those who watch it.
const LOOK: Duration = Duration::from_millis(250);

/// Services whose state can be asked for; the empty name is the server's.
const SERVICES: [&str; 3] = ["", "vllm.Inference", "vllm.Control"];

/// The state of the server.
pub struct Health {
    state: Arc<ServerState>,
}

impl Health {
    /// The health of this state's models.
    pub fn new(state: Arc<ServerState>) -> Health {
        Health { state }
    }
}

fn now(state: &ServerState) -> ServingStatus {
    let is_away = |load: &BackendLoad| load.is_draining || load.has_failed || load.stage_lost.is_some();
    if state.loads().iter().any(|(_, load)| is_away(load)) {
        ServingStatus::NotServing
    } else {
        ServingStatus::Serving
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = HealthWatch;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        if !SERVICES.contains(&service.as_str()) {
            let known = SERVICES[1..].join(", ");
            let what =
                format!("there is no service `{service}`, expected one of: {known}, or the empty name");
            return Err(Status::not_found(what));
        }
        Ok(Response::new(response(now(&self.state))))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthWatch>, Status> {
        let is_known = SERVICES.contains(&request.get_ref().service.as_str());
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Response::new(HealthWatch { state: is_known.then(|| self.state.clone()), looks, last: None }))
    }
}

/// The states of the server, one after another.
pub struct HealthWatch {
    /// `None` for a service that there is not.
    state: Option<Arc<ServerState>>,
    looks: Interval,
    last: Option<ServingStatus>,
}

impl Stream for HealthWatch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            // A server that has stopped serving never resumes: the end of the stream lets the server end.
            if self.last == Some(ServingStatus::NotServing) {
                return Poll::Ready(None);
            }
            ready!(self.looks.poll_tick(context));
            let status = self.state.as_deref().map_or(ServingStatus::ServiceUnknown, now);
            if self.last != Some(status) {
                self.last = Some(status);
                return Poll::Ready(Some(Ok(response(status))));
            }
        }
    }
}
