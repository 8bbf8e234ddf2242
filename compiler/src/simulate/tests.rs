use super::schedule::{Fetches, ItemGroup, SharedStep, schedule};
use super::*;
use crate::front::spec::{Spec, lower};
use crate::passes::select::costs_of_machine::MACHINE;
use crate::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_plan::hand_out::HandOut;
use kernmill_plan::target::{Level, Tuning};
use proptest::prelude::*;

/// Two workers that read a byte per ns each, with free barriers and takes.
fn machine(workers: usize) -> SimulatedMachine {
    SimulatedMachine {
        workers,
        rates: MemoryRates {
            all: vec![(1, 1.0), (workers.max(2), workers.max(2) as f64)],
            groups: Vec::new(),
        },
        arrival: Arrival::Fixed(0.0),
        jump: 0.0,
        claim: [0.0, 0.0],
        ..SimulatedMachine::new(&MACHINE)
    }
}

fn step(hand_out: HandOut, groups: Vec<ItemGroup>) -> SharedStep {
    SharedStep { hand_out, groups, before: 0.0, range: 0.0, ahead: None }
}

fn group(items: u64, bytes: f64, arithmetic: f64) -> ItemGroup {
    ItemGroup { items, bytes, arithmetic, ..ItemGroup::default() }
}

fn hand_outs() -> impl Strategy<Value = HandOut> {
    let costs = prop::collection::vec(1_u64..500, 0..40);
    (0_u64..4000, 0_u32..4, 0_u64..4000, 0..5, costs).prop_map(|(total, run, shared, rule, costs)| match rule
    {
        0 => HandOut::even(total),
        1 => HandOut::one_by_one(total),
        2 => HandOut::with_shares(total, shared),
        3 => HandOut::by_cost(costs, 1 + total % 100, 1 << run),
        _ => HandOut::with_tail(total, 1 << run),
    })
}

proptest! {
    #[test]
    fn every_item_is_given_out_once(
        hand_out in hand_outs(),
        speeds in prop::collection::vec(0.01_f64..2.0, 1..100),
        cuts in prop::collection::vec(1_u32..40, 0..4),
        costs in prop::collection::vec((1_u64..500, 0.0_f64..1e5, 0.0_f64..1e5), 1..10),
        claim in 0.0_f64..1e3,
    ) {
        let groups = costs.into_iter().map(|(items, bytes, arithmetic)| group(items, bytes, arithmetic));
        let total = hand_out.total() as usize;
        let step = step(hand_out, groups.collect());
        // Nodes of as many workers as `cuts` say, and one of the rest.
        let mut left = speeds.len() as u32;
        let mut nodes: Vec<u32> = Vec::new();
        for count in cuts.into_iter().chain([u32::MAX]) {
            nodes.push(count.min(left));
            left -= count.min(left);
        }
        nodes.retain(|count| *count > 0);
        let machine =
            SimulatedMachine { nodes, claim: [claim, 1.0], speeds: speeds.clone(), ..machine(speeds.len()) };
        let mut given = vec![0; total];
        let (times, _) = schedule(&step, &machine, Fetches::default(), |worker, range| {
            assert!(worker < speeds.len());
            range.for_each(|item| given[item as usize] += 1);
        });
        prop_assert!(given.iter().all(|times| *times == 1));
        prop_assert!(times.ns.is_finite() && times.waits >= 0.0 && times.waits <= times.ns);
    }
}

#[test]
fn a_step_takes_what_its_slowest_worker_takes() {
    // Shares of three items, which read 10 bytes each at a byte per ns.
    let even = step(HandOut::even(6), vec![group(6, 10.0, 4.0)]);
    let (times, _) = schedule(&even, &machine(2), Fetches::default(), |_, _| {});
    assert_eq!(times, StepTimes { ns: 30.0, waits: 0.0, reads: 30.0, arithmetic: 12.0 });
    // One worker has half of its core: it takes 60 ns, and the other waits for half of that.
    let niced = SimulatedMachine { speeds: vec![1.0, 0.5], ..machine(2) };
    let (times, _) = schedule(&even, &niced, Fetches::default(), |_, _| {});
    assert_eq!((times.ns, times.waits), (60.0, 15.0));
    // From the counter, the faster one takes more: four items and two.
    let single = step(HandOut::one_by_one(6), even.groups);
    let (times, _) = schedule(&single, &niced, Fetches::default(), |_, _| {});
    assert_eq!((times.ns, times.waits), (40.0, 0.0));
}

/// A node's counter serves its own workers first, and others when their own has nothing.
#[test]
fn workers_help_other_nodes_when_their_own_has_nothing_left() {
    let items = step(HandOut::with_tail(64, 1), vec![group(64, 10.0, 0.0)]);
    let given = |speeds: Vec<f64>| {
        let machine = SimulatedMachine { nodes: vec![2, 2], speeds, ..machine(4) };
        let mut of_first_node = [0; 2];
        schedule(&items, &machine, Fetches::default(), |worker, range| {
            of_first_node[worker / 2] += range.filter(|item| *item < 32).count();
        });
        of_first_node
    };
    assert_eq!(given(vec![1.0; 4]), [32, 0]);
    // The first node's workers are slow: the shares are left to them.
    let slow = given(vec![0.2, 0.2, 1.0, 1.0]);
    assert!(slow[0] >= 24 && slow[1] > 0, "{slow:?}");
}

#[test]
fn a_worker_that_waits_fetches_for_a_later_step() {
    // The second worker has half of its core: the first one waits for 30 ns, and reads 30 bytes meanwhile.
    let niced = SimulatedMachine { speeds: vec![1.0, 0.5], ..machine(2) };
    let even = step(HandOut::even(6), vec![group(6, 10.0, 0.0)]);
    let fetched = |wanted| schedule(&even, &niced, Fetches { done: &[], wanted }, |_, _| {}).1;
    assert_eq!((fetched(20), fetched(0)), (vec![20, 0], vec![0, 0]));
    // Bytes that have been fetched are not read again: 10 and 30 of 30 are left.
    let fetches = Fetches { done: &[20, 0], wanted: 0 };
    let (times, _) = schedule(&even, &machine(2), fetches, |_, _| {});
    assert_eq!((times.ns, times.waits), (30.0, 10.0));
}

#[test]
fn readers_share_what_their_group_and_the_machine_read() {
    let rates = MemoryRates { all: vec![(1, 10.0), (4, 28.0)], groups: vec![(2, 12.0)] };
    assert_eq!([1, 2, 4, 9].map(|readers| rates.together(readers)), [10.0, 16.0, 28.0, 28.0]);
    assert_eq!(rates.of(0, &[true, false, true, false]), 8.0);
    assert_eq!(rates.of(0, &[true, true, false, false]), 6.0);
    assert_eq!(rates.attainable(4), 24.0);
}

#[test]
fn arrivals_by_a_tree_take_turns_by_level() {
    let (base, each) = (600.0, 60.0);
    assert_eq!(Arrival::Flat { base, each }.ns(64), 4440.0);
    let tree = Arrival::Tree { base, each, cache: 8, node: 32 };
    // Eight workers of a cache, four caches of a node, two nodes.
    assert_eq!(tree.ns(64), 600.0 + 14.0 * 60.0);
    assert_eq!(tree.ns(8), 600.0 + 8.0 * 60.0);
    assert_eq!(tree.ns(1), 600.0);
}

/// Six layers of GPT-OSS-20B's shape, compiled as for the machine of the record.
fn six_layers() -> Compiled {
    let text = include_str!("../../../model-specs/gpt-oss-20b.toml")
        .replace("layers         = 24", "layers = 6")
        .replace("vocab          = 201088", "vocab = 50272");
    let graph = lower(&Spec::parse("six.toml", &text).unwrap()).unwrap();
    let options = CompilerOptions { tuning: Tuning::Intel, ..CompilerOptions::new(Level::V4Vnni) };
    compile(&graph, &options).unwrap()
}

/// Two cores of a Xeon, as `benches/runs/2026-11-29-simulator.md` has them, in a minute in which so many
/// workers read `rate` bytes per ns.
fn recorded(workers: usize, rate: f64) -> SimulatedMachine {
    SimulatedMachine {
        workers,
        rates: MemoryRates { all: vec![(workers, rate)], groups: Vec::new() },
        arrival: Arrival::Fixed(250.0),
        core_cache: 1_310_720,
        // Two of them have 1.395 TOPS, one has 0.714.
        pace: 0.99 * if workers == 2 { 2.0 * 0.714 / 1.395 } else { 1.0 },
        dot_stalls: 0.073,
        ..SimulatedMachine::new(&MACHINE)
    }
}

/// Tokens of a batch, workers, bytes per ns that they read, tokens per second.
const RECORDED: [(usize, usize, f64, f64); 8] = [
    (512, 1, 13.9, 249.4),
    (512, 2, 26.5, 476.1),
    (128, 1, 13.9, 202.3),
    (128, 2, 26.5, 396.1),
    (1, 1, 13.90, 19.46),
    (1, 2, 26.50, 36.88),
    (1, 1, 14.30, 19.87),
    (1, 2, 27.88, 38.57),
];

#[test]
fn batches_take_what_they_took_on_the_recorded_machine() {
    let (compiled, mut ratios) = (six_layers(), Vec::new());
    for (tokens, workers, rate, expected) in RECORDED {
        let steps = simulate(&compiled, &recorded(workers, rate), tokens, 0);
        let ns = steps.iter().map(|step| step.times.ns).sum::<f64>();
        let ratio = tokens as f64 * 1e9 / ns / expected;
        ratios.push((tokens, workers, ratio));
    }
    assert!(
        ratios.iter().all(|(_, _, ratio)| (0.98..1.02).contains(ratio)),
        "tokens, workers, ratio: {ratios:?}"
    );
}
