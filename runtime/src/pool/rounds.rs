//! Handing jobs to the workers: a round is a job, in turns that follow each other; a turn has a seat for
//! every worker, and ends when all seats have been taken and left.
//!
//! A worker takes its own seat first. When it is through, it also takes the seats that nobody has taken. So a
//! worker that sleeps, or shares its CPU, holds up only what it has begun: it finds its seat taken when it
//! comes, and goes on with the turn that there is then.

use super::arrival::{Arrivals, CacheLine, SeatPlace};
use super::barrier::Barrier;
use super::sync::{AtomicBool, AtomicU64, Handed, Ordering, abort};
use super::wait::{Signal, Wait};
use std::time::Duration;

/// Something useful to do while waiting.
pub(crate) trait IdleWork: 'static {
    /// Does a little; false when there is nothing left to do.
    fn some(&mut self) -> bool;
}

impl IdleWork for () {
    fn some(&mut self) -> bool {
        false
    }
}

/// A worker's part of a round.
#[derive(Clone, Copy)]
pub(crate) struct PoolTurn<'a> {
    /// Number of the turn in its round.
    pub number: usize,
    /// Number of the seat: whose part it is.
    pub seat: u32,
    /// The barrier of rounds in which every worker keeps to its seat.
    pub barrier: &'a Barrier,
}

/// The work in every seat of every turn; returns what the thread may do while it waits for the next turn.
pub(crate) type SeatJob<'a, A> = dyn Fn(PoolTurn<'_>) -> Option<A> + Sync + 'a;

/// A round that lasts.
struct Round<A: 'static> {
    job: *const SeatJob<'static, A>,
    first: u64,
    last: u64,
}

impl<A> Clone for Round<A> {
    fn clone(&self) -> Round<A> {
        *self
    }
}

impl<A> Copy for Round<A> {}

// SAFETY: jobs are `Sync`; who follows the pointer sees to it that the job lives.
unsafe impl<A> Send for Round<A> {}

/// The value of the signal: the number of a turn, whether it has begun, and whether every worker keeps to its
/// seat.
#[derive(Clone, Copy)]
struct Note(u64);

impl Note {
    fn new(turn: u64, is_open: bool, own_seats: bool) -> Note {
        Note(turn << 2 | u64::from(is_open) << 1 | u64::from(own_seats))
    }

    fn turn(self) -> u64 {
        self.0 >> 2
    }

    fn is_open(self) -> bool {
        self.0 & 2 != 0
    }

    fn own_seats(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The state that a pool's threads share.
pub(super) struct Rounds<A: IdleWork> {
    /// Changes when a turn begins, when a round ends, and when the workers are to stop.
    signal: Signal,
    stop: AtomicBool,
    round: Handed<Option<Round<A>>>,
    /// By seat, the last turn in which it was taken.
    seats: Box<[CacheLine<AtomicU64>]>,
    /// Seats of the present turn that have been left.
    left: Arrivals,
    /// The jobs' own: they may use it as they like, also wrongly, which then never ends.
    barrier: Barrier,
}

impl<A: IdleWork> Rounds<A> {
    /// Rounds of workers at these places, the one who calls [`Rounds::run`] included.
    pub(super) fn new(places: &[SeatPlace], may_spin: bool) -> Rounds<A> {
        Rounds {
            // The first turn is number 1: no seat has been taken in it.
            signal: Signal::new(Note::new(1, false, false).0, may_spin),
            stop: AtomicBool::new(false),
            round: Handed::new(None),
            seats: places.iter().map(|_| CacheLine(AtomicU64::new(0))).collect(),
            left: Arrivals::at(places),
            barrier: Barrier::new(Arrivals::at(places), may_spin),
        }
    }

    /// Worker 0: runs so many turns of `job` on all workers, and returns when the last has ended: how long
    /// this worker waited for others. With `own_seats` no worker takes another one's seat.
    ///
    /// # Safety
    /// One thread at a time calls this or [`Rounds::stop`]. With `own_seats`, every other worker is in
    /// [`Rounds::work`] or on its way there.
    pub(super) unsafe fn run(&self, turns: usize, own_seats: bool, job: &SeatJob<'_, A>) -> Duration {
        let mut waited = Duration::ZERO;
        if turns == 0 {
            return waited;
        }
        let guard = AbortOnPanic;
        let first = self.note().turn();
        let last = first + turns as u64 - 1;
        let job: *const SeatJob<'_, A> = job;
        // SAFETY: only the lifetime changes: the job is used by those alone who hold a seat, and this
        // function does not return before the last turn has ended.
        let job = unsafe { std::mem::transmute::<*const SeatJob<'_, A>, *const SeatJob<'static, A>>(job) };
        // SAFETY: no turn is open, so that nobody holds a seat; who takes one has seen the note below.
        unsafe { self.round.set(Some(Round { job, first, last })) };
        self.signal.change_to(Note::new(first, true, own_seats).0);
        loop {
            let note = self.note();
            if note.turn() > last {
                break;
            }
            waited += self.attend(0, note);
        }
        std::mem::forget(guard);
        waited
    }

    /// A worker's life: takes part in turns, waits for more.
    pub(super) fn work(&self, worker: u32) {
        loop {
            let note = self.note();
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            self.attend(worker, note);
        }
    }

    fn note(&self) -> Note {
        Note(self.signal.value())
    }

    /// Does what there is to do, and waits, unless there may be more at once: how long it waited.
    fn attend(&self, worker: u32, note: Note) -> Duration {
        if !note.is_open() {
            return self.signal.wait_change(note.0, Wait::Round, || false);
        }
        let turn = note.turn();
        let mut ahead = self.take(worker, turn).then(|| self.serve(worker, turn)).flatten();
        let mut some = || ahead.as_mut().is_some_and(IdleWork::some);
        if self.signal.changes_soon(note.0, &mut some) || (!note.own_seats() && self.stand_in(worker, turn)) {
            return Duration::ZERO;
        }
        self.signal.wait_change(note.0, Wait::Turn, some)
    }

    /// Takes the seats that nobody has taken; whether there were any.
    fn stand_in(&self, worker: u32, turn: u64) -> bool {
        let count = self.seats.len() as u32;
        let mut any = false;
        for seat in (worker + 1..count).chain(0..worker) {
            if self.take(seat, turn) {
                self.serve(seat, turn);
                any = true;
            }
        }
        any
    }

    /// Takes a seat; false when it has been taken, or the turn is over.
    fn take(&self, seat: u32, turn: u64) -> bool {
        let taken = &self.seats[seat as usize].0;
        let before = taken.load(Ordering::Relaxed);
        // No turn ends before every seat has been taken in it: an old turn finds a number that is no less.
        before < turn && taken.compare_exchange(before, turn, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Does what is to be done in a seat that this thread has taken, and leaves it.
    fn serve(&self, seat: u32, turn: u64) -> Option<A> {
        let guard = AbortOnPanic;
        // SAFETY: `run` set the round before it opened the turn, and sets another only when the turn has
        // ended, which it does not before this thread has left the seat.
        let round = unsafe { self.round.get() }?;
        let part = PoolTurn { number: (turn - round.first) as usize, seat, barrier: &self.barrier };
        // SAFETY: `run` keeps the job alive until the round's last turn has ended.
        let ahead = unsafe { (*round.job)(part) };
        std::mem::forget(guard);
        if self.left.arrive(seat) {
            // The turn has ended; the next begins with the signal.
            let own_seats = self.note().own_seats();
            self.signal.change_to(Note::new(turn + 1, turn < round.last, own_seats).0);
        }
        ahead
    }

    /// Ends the workers' lives; between rounds.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.signal.change_to(Note::new(self.note().turn() + 1, false, false).0);
    }
}

/// Ends the process when dropped by unwinding: the other workers would wait for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        abort();
    }
}
