//! Tests of the pool on real threads; `runtime/pool-model` has those of every interleaving.

use super::arrival::{Arrivals, SeatPlace};
use super::wait::{MAX_SPIN, MIN_SPIN, Signal, Wait, next_budget};
use super::*;
use kernmill_os::affinity::usable;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

fn pool(threads: usize) -> Pool {
    Pool::<()>::new(PoolConfig { threads: Some(threads), ..PoolConfig::default() }).unwrap()
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
                    barrier.wait(worker);
                    for d in &done {
                        assert_eq!(d.load(Ordering::Relaxed), run * 50 + step + 1);
                    }
                    barrier.wait(worker);
                }
            });
        }
    }
}

#[test]
fn counts_are_checked_and_pinning_works() {
    for threads in [0, MAX_THREADS + 1] {
        assert!(Pool::<()>::new(PoolConfig { threads: Some(threads), ..PoolConfig::default() }).is_err());
    }
    let expected = default_threads();
    let mut pool = Pool::<()>::new(PoolConfig { pin: true, ..PoolConfig::default() }).unwrap();
    assert_eq!(pool.count(), expected);
    let ran = AtomicU32::new(0);
    pool.run(&|_, _| {
        ran.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(ran.into_inner() as usize, pool.count());
}

/// The cost of oversubscription is measured in `benches/engines.rs`; here every worker of every pool gets
/// through.
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
                    pool.run(&|worker, barrier| {
                        for step in 0..STEPS {
                            steps.fetch_add(1, Ordering::Relaxed);
                            barrier.wait(worker);
                            let done = steps.load(Ordering::Relaxed);
                            assert!(done >= 4 * (run * STEPS + step + 1), "a worker passed a barrier early");
                        }
                    });
                }
                assert_eq!(steps.into_inner(), 4 * RUNS * STEPS);
            });
        }
    });
}

#[test]
fn the_calling_thread_is_pinned_while_it_runs_and_not_afterwards() {
    let (cpus, threads) = (usable().cpus, default_threads());
    let mut first =
        Pool::<()>::new(PoolConfig { threads: Some(2), pin: true, ..PoolConfig::default() }).unwrap();
    assert_eq!(usable().cpus, cpus);
    let seen = std::sync::Mutex::new(Vec::new());
    first.run(&|_, _| seen.lock().unwrap().push(usable().cpus));
    assert!(seen.into_inner().unwrap().iter().all(|own| own.len() == 1));
    assert_eq!((usable().cpus, default_threads()), (cpus.clone(), threads));
    // Another thread may run the pool: it is left as it was too.
    let after = std::thread::spawn(move || {
        first.run(&|_, _| ());
        usable().cpus
    });
    assert_eq!(after.join().unwrap(), cpus);
    assert_eq!(Pool::<()>::new(PoolConfig { pin: true, ..PoolConfig::default() }).unwrap().count(), threads);
}

/// Worker 0 may go where it could before; each of the others has a core. With fewer of them than cores, the
/// system places them.
#[test]
fn as_many_workers_as_cores_have_one_each() {
    let (all, cores) = (usable().cpus, usable().cores());
    for threads in [1, 2, cores.len(), cores.len() + 1] {
        let config = PoolConfig { threads: Some(threads), numa: Numa::Off, ..PoolConfig::default() };
        let layout = CpuLayout { sisters: |_| Vec::new(), ..CpuLayout::of_system(&config).unwrap() };
        let mut pool = Pool::<()>::on(config, &layout).unwrap();
        let seen = std::sync::Mutex::new(vec![Vec::new(); threads]);
        pool.run(&|worker, _| seen.lock().unwrap()[worker as usize] = usable().cpus);
        let spread = threads == cores.len() && usable().own_cores() == threads;
        for (worker, cpus) in seen.into_inner().unwrap().into_iter().enumerate() {
            let expected = match spread && worker > 0 {
                true => cores[worker].iter().collect(),
                false => all.clone(),
            };
            assert_eq!(cpus, expected, "worker {worker} of {threads}");
        }
    }
}

#[test]
fn workers_stay_on_the_cpus_that_are_named() {
    // As the system says it.
    let list = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    let (all, own) = (usable().cpus, list());
    for cpus in [vec![all[0]], vec![all[all.len() - 1]], all.clone()] {
        let set: CpuSet = cpus.iter().copied().collect();
        // So many that they have no cores of their own.
        let threads = cpus.len() + 1;
        for pin in [false, true] {
            let config = PoolConfig { threads: Some(threads), cpus: Some(set), pin, numa: Numa::Off };
            let mut pool = Pool::<()>::new(config).unwrap();
            let seen = std::sync::Mutex::new(vec![String::new(); threads]);
            pool.run(&|worker, _| seen.lock().unwrap()[worker as usize] = list());
            let seen = seen.into_inner().unwrap();
            if pin {
                // Each CPU has a worker, and one of them a second.
                let mut single: Vec<usize> = seen.iter().map(|list| list.parse().unwrap()).collect();
                assert_eq!(single.pop(), Some(single[0]));
                single.sort_unstable();
                assert_eq!(single, cpus);
            } else {
                assert_eq!(seen, vec![set.to_string(); threads]);
            }
            assert_eq!(list(), own);
        }
        assert!((1..=cpus.len()).contains(&default_threads_on(&set).unwrap()));
    }
    let absent = (0..).find(|cpu| !all.contains(cpu)).unwrap();
    let config = PoolConfig { cpus: Some(CpuSet::one(absent)), ..PoolConfig::default() };
    let refused = Pool::<()>::new(config).err().unwrap().to_string();
    assert!(refused.contains(&format!("may not use CPU {absent}, expected some of {own}")), "{refused}");
}

/// Starts a job in which each worker waits at the barrier so many times; 1 when `run` has returned.
fn with_waits(waits: &'static [u32]) -> Arc<AtomicU32> {
    let rounds = Arc::new(Rounds::<()>::new(&vec![SeatPlace::default(); waits.len()], waits.len() == 2));
    let returned = Arc::new(AtomicU32::new(0));
    for worker in 1..waits.len() as u32 {
        let rounds = Arc::clone(&rounds);
        std::thread::spawn(move || rounds.work(worker));
    }
    let end = Arc::clone(&returned);
    std::thread::spawn(move || {
        let job = |turn: PoolTurn<'_>| {
            (0..waits[turn.seat as usize]).for_each(|_| turn.barrier.wait(turn.seat));
            None
        };
        // SAFETY: this thread alone calls it, the others above are all the workers.
        unsafe { rounds.run(1, true, &job) };
        end.store(1, Ordering::SeqCst);
        rounds.stop();
    });
    returned
}

/// A job whose workers meet unequally never ends, but it does not end early: no worker runs it when `run` has
/// returned.
#[test]
fn the_end_of_a_run_is_not_the_jobs_barrier() {
    let unequal: [&[u32]; 8] =
        [&[0, 1], &[1, 0], &[2, 0], &[3, 5], &[0, 0, 1], &[1, 2, 2], &[2, 1, 1], &[4, 4, 3, 4]];
    let equal: [&[u32]; 3] = [&[2, 2], &[0, 0, 0], &[5, 5, 5, 5]];
    let endless = unequal.map(with_waits);
    let start = std::time::Instant::now();
    for returned in equal.map(with_waits) {
        while returned.load(Ordering::SeqCst) == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "workers that meet equally get through");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    for (returned, waits) in endless.iter().zip(unequal) {
        assert_eq!(returned.load(Ordering::SeqCst), 0, "{waits:?}");
    }
}

#[test]
fn only_waits_that_outlast_every_spin_shrink_the_budget() {
    assert_eq!(next_budget(MAX_SPIN, MAX_SPIN), MAX_SPIN / 2);
    assert_eq!(next_budget(MIN_SPIN, 10 * MAX_SPIN), MIN_SPIN);
    assert_eq!(next_budget(MIN_SPIN, MAX_SPIN / 2), MAX_SPIN);
}

#[test]
fn a_wait_that_slept_adapts_the_budget_of_its_kind() {
    let signal = Signal::new(0, true);
    let [turn, round] = &signal.spin;
    turn.store((4 * MIN_SPIN).as_nanos() as u32, Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while signal.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(2 * MAX_SPIN);
            signal.change_to(1);
        });
        assert!(signal.wait_change(0, Wait::Turn, || false) >= 2 * MAX_SPIN);
        assert_eq!(signal.value(), 1);
    });
    assert_eq!(turn.load(Ordering::Relaxed), (2 * MIN_SPIN).as_nanos() as u32);
    assert_eq!(round.load(Ordering::Relaxed), MAX_SPIN.as_nanos() as u32);
}

/// How often every part of every turn is done.
struct Done(Vec<AtomicU32>, usize);

impl Done {
    fn new(turns: usize, seats: usize) -> Done {
        Done((0..turns * seats).map(|_| AtomicU32::new(0)).collect(), seats)
    }

    fn add(&self, turn: PoolTurn<'_>) {
        self.0[turn.number * self.1 + turn.seat as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, turn: usize) -> Vec<u32> {
        self.0[turn * self.1..][..self.1].iter().map(|done| done.load(Ordering::Relaxed)).collect()
    }

    fn is_whole(&self) -> bool {
        self.0.iter().all(|done| done.load(Ordering::Relaxed) == 1)
    }
}

#[test]
fn every_part_of_every_turn_is_done_once() {
    for threads in [1, 2, 5] {
        let mut pool = pool(threads);
        for turns in [0, 1, 2, 300] {
            let (done, order) = (Done::new(turns, threads), AtomicU64::new(0));
            pool.run_turns(turns, &|turn| {
                let before = order.fetch_add(1, Ordering::Relaxed) as usize;
                assert_eq!(before / threads, turn.number, "no part begins before all of the last turn's end");
                done.add(turn);
                None
            });
            assert!(done.is_whole(), "{threads} threads, {turns} turns");
        }
        // Rounds with a barrier go on working in between.
        let met = AtomicU32::new(0);
        pool.run(&|worker, barrier| {
            met.fetch_add(1, Ordering::Relaxed);
            barrier.wait(worker);
            assert_eq!(met.load(Ordering::Relaxed), threads as u32);
        });
    }
}

/// Workers 1 and 2 come late: not before two rounds have ended.
#[test]
fn turns_end_without_workers_who_do_not_come() {
    let rounds = Arc::new(Rounds::<()>::new(&[SeatPlace::default(); 3], false));
    for _ in 0..2 {
        let done = Done::new(50, 3);
        let job = |turn: PoolTurn<'_>| {
            done.add(turn);
            None
        };
        // SAFETY: this thread alone calls it.
        unsafe { rounds.run(50, false, &job) };
        assert!(done.is_whole());
    }
    // They find their way into a round that waits for both.
    let workers = [1, 2].map(|worker| {
        let rounds = Arc::clone(&rounds);
        std::thread::spawn(move || rounds.work(worker))
    });
    let seen = AtomicU32::new(0);
    let job = |turn: PoolTurn<'_>| {
        seen.fetch_or(1 << turn.seat, Ordering::Relaxed);
        turn.barrier.wait(turn.seat);
        None
    };
    // SAFETY: this thread alone calls it, and the other workers are on their way.
    unsafe { rounds.run(1, true, &job) };
    assert_eq!(seen.into_inner(), 0b111);
    rounds.stop();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// One worker is held in its part of turn 2: the others finish all the rest of that turn, and nothing of the
/// next.
#[test]
fn a_worker_that_is_held_holds_its_own_part_only() {
    const HELD: usize = 2;
    let mut pool = pool(3);
    let done = Done::new(5, 3);
    let gate = AtomicU32::new(0);
    let watch = || {
        let rest = || done.of(HELD).iter().sum::<u32>();
        while rest() < 2 {
            std::thread::yield_now();
        }
        // A worker that goes on too early has the time to.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((rest(), done.of(HELD + 1)), (2, vec![0; 3]));
        gate.store(1, Ordering::Release);
    };
    std::thread::scope(|scope| {
        scope.spawn(watch);
        pool.run_turns(5, &|turn| {
            while turn.number == HELD && turn.seat == 1 && gate.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            done.add(turn);
            None
        });
    });
    assert!(done.is_whole());
}

#[test]
fn arrivals_are_counted_by_cache_and_node() {
    let tree = |places: &[(usize, usize)]| {
        let seats: Vec<_> =
            places.iter().map(|(node, cache)| SeatPlace { node: *node, cache: *cache }).collect();
        Arrivals::at(&seats).tree()
    };
    assert_eq!(tree(&[(0, 0)]), [(1, 0)]);
    assert_eq!(tree(&[(0, 0); 5]), [(5, 0)]);
    // Two caches of a node; then two nodes, the second with a cache for each worker.
    assert_eq!(tree(&[(0, 0), (0, 0), (0, 1), (0, 1)]), [(2, 0), (2, 0), (2, 0)]);
    let nodes = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 2), (1, 3)];
    assert_eq!(tree(&nodes), [(2, 0), (2, 0), (2, 1), (2, 1), (2, 0)]);
    assert_eq!(tree(&[(0, 0), (1, 1), (2, 2)]), [(3, 0)]);
}

#[test]
fn the_last_to_arrive_is_the_last_of_all() {
    let seats = [(0, 0), (0, 0), (0, 1), (1, 2), (1, 2)].map(|(node, cache)| SeatPlace { node, cache });
    let arrivals = Arrivals::at(&seats);
    for first in 0..10 {
        let order = (0..5).map(|n| (first + 3 * n) % 5);
        let last: Vec<bool> = order.map(|seat| arrivals.arrive(seat)).collect();
        assert_eq!(last, [false, false, false, false, true]);
    }
}
