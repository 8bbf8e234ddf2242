//! CPUs that are hardware threads of one core although the system calls each a core. Virtual machines show
//! them so.
//!
//! Two such CPUs share the units that multiply. So both together multiply about as fast as one of them alone,
//! and two cores twice as fast. That is measured here.

use crate::affinity::{CpuSet, Pinned, Usable};
use crate::cpu::host_has;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

/// CPUs that multiply together less than this many times as fast as one of them are sisters.
const SISTERS: f64 = 1.3;
/// Measurements of a pair. Their median counts, since another program may disturb one or two.
const TRIES: usize = 5;
/// How long CPUs multiply at a time.
const SPAN: Duration = Duration::from_millis(1);
/// Multiplications between two looks at the clock.
const BETWEEN_LOOKS: usize = 2000;
/// Products that do not wait for each other: more than a multiplication takes cycles.
const CHAINS: usize = 8;

/// Pairs of these CPUs that share a core, as it is found out now, in some tens of milliseconds. None where
/// the system names hardware threads itself, or where this process may not use the CPUs at once.
pub fn sisters(usable: &Usable) -> Vec<CpuSet> {
    /// The CPUs that were looked at last, and their pairs.
    static LAST: Mutex<Option<(Vec<usize>, Vec<CpuSet>)>> = Mutex::new(None);
    if !may_be_hidden(usable) {
        return Vec::new();
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((cpus, pairs)) if *cpus == usable.cpus => pairs.clone(),
        _ => {
            let pairs = pairs_by(&usable.cpus, configured(), multiply_on);
            *last = Some((usable.cpus.clone(), pairs.clone()));
            pairs
        }
    }
}

/// Whether CPUs may be hardware threads of one core that the system does not name: in a virtual machine in
/// which every CPU is a core. With a quota of fewer CPUs nothing can be found out.
pub fn may_be_hidden(usable: &Usable) -> bool {
    let cpus = usable.cpus.len();
    host_has("hypervisor") && cpus > 1 && usable.count == cpus && usable.cores().len() == cpus
}

/// Cores, where some of them are pairs of CPUs: `cores` with each pair as one.
#[must_use]
pub fn joined(cores: Vec<CpuSet>, pairs: &[CpuSet]) -> Vec<CpuSet> {
    let mut all: Vec<CpuSet> = Vec::new();
    for core in cores {
        let pair = pairs.iter().find(|pair| core.without(pair).is_empty()).copied();
        let core = pair.unwrap_or(core);
        if !all.contains(&core) {
            all.push(core);
        }
    }
    all
}

/// CPUs of the system.
fn configured() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(0)
}

/// The pairs among `cpus`, of a system of `all` CPUs, by how fast CPUs multiply that do so at once. A
/// hypervisor numbers the threads of a core one after the other, or first one thread of every core and then
/// the others. Pairs are those of such an order, and only if every one of them proves to be a core.
fn pairs_by(cpus: &[usize], all: usize, mut rates: impl FnMut(&[usize]) -> Option<Vec<f64>>) -> Vec<CpuSet> {
    let neighbours = |cpu: usize| cpu ^ 1;
    let halves = |cpu: usize| if cpu < all / 2 { cpu + all / 2 } else { cpu - all / 2 };
    let orders: [&dyn Fn(usize) -> usize; 2] = [&neighbours, &halves];
    // With two CPUs both orders are the same.
    for sister in orders.into_iter().take(if all > 2 { 2 } else { 1 }) {
        let firsts: Vec<usize> =
            cpus.iter().copied().filter(|cpu| sister(*cpu) > *cpu && cpus.contains(&sister(*cpu))).collect();
        let seconds: Vec<usize> = firsts.iter().map(|cpu| sister(*cpu)).collect();
        // The first pair alone says whether it is this order, and all at once whether that holds for all.
        let some = [1, firsts.len()].map(|count| count.min(firsts.len()));
        let mut prove = |count: usize| are_sisters(&firsts[..count], &seconds[..count], &mut rates);
        if !firsts.is_empty() && some.into_iter().all(&mut prove) {
            let pair = |(first, second): (&usize, &usize)| [*first, *second].into_iter().collect();
            return firsts.iter().zip(&seconds).map(pair).collect();
        }
    }
    Vec::new()
}

/// Whether each first CPU and its second one share a core. All pairs are measured at once: the first ones
/// together, the second ones together, and all.
fn are_sisters(
    firsts: &[usize],
    seconds: &[usize],
    rates: &mut impl FnMut(&[usize]) -> Option<Vec<f64>>,
) -> bool {
    let both = [firsts, seconds].concat();
    let mut gains = vec![Vec::new(); firsts.len()];
    for _ in 0..TRIES {
        let (Some(one), Some(other), Some(all)) = (rates(firsts), rates(seconds), rates(&both)) else {
            return false;
        };
        for (n, gains) in gains.iter_mut().enumerate() {
            gains.push(2.0 * (all[n] + all[firsts.len() + n]) / (one[n] + other[n]));
        }
    }
    gains.into_iter().all(|mut gains| {
        gains.sort_by(f64::total_cmp);
        gains[TRIES / 2] < SISTERS
    })
}

/// Multiplications per second of each of these CPUs, which multiply at the same time. `None` where the system
/// gives no thread, or not on that CPU.
fn multiply_on(cpus: &[usize]) -> Option<Vec<f64>> {
    let (ready, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one = |cpu: usize| {
        let pinned = Pinned::to(&CpuSet::one(cpu));
        failed.fetch_or(pinned.is_err(), Ordering::Relaxed);
        ready.fetch_add(1, Ordering::AcqRel);
        // Spinning, so that the CPU is awake when it counts. A thread that never comes has failed.
        while ready.load(Ordering::Acquire) < cpus.len() && !failed.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        multiply_for(SPAN)
    };
    let rates: Option<Vec<f64>> = scope(|scope| {
        let one = &one;
        let start = |cpu: &usize| {
            let cpu = *cpu;
            let thread = Builder::new().spawn_scoped(scope, move || one(cpu));
            failed.fetch_or(thread.is_err(), Ordering::Relaxed);
            thread.ok()
        };
        let threads: Vec<_> = cpus.iter().map(start).collect();
        threads.into_iter().map(|thread| thread?.join().ok()).collect()
    });
    rates.filter(|_| !failed.into_inner())
}

/// Multiplications per second of the calling thread, over so long.
fn multiply_for(span: Duration) -> f64 {
    let mut products = [3u64; CHAINS];
    let (start, mut done) = (Instant::now(), 0u64);
    loop {
        for _ in 0..BETWEEN_LOOKS {
            // The compiler must not know the factor.
            let factor = std::hint::black_box(5);
            products.iter_mut().for_each(|product| *product = product.wrapping_mul(factor));
        }
        std::hint::black_box(&products);
        done += (BETWEEN_LOOKS * CHAINS) as u64;
        let took = start.elapsed();
        if took >= span {
            return done as f64 / took.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of CPUs on cores that `core` numbers: the threads of a core share its rate.
    fn shared(core: impl Fn(usize) -> usize) -> impl FnMut(&[usize]) -> Option<Vec<f64>> {
        move |cpus| {
            let on = |own: usize| cpus.iter().filter(|cpu| core(**cpu) == own).count();
            Some(cpus.iter().map(|cpu| 1.1 / if on(core(*cpu)) > 1 { 2.0 } else { 1.1 }).collect())
        }
    }

    fn pairs(cpus: &[usize], all: usize, rates: impl FnMut(&[usize]) -> Option<Vec<f64>>) -> Vec<String> {
        pairs_by(cpus, all, rates).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pairs_are_found_in_both_orders_and_nowhere_else() {
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(pairs(&all, 8, shared(|cpu| cpu / 2)), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(pairs(&all, 8, shared(|cpu| cpu % 4)), ["0,4", "1,5", "2,6", "3,7"]);
        assert_eq!(pairs(&all, 8, shared(|cpu| cpu)), [""; 0]);
        // One pair is no order of all CPUs, and an order of another kind is not looked for.
        assert_eq!(pairs(&all, 8, shared(|cpu| cpu.max(1))), [""; 0]);
        assert_eq!(pairs(&all, 8, shared(|cpu| cpu.min(7 - cpu))), [""; 0]);
        assert_eq!(pairs(&[0, 1], 2, shared(|_| 0)), ["0-1"]);
        // The process may use only some of the CPUs.
        assert_eq!(pairs(&[1, 2, 3, 6], 8, shared(|cpu| cpu / 2)), ["2-3"]);
        assert_eq!(pairs(&[1, 2, 3, 6], 8, shared(|cpu| cpu % 4)), ["2,6"]);
        assert_eq!(pairs(&[1, 2], 8, shared(|cpu| cpu / 2)), [""; 0]);
        assert_eq!(pairs(&all, 8, |_| None), [""; 0]);
    }

    /// Another program has a CPU in two of the tries.
    #[test]
    fn the_median_counts() {
        for (core, found) in [(1usize, 2), (2, 0)] {
            let mut rates = shared(move |cpu| if core == 1 { cpu / 2 } else { cpu });
            let mut asked = 0;
            let disturbed = |cpus: &[usize]| {
                asked += 1;
                let mut rates = rates(cpus)?;
                // In tries 0 and 3 of the order, when all CPUs multiply or when half of them do.
                if [2, 9].contains(&(asked % 15)) {
                    rates[0] *= if core == 1 { 9.0 } else { 0.1 };
                }
                Some(rates)
            };
            assert_eq!(pairs(&[0, 1, 2, 3], 4, disturbed).len(), found, "{core}");
        }
    }

    #[test]
    fn pairs_become_cores() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let cores = |list: &[&str]| list.iter().map(|text| set(text)).collect::<Vec<_>>();
        let all = cores(&["0", "1", "2", "3", "9"]);
        assert_eq!(joined(all.clone(), &cores(&["0,2", "1,3"])), cores(&["0,2", "1,3", "9"]));
        assert_eq!(joined(all.clone(), &[]), all);
    }

    #[test]
    fn every_cpu_multiplies() {
        let cpus = crate::affinity::usable().cpus;
        let rates = multiply_on(&cpus).unwrap();
        assert_eq!(rates.len(), cpus.len());
        assert!(rates.iter().all(|rate| rate.is_finite() && *rate > 1e6), "{rates:?}");
        assert!(multiply_on(&[(0..1024).rfind(|cpu| !cpus.contains(cpu)).unwrap()]).is_none());
    }
}
