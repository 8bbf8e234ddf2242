//! `vllm.Inference`: texts, whole or as they are made. Both come from the same responses.
//! Each sequence of a call turns events of the backend into responses.

use super::aborts::{Aborts, CallEntry};
use super::control::caller;
use super::response::{Shows, check_size, finish, merge};
use super::{request, status};
use crate::backend::{Running, SubmitError};
use crate::error::ApiError;
use crate::record::Record;
use crate::reply;
use crate::state::ServerState;
use futures_core::Stream;
use kernmill_serve::{Answer, Finish, RefusalReason, RequestEvent};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};
use vllm_proto::finish_info::FinishReason;
use vllm_proto::{FinishInfo, GenerateRequest, GenerateResponse, SequenceOutput, inference_server};

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
        let (state, record) = (self.state.named(&request.model), caller.record.clone());
        if let Some(record) = &record {
            record.client(&request.request_id);
            *record.metrics() = state.metrics.clone();
        }
        let worker = state.clone();
        let asked = reply::blocking(move || {
            let within = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let asked = request::read(&worker, &caller, request, streams, within)?;
            worker.charge(&caller, asked.ask[0].prompt.len())?;
            Ok(asked)
        })
        .await?;
        // All sequences have one prompt, which the first one tells of.
        let mut prompt = Some(asked.ask[0].prompt.clone());
        let mut all: Vec<_> = asked.ask.into_iter().map(|request| state.submit(request, &record)).collect();
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
                state: state.clone(),
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

/// A response, or what is wrong.
pub type ResponseResult = Result<GenerateResponse, ApiError>;

/// A sequence that is being made.
pub struct SequenceResponses {
    /// The server.
    pub state: Arc<ServerState>,
    /// The parts that responses show.
    pub shows: Arc<Shows>,
    /// Number of the sequence.
    pub index: u32,
    /// The prompt, for the sequence that tells of it, until it has.
    pub prompt: Option<Vec<u32>>,
    /// Whether the client gave the call a time.
    pub has_deadline: bool,
    /// Whether the call is aborted.
    pub aborted: watch::Receiver<bool>,
    /// Whether the prompt was told of: nothing else goes out before.
    pub told: watch::Sender<bool>,
    /// Responses that wait until it was.
    pub held: Vec<GenerateResponse>,
    /// Where responses go.
    pub sender: UnboundedSender<ResponseResult>,
}

impl SequenceResponses {
    /// Makes responses of what comes, to the end.
    pub async fn run(mut self, running: Running) {
        if let Err(error) = self.answer(running).await {
            // Where nobody listens, the call has ended.
            let _ = self.sender.send(Err(error));
        }
    }

    async fn answer(&mut self, mut running: Running) -> Result<(), ApiError> {
        if !self.shows.scores_prompt() {
            self.tell(&[])?;
        }
        let (mut piece, mut made, mut is_aborted) = (self.piece(), 0, false);
        loop {
            let event = tokio::select! {
                event = next(&mut running) => event?,
                () = wait(&mut self.aborted), if !is_aborted => {
                    is_aborted = true;
                    running.cancel();
                    continue;
                }
            };
            match event {
                Some(RequestEvent::Token(token)) => {
                    if !self.shows.stop_ids.contains(&token.id) {
                        made += 1;
                        self.shows.add(&mut piece, token.id, token.logprobs.as_ref());
                    }
                    if self.shows.text {
                        piece.text.push_str(&token.text);
                    }
                    if self.shows.is_due(&piece) {
                        let piece = std::mem::replace(&mut piece, self.piece());
                        self.send(piece).await?;
                    }
                }
                Some(RequestEvent::Done(answer)) => return self.end(piece, *answer).await,
                // A backend that forgets what is cancelled says nothing more.
                None if is_aborted => {
                    let mut info = FinishInfo { num_output_tokens: made, ..FinishInfo::default() };
                    info.set_finish_reason(FinishReason::Aborted);
                    piece.finish_info = Some(info);
                    self.tell(&[])?;
                    return self.send(piece).await;
                }
                None => return Err(ApiError::internal("the engine has failed: the log says why")),
            }
        }
    }

    /// The end of the sequence.
    async fn end(&mut self, mut piece: SequenceOutput, answer: Answer) -> Result<(), ApiError> {
        let (info, reason) = finish(self.state.backend.facts(), &answer, self.has_deadline)?;
        self.state.metrics.ended(reason, answer.tokens.len(), answer.first_token, answer.took);
        if let Finish::Text(text) = &answer.finish
            && self.shows.text
            && self.shows.stop_strings
        {
            piece.text.push_str(text);
        }
        piece.finish_info = Some(info);
        self.tell(&answer.prompt_logprobs)?;
        self.send(piece).await
    }

    /// A piece that has nothing yet.
    fn piece(&self) -> SequenceOutput {
        SequenceOutput { index: self.index, ..SequenceOutput::default() }
    }

    /// Tells of the prompt, if this sequence does and has not, and lets go what waited for it.
    fn tell(&mut self, logprobs: &[kernmill_runtime::Logprobs]) -> Result<(), ApiError> {
        let Some(prompt) = self.prompt.take() else { return Ok(()) };
        let prompt_info = Some(self.shows.prompt(&prompt, logprobs));
        let first = GenerateResponse { prompt_info, outputs: None };
        check_size(&first)?;
        for response in std::iter::once(first).chain(std::mem::take(&mut self.held)) {
            // Where nobody listens, the call has ended.
            let _ = self.sender.send(Ok(response));
        }
        self.told.send_replace(true);
        Ok(())
    }

    /// Sends a piece, when the prompt was told of.
    async fn send(&mut self, piece: SequenceOutput) -> Result<(), ApiError> {
        let response = GenerateResponse { prompt_info: None, outputs: Some(piece) };
        check_size(&response)?;
        if self.prompt.is_some() {
            self.held.push(response);
            return Ok(());
        }
        wait(&mut self.told.subscribe()).await;
        // Where nobody listens, the call has ended.
        let _ = self.sender.send(Ok(response));
        Ok(())
    }
}

/// Waits until a request is taken up.
///
/// # Errors
/// When it is not, which may be for want of time.
pub async fn accepted(running: &mut Running) -> Result<(), ApiError> {
    running.accepted().await.map_err(|error| match error {
        SubmitError::Refused(refusal) if refusal.reason == RefusalReason::Unreachable => ApiError::deadline(),
        other => other.into(),
    })
}

/// The next event of a request, when it is taken up.
async fn next(running: &mut Running) -> Result<Option<RequestEvent>, ApiError> {
    accepted(running).await?;
    Ok(running.next().await)
}

/// Waits until something is so.
async fn wait(flag: &mut watch::Receiver<bool>) {
    let is_gone = flag.wait_for(|is| *is).await.is_err();
    if is_gone {
        std::future::pending().await
    }
}
