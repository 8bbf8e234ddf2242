//! `vllm.Inference`: texts, whole or as they are made. Both come from the same responses.

use super::aborts::{Aborts, CallEntry};
use super::control::caller;
use super::part::{ResponseResult, SequenceResponses, accepted};
use super::request;
use super::response::{check_size, merge};
use super::status;
use crate::error::ApiError;
use crate::record::Record;
use crate::reply;
use crate::state::ServerState;
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};
use vllm_proto::{GenerateRequest, GenerateResponse, inference_server};

/// The service.
pub struct Inference {
    state: Arc<ServerState>,
    aborts: Arc<Aborts>,
}

impl Inference {
    /// The service over a state, which enters its calls into `aborts`.
    pub fn new(state: Arc<ServerState>, aborts: Arc<Aborts>) -> Inference {
        Inference { state, aborts }
    }

    /// Begins a call; its responses, and the names of fields that change nothing.
    async fn begin(
        &self,
        request: Request<GenerateRequest>,
        streams: bool,
    ) -> Result<(Responses, MetadataMap), ApiError> {
        let caller = caller(&request)?;
        let time = time(request.metadata())?;
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let begun = self.submit(request.into_inner(), caller, streams, deadline);
        match deadline {
            None => begun.await,
            Some(deadline) => timeout_at(deadline, begun).await.map_err(|_| ApiError::deadline())?,
        }
    }

    async fn submit(
        &self,
        request: GenerateRequest,
        caller: crate::caller::Caller,
        streams: bool,
        deadline: Option<Instant>,
    ) -> Result<(Responses, MetadataMap), ApiError> {
        let entry = self.aborts.enter(caller.tenant, &request.request_id)?;
        let (worker, record) = (self.state.clone(), caller.record.clone());
        if let Some(record) = &record {
            record.client(&request.request_id);
        }
        let asked = reply::blocking(move || {
            let within = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let asked = request::read(&worker, &caller, request, streams, within)?;
            worker.charge(&caller, asked.ask[0].prompt.len())?;
            Ok(asked)
        })
        .await?;
        // All sequences have one prompt, which the first one tells of.
        let mut prompt = Some(asked.ask[0].prompt.clone());
        let mut all: Vec<_> =
            asked.ask.into_iter().map(|request| self.state.submit(request, &record)).collect();
        for running in &mut all {
            accepted(running).await?;
        }
        let (sender, receiver) = unbounded_channel();
        let (told, _) = watch::channel(false);
        let shows = Arc::new(asked.shows);
        let left = all.len();
        let mut tasks = JoinSet::new();
        for (running, index) in all.into_iter().zip(0..) {
            let part = SequenceResponses {
                state: self.state.clone(),
                shows: shows.clone(),
                index,
                prompt: prompt.take(),
                has_deadline: deadline.is_some(),
                aborted: entry.aborted.clone(),
                told: told.clone(),
                held: Vec::new(),
                sender: sender.clone(),
            };
            tasks.spawn(part.run(running));
        }
        let deadline = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
        let responses = Responses { receiver, tasks, deadline, left, record, _entry: entry };
        let mut metadata = MetadataMap::new();
        if !asked.unknown.is_empty()
            && let Ok(names) = MetadataValue::try_from(asked.unknown.join(", "))
        {
            metadata.insert("x-kernmill-unknown-fields", names);
        }
        Ok((responses, metadata))
    }
}

/// The time that a client gives a call: up to eight digits and a unit.
fn time(metadata: &MetadataMap) -> Result<Option<Duration>, ApiError> {
    let Some(value) = metadata.get("grpc-timeout") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let read = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let is_number = (1..=8).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_number)?;
        Some(match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    };
    let wrong = || {
        let message = "`grpc-timeout` is no time, expected up to 8 digits and one of H, M, S, m, u and n";
        ApiError::field("grpc-timeout", message)
    };
    read().map(Some).ok_or_else(wrong)
}

/// The responses of a call. Dropping them cancels it.
pub struct Responses {
    receiver: UnboundedReceiver<ResponseResult>,
    tasks: JoinSet<()>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Sequences that have not ended.
    left: usize,
    record: Option<Arc<Record>>,
    /// Keeps the call's name.
    _entry: CallEntry,
}

impl Responses {
    /// The next response. After an error nothing comes.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<ResponseResult>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let error = match self.receiver.poll_recv(context) {
            Poll::Ready(Some(Ok(response))) => {
                let has_ended =
                    response.outputs.as_ref().is_some_and(|outputs| outputs.finish_info.is_some());
                self.left -= usize::from(has_ended);
                return Poll::Ready(Some(Ok(response)));
            }
            Poll::Ready(Some(Err(error))) => error,
            Poll::Ready(None) => ApiError::internal("the server has a defect: the log says which"),
            Poll::Pending => {
                let is_late =
                    self.deadline.as_mut().is_some_and(|late| late.as_mut().poll(context).is_ready());
                if !is_late {
                    return Poll::Pending;
                }
                ApiError::deadline()
            }
        };
        self.left = 0;
        self.tasks.abort_all();
        if let Some(record) = &self.record {
            record.status(error.status().as_u16());
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Responses {
    type Item = Result<GenerateResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context).map(|item| item.map(|item| item.map_err(|error| status::of(&error))))
    }
}

#[tonic::async_trait]
impl inference_server::Inference for Inference {
    type GenerateStreamStream = Responses;

    async fn generate(
        &self,
        request: Request<GenerateRequest>,
    ) -> Result<Response<GenerateResponse>, Status> {
        let generated = async {
            let (mut responses, metadata) = self.begin(request, false).await?;
            let mut whole = GenerateResponse::default();
            while let Some(response) = poll_fn(|context| responses.poll(context)).await {
                merge(&mut whole, response?);
            }
            check_size(&whole)?;
            Ok((whole, metadata))
        };
        let (whole, metadata) = generated.await.map_err(|error: ApiError| status::of(&error))?;
        Ok(Response::from_parts(metadata, whole, tonic::Extensions::default()))
    }

    async fn generate_stream(
        &self,
        request: Request<GenerateRequest>,
    ) -> Result<Response<Responses>, Status> {
        let begun = self.begin(request, true).await;
        let (responses, metadata) = begun.map_err(|error| status::of(&error))?;
        Ok(Response::from_parts(metadata, responses, tonic::Extensions::default()))
    }
}
