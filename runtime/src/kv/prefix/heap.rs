//! A queue of slab entries, the least important first, whose entries can be moved and removed.

/// Entry that is in no queue.
const ABSENT: u32 = u32::MAX;

/// How much an entry is worth keeping: compared as a pair, the least goes first.
pub(super) type Worth = (u64, u64);

/// A binary heap with the place of every entry, so that any entry can be removed in logarithmic time.
/// Entries are numbers below a capacity; nothing is allocated after the queue is made, and its memory is
/// touched as entries come.
#[derive(Debug)]
pub(super) struct Queue {
    heap: Vec<u32>,
    /// By entry: place in `heap`, or [`ABSENT`].
    places: Vec<u32>,
    /// By entry.
    worth: Vec<Worth>,
    /// Entries that a search has passed over.
    aside: Vec<u32>,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Queue {
        Queue {
            heap: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity),
            worth: Vec::with_capacity(capacity),
            aside: Vec::with_capacity(capacity),
        }
    }

    pub(super) fn worth(&self, entry: u32) -> Worth {
        self.worth.get(entry as usize).copied().unwrap_or_default()
    }

    /// Puts an entry in its place for this worth, whether it is in the queue or not.
    pub(super) fn set(&mut self, entry: u32, worth: Worth) {
        self.know(entry);
        self.worth[entry as usize] = worth;
        let mut at = self.places[entry as usize];
        if at == ABSENT {
            at = self.heap.len() as u32;
            self.heap.push(entry);
            self.places[entry as usize] = at;
        }
        self.settle(at as usize);
    }

    /// Changes the worth of an entry, which need not be in the queue.
    pub(super) fn rate(&mut self, entry: u32, worth: Worth) {
        self.know(entry);
        match self.places[entry as usize] {
            ABSENT => self.worth[entry as usize] = worth,
            _ => self.set(entry, worth),
        }
    }

    /// Makes room for what is known of an entry.
    fn know(&mut self, entry: u32) {
        let entries = self.places.len().max(entry as usize + 1);
        self.places.resize(entries, ABSENT);
        self.worth.resize(entries, (0, 0));
    }

    /// Takes an entry out, if it is in the queue.
    pub(super) fn remove(&mut self, entry: u32) {
        let Some(place) = self.places.get_mut(entry as usize) else { return };
        let at = std::mem::replace(place, ABSENT);
        if at == ABSENT {
            return;
        }
        self.heap.swap_remove(at as usize);
        if let Some(moved) = self.heap.get(at as usize) {
            self.places[*moved as usize] = at;
            self.settle(at as usize);
        }
    }

    /// The least entry that is wanted; it stays in the queue. Takes the longer, the more lesser ones are not.
    pub(super) fn first(&mut self, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let mut found = None;
        while let Some(least) = self.heap.first().copied() {
            if is_wanted(least) {
                found = Some(least);
                break;
            }
            self.remove(least);
            self.aside.push(least);
        }
        while let Some(entry) = self.aside.pop() {
            self.set(entry, self.worth(entry));
        }
        found
    }

    /// Moves the entry at a place up or down until the order holds.
    fn settle(&mut self, mut at: usize) {
        while at > 0 && self.less(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|child| *child < self.heap.len());
            let Some(least) = children.min_by_key(|child| self.worth[self.heap[*child] as usize]) else {
                return;
            };
            if !self.less(least, at) {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn less(&self, a: usize, b: usize) -> bool {
        self.worth[self.heap[a] as usize] < self.worth[self.heap[b] as usize]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a] as usize] = a as u32;
        self.places[self.heap[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn finds_what_a_map_finds() {
        fastrand::seed(3);
        let mut queue = Queue::new(64);
        let mut model: BTreeMap<u32, Worth> = BTreeMap::new();
        for _ in 0..20_000 {
            let entry = fastrand::u32(..64);
            match fastrand::u32(..5) {
                0 => {
                    queue.remove(entry);
                    model.remove(&entry);
                }
                1 => {
                    let wanted = fastrand::u32(1..5);
                    let is_wanted = |entry: u32| entry % 5 < wanted;
                    let least =
                        model.iter().filter(|(entry, _)| is_wanted(**entry)).min_by_key(|(_, worth)| **worth);
                    let first = queue.first(is_wanted);
                    assert_eq!(first, least.map(|(entry, _)| *entry));
                    if let Some(entry) = first {
                        queue.remove(entry);
                        model.remove(&entry);
                    }
                }
                _ => {
                    // Worths differ, so that the order is one.
                    let worth = (fastrand::u64(..9), u64::from(entry));
                    queue.set(entry, worth);
                    model.insert(entry, worth);
                }
            }
        }
        assert_eq!(queue.heap.len(), model.len());
    }
}
