//! The store beside a model of it.

use super::{SEGMENT, SLOTS, SMALL, StoreDir, block, holds, id, open, place, put, segments};
use crate::block::Block;
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;

/// An action on a store.
#[derive(Clone, Debug)]
enum Step {
    Put(u64, u8),
    Read(u64),
    Touch(u64),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..60u64, 0..4u8).prop_map(|(n, cost)| Step::Put(n, cost)),
        6 => (0..60u64).prop_map(Step::Read),
        2 => (0..60u64).prop_map(Step::Touch),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..200)
}

/// A block in the model, with priorities in units of a cost.
#[derive(Clone, Debug)]
struct ModelBlock {
    cost: f64,
    now: (f64, u64),
    /// When it was written.
    then: (f64, u64),
}

/// GreedyDual as its definition says: every eviction looks at all blocks.
#[derive(Default)]
struct Model {
    kept: HashMap<u64, ModelBlock>,
    floor: f64,
    clock: u64,
}

impl Model {
    fn tick(&mut self, cost: f64) -> (f64, u64) {
        self.clock += 1;
        (self.floor + cost, self.clock)
    }

    fn use_now(&mut self, n: u64) {
        let Some(cost) = self.kept.get(&n).map(|kept| kept.cost) else { return };
        let now = self.tick(cost);
        self.kept.get_mut(&n).unwrap().now = now;
    }

    fn put(&mut self, n: u64, cost: f64, slots: usize) {
        if self.kept.contains_key(&n) {
            return self.use_now(n);
        }
        if self.kept.len() == slots {
            let order = |one: &(f64, u64), other: &(f64, u64)| one.partial_cmp(other).unwrap();
            let first = self.kept.iter().min_by(|one, other| order(&one.1.now, &other.1.now)).unwrap();
            let (first, priority) = (*first.0, first.1.now.0);
            self.kept.remove(&first);
            self.floor = self.floor.max(priority);
        }
        let now = self.tick(cost);
        self.kept.insert(n, ModelBlock { cost, now, then: now });
    }

    /// Uses are not written.
    fn reopen(&mut self) {
        self.kept.values_mut().for_each(|kept| kept.now = kept.then);
        let lowest = |floor: f64, kept: &ModelBlock| floor.min(kept.now.0);
        self.floor = if self.kept.is_empty() { 0.0 } else { self.kept.values().fold(f64::MAX, lowest) };
        self.clock = self.kept.values().map(|kept| kept.now.1).max().unwrap_or(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Without damage, exactly the blocks that the model has are there, and with their bytes.
    #[test]
    fn a_store_holds_what_its_model_holds(steps in steps()) {
        let StoreDir { dir, _base } = place();
        let limit = 3 * SEGMENT;
        let mut store = open(&dir, limit);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Put(n, cost) => {
                    // Powers of two by byte: priorities are exact in both.
                    let seconds = f64::from(1u32 << cost);
                    put(&store, Block { seconds, ..block(n, SMALL) });
                    model.put(n, seconds / 8192.0, 3 * SLOTS as usize);
                }
                Step::Read(n) => {
                    let mut payload = vec![0; SMALL];
                    let found = store.read(&id(n), &mut payload);
                    prop_assert_eq!(found.is_some(), model.kept.contains_key(&n));
                    prop_assert!(found.is_none() || payload == block(n, SMALL).payload);
                    model.use_now(n);
                }
                Step::Touch(n) => {
                    store.touch([&id(n)]);
                    model.use_now(n);
                }
                Step::Reopen => {
                    drop(store);
                    store = open(&dir, limit);
                    model.reopen();
                }
            }
            for n in 0..60 {
                let is_there = store.payload_bytes(&id(n)).is_some();
                prop_assert_eq!(is_there, model.kept.contains_key(&n), "block {}", n);
            }
            prop_assert!(store.stats().bytes <= limit);
        }
        prop_assert_eq!(store.stats().damaged, 0);
        prop_assert!(store.take_events().is_empty());
    }
}

/// Files are damaged, cut off and removed between any two steps, while the store is open or closed. A read
/// gives the block that was put, and a lost block can be put again.
#[test]
fn damage_at_any_time_costs_blocks_and_nothing_else() {
    let (mut hits, mut misses) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let StoreDir { dir, _base } = place();
        let limit = 300_000;
        let mut store = open(&dir, limit);
        let sizes = [1, SMALL, 4097, 9000];
        for _ in 0..150 {
            let n = rng.u64(..24);
            let block = block(n, sizes[(n % 4) as usize]);
            match rng.u8(..11) {
                0..5 => put(&store, block),
                5..9 => match holds(&store, &block) {
                    true => hits += 1,
                    false => misses += 1,
                },
                9 => {
                    drop(store);
                    store = open(&dir, limit);
                }
                _ => harm(&segments(&dir), &mut rng),
            }
        }
        for n in 0..8 {
            let block = block(n, sizes[(n % 4) as usize]);
            if !holds(&store, &block) {
                put(&store, block.clone());
                // The first try may find that a file is gone.
                put(&store, block.clone());
            }
            assert!(holds(&store, &block), "seed {seed}: block {n} cannot be stored any more");
        }
    }
    println!("{hits} hits, {misses} misses");
    assert!(hits > 900 && misses > 500, "{hits} hits, {misses} misses");
}

/// Damages one of the files.
fn harm(segments: &[std::path::PathBuf], rng: &mut Rng) {
    let Some(path) = rng.choice(segments) else { return };
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    match rng.u8(..8) {
        0 => std::fs::remove_file(path).unwrap(),
        1 => file.set_len(rng.u64(..=bytes)).unwrap(),
        _ => file.write_all_at(&[rng.u8(..)], rng.u64(..bytes.max(1))).unwrap(),
    }
}
