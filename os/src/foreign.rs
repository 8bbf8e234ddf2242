//! Work of foreign programs, such as chat templates, schemas and tokenizers, on a separate thread.
//!
//! What such a program does is not known before it runs. So it gets a stack that holds deep recursion, a
//! limit of time, and a [`Watch`] that tells it when nobody waits any more. A thread cannot be ended from
//! outside: the caller goes on when time is over, and the work must look at its [`Watch`], or be bounded by
//! what it counts itself.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Bytes of the stack of a thread for foreign work. The system gives memory for what is used of them only.
pub const STACK: usize = 64 << 20;

/// How often a caller that waits looks at its flag.
const LOOK: Duration = Duration::from_millis(5);

/// A flag that tells that nobody waits for some work any more. Clones share one flag, which stays set.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Sets the flag.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does some work. This flag also cancels all work that it hands to [`run`].
    pub fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        let outer = AROUND.replace(Some(self.clone()));
        let _restore = Restore(outer);
        work()
    }

    /// Sets the flag when what is returned is dropped: kept by a future, it tells that the future is gone.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

thread_local! {
    /// The flag of the work that this thread does.
    static AROUND: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// Makes a flag that of the thread's work again.
struct Restore(Option<Cancel>);

impl Drop for Restore {
    fn drop(&mut self) {
        AROUND.set(self.0.take());
    }
}

/// Sets a [`Cancel`] when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Tells foreign work whether somebody still waits for it.
#[derive(Clone, Debug)]
pub struct Watch {
    cancel: Cancel,
    /// The flag of the work that this is a part of.
    around: Option<Cancel>,
    begun: Instant,
    limit: Duration,
}

impl Watch {
    /// Watches `cancel`, the flag of the work that the thread does ([`Cancel::around`]), and that no more
    /// than `limit` passes from now on.
    pub fn new(cancel: &Cancel, limit: Duration) -> Watch {
        let around = AROUND.with_borrow(Clone::clone);
        Watch { cancel: cancel.clone(), around, begun: Instant::now(), limit }
    }

    /// Checks that somebody still waits. The work calls this every few thousand steps at least, and ends when
    /// it fails.
    ///
    /// # Errors
    /// When the time is over, or the flag is set.
    pub fn check(&self) -> Result<(), WorkStopped> {
        if self.cancel.is_cancelled() || self.around.as_ref().is_some_and(Cancel::is_cancelled) {
            return Err(WorkStopped::Cancelled);
        }
        if self.begun.elapsed() >= self.limit { Err(WorkStopped::Time(self.limit)) } else { Ok(()) }
    }
}

/// Why foreign work has no result. Every message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkStopped {
    /// The work took longer than it may.
    #[error("it takes longer than the {} ms that it may take", .0.as_millis())]
    Time(Duration),
    /// The caller has gone, so that nobody waits for a result.
    #[error("it was cancelled, since nobody waits for it any more")]
    Cancelled,
    /// The work panicked, with this message.
    #[error("it failed: {0}")]
    Panicked(String),
    /// The system makes no thread for it, for this reason.
    #[error("the system makes no thread for it: {0}")]
    NoThread(String),
}

/// Does foreign work on a thread named `name` with a stack of [`STACK`] bytes, and waits for its result, for
/// `limit` at most, and only while `cancel` is not set.
///
/// When this returns before the work has ended, [`Watch::check`] fails for the work from then on; a result
/// that it still has is dropped on its thread.
///
/// # Errors
/// When time is over, the flag is set, the work panics, or there is no thread for it.
pub fn run<T: Send + 'static>(
    name: &str,
    limit: Duration,
    cancel: &Cancel,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Result<T, WorkStopped> {
    let watch = Watch::new(cancel, limit);
    watch.check()?;
    let (sender, receiver) = channel();
    let its = watch.clone();
    let made = Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || {
        // Without a receiver nobody waits any more.
        let result = match its.around.clone() {
            Some(around) => around.around(|| work(&its)),
            None => work(&its),
        };
        let _ = sender.send(result);
    });
    let thread = made.map_err(|error: io::Error| WorkStopped::NoThread(error.to_string()))?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => watch.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(WorkStopped::Panicked(thread.join().err().map_or_else(String::new, message)));
            }
        }
    }
}

/// The message of a panic, on one line.
fn message(panic: Box<dyn Any + Send>) -> String {
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or_else(|_| "no reason is known".to_owned(), |text| (*text).to_owned()),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender};
    use std::thread;

    /// Longer than any test runs.
    const HOUR: Duration = Duration::from_secs(3600);

    /// Work that runs until it is told that nobody waits, says why, and has no result before `held` is gone.
    fn endless(told: Sender<WorkStopped>, held: Receiver<()>) -> impl FnOnce(&Watch) + Send {
        move |watch| {
            loop {
                if let Err(stopped) = watch.check() {
                    let _ = told.send(stopped);
                    let _ = held.recv();
                    return;
                }
                thread::yield_now();
            }
        }
    }

    #[test]
    fn the_result_comes_from_a_named_thread_with_a_deep_stack() {
        fn depth(levels: u64) -> u64 {
            let kept = std::hint::black_box([levels; 64]);
            if levels == 0 { 0 } else { depth(levels - 1) + kept[0] - levels + 1 }
        }
        let work = |_: &Watch| (thread::current().name().map(str::to_owned), depth(30_000));
        let (name, levels) = run("deep", HOUR, &Cancel::default(), work).unwrap();
        assert_eq!((name.as_deref(), levels), (Some("deep"), 30_000));
    }

    #[test]
    fn nobody_waits_longer_than_the_limit_and_the_work_hears_of_it() {
        let ((sender, receiver), (_keep, held)) = (channel(), channel());
        let limit = Duration::from_millis(20);
        let stopped = run("endless", limit, &Cancel::default(), endless(sender, held)).unwrap_err();
        assert_eq!((&stopped, receiver.recv()), (&WorkStopped::Time(limit), Ok(WorkStopped::Time(limit))));
        assert_eq!(stopped.to_string(), "it takes longer than the 20 ms that it may take");
    }

    #[test]
    fn a_flag_ends_the_waiting_and_the_work() {
        let cancel = Cancel::default();
        let ((sender, receiver), (_keep, held)) = (channel(), channel());
        let guard = cancel.on_drop();
        let waiter = thread::spawn({
            let cancel = cancel.clone();
            move || run("endless", HOUR, &cancel, endless(sender, held))
        });
        drop(guard);
        assert_eq!(waiter.join().unwrap(), Err(WorkStopped::Cancelled));
        // Work that has not begun by then is not begun.
        assert!(matches!(receiver.recv(), Ok(WorkStopped::Cancelled) | Err(_)));
        assert_eq!(run("late", HOUR, &cancel, |_| ()), Err(WorkStopped::Cancelled));
    }

    #[test]
    fn a_part_of_some_work_ends_with_it() {
        let (whole, part) = (Cancel::default(), Cancel::default());
        let ((sender, receiver), (_keep, held)) = (channel(), channel());
        let waiter = thread::spawn({
            let whole = whole.clone();
            // A part of a part, too.
            let inner = move |_: &Watch| run("inner", HOUR, &Cancel::default(), endless(sender, held));
            move || whole.around(|| run("outer", HOUR, &part, inner))
        });
        whole.cancel();
        let ended = waiter.join().unwrap();
        assert!(matches!(ended, Err(WorkStopped::Cancelled) | Ok(Err(WorkStopped::Cancelled))), "{ended:?}");
        assert!(matches!(receiver.recv(), Ok(WorkStopped::Cancelled) | Err(_)));
        // The thread's other work does not.
        assert_eq!(
            whole.around(|| run("late", HOUR, &Cancel::default(), |_| ())),
            Err(WorkStopped::Cancelled)
        );
        assert_eq!(run("other", HOUR, &Cancel::default(), |_| 1), Ok(1));
    }

    #[test]
    fn a_panic_is_an_error() {
        let failed = |_: &Watch| -> u32 { panic!("no {}\nmore", "way") };
        assert_eq!(
            run("failed", HOUR, &Cancel::default(), failed),
            Err(WorkStopped::Panicked("no way".to_owned()))
        );
        let failed = |_: &Watch| -> u32 { panic!("plain") };
        assert_eq!(
            run("failed", HOUR, &Cancel::default(), failed),
            Err(WorkStopped::Panicked("plain".to_owned()))
        );
    }
}
