//! Which CPUs there are to work on.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::str::FromStr;

/// CPUs by number that a set can have: those of the system's own sets.
const MOST_CPUS: usize = libc::CPU_SETSIZE as usize;
/// The form of a list of CPUs, for messages.
const LIST: &str = "expected numbers of CPUs and ranges of them, such as 0-3,8";

/// A set of CPUs, by number. As text it is a list like those of the system, such as `0-3,8`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet([u64; MOST_CPUS / 64]);

impl CpuSet {
    /// The CPU with this number alone, which must be below 1024.
    pub fn one(cpu: usize) -> CpuSet {
        let mut set = CpuSet([0; MOST_CPUS / 64]);
        set.0[cpu / 64] |= 1 << (cpu % 64);
        set
    }

    /// Whether a CPU is in it.
    pub fn has(&self, cpu: usize) -> bool {
        self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MOST_CPUS).filter(|cpu| self.has(*cpu))
    }

    /// Whether no CPU is in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The lowest CPU that is in it.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The CPUs that are also in `other`.
    #[must_use]
    pub fn within(&self, other: &CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|n| self.0[n] & other.0[n]))
    }

    /// The CPUs that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|n| self.0[n] & !other.0[n]))
    }

    /// The system's form of it.
    fn raw(&self) -> libc::cpu_set_t {
        // SAFETY: an all-zero cpu_set_t is a valid, empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for cpu in self.iter() {
            // SAFETY: the number is below the set's size.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        set
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> CpuSet {
        cpus.into_iter().fold(CpuSet([0; MOST_CPUS / 64]), |set, cpu| {
            let one = CpuSet::one(cpu);
            CpuSet(std::array::from_fn(|n| set.0[n] | one.0[n]))
        })
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuSet, String> {
        let number = |text: &str| match text.parse::<usize>() {
            Ok(cpu) if !text.starts_with('+') => Ok(cpu),
            _ => Err(LIST.to_owned()),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part} goes backwards: expected {last}-{first}"));
            }
            if last >= MOST_CPUS {
                return Err(format!("there is no CPU {last}: expected numbers below {MOST_CPUS}"));
            }
            cpus.extend(first..=last);
        }
        Ok(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 0;
        let mut comma = "";
        while let Some(first) = (from..MOST_CPUS).find(|cpu| self.has(*cpu)) {
            let end = (first..MOST_CPUS).find(|cpu| !self.has(*cpu)).unwrap_or(MOST_CPUS);
            match end - first {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", end - 1)?,
            }
            (from, comma) = (end, ",");
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// CPUs and memory that a thread may use.
pub struct Usable {
    /// CPUs in the affinity mask, ascending.
    pub cpus: Vec<usize>,
    /// How many CPUs the mask and the control group's quota amount to.
    pub count: usize,
}

impl Usable {
    /// The part of these CPUs that is in `set`. The set has no others.
    #[must_use]
    pub fn within(self, set: &CpuSet) -> Usable {
        let cpus: Vec<usize> = self.cpus.into_iter().filter(|cpu| set.has(*cpu)).collect();
        Usable { count: self.count.min(cpus.len()), cpus }
    }

    /// Threads that have a core of their own: the least of these CPUs, the control group's quota, and the
    /// physical cores among the CPUs; at least 1.
    pub fn own_cores(&self) -> usize {
        self.count.min(self.cores().len()).max(1)
    }

    /// Physical cores among the CPUs, each with its CPUs, by the lowest of them: hardware threads of one core
    /// share its vector units and its caches.
    pub fn cores(&self) -> Vec<CpuSet> {
        cores_by(&self.cpus, |cpu| of_cpu(cpu, "topology/thread_siblings_list"))
    }

    /// The CPUs by the last level of cache that they share, in the order of their lowest; all in one where
    /// the system tells of none.
    pub fn caches(&self) -> Vec<CpuSet> {
        let last = |cpu| of_cpu(cpu, "cache/index3/shared_cpu_list");
        match self.cpus.iter().all(|cpu| last(*cpu).is_some()) {
            true => cores_by(&self.cpus, last),
            false => vec![self.cpus.iter().copied().collect()],
        }
    }
}

/// CPUs and memory that the calling thread may use.
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
    let cpus: Vec<usize> = (0..MOST_CPUS).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect();
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

/// Keeps the calling thread on some CPUs until it is dropped; then the thread may go where it could before.
pub struct Pinned {
    before: libc::cpu_set_t,
    /// The mask is the thread's: this value stays there.
    thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Keeps the calling thread on these CPUs, some of [`usable`]'s.
    ///
    /// # Errors
    /// The system's.
    pub fn to(cpus: &CpuSet) -> io::Result<Pinned> {
        let before = affinity()?;
        set_affinity(&cpus.raw())?;
        Ok(Pinned { before, thread: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread had this mask, so the system takes it; if not, nothing can be done about it here.
        let _ = set_affinity(&self.before);
    }
}

/// A file of the system about a CPU.
fn of_cpu(cpu: usize, name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{name}")).ok()
}

/// The cores that CPUs belong to, by the siblings that the system names for each. A CPU without named
/// siblings is a core of its own.
fn cores_by(cpus: &[usize], siblings: impl Fn(usize) -> Option<String>) -> Vec<CpuSet> {
    let mut cores: Vec<(String, Vec<usize>)> = Vec::new();
    for cpu in cpus {
        let list = siblings(*cpu).map(|list| list.trim().to_owned());
        let core = list.filter(|list| !list.is_empty()).unwrap_or_else(|| cpu.to_string());
        match cores.iter_mut().find(|(other, _)| *other == core) {
            Some((_, own)) => own.push(*cpu),
            None => cores.push((core, vec![*cpu])),
        }
    }
    cores.into_iter().map(|(_, own)| own.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_shown() {
        for (text, cpus, shown) in [
            ("0", vec![0], "0"),
            ("8,0-3", vec![0, 1, 2, 3, 8], "0-3,8"),
            ("63-64,1,0", vec![0, 1, 63, 64], "0-1,63-64"),
            ("5,5-5,5", vec![5], "5"),
            ("1023", vec![1023], "1023"),
        ] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!((set.iter().collect::<Vec<_>>(), set.to_string().as_str()), (cpus, shown), "{text}");
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for (text, part) in [
            ("", "such as 0-3,8"),
            ("0,", "such as 0-3,8"),
            ("a", "such as 0-3,8"),
            ("-1", "such as 0-3,8"),
            ("+1", "such as 0-3,8"),
            ("1-2-3", "such as 0-3,8"),
            ("0x1", "such as 0-3,8"),
            ("99999999999999999999", "such as 0-3,8"),
            ("3-1", "expected 1-3"),
            ("1024", "below 1024"),
            ("0-4000000000", "below 1024"),
        ] {
            let refused = text.parse::<CpuSet>().unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        let (a, b): (CpuSet, CpuSet) = ("0-5".parse().unwrap(), "2-3,9".parse().unwrap());
        assert_eq!(a.without(&b).to_string(), "0-1,4-5");
    }

    #[test]
    fn a_thread_is_kept_on_cpus_by_what_the_system_says() {
        let list = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        };
        let before = list();
        assert_eq!(usable().cpus.into_iter().collect::<CpuSet>().to_string(), before);
        for cpu in usable().cpus {
            let pinned = Pinned::to(&CpuSet::one(cpu)).unwrap();
            assert_eq!(list(), cpu.to_string());
            drop(pinned);
            assert_eq!(list(), before);
        }
    }

    #[test]
    fn a_cpu_of_which_nothing_is_said_is_a_core_of_its_own() {
        let pairs = |cpu: usize| Some(format!("{},{}\n", cpu % 2, cpu % 2 + 2));
        let cores = |cpus: &[usize], siblings: &dyn Fn(usize) -> Option<String>| {
            cores_by(cpus, siblings).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(cores(&[0, 1, 2, 3], &pairs), ["0,2", "1,3"]);
        assert_eq!(cores(&[1, 3], &pairs), ["1,3"]);
        assert_eq!(cores(&[2, 3], &pairs), ["2", "3"]);
        assert_eq!(cores(&[0, 1, 2], &|cpu| Some(format!("{cpu}\n"))), ["0", "1", "2"]);
        for nothing in [None, Some(""), Some(" \n")] {
            assert_eq!(cores(&[0, 1, 5], &|_| nothing.map(str::to_owned)), ["0", "1", "5"], "{nothing:?}");
        }
        assert_eq!(cores(&[0, 1, 2], &|cpu| (cpu > 0).then(|| "1-2".to_owned())), ["0", "1-2"]);
    }
}
