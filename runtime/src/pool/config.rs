//! How many workers a pool has, and on which CPUs.

use kernmill_os::affinity::{CpuSet, Usable, usable};
use std::str::FromStr;

/// How many workers, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolConfig {
    /// Workers, the calling thread included; `None` takes [`default_threads`].
    pub threads: Option<usize>,
    /// CPUs that the workers may run on; `None` takes those that this process may use. Worker 0 is kept there
    /// as with `pin`. Where there is a worker for every core of these CPUs, all but worker 0 stay on a core
    /// of their own.
    pub cpus: Option<CpuSet>,
    /// Pins each worker to one of these CPUs, or of those that this process may use: ascending, one of each
    /// core before a second one of any. Worker 0 is whichever thread calls: it is pinned while it runs a
    /// batch, and may go where it could before afterwards.
    pub pin: bool,
    /// How nodes of memory are used, on systems with several.
    pub numa: Numa,
}

/// The use of several nodes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numa {
    /// Workers stay on their node, and what they read is laid there.
    #[default]
    Auto,
    /// Nodes are not looked at.
    Off,
}

impl FromStr for Numa {
    type Err = String;

    fn from_str(text: &str) -> Result<Numa, String> {
        match text {
            "auto" => Ok(Numa::Auto),
            "off" => Ok(Numa::Off),
            _ => Err("expected auto or off".to_owned()),
        }
    }
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
pub(super) fn usable_on(cpus: Option<&CpuSet>) -> Result<Usable, PoolError> {
    let usable = usable();
    let Some(cpus) = cpus else { return Ok(usable) };
    let all: CpuSet = usable.cpus.iter().copied().collect();
    let missing = cpus.without(&all);
    if !missing.is_empty() {
        return Err(PoolError::Cpus { missing: Box::new(missing), usable: Box::new(all) });
    }
    Ok(usable.within(cpus))
}
