//! Which CPUs there are to work on.

use std::collections::BTreeSet;
use std::io;
use std::marker::PhantomData;

/// What a thread may work on.
pub struct Usable {
    /// CPUs in the affinity mask, ascending.
    pub cpus: Vec<usize>,
    /// How many CPUs the mask and the control group's quota amount to.
    pub count: usize,
}

/// Threads that have a core of their own: the least of the CPUs this process may run on, its control group's
/// quota, and the physical cores among those CPUs; at least 1.
pub fn own_cores() -> usize {
    let usable = usable();
    usable.count.min(cores(&usable.cpus)).max(1)
}

/// What the calling thread may work on.
pub fn usable() -> Usable {
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
pub struct Pinned {
    before: libc::cpu_set_t,
    /// The mask is the thread's: this value stays there.
    thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread; `cpu` is one of [`usable`]'s.
    ///
    /// # Errors
    /// The system's.
    pub fn to(cpu: usize) -> io::Result<Pinned> {
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
    let read = |cpu| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
            .ok()
    };
    cores_by(cpus, read)
}

/// How many cores the CPUs are, by the siblings that the system names for each. A CPU without named siblings
/// is a core of its own.
fn cores_by(cpus: &[usize], siblings: impl Fn(usize) -> Option<String>) -> usize {
    let core = |cpu: &usize| {
        let list = siblings(*cpu).map(|list| list.trim().to_owned());
        list.filter(|list| !list.is_empty()).unwrap_or_else(|| cpu.to_string())
    };
    cpus.iter().map(core).collect::<BTreeSet<String>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_of_which_nothing_is_said_is_a_core_of_its_own() {
        let pairs = |cpu: usize| Some(format!("{},{}\n", cpu % 2, cpu % 2 + 2));
        assert_eq!(cores_by(&[0, 1, 2, 3], pairs), 2);
        assert_eq!(cores_by(&[1, 3], pairs), 1);
        assert_eq!(cores_by(&[0, 1, 2], |cpu| Some(format!("{cpu}\n"))), 3);
        for nothing in [None, Some(""), Some(" \n")] {
            assert_eq!(cores_by(&[0, 1, 5], |_| nothing.map(str::to_owned)), 3, "{nothing:?}");
        }
        assert_eq!(cores_by(&[0, 1, 2], |cpu| (cpu > 0).then(|| "1-2".to_owned())), 2);
    }
}
