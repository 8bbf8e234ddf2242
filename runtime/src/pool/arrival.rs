//! Counting who has come. Workers near each other count themselves on a line of their own, and the last one
//! of them counts for all of them where more meet: a line that many cores write to crosses the chip at every
//! arrival.

use super::sync::{AtomicU32, Ordering};

/// A value that has its cache line to itself: others who write what lies beside it do not take it away.
#[repr(align(64))]
pub(super) struct CacheLine<T>(pub(super) T);

/// Where a seat's worker stays: numbers of its node and of the cache that it shares with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeatPlace {
    pub(super) node: usize,
    pub(super) cache: usize,
}

/// Seats, and where each of them counts. Reusable at once.
pub(super) struct Arrivals {
    /// By seat, the number of its counter.
    of_seat: Box<[usize]>,
    /// The first is the one where all meet.
    counters: Box<[CacheLine<ArrivalCounter>]>,
}

struct ArrivalCounter {
    arrived: AtomicU32,
    /// Seats and counters that count here.
    expected: u32,
    /// The counter that the last one goes on to; the first one's is itself.
    next: usize,
}

impl Arrivals {
    /// Arrivals of seats at these places. Those of a cache count together where its node has more, and those
    /// of a node where there are others.
    pub(super) fn at(places: &[SeatPlace]) -> Arrivals {
        let mut counters = vec![(0, 0)];
        let mut known: Vec<(SeatPlace, bool, usize)> = Vec::new();
        // The counter of those that agree with a place, or the one behind it if it would be of no use.
        let mut counter = |place: SeatPlace, is_cache: bool, behind: usize, all: usize| {
            let agrees = |other: &&SeatPlace| other.node == place.node && (!is_cache || **other == place);
            let here = places.iter().filter(agrees).count();
            if here < 2 || here == all {
                return (behind, here);
            }
            let same = |known: &&(SeatPlace, bool, usize)| known.1 == is_cache && agrees(&&known.0);
            if let Some((_, _, number)) = known.iter().find(same) {
                return (*number, here);
            }
            counters[behind].0 += 1;
            counters.push((0, behind));
            known.push((place, is_cache, counters.len() - 1));
            (counters.len() - 1, here)
        };
        let of_seat: Box<[usize]> = places
            .iter()
            .map(|place| {
                let (node, in_node) = counter(*place, false, 0, places.len());
                counter(*place, true, node, in_node).0
            })
            .collect();
        of_seat.iter().for_each(|number| counters[*number].0 += 1);
        let counter =
            |(expected, next)| CacheLine(ArrivalCounter { arrived: AtomicU32::new(0), expected, next });
        Arrivals { of_seat, counters: counters.into_iter().map(counter).collect() }
    }

    /// A seat's worker has come: whether it is the last of all. Then everybody may come again, as soon as the
    /// last one lets them; it sees what each of them wrote before.
    pub(super) fn arrive(&self, seat: u32) -> bool {
        let mut number = self.of_seat[seat as usize];
        loop {
            let counter = &self.counters[number].0;
            if counter.arrived.fetch_add(1, Ordering::AcqRel) + 1 < counter.expected {
                return false;
            }
            counter.arrived.store(0, Ordering::Relaxed);
            if number == 0 {
                return true;
            }
            number = counter.next;
        }
    }

    /// By counter, how many it expects and where the last one goes on to, for tests.
    #[cfg(test)]
    pub(super) fn tree(&self) -> Vec<(u32, usize)> {
        self.counters.iter().map(|line| (line.0.expected, line.0.next)).collect()
    }
}
