//! Turns of engines on the same CPUs: one of them steps at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Gives engines of one process their turns, in the order in which they ask. So the step of one waits for at
/// most one step of each other, and their workers do not compete for CPUs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StepTurns(Arc<TurnsLine>);

#[derive(Debug, Default)]
struct TurnsLine {
    numbers: Mutex<TurnNumbers>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct TurnNumbers {
    /// Number of the next one who asks.
    next: u64,
    /// Number of the one whose turn it is.
    present: u64,
}

/// A turn, which ends when this is dropped.
pub(crate) struct StepTurn<'a>(&'a TurnsLine);

impl StepTurns {
    /// Waits for a turn.
    pub(crate) fn wait(&self) -> StepTurn<'_> {
        let mut numbers = self.0.numbers();
        let own = numbers.next;
        numbers.next += 1;
        let is_later = |numbers: &mut TurnNumbers| numbers.present != own;
        drop(self.0.moved.wait_while(numbers, is_later).unwrap_or_else(PoisonError::into_inner));
        StepTurn(&self.0)
    }
}

impl TurnsLine {
    fn numbers(&self) -> MutexGuard<'_, TurnNumbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StepTurn<'_> {
    fn drop(&mut self) {
        self.0.numbers().present += 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::StepTurns;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn who_has_had_a_turn_stands_last_again() {
        let turns = StepTurns::default();
        let (told, order) = channel();
        let first = turns.wait();
        let asks = |who: &'static str| {
            let (theirs, told, before) = (turns.clone(), told.clone(), turns.0.numbers().next);
            let thread = thread::spawn(move || {
                for _ in 0..2 {
                    let turn = theirs.wait();
                    told.send(who).unwrap();
                    // By then the one before has asked again.
                    while who == "b" && theirs.0.numbers().next < 4 {
                        thread::yield_now();
                    }
                    drop(turn);
                }
            });
            while turns.0.numbers().next == before {
                thread::yield_now();
            }
            thread
        };
        let threads = [asks("a"), asks("b")];
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(told);
        assert_eq!(order.into_iter().collect::<Vec<_>>(), ["a", "b", "a", "b"]);
    }

    #[test]
    fn a_turn_ends_with_a_panic() {
        let turns = StepTurns::default();
        let theirs = turns.clone();
        let panicked = thread::spawn(move || {
            let _turn = theirs.wait();
            panic!("as a defect does");
        });
        assert!(panicked.join().is_err());
        drop(turns.wait());
    }
}
