//! An engine on a thread of its own: worker 0 of its pool is that thread, whoever asks for work.

use super::{Engine, EngineError};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{Builder, JoinHandle, current};

/// Work for an engine.
type Job = Box<dyn FnOnce(&mut Engine) + Send>;

/// Why an engine's thread cannot do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The thread could not be made.
    #[error("starting the engine's thread: {0}")]
    Spawn(#[source] io::Error),
    /// An earlier job has panicked, and taken the engine with it.
    #[error("the engine's thread has ended: an earlier job panicked")]
    Ended,
    /// The engine could not be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Hands jobs to an engine that lives on a thread of its own.
///
/// Jobs run one after the other, in the order in which they were given. Clones share the engine; it is
/// dropped when the last of them is, after the jobs that were given. A thread pool, an asynchronous runtime
/// or another language can hold it: no thread of theirs becomes a worker, is pinned, or has its
/// floating-point environment changed.
///
/// ```no_run
/// # fn show(image: kernmill_runtime::PlanImage) -> Result<(), Box<dyn std::error::Error>> {
/// use kernmill_runtime::{Engine, EngineConfig, EngineThread, Entry};
/// let engine = EngineThread::start(move || Engine::new(&image, EngineConfig::default()))?;
/// let tokens = engine.run(|engine| -> Result<u32, kernmill_runtime::EngineError> {
///     let sequence = engine.create()?;
///     engine.step(&[Entry::last(sequence, &[1, 2, 3])], &())?;
///     engine.length(sequence)
/// })??;
/// assert_eq!(tokens, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EngineThread {
    jobs: Sender<Job>,
    _thread: Arc<Joined>,
}

impl EngineThread {
    /// Makes an engine by `make` on a new thread.
    ///
    /// # Errors
    /// When the system makes no thread, or `make` fails.
    pub fn start<F>(make: F) -> Result<EngineThread, ThreadError>
    where
        F: FnOnce() -> Result<Engine, EngineError> + Send + 'static,
    {
        let (made, answer) = sync_channel(1);
        let make = move || match make() {
            Ok(engine) => made.send(Ok(())).ok().map(|()| engine),
            Err(error) => {
                drop(made.send(Err(error)));
                None
            }
        };
        let started = spawn(make)?;
        match answer.recv() {
            Ok(Ok(())) => Ok(started),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ThreadError::Ended),
        }
    }

    /// Moves an engine to a new thread.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub fn of(engine: Engine) -> Result<EngineThread, ThreadError> {
        spawn(move || Some(engine))
    }

    /// Gives the engine a job, and waits for its result.
    ///
    /// # Errors
    /// When the job, or one before it, panics.
    pub fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, ThreadError> {
        let (done, result) = sync_channel(1);
        self.give(move |engine| drop(done.send(job(engine))))?;
        result.recv().map_err(|_| ThreadError::Ended)
    }

    /// Gives the engine a job, and does not wait for it. Results go wherever the job sends them.
    ///
    /// # Errors
    /// When an earlier job has panicked.
    pub fn give(&self, job: impl FnOnce(&mut Engine) + Send + 'static) -> Result<(), ThreadError> {
        self.jobs.send(Box::new(job)).map_err(|_| ThreadError::Ended)
    }
}

/// Starts a thread that serves the engine that `make` gives it, if it does.
fn spawn(make: impl FnOnce() -> Option<Engine> + Send + 'static) -> Result<EngineThread, ThreadError> {
    let (jobs, queue) = channel::<Job>();
    let body = move || {
        if let Some(mut engine) = make() {
            queue.into_iter().for_each(|job| job(&mut engine));
        }
    };
    let thread = Builder::new().name("kernmill-engine".to_owned()).spawn(body).map_err(ThreadError::Spawn)?;
    Ok(EngineThread { jobs, _thread: Arc::new(Joined(Some(thread))) })
}

/// A thread that is waited for when the last handle goes.
#[derive(Debug)]
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        // Every handle drops its sender before this: the queue has ended, or ends with the jobs in it.
        if let Some(thread) = self.0.take().filter(|thread| thread.thread().id() != current().id()) {
            // A panic of a job was reported to its giver.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineConfig;
    use crate::engine::Entry;
    use crate::toy::{expected, image};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn started() -> EngineThread {
        let config = EngineConfig { sequences: 8, ..EngineConfig::default() };
        EngineThread::start(move || Engine::new(&image(), config)).unwrap()
    }

    #[test]
    fn threads_share_an_engine_and_get_their_own_logits() {
        let engine = started();
        std::thread::scope(|scope| {
            for salt in 0..8u32 {
                let engine = engine.clone();
                scope.spawn(move || {
                    let mut history = Vec::new();
                    let sequence = engine.run(|engine| engine.create().unwrap()).unwrap();
                    for n in 0..20 {
                        history.push((salt * 31 + n * 7) % 300);
                        let token = [history[history.len() - 1]];
                        let logits = engine.run(move |engine| {
                            let mut logits = Vec::new();
                            engine.append(sequence, &token, &mut logits).unwrap();
                            logits
                        });
                        assert_eq!(logits.unwrap(), expected(&history));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_ends_the_engine_and_is_told_to_all() {
        let engine = started();
        let other = engine.clone();
        assert!(matches!(engine.run(|_| panic!("a job's")), Err(ThreadError::Ended)));
        assert!(matches!(other.run(|engine| engine.threads()), Err(ThreadError::Ended)));
        assert!(matches!(other.give(|_| {}), Err(ThreadError::Ended)));
    }

    #[test]
    fn an_engine_that_cannot_be_made_says_why() {
        let config = EngineConfig { sequences: 0, ..EngineConfig::default() };
        let error = EngineThread::start(move || Engine::new(&image(), config)).unwrap_err();
        assert_eq!(error.to_string(), "sequences is 0, expected 1 to 4096");
    }

    #[test]
    fn jobs_that_were_given_are_done_before_it_ends() {
        let done = Arc::new(AtomicU32::new(0));
        let engine = started();
        for _ in 0..50 {
            let done = Arc::clone(&done);
            let job = move |engine: &mut Engine| {
                let sequence = engine.create().unwrap();
                engine.step(&[Entry::silent(sequence, &[1, 2, 3])], &()).unwrap();
                engine.drop_sequence(sequence);
                done.fetch_add(1, Ordering::Relaxed);
            };
            engine.give(job).unwrap();
        }
        drop(engine);
        assert_eq!(done.load(Ordering::Relaxed), 50);
    }

    #[test]
    fn a_job_may_hold_the_last_handle() {
        let engine = started();
        let own = engine.clone();
        let (gone, is_gone) = sync_channel(1);
        engine
            .give(move |_| {
                // By now the other handle is dropped, or will be.
                drop(own);
                gone.send(()).unwrap();
            })
            .unwrap();
        drop(engine);
        is_gone.recv().unwrap();
    }
}
