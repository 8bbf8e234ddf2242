//! A request on its way, as Python holds it. Dropping it cancels it.

use crate::ask::part_name;
use crate::bell::Bell;
use crate::error::Failure;
use crate::mailbox::Mailbox;
use crate::wait;
use kernmill_chat::Event;
use kernmill_runtime::Logprobs;
use kernmill_serve::{Answer, Finish, Ticket};
use numpy::{IntoPyArray, PyArray1, PyArray2, ndarray::Array2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kind of a piece, its part, the part's name, and text.
type Piece = (&'static str, Option<&'static str>, Option<String>, String);
/// A token with its logarithm, its rank, and the likeliest ones.
type Scored = (u32, f32, u32, Vec<(u32, f32)>);
/// Logarithms and ranks by token, and ids and logarithms of the likeliest ones.
type Scores<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray2<u32>>,
    Bound<'py, PyArray2<f32>>,
);

/// A bell of an event loop.
#[pyclass(name = "Bell", frozen, module = "kernmill._kernmill")]
pub struct PyBell(pub Arc<Bell>);

#[pymethods]
impl PyBell {
    #[new]
    fn new() -> PyResult<PyBell> {
        Ok(PyBell(Arc::new(Bell::new()?)))
    }

    /// The descriptor that an event loop watches for reading.
    fn fileno(&self) -> i32 {
        self.0.fileno()
    }

    /// Tickets of the requests that have news; the bell is silent then.
    fn answer(&self) -> Vec<u64> {
        self.0.answer()
    }
}

/// A request on its way.
#[pyclass(frozen, module = "kernmill._kernmill")]
pub struct Request {
    /// Cancels the request when it goes.
    handed_in: Option<Ticket>,
    /// The process that the engine is in.
    process: u32,
    /// Name of the request, by which bells tell of it.
    #[pyo3(get)]
    ticket: u64,
    /// Tokens of the prompt.
    #[pyo3(get)]
    prompt_token_ids: Vec<u32>,
    mail: Arc<Mailbox>,
    /// Tokens that were taken.
    seen: Mutex<usize>,
}

impl Request {
    /// A request whose tokens come by `mail`.
    pub fn new(handed_in: Ticket, ticket: u64, prompt_token_ids: Vec<u32>, mail: Arc<Mailbox>) -> Request {
        let (process, seen) = (std::process::id(), Mutex::new(0));
        Request { handed_in: Some(handed_in), process, ticket, prompt_token_ids, mail, seen }
    }

    fn seen(&self) -> MutexGuard<'_, usize> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A child of a fork has a copy of this, without the engine's thread and perhaps with locked locks.
    fn check(&self) -> Result<(), Failure> {
        if std::process::id() == self.process { Ok(()) } else { Err(forked()) }
    }

    /// The pieces and ids since the last time, and whether the end is among them.
    fn take(&self) -> Result<(Vec<Piece>, Vec<u32>, bool), Failure> {
        let mut seen = self.seen();
        let (tokens, has_ended) = self.mail.after(*seen);
        *seen += tokens.len();
        let answer = if has_ended { Some(self.answer()?) } else { None };
        let mut ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        if let Some(answer) = &answer {
            // A token that ends the text is not part of it.
            let beyond = seen.saturating_sub(answer.tokens.len());
            ids.truncate(ids.len().saturating_sub(beyond));
        }
        let pieces = match self.mail.events() {
            Some(events) => events.into_iter().map(piece).collect(),
            None => {
                let text: String = tokens.into_iter().map(|token| token.text).collect();
                let delta = (!text.is_empty()).then_some(("delta", None, None, text));
                delta.into_iter().collect()
            }
        };
        Ok((pieces, ids, has_ended))
    }

    fn answer(&self) -> Result<Answer, Failure> {
        let early = || Err(Failure::Input("the text has not ended: wait for it".to_owned()));
        self.mail.answer().unwrap_or_else(early)
    }
}

#[pymethods]
impl Request {
    /// Waits for the end, for at most so many seconds; whether it has come.
    #[pyo3(signature = (seconds = None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        self.check()?;
        let limit = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        wait::until(py, limit, |until| self.mail.wait_end(until))
    }

    /// Waits until something has come, and gives it.
    fn step(&self, py: Python<'_>) -> PyResult<(Vec<Piece>, Vec<u32>, bool)> {
        self.check()?;
        let seen = *self.seen();
        wait::until(py, None, |until| {
            self.mail.wait_more(seen, until.saturating_duration_since(std::time::Instant::now()))
        })?;
        Ok(self.take()?)
    }

    /// The pieces and ids since the last time, without waiting.
    fn poll(&self) -> PyResult<(Vec<Piece>, Vec<u32>, bool)> {
        self.check()?;
        Ok(self.take()?)
    }

    /// Ends the text at the next step.
    fn cancel(&self) -> PyResult<()> {
        self.check()?;
        self.handed_in.iter().for_each(Ticket::cancel);
        Ok(())
    }

    /// The result of a text that has ended.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check()?;
        let answer = self.answer()?;
        let (finish_reason, stop_token, stop_text) = match answer.finish {
            Finish::MaxTokens | Finish::Context => ("length", None, None),
            Finish::Token(id) => ("stop", Some(id), None),
            Finish::Text(text) => ("stop", None, Some(text)),
            Finish::Complete => ("stop", None, None),
            _ => ("abort", None, None),
        };
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let dict = PyDict::new(py);
        dict.set_item("text", answer.text)?;
        dict.set_item("token_ids", answer.tokens)?;
        dict.set_item("finish_reason", finish_reason)?;
        dict.set_item("stop_token", stop_token)?;
        dict.set_item("stop_text", stop_text)?;
        dict.set_item("prompt_tokens", answer.prompt_tokens)?;
        dict.set_item("cached_tokens", answer.cached_tokens)?;
        dict.set_item("disk_tokens", answer.disk_tokens)?;
        dict.set_item("draft_tokens", answer.drafts.tokens)?;
        dict.set_item("accepted_tokens", answer.drafts.accepted)?;
        dict.set_item("queued_seconds", seconds(answer.queued))?;
        dict.set_item("first_token_seconds", seconds(answer.first_token))?;
        dict.set_item("seconds", answer.took.as_secs_f64())?;
        Ok(dict)
    }

    /// Every token behind the first `seen` ones that has logarithms, with them.
    #[pyo3(signature = (seen = 0))]
    fn logprobs(&self, seen: usize) -> PyResult<Vec<Scored>> {
        self.check()?;
        let scored = |id: u32, found: Logprobs| (id, found.token, found.rank + 1, found.top);
        let (mut tokens, _) = self.mail.after(seen);
        if let Some(Ok(answer)) = self.mail.answer() {
            tokens.truncate(answer.tokens.len().saturating_sub(seen));
        }
        Ok(tokens.into_iter().filter_map(|token| Some(scored(token.id, token.logprobs?))).collect())
    }

    /// Logarithms of the prompt's tokens but the first, with their ranks, and `top` of the likeliest tokens.
    fn prompt_scores<'py>(&self, py: Python<'py>, top: usize) -> PyResult<Scores<'py>> {
        self.check()?;
        let all = self.answer()?.prompt_logprobs;
        let (mut ids, mut logprobs) = (Vec::new(), Vec::new());
        for found in &all {
            let likeliest = found.top.iter().copied().chain(std::iter::repeat((0, f32::NEG_INFINITY)));
            for (id, logprob) in likeliest.take(top) {
                ids.push(id);
                logprobs.push(logprob);
            }
        }
        let ids = Array2::from_shape_vec((all.len(), top), ids).map_err(Failure::defect)?;
        let top_logprobs = Array2::from_shape_vec((all.len(), top), logprobs).map_err(Failure::defect)?;
        let tokens: Vec<f32> = all.iter().map(|found| found.token).collect();
        let ranks: Vec<u32> = all.iter().map(|found| found.rank + 1).collect();
        Ok((
            tokens.into_pyarray(py),
            ranks.into_pyarray(py),
            ids.into_pyarray(py),
            top_logprobs.into_pyarray(py),
        ))
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.check().is_err() {
            std::mem::forget(self.handed_in.take());
        }
    }
}

/// The error in a child of a fork.
pub fn forked() -> Failure {
    let what = "this model was loaded before a fork, and its engine is in the parent process: load the model in the \
                child, or start processes by multiprocessing's methods \"spawn\" or \"forkserver\"";
    Failure::Unsupported(what.to_owned())
}

fn piece(event: Event) -> Piece {
    match event {
        Event::Begin(part) => {
            let (kind, name) = part_name(&part);
            ("begin", Some(kind), name.map(str::to_owned), String::new())
        }
        Event::Delta(text) => ("delta", None, None, text),
        Event::End { .. } => ("end", None, None, String::new()),
    }
}
