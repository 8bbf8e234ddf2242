//! Which CPUs there are to work on.

use std::collections::BTreeSet;
use std::io;
use std::marker::PhantomData;

/// What a thread may work on.
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

/// What the calling thread may work on.
pub(super) fn usable() -> Usable {
    let cpus = allowed();
    // The standard library takes affinity and quota into account.
    let count = std::thread::available_parallelism().map_or(cpus.len(), usize::from).min(cpus.len());
    Usable { cpus, count }
}

/// CPUs in the affinity mask, ascending; `[0]` when it cannot be read.
fn allowed() -> Vec<usize> {
    let Ok(set) = affinity() else { return vec![0] };
    // SAFETY: every index is below the set's size.
    let cpus: Vec<usize> =
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// The calling thread's affinity mask.
fn affinity() -> io::Result<libc::cpu_set_t> {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills at most the set's size.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result == 0 { Ok(set) } else { Err(io::Error::last_os_error()) }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the kernel reads at most the set's size.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps the calling thread on one CPU until it is dropped; then the thread may go where it could before.
pub(super) struct Pinned {
    before: libc::cpu_set_t,
    /// The mask is the thread's: this value stays there.
    thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread; `cpu` is one of [`usable`]'s.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn to(cpu: usize) -> io::Result<Pinned> {
        let before = affinity()?;
        // SAFETY: an all-zero cpu_set_t is a valid, empty set; `cpu` is below its size.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            set
        };
        set_affinity(&set)?;
        Ok(Pinned { before, thread: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread had this mask, so the system takes it; if not, nothing can be done about it here.
        let _ = set_affinity(&self.before);
    }
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
