//! The worker pool's waiting under loom: the sources of `runtime/src/pool/`, over loom's threads and memory.
//!
//! loom runs a test again and again, until it has taken every order in which the threads' steps can happen
//! and every value that a load may see. It reports a thread that nobody wakes, and an access that happens
//! beside another one.
#![cfg(test)]

#[path = "../../src/pool/arrival.rs"]
mod arrival;
#[path = "../../src/pool/barrier.rs"]
mod barrier;
#[path = "../../src/pool/rounds.rs"]
mod rounds;
mod sync;
#[path = "../../src/pool/wait.rs"]
mod wait;

use arrival::{Arrivals, SeatPlace};
use barrier::Barrier;
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use rounds::{PoolTurn, Rounds};
use wait::{Signal, Wait};

/// Tries every interleaving with at most so many changes of a thread that could go on; `None`: every
/// interleaving.
fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// A place that a thread writes and others read: loom fails when two accesses are not ordered.
struct SharedCell(UnsafeCell<u32>);

// SAFETY: loom watches the accesses.
unsafe impl Sync for SharedCell {}
// SAFETY: as above.
unsafe impl Send for SharedCell {}

impl SharedCell {
    fn new() -> SharedCell {
        SharedCell(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: the pointer is good; loom fails the test if the access is not alone.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

fn no_change_is_lost(waiters: usize, may_spin: bool, preemptions: Option<usize>) {
    explore(preemptions, move || {
        let shared = Arc::new((Signal::new(0, may_spin), SharedCell::new()));
        let threads: Vec<_> = (0..waiters)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.0.wait_change(0, Wait::Turn, || false);
                    assert_eq!((shared.0.value(), shared.1.get()), (1, 1));
                })
            })
            .collect();
        shared.1.add();
        shared.0.change_to(1);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn a_sleeping_waiter_is_woken() {
    no_change_is_lost(1, false, None);
}

#[test]
fn a_spinning_waiter_sees_the_change() {
    no_change_is_lost(1, true, None);
}

#[test]
fn two_waiters_are_woken() {
    no_change_is_lost(2, false, Some(4));
}

/// Seats of one cache.
fn near(count: usize) -> Vec<SeatPlace> {
    vec![SeatPlace::default(); count]
}

/// Seats on nodes, in caches of these: `(node, cache)` of each.
fn apart(places: &[(usize, usize)]) -> Vec<SeatPlace> {
    places.iter().map(|(node, cache)| SeatPlace { node: *node, cache: *cache }).collect()
}

/// Each of the threads writes its place, meets the others, and reads theirs; again, so that the barrier is
/// reused.
fn barriers_order_what_is_before_and_after(seats: Vec<SeatPlace>, turns: u32, preemptions: Option<usize>) {
    let count = seats.len();
    explore(preemptions, move || {
        let places: Vec<SharedCell> = (0..count).map(|_| SharedCell::new()).collect();
        let shared = Arc::new((Barrier::new(Arrivals::at(&seats), false), places));
        let worker = move |own: usize, (barrier, places): &(Barrier, Vec<SharedCell>)| {
            for turn in 1..=turns {
                places[own].add();
                barrier.wait(own as u32);
                assert!(places.iter().all(|place| place.get() == turn));
                barrier.wait(own as u32);
            }
        };
        let threads: Vec<_> = (1..count)
            .map(|own| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || worker(own, &shared))
            })
            .collect();
        worker(0, &shared);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn two_workers_meet_at_a_barrier() {
    barriers_order_what_is_before_and_after(near(2), 2, Some(4));
}

#[test]
fn three_workers_meet_at_a_barrier() {
    barriers_order_what_is_before_and_after(near(3), 1, Some(2));
}

/// Two of a node count for it, and the last of them goes on to meet the third.
#[test]
fn three_workers_of_two_nodes_meet_at_a_barrier() {
    barriers_order_what_is_before_and_after(apart(&[(0, 0), (0, 0), (1, 1)]), 1, Some(2));
}

/// A counter behind a counter: the first two share a cache of their node.
#[test]
fn workers_of_caches_and_nodes_meet_at_a_barrier() {
    let seats = apart(&[(0, 0), (0, 0), (0, 1), (1, 2)]);
    let at = seats.clone();
    explore(None, move || assert_eq!(Arrivals::at(&at).tree(), [(2, 0), (2, 0), (2, 1)]));
    barriers_order_what_is_before_and_after(seats, 1, Some(1));
}

/// Rounds with jobs of their own; what a job has is written by every worker, read when the round has ended,
/// and gone.
fn rounds_end_when_all_have_finished(
    seats: Vec<SeatPlace>,
    rounds: u32,
    meets: bool,
    preemptions: Option<usize>,
) {
    let count = seats.len();
    explore(preemptions, move || {
        let shared = Arc::new(Rounds::<()>::new(&seats, false));
        let threads = workers(&shared, count);
        for _ in 0..rounds {
            let places: Vec<SharedCell> = (0..count).map(|_| SharedCell::new()).collect();
            let job = |turn: PoolTurn<'_>| {
                places[turn.seat as usize].add();
                if meets {
                    turn.barrier.wait(turn.seat);
                    assert!(places.iter().all(|place| place.get() == 1));
                }
                None
            };
            // SAFETY: this thread alone calls it, and the workers are the threads above.
            unsafe { shared.run(1, true, &job) };
            assert!(places.iter().all(|place| place.get() == 1));
        }
        shared.stop();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

fn workers(shared: &Arc<Rounds<()>>, count: usize) -> Vec<thread::JoinHandle<()>> {
    let worker = |worker: usize| {
        let shared = Arc::clone(shared);
        thread::spawn(move || shared.work(worker as u32))
    };
    (1..count).map(worker).collect()
}

#[test]
fn two_workers_run_two_rounds() {
    rounds_end_when_all_have_finished(near(2), 2, false, Some(3));
}

#[test]
fn three_workers_run_a_round() {
    rounds_end_when_all_have_finished(near(3), 1, false, Some(2));
}

#[test]
fn two_workers_meet_within_a_round() {
    rounds_end_when_all_have_finished(near(2), 1, true, Some(2));
}

/// Rounds of so many turns each, in which workers take each other's seats: every part of a turn is done once,
/// sees all parts of the turn before, and none is done when the round has ended.
fn turns_follow_each_other(seats: Vec<SeatPlace>, rounds: &'static [usize], preemptions: Option<usize>) {
    let count = seats.len();
    explore(preemptions, move || {
        let shared = Arc::new(Rounds::<()>::new(&seats, false));
        let threads = workers(&shared, count);
        for turns in rounds {
            let places: Vec<Vec<SharedCell>> =
                (0..*turns).map(|_| (0..count).map(|_| SharedCell::new()).collect()).collect();
            let all = |turn: usize| places[turn].iter().all(|place| place.get() == 1);
            let job = |turn: PoolTurn<'_>| {
                assert!(turn.number == 0 || all(turn.number - 1));
                places[turn.number][turn.seat as usize].add();
                None
            };
            // SAFETY: this thread alone calls it.
            unsafe { shared.run(*turns, false, &job) };
            assert!((0..*turns).all(all));
        }
        shared.stop();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

#[test]
fn two_workers_take_turns() {
    turns_follow_each_other(near(2), &[2], Some(3));
}

#[test]
fn two_workers_take_turns_of_two_rounds() {
    turns_follow_each_other(near(2), &[1, 1], Some(3));
}

#[test]
fn three_workers_take_turns() {
    turns_follow_each_other(near(3), &[1], Some(1));
}

#[test]
fn three_workers_of_two_nodes_run_a_round() {
    rounds_end_when_all_have_finished(apart(&[(0, 0), (1, 1), (1, 1)]), 1, false, Some(2));
}

/// A thread that serves a seat counts where that seat does.
#[test]
fn three_workers_of_two_nodes_take_turns() {
    turns_follow_each_other(apart(&[(0, 0), (1, 1), (1, 1)]), &[2], Some(1));
}
