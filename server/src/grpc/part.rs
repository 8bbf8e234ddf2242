//! One of the sequences of a call: from the events of the backend to responses.

use super::response::{Shows, check_size, finish};
use crate::backend::{Running, SubmitError};
use crate::error::ApiError;
use crate::state::ServerState;
use kernmill_serve::{Answer, Finish, RefusalReason, RequestEvent};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use vllm_proto::finish_info::FinishReason;
use vllm_proto::{FinishInfo, GenerateResponse, SequenceOutput};

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
