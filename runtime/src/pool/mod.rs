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

mod arrival;
mod barrier;
mod config;
mod places;
mod rounds;
mod sync;
mod wait;

use kernmill_os::affinity::{CpuSet, Pinned};
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::hand_out::WorkersByNode;
use rounds::Rounds;
use std::process;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use barrier::Barrier;
pub use config::{MAX_THREADS, Numa, PoolConfig, PoolError, default_threads, default_threads_on};
pub(crate) use places::CpuLayout;
pub(crate) use rounds::{IdleWork, PoolTurn, SeatJob};

/// Where a worker stays.
struct WorkerCpus {
    cpus: CpuSet,
    /// Whether there is no pool if it cannot be kept there.
    must: bool,
}

/// Persistent workers. `A` is what they do while they wait for a turn to end.
pub(crate) struct Pool<A: IdleWork = ()> {
    rounds: Arc<Rounds<A>>,
    threads: Vec<JoinHandle<()>>,
    /// Where the calling thread is kept while it works.
    own_cpus: Option<CpuSet>,
    /// By worker, the number of its node; empty where there is one.
    nodes: Vec<usize>,
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
        Pool::on(config, &CpuLayout::of_system(&config)?)
    }

    /// Starts the workers on the CPUs that a layout describes.
    ///
    /// # Errors
    /// As of [`Pool::new`].
    pub(crate) fn on(config: PoolConfig, layout: &CpuLayout) -> Result<Pool<A>, PoolError> {
        let count = config.threads.unwrap_or_else(|| layout.usable.own_cores().min(MAX_THREADS));
        if !(1..=MAX_THREADS).contains(&count) {
            return Err(PoolError::Threads { found: count });
        }
        // Spinning helps only while every worker has a CPU to spin on.
        let may_spin = count <= layout.usable.count;
        let places = layout.places(&config, count);
        let must = config.pin || config.cpus.is_some();
        let rounds = Arc::new(Rounds::new(&places.seats, may_spin));
        let mut pool = Pool {
            rounds,
            threads: Vec::with_capacity(count - 1),
            own_cpus: places.cpus[0],
            nodes: places.nodes,
            process: process::id(),
        };
        for (worker, cpus) in places.cpus.into_iter().enumerate().skip(1) {
            let place = cpus.map(|cpus| WorkerCpus { cpus, must });
            pool.threads.push(spawn(worker, place, &pool.rounds)?);
        }
        if let Some(cpus) = pool.own_cpus.filter(|_| must) {
            Pinned::to(&cpus).map_err(|source| PoolError::Pin { worker: 0, source })?;
        }
        Ok(pool)
    }

    /// By worker, the number of its node; empty where there is one.
    pub(crate) fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Workers by node: those of a node follow each other.
    pub(crate) fn by_node(&self) -> WorkersByNode {
        match self.nodes[..] {
            [] => WorkersByNode::of_one(self.count() as u32),
            _ => WorkersByNode::counted(self.nodes.chunk_by(|a, b| a == b).map(|node| node.len() as u32)),
        }
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
        // Where it must stay, `on` has found that it can; should it not be possible any more, it works where
        // it is.
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
