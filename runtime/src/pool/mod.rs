//! The worker pool: persistent threads that run one job together, in lockstep where the job asks for it.
//!
//! The calling thread is worker 0. A run costs one wakeup; within it workers meet at a [`Barrier`].

mod cpus;
mod wait;

use crate::pool::wait::Signal;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

pub use cpus::default_threads;

/// What all workers run: called with the worker's index and the barrier they share.
type Job<'a> = dyn Fn(u32, &Barrier) + Sync + 'a;

/// How many workers, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolConfig {
    /// Workers, the calling thread included; `None` takes [`default_threads`].
    pub threads: Option<usize>,
    /// Pins worker i to the i-th CPU this process may use. Worker 0 is the thread that makes the pool.
    pub pin: bool,
}

/// Why there is no pool.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The count is out of range.
    #[error("{found} threads, expected 1 to {MAX_THREADS}")]
    Threads {
        /// Count asked for.
        found: usize,
    },
    /// A thread could not be started.
    #[error(
        "starting worker {worker}: {source}: the system makes no more threads (ulimit -u, pids.max), ask for fewer"
    )]
    Spawn {
        /// Its index.
        worker: usize,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A thread could not be pinned.
    #[error("pinning worker {worker}: {source}")]
    Pin {
        /// Its index.
        worker: usize,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Most workers a pool may have.
pub const MAX_THREADS: usize = 1024;

/// Persistent workers.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Changes when there is a new job, or when the workers are to stop.
    wakeup: Signal,
    stop: AtomicBool,
    job: UnsafeCell<Option<*const Job<'static>>>,
    barrier: Barrier,
}

// SAFETY: `job` is written only by `Pool::run` and `Drop`, while every worker waits for `wakeup`; they read it only
// between a wakeup and the run's last barrier. The job itself is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above; the job outlives the run that published it.
unsafe impl Send for Shared {}

impl Pool {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the count is out of range or the system refuses a thread or its pinning.
    pub fn new(config: PoolConfig) -> Result<Pool, PoolError> {
        let count = config.threads.unwrap_or_else(default_threads);
        if !(1..=MAX_THREADS).contains(&count) {
            return Err(PoolError::Threads { found: count });
        }
        let usable = cpus::usable();
        // Spinning helps only while every worker has a CPU to spin on.
        let may_spin = count <= usable.count;
        let shared = Arc::new(Shared {
            wakeup: Signal::new(may_spin),
            stop: AtomicBool::new(false),
            job: UnsafeCell::new(None),
            barrier: Barrier::new(count as u32, may_spin),
        });
        let mut pool = Pool { shared, threads: Vec::with_capacity(count - 1) };
        let cpu_of = |worker: usize| config.pin.then(|| usable.cpus[worker % usable.cpus.len()]);
        for worker in 1..count {
            pool.threads.push(spawn(worker, cpu_of(worker), &pool.shared)?);
        }
        if let Some(cpu) = cpu_of(0) {
            cpus::pin(cpu).map_err(|source| PoolError::Pin { worker: 0, source })?;
        }
        Ok(pool)
    }

    /// Workers, the calling thread included.
    pub fn count(&self) -> usize {
        self.threads.len() + 1
    }

    /// Runs `job` on every worker and returns when all have finished. Allocates nothing.
    ///
    /// A panic in the job aborts the process: the other workers would wait for ever.
    pub fn run(&mut self, job: &Job<'_>) {
        let guard = AbortOnPanic;
        let shared = &*self.shared;
        if self.threads.is_empty() {
            job(0, &shared.barrier);
        } else {
            let erased: *const Job<'_> = job;
            // SAFETY: only the lifetime changes, and no worker uses the job after the barrier below, while it lives. All
            // workers wait for `wakeup`, so nobody reads `job` now.
            unsafe {
                *shared.job.get() = Some(std::mem::transmute::<*const Job<'_>, *const Job<'static>>(erased));
            }
            shared.wakeup.change();
            job(0, &shared.barrier);
            shared.barrier.wait();
        }
        std::mem::forget(guard);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wakeup.change();
        for thread in self.threads.drain(..) {
            // A worker's panic has aborted the process already.
            let _ = thread.join();
        }
    }
}

fn spawn(worker: usize, cpu: Option<usize>, shared: &Arc<Shared>) -> Result<JoinHandle<()>, PoolError> {
    let shared = Arc::clone(shared);
    let (pinned, answer) = std::sync::mpsc::sync_channel(1);
    let seen = shared.wakeup.value();
    let body = move || {
        let result = cpu.map_or(Ok(()), cpus::pin);
        let failed = result.is_err();
        let _ = pinned.send(result);
        if !failed {
            work(worker as u32, seen, &shared);
        }
    };
    let thread = std::thread::Builder::new()
        .name(format!("kernmill-{worker}"))
        .spawn(body)
        .map_err(|source| PoolError::Spawn { worker, source })?;
    match answer.recv() {
        Ok(Err(source)) => Err(PoolError::Pin { worker, source }),
        _ => Ok(thread),
    }
}

/// A worker's life: wait for a job, run it, meet the others.
fn work(worker: u32, mut seen: u32, shared: &Shared) {
    loop {
        seen = shared.wakeup.wait_change(seen, || false);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let guard = AbortOnPanic;
        // SAFETY: `run` published the job before the wakeup and keeps it alive and unchanged until the barrier below.
        let job = unsafe { (*shared.job.get()).map(|job| &*job) };
        if let Some(job) = job {
            job(worker, &shared.barrier);
        }
        shared.barrier.wait();
        std::mem::forget(guard);
    }
}

/// Ends the process when dropped by unwinding.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Where all workers wait for each other; reusable at once.
pub struct Barrier {
    count: u32,
    arrived: AtomicU32,
    generation: Signal,
}

impl Barrier {
    fn new(count: u32, may_spin: bool) -> Barrier {
        Barrier { count, arrived: AtomicU32::new(0), generation: Signal::new(may_spin) }
    }

    /// Returns when every worker has called it as often as this one. What any did before is visible to all after.
    pub fn wait(&self) {
        self.wait_busy(|| false);
    }

    /// As [`Barrier::wait`], and calls `work` again and again while it spins, until that says that there is nothing left to do.
    pub fn wait_busy(&self, work: impl FnMut() -> bool) {
        let generation = self.generation.value();
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.change();
        } else {
            self.generation.wait_change(generation, work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn pool(threads: usize) -> Pool {
        Pool::new(PoolConfig { threads: Some(threads), pin: false }).unwrap()
    }

    #[test]
    fn barriers_keep_workers_in_lockstep() {
        for threads in [1, 2, 3, 7] {
            let mut pool = pool(threads);
            let done: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
            for run in 0..20 {
                pool.run(&|worker, barrier| {
                    for step in 0..50 {
                        done[worker as usize].fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        for d in &done {
                            assert_eq!(d.load(Ordering::Relaxed), run * 50 + step + 1);
                        }
                        barrier.wait();
                    }
                });
            }
        }
    }

    #[test]
    fn counts_are_checked_and_pinning_works() {
        for threads in [0, MAX_THREADS + 1] {
            assert!(Pool::new(PoolConfig { threads: Some(threads), pin: false }).is_err());
        }
        // On a thread of its own: pinning outlives the pool.
        let pinned = std::thread::spawn(|| {
            let expected = default_threads();
            let mut pool = Pool::new(PoolConfig { threads: None, pin: true }).unwrap();
            assert_eq!(pool.count(), expected);
            let ran = AtomicU32::new(0);
            pool.run(&|_, _| {
                ran.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(ran.into_inner() as usize, pool.count());
        });
        pinned.join().unwrap();
    }

    /// What oversubscription costs is measured in `benches/engines.rs`; here every worker of every pool gets through.
    #[test]
    fn four_pools_of_four_workers_all_finish() {
        const RUNS: u64 = 5;
        const STEPS: u64 = 300;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut pool = pool(4);
                    let steps = AtomicU64::new(0);
                    for run in 0..RUNS {
                        pool.run(&|_, barrier| {
                            for step in 0..STEPS {
                                steps.fetch_add(1, Ordering::Relaxed);
                                barrier.wait();
                                let done = steps.load(Ordering::Relaxed);
                                assert!(
                                    done >= 4 * (run * STEPS + step + 1),
                                    "a worker passed a barrier early"
                                );
                            }
                        });
                    }
                    assert_eq!(steps.into_inner(), 4 * RUNS * STEPS);
                });
            }
        });
    }

    #[test]
    fn a_pinned_thread_has_all_cpus_for_its_next_pool() {
        let (cpus, threads) = (cpus::usable().cpus, default_threads());
        let first = Pool::new(PoolConfig { threads: None, pin: true }).unwrap();
        assert_eq!((cpus::usable().cpus, default_threads()), (cpus.clone(), threads));
        let second = Pool::new(PoolConfig { threads: None, pin: true }).unwrap();
        assert_eq!((first.count(), second.count()), (threads, threads));
        // So has a thread that comes from a pinned one.
        let inherited = std::thread::spawn(|| cpus::usable().cpus).join().unwrap();
        assert_eq!(inherited, cpus);
    }
}
