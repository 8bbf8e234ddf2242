//! The prefix cache over real kernels. Random schedules, with a plain model of the cache beside it: whatever
//! a sequence begins with, shares, forgets or loses, it gets the bits that a fresh run gets.
//!
//! `KERNMILL_STEPS` says how many steps all formats are given together, `KERNMILL_SEED` where the seeds
//! begin.

mod beside;
mod chats;
mod world;

use crate::harness::{Model, oracle};
use beside::{Counts, Fresh, Round, SEQUENCES};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::kv::{KvFormat, KvFormats, KvPair};
use kernmill_runtime::kv::Eviction;
use world::World;

/// Steps of all formats together.
const STEPS: usize = 20_000;
/// Steps between two new engines.
const ROUND: usize = 1_700;
/// Steps between two looks at all sequences.
const LOOK: usize = 16;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Formats of the cache: each alone, and one with four different ones.
fn formats() -> Vec<KvFormats> {
    let mixed = KvFormats {
        full: KvPair { k: KvFormat::Int8, v: KvFormat::Int4 },
        sliding: KvPair { k: KvFormat::Fp8, v: KvFormat::F16 },
    };
    KvFormat::ALL.into_iter().map(KvFormats::uniform).chain([mixed]).collect()
}

#[test]
fn random_schedules_give_what_fresh_runs_give_in_every_format() {
    let (first, steps) = (number("KERNMILL_SEED").unwrap_or(0), number("KERNMILL_STEPS"));
    let steps = steps.map_or(STEPS, |steps| steps as usize);
    let model = Model::open(&oracle("gptoss-base"));
    let formats = formats();
    let seeds = first..first + steps.div_ceil(ROUND) as u64;
    let mut all = Counts::default();
    for (n, kv) in formats.iter().enumerate() {
        let of =
            |options| CompilerOptions { preset: Preset::Faithful, adapters: true, kv: Some(*kv), ..options };
        let image = model.compiled(&of);
        let mut fresh = Fresh::new(&image);
        let worst = fresh.worst_case(&image);
        for seed in seeds.clone().filter(|seed| *seed % formats.len() as u64 == n as u64) {
            let policies =
                [Eviction::LeastRecentlyUsed, Eviction::LeastFrequentlyUsed, Eviction::Random(seed)];
            let turn = seed as usize / formats.len() + n;
            let how = Round {
                // Much less than the sequences want at once, or room for some of what has ended.
                budget: worst * [5, 90, 15, 45][turn % 4] / 100,
                eviction: policies[turn % 3],
                has_disk: turn / 2 % 2 == 1,
            };
            println!("KERNMILL_SEED={seed} KERNMILL_STEPS={ROUND}: {kv}, {how:?}");
            let mut world = World::new(&image, how, &mut fresh, seed);
            for step in 0..ROUND {
                if world.changes() {
                    world.change();
                } else {
                    world.step();
                }
                world.check();
                if step % LOOK == 0 {
                    world.look();
                }
            }
            let counts = world.end();
            println!("{counts:?}");
            all.refused += counts.refused;
            all.found += counts.found;
            all.found_again += counts.found_again;
            all.from_disk += counts.from_disk;
            all.restarts += counts.restarts;
            all.most = all.most.max(counts.most);
            all.forgotten += counts.forgotten;
            all.compared += counts.compared;
            all.evicted += counts.evicted;
        }
    }
    println!("{all:?}");
    if seeds.count() >= 2 * formats.len() {
        assert!(all.most == SEQUENCES && all.refused > 100 && all.evicted > 1000, "{all:?}");
        assert!(all.from_disk > 1000 && all.restarts > 5 && all.forgotten > 20, "{all:?}");
        assert!(all.found > 5000 && all.found_again > 500 && all.compared > steps, "{all:?}");
    }
}
