//! Waiting for other threads, in which Python's own threads go on and Ctrl-C is heard.

use crate::error::Failure;
use pyo3::{PyResult, Python};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a wait goes on before it looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until `is_there` says so, for at most `limit`; whether it was so. `is_there` waits itself, up to the
/// time that it is given.
///
/// # Errors
/// When a handler of a signal raises an exception, such as `KeyboardInterrupt`.
pub fn until(
    py: Python<'_>,
    limit: Option<Duration>,
    is_there: impl Fn(Instant) -> bool + Sync,
) -> PyResult<bool> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let now = Instant::now();
        let look = now + LOOK;
        let next = end.map_or(look, |end| end.min(look));
        if py.detach(|| is_there(next)) {
            return Ok(true);
        }
        py.check_signals()?;
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(false);
        }
    }
}

/// Waits for what another thread sends.
///
/// # Errors
/// When a handler of a signal raises an exception, or the other thread has ended without sending anything.
pub fn received<T: Send>(py: Python<'_>, answer: Receiver<T>, gone: &str) -> PyResult<T> {
    // The interpreter is left with it, and a receiver cannot be shared.
    let answer = std::sync::Mutex::new(answer);
    loop {
        let got = py.detach(|| {
            let answer = answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            answer.recv_timeout(LOOK)
        });
        match got {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Defect(gone.to_owned()).into()),
        }
    }
}

/// Does long work on a separate thread and waits for it. After a signal the work goes on behind the
/// caller's back, and what it gives is dropped.
///
/// # Errors
/// When the work fails, panics, or a handler of a signal raises an exception.
pub fn working<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (done, answer) = channel();
    let thread = Builder::new().name("kernmill-work".to_owned());
    let spawned = thread.spawn(move || drop(done.send(work())));
    spawned.map_err(|error| Failure::Defect(format!("no thread for the work: {error}")))?;
    Ok(received(py, answer, "the work has panicked (bug: please report it)")??)
}
