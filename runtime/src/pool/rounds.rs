//! Handing jobs to the workers: one wakeup to begin a round, one meeting to end it.

use super::barrier::Barrier;
use super::sync::{AtomicBool, Handed, Ordering, abort};
use super::wait::Signal;

/// What all workers run: called with the worker's index and the barrier they share.
pub(crate) type Job<'a> = dyn Fn(u32, &Barrier) + Sync + 'a;

/// A job of a round that lasts.
#[derive(Clone, Copy)]
struct Published(*const Job<'static>);

// SAFETY: jobs are `Sync`; who follows the pointer sees to it that the job lives.
unsafe impl Send for Published {}

/// What a pool's threads share.
pub(super) struct Rounds {
    /// Changes when there is a new job, or when the workers are to stop.
    wakeup: Signal,
    stop: AtomicBool,
    job: Handed<Option<Published>>,
    /// The jobs' own: they may use it as they like, also wrongly, which then never ends.
    barrier: Barrier,
    /// Where a round ends. No job gets hold of it, so that none can end the round while another worker still
    /// runs it.
    end: Barrier,
}

impl Rounds {
    /// Rounds of `count` workers, the one who calls [`Rounds::run`] included.
    pub(super) fn new(count: u32, may_spin: bool) -> Rounds {
        Rounds {
            wakeup: Signal::new(may_spin),
            stop: AtomicBool::new(false),
            job: Handed::new(None),
            barrier: Barrier::new(count, may_spin),
            end: Barrier::new(count, may_spin),
        }
    }

    /// What a new worker has seen of the wakeups; to be asked for before its thread is started.
    pub(super) fn seen(&self) -> u32 {
        self.wakeup.value()
    }

    /// Worker 0: runs `job` on all workers, and returns when all have finished.
    ///
    /// # Safety
    /// One thread at a time calls this or [`Rounds::stop`], and every other worker is in [`Rounds::work`] or
    /// on its way there.
    pub(super) unsafe fn run(&self, job: &Job<'_>) {
        let guard = AbortOnPanic;
        let job: *const Job<'_> = job;
        // SAFETY: only the lifetime changes: no worker uses the job after it has arrived at `end`, and this
        // function does not return before all have.
        let published = unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        // SAFETY: all workers have arrived at `end` of the last round, and read the job only after the wakeup
        // below.
        unsafe { self.job.set(Some(Published(published))) };
        self.wakeup.change();
        // SAFETY: the caller's reference.
        unsafe { (*job)(0, &self.barrier) };
        self.end.wait();
        std::mem::forget(guard);
    }

    /// A worker's life: waits for a round, runs its job, meets the others.
    pub(super) fn work(&self, worker: u32, mut seen: u32) {
        loop {
            seen = self.wakeup.wait_change(seen, || false);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let guard = AbortOnPanic;
            // SAFETY: `run` set the job before the wakeup, and sets another only when this worker has arrived
            // at `end` below.
            if let Some(Published(job)) = unsafe { self.job.get() } {
                // SAFETY: `run` keeps the job alive until this worker has arrived at `end` below.
                unsafe { (*job)(worker, &self.barrier) };
            }
            self.end.wait();
            std::mem::forget(guard);
        }
    }

    /// Ends the workers' lives; between rounds.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.change();
    }
}

/// Ends the process when dropped by unwinding: the other workers would wait for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        abort();
    }
}
