//! Which CPUs there are to work on.

use std::collections::BTreeSet;
use std::sync::OnceLock;

/// What could be used before a pool pinned a thread for the first time.
static BEFORE: OnceLock<Usable> = OnceLock::new();

/// What a thread may work on.
#[derive(Clone)]
pub(super) struct Usable {
    /// CPUs in the affinity mask, ascending.
    pub cpus: Vec<usize>,
    /// How many they and the control group's quota amount to.
    pub count: usize,
}

/// Workers by default: the least of the CPUs this process may run on, its control group's quota, and the physical cores
/// among those CPUs.
pub fn default_threads() -> usize {
    let usable = usable();
    usable.count.min(cores(&usable.cpus)).clamp(1, super::MAX_THREADS)
}

/// What the calling thread may work on. One CPU alone, when pools have pinned threads, comes of that, here or in the thread that made
/// this one: the next pool has as many CPUs as the first.
pub(super) fn usable() -> Usable {
    let cpus = allowed();
    let before = BEFORE.get().filter(|before| cpus.len() == 1 && before.cpus.contains(&cpus[0]));
    before.cloned().unwrap_or_else(|| {
        // The standard library takes affinity and quota into account.
        let count = std::thread::available_parallelism().map_or(cpus.len(), usize::from).min(cpus.len());
        Usable { cpus, count }
    })
}

/// CPUs in the affinity mask, ascending; `[0]` when it cannot be read.
fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set; the kernel fills at most its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: every index is below the set's size.
    let cpus: Vec<usize> =
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Pins the calling thread to one CPU.
pub(super) fn pin(cpu: usize) -> std::io::Result<()> {
    let _ = BEFORE.set(usable());
    // SAFETY: an all-zero cpu_set_t is a valid, empty set; `cpu` comes from `allowed` and is below its size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Physical cores among `cpus`: hardware threads of one core share its vector units and its caches.
fn cores(cpus: &[usize]) -> usize {
    let siblings = |cpu: &usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        // Unknown topology: a core of its own.
        std::fs::read_to_string(path).unwrap_or_else(|_| cpu.to_string())
    };
    cpus.iter().map(siblings).collect::<BTreeSet<String>>().len()
}
