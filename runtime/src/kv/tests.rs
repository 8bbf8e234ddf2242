use super::*;
use kernmill_plan::kv::{KvFormat, KvGeometry, KvLayer, KvLayers, KvPair};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const GEOMETRY: KvGeometry =
    KvGeometry { kv_heads: 1, head_dim: 2, v_head_dim: 2, formats: KvPair::both(KvFormat::F16) };
const WINDOW: u32 = 20;
const SHAPE: KvShape = KvShape { context: 120, sequences: 3, chunk: 24, budget: KvBudget::WorstCase };

fn layers() -> KvLayers {
    KvLayers {
        full: GEOMETRY,
        sliding: GEOMETRY,
        layers: vec![
            KvLayer { kind: LayerKind::Full, window: None },
            KvLayer { kind: LayerKind::Sliding, window: Some(WINDOW) },
            KvLayer { kind: LayerKind::Sliding, window: Some(4) },
        ],
    }
}

#[test]
fn sliding_layers_take_a_window_and_a_chunk() {
    assert_eq!(SHAPE.blocks(&layers()), [3 * 8, 3 * (44 / 16 + 2)]);
    let mut only_full = layers();
    only_full.layers.truncate(1);
    assert_eq!(SHAPE.blocks(&only_full), [24, 0]);
}

#[test]
fn a_budget_holds_at_least_one_sequence_or_says_what_that_takes() {
    let of = |bytes| KvShape { budget: KvBudget::Bytes(bytes), ..SHAPE };
    let least = of(1).least_budget(&layers()).unwrap();
    assert_eq!(of(least).least_budget(&layers()), None);
    assert_eq!(of(least - 1).least_budget(&layers()), Some(least));
    assert_eq!(SHAPE.least_budget(&layers()), None);
    let [full, sliding] = of(least).blocks(&layers());
    assert!(full >= 8 && sliding >= 4, "{full} {sliding}");
    // No budget is exceeded, but for the one block of each kind that there always is.
    let bytes = shape::block_bytes(&layers());
    for budget in (bytes[0] + bytes[1]..40 * (bytes[0] + bytes[1])).step_by(97) {
        let blocks = of(budget).blocks(&layers());
        assert!((0..2).map(|kind| u64::from(blocks[kind]) * bytes[kind]).sum::<u64>() <= budget + bytes[1]);
    }
}

/// Checkpoints of long prompts lie 512 tokens apart, and at the end.
#[test]
fn a_long_prompt_can_be_taken_up_every_512_tokens() {
    let shape = KvShape { context: 4000, sequences: 4, chunk: 100, budget: KvBudget::WorstCase };
    let mut tables = KvTables::new(&layers(), shape, Eviction::default());
    let scope = CacheScope::default();
    let prompt: Vec<u32> = (0..2000).collect();
    let (first, cached) = tables.begin(&scope, &prompt).unwrap();
    assert_eq!(cached, 0);
    for chunk in prompt.chunks(100) {
        tables.reserve(&[(first, chunk.len() as u32)], &mut |_| {}).unwrap();
        tables.advance(first, chunk);
    }
    tables.checkpoint(first, 2000).unwrap();
    tables.release(first);
    // Prompts that leave the known one at a token.
    for (leaves_at, finds) in [
        (2000, 1999),
        (1995, 1995),
        (1990, 1990),
        (1900, 1536),
        (1100, 1024),
        (600, 512),
        (505, 505),
        (400, 0),
    ] {
        let mut other = prompt[..leaves_at].to_vec();
        other.extend([7000; 3]);
        let expected = if leaves_at == 2000 { 2000 } else { finds };
        let (sequence, cached) = tables.begin(&scope, &other).unwrap();
        assert_eq!(cached, expected, "{leaves_at}");
        tables.release(sequence);
        let (sequence, cached) = tables.begin(&scope, &prompt[..leaves_at]).unwrap();
        assert_eq!(cached, finds.min(leaves_at as u32 - 1), "{leaves_at}");
        tables.release(sequence);
    }
    let usage = tables.usage();
    assert_eq!(usage.free, usage.blocks);
}

#[test]
fn blocks_behind_the_window_come_back() {
    let mut tables = KvTables::new(&layers(), SHAPE, Eviction::default());
    let slot = tables.create().unwrap();
    let free = tables.usage().free;
    for _ in 0..5 {
        tables.reserve(&[(slot, 24)], &mut |_| {}).unwrap();
        tables.advance(slot, &[0; 24]);
    }
    // 120 tokens stored; the last chunk began at 96 and saw keys from 77 on: blocks 4 to 7.
    let used = tables.usage().free;
    assert_eq!((free[0] - used[0], free[1] - used[1]), (8, 4));
    let full = KvError::Context { length: 120, more: 1, context: 120 };
    assert_eq!(tables.reserve(&[(slot, 1)], &mut |_| {}), Err((0, full)));
    assert_eq!(tables.demand(slot, 1), Err(full));
    tables.release(slot);
    assert_eq!(tables.usage().free, free);
}

#[test]
fn running_out_of_blocks_maps_nothing() {
    let mut tables = KvTables::new(&layers(), SHAPE, Eviction::default());
    let slots = [tables.create().unwrap(), tables.create().unwrap(), tables.create().unwrap()];
    assert_eq!(tables.create(), Err(KvError::NoFreeSequence { limit: 3 }));
    // More than a chunk at once takes more sliding blocks than the pool was made for.
    tables.reserve(&[(slots[0], 120)], &mut |_| {}).unwrap();
    let before = tables.usage();
    let error = tables.reserve(&[(slots[2], 1), (slots[1], 120)], &mut |_| panic!("nothing is shared"));
    let free = before.free[1] - 1;
    assert_eq!(error, Err((1, KvError::OutOfBlocks { kind: LayerKind::Sliding, needed: 8, free })));
    assert_eq!(tables.usage(), before);
    assert!(tables.table(LayerKind::Full).0[8..].iter().all(|id| *id == UNMAPPED));
}

/// The simplest cache: every sequence is its list of tokens; what blocks hold is tracked cell by cell.
#[derive(Default)]
struct Model {
    sequences: HashMap<u32, Vec<u64>>,
    cells: HashMap<(usize, u32, u32), u64>,
    stamp: u64,
}

impl Model {
    fn append(&mut self, tables: &mut KvTables, slot: u32, count: usize) {
        let cells = &mut self.cells;
        let result = tables.reserve(&[(slot, count as u32)], &mut |change| {
            let BlockChange::Copy { kind, from, to } = change else { panic!("nothing is cached") };
            for i in 0..BLOCK {
                if let Some(value) = cells.get(&(kind.index(), from, i)).copied() {
                    cells.insert((kind.index(), to, i), value);
                }
            }
        });
        let tokens = self.sequences.get_mut(&slot).unwrap();
        if tokens.len() + count > SHAPE.context as usize {
            assert!(matches!(result, Err((0, KvError::Context { .. }))));
            return;
        }
        result.expect("the pools are large enough for every sequence");
        for _ in 0..count {
            self.stamp += 1;
            let position = tokens.len() as u32;
            for kind in KINDS {
                let block = block_of(tables, slot, kind, position);
                assert_ne!(block, UNMAPPED);
                self.cells.insert((kind.index(), block, position % BLOCK), self.stamp);
            }
            tokens.push(self.stamp);
        }
        tables.advance(slot, &vec![0; count]);
    }

    /// Every key that the next query of any sequence sees is where the table says; no block is lost or used
    /// twice.
    fn check(&self, tables: &KvTables) {
        for (slot, tokens) in &self.sequences {
            let length = tokens.len() as u32;
            assert_eq!(tables.length(*slot), length);
            for (kind, low) in
                [(LayerKind::Full, 0), (LayerKind::Sliding, (length + 1).saturating_sub(WINDOW))]
            {
                for position in low..length {
                    let block = block_of(tables, *slot, kind, position);
                    let cell = self.cells.get(&(kind.index(), block, position % BLOCK));
                    assert_eq!(cell, Some(&tokens[position as usize]), "{kind:?} {position} of {length}");
                }
            }
        }
        let blocks = SHAPE.blocks(&layers());
        for kind in KINDS {
            let mapped: HashSet<u32> =
                tables.table(kind).0.iter().copied().filter(|id| *id != UNMAPPED).collect();
            let free = tables.usage().free[kind.index()];
            assert_eq!(mapped.len() + free, blocks[kind.index()] as usize);
        }
    }
}

fn block_of(tables: &KvTables, slot: u32, kind: LayerKind, position: u32) -> u32 {
    let (table, stride) = tables.table(kind);
    table[(slot * stride + position / BLOCK) as usize]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_the_model(ops in prop::collection::vec((0u8..5, 0u32..3, 1usize..=24, 0u32..120), 1..120)) {
        let mut tables = KvTables::new(&layers(), SHAPE, Eviction::default());
        let mut model = Model::default();
        for (op, slot, count, at) in ops {
            let known = model.sequences.contains_key(&slot);
            match op {
                0 => match tables.create() {
                    Ok(slot) => prop_assert!(model.sequences.insert(slot, Vec::new()).is_none()),
                    Err(_) => prop_assert_eq!(model.sequences.len(), 3),
                },
                1 if at < 20 => {
                    tables.release(slot);
                    model.sequences.remove(&slot);
                }
                2 if known => {
                    let tokens = model.sequences[&slot].clone();
                    if let Ok(copy) = tables.fork(slot, at) {
                        model.sequences.insert(copy, tokens[..at as usize].to_vec());
                    } else {
                        let within = tokens.len() as u32 - at.min(tokens.len() as u32);
                        // The present end can always be forked.
                        prop_assert!(at as usize > tokens.len() || within > 0 || model.sequences.len() == 3);
                    }
                }
                3 if known && tables.truncate(slot, at).is_ok() => {
                    model.sequences.get_mut(&slot).unwrap().truncate(at as usize);
                }
                _ if known => model.append(&mut tables, slot, count),
                _ => {}
            }
            model.check(&tables);
        }
    }
}
