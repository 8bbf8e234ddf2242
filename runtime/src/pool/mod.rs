//! The worker pool: persistent threads that run one job together, turn by turn.
//!
//! The calling thread is worker 0. A turn has a part for every worker, and ends when all parts are done; who
//! comes late finds that others have done its own. A job may also be one turn in which every worker does its
//! own part and meets the others at a barrier.
//!
//! Such jobs must meet equally often, so pools and their barrier are for the runtime alone:
//!
//! ```compile_fail,E0603
//! use kernmill_runtime::pool::Pool;
//! ```
//!
//! ```compile_fail,E0603
//! use kernmill_runtime::pool::Barrier;
//! ```

mod barrier;
mod rounds;
mod sync;
mod wait;

use kernmill_os::affinity::{CpuSet, Pinned, Usable, usable};
use kernmill_os::float_env::FloatEnv;
use rounds::Rounds;
use std::process;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use barrier::Barrier;
pub(crate) use rounds::{IdleWork, PoolTurn, SeatJob};

/// How many workers, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolConfig {
    /// Workers, the calling thread included; `None` takes [`default_threads`].
    pub threads: Option<usize>,
    /// CPUs that the workers may run on; `None` takes those that this process may use. Worker 0 is kept there
    /// as with `pin`. Where there is a worker for every core of these CPUs, all but worker 0 stay on a core
    /// of their own.
    pub cpus: Option<CpuSet>,
    /// Pins worker i to the i-th of these CPUs, or of those that this process may use. Worker 0 is whichever
    /// thread calls: it is pinned while it runs a batch, and may go where it could before afterwards.
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
    /// This process may not use some of the CPUs.
    #[error(
        "this process may not use CPU {missing}, expected some of {usable}: take others, or start it with \
         more (taskset, cpuset.cpus)"
    )]
    Cpus {
        /// CPUs that it may not use.
        missing: Box<CpuSet>,
        /// CPUs that it may use.
        usable: Box<CpuSet>,
    },
    /// A thread could not be started.
    #[error(
        "starting worker {worker}: {source}: the system makes no more threads (ulimit -u, pids.max), ask for fewer"
    )]
    Spawn {
        /// Index of the worker.
        worker: usize,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A thread could not be pinned.
    #[error("pinning worker {worker}: {source}")]
    Pin {
        /// Index of the worker.
        worker: usize,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Most workers a pool may have.
pub const MAX_THREADS: usize = 1024;

/// Workers by default: one for each core of its own that this process may use.
pub fn default_threads() -> usize {
    usable().own_cores().min(MAX_THREADS)
}

/// Workers by default on some CPUs: one for each core among them.
///
/// # Errors
/// When this process may not use one of them.
pub fn default_threads_on(cpus: &CpuSet) -> Result<usize, PoolError> {
    Ok(usable_on(Some(cpus))?.own_cores().min(MAX_THREADS))
}

/// The CPUs that workers may use, of these if some are named.
fn usable_on(cpus: Option<&CpuSet>) -> Result<Usable, PoolError> {
    let usable = usable();
    let Some(cpus) = cpus else { return Ok(usable) };
    let all: CpuSet = usable.cpus.iter().copied().collect();
    let missing = cpus.without(&all);
    if missing.iter().next().is_some() {
        return Err(PoolError::Cpus { missing: Box::new(missing), usable: Box::new(all) });
    }
    Ok(usable.within(cpus))
}

/// Where a worker stays.
struct WorkerCpus {
    cpus: CpuSet,
    /// Whether there is no pool if it cannot be kept there.
    must: bool,
}

/// The core of each worker, where there are as many workers as cores; else none. The system would put two
/// workers on one core as soon as a neighbour keeps one of them waiting, however little time the neighbour is
/// to get, and leave it the other core. Worker 0, whose thread is the caller's, goes to the core that is
/// left.
fn cores_of_workers(usable: &Usable, count: usize) -> Vec<CpuSet> {
    let cores = usable.cores();
    if cores.len() == count && usable.own_cores() == count { cores } else { Vec::new() }
}

/// Persistent workers. `A` is what they do while they wait for a turn to end.
pub(crate) struct Pool<A: IdleWork = ()> {
    rounds: Arc<Rounds<A>>,
    threads: Vec<JoinHandle<()>>,
    /// Where the calling thread is kept while it works.
    own_cpus: Option<CpuSet>,
    /// The process whose threads these are: a fork has none of them.
    process: u32,
}

impl<A: IdleWork> Pool<A> {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the count is out of range, this process may not use the CPUs, or the system refuses a thread or
    /// its pinning.
    pub(crate) fn new(config: PoolConfig) -> Result<Pool<A>, PoolError> {
        let usable = usable_on(config.cpus.as_ref())?;
        let count = config.threads.unwrap_or_else(|| usable.own_cores().min(MAX_THREADS));
        if !(1..=MAX_THREADS).contains(&count) {
            return Err(PoolError::Threads { found: count });
        }
        // Spinning helps only while every worker has a CPU to spin on.
        let may_spin = count <= usable.count;
        let cpus_of = |worker: usize| match config.pin {
            true => Some(CpuSet::one(usable.cpus[worker % usable.cpus.len()])),
            false => config.cpus,
        };
        let cores = cores_of_workers(&usable, count);
        let rounds = Arc::new(Rounds::new(count as u32, may_spin));
        let mut pool = Pool {
            rounds,
            threads: Vec::with_capacity(count - 1),
            own_cpus: cpus_of(0),
            process: process::id(),
        };
        for worker in 1..count {
            let own = cores.get(worker).copied().filter(|_| !config.pin);
            let place =
                own.or(cpus_of(worker)).map(|cpus| WorkerCpus { cpus, must: cpus_of(worker).is_some() });
            pool.threads.push(spawn(worker, place, &pool.rounds)?);
        }
        if let Some(cpus) = &pool.own_cpus {
            Pinned::to(cpus).map_err(|source| PoolError::Pin { worker: 0, source })?;
        }
        Ok(pool)
    }

    /// Workers, the calling thread included.
    pub(crate) fn count(&self) -> usize {
        self.threads.len() + 1
    }

    /// Whether its workers are here, as they are not in a process that was forked later.
    pub(crate) fn is_here(&self) -> bool {
        self.threads.is_empty() || self.process == process::id()
    }

    /// Runs `job` on every worker, in the standard floating-point environment, and returns when all have
    /// finished. Allocates nothing.
    ///
    /// A panic in the job aborts the process: the other workers would wait for ever. So would workers that do
    /// not all wait at the barrier equally often.
    pub(crate) fn run(&mut self, job: &(dyn Fn(u32, &Barrier) + Sync)) {
        self.rounds_of(1, true, &|turn: PoolTurn<'_>| {
            job(turn.seat, turn.barrier);
            None
        });
    }

    /// Runs so many turns of `job`, one after the other: each calls it once for every worker's part, with the
    /// number of the turn, in the standard floating-point environment. A worker that is through with its own
    /// part also does those that nobody has begun. Returns how long the calling thread waited for others.
    /// Allocates nothing. A panic in the job aborts the process.
    pub(crate) fn run_turns(&mut self, turns: usize, job: &SeatJob<'_, A>) -> Duration {
        self.rounds_of(turns, false, job)
    }

    /// Calls `work` on the calling thread, where it would also be worker 0.
    pub(crate) fn run_alone(&mut self, work: impl FnOnce()) {
        let _env = FloatEnv::standard();
        let _pinned = self.own_cpus.and_then(|cpus| Pinned::to(&cpus).ok());
        work();
    }

    fn rounds_of(&mut self, turns: usize, own_seats: bool, job: &SeatJob<'_, A>) -> Duration {
        let _env = FloatEnv::standard();
        // `new` has found that it can be pinned; should it not be possible any more, it works where it is.
        let _pinned = self.own_cpus.and_then(|cpus| Pinned::to(&cpus).ok());
        // SAFETY: `&mut self` excludes other calls; all other workers were started by `new` and are in
        // `work`.
        unsafe { self.rounds.run(turns, own_seats, job) }
    }
}

impl<A: IdleWork> Drop for Pool<A> {
    fn drop(&mut self) {
        let is_here = self.is_here();
        self.rounds.stop();
        for thread in self.threads.drain(..) {
            // A worker's panic has aborted the process already. A fork would wait for ever for a thread that
            // it does not have.
            if is_here {
                let _ = thread.join();
            }
        }
    }
}

fn spawn<A: IdleWork>(
    worker: usize,
    place: Option<WorkerCpus>,
    rounds: &Arc<Rounds<A>>,
) -> Result<JoinHandle<()>, PoolError> {
    let rounds = Arc::clone(rounds);
    let (pinned, answer) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let _env = FloatEnv::standard();
        let (result, _pinned) = match place.as_ref().map(|place| Pinned::to(&place.cpus)).transpose() {
            Ok(pinned) => (Ok(()), pinned),
            Err(_) if place.is_some_and(|place| !place.must) => (Ok(()), None),
            Err(error) => (Err(error), None),
        };
        let failed = result.is_err();
        let _ = pinned.send(result);
        if !failed {
            rounds.work(worker as u32);
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

#[cfg(test)]
mod tests;
