//! What adapters cost: `cargo bench --bench adapters -- PLAN [--threads N] [--rank N] [--pairs N] [--all-sites] [--profile]`.
//!
//! Decoding of one sequence and of four with four different adapters, and a prompt of 512 tokens, each with and without adapters in turn. Adapters are
//! random, on the attention's projections or on all sites. Then the same without adapters, on a program that takes them and on one that was compiled
//! without. Prints one line of JSON per case: tokens per second, and the median of the ratios of pairs. A pair during which a hypervisor gave more than
//! 5 % of the time of this machine's CPUs to others is void: it is counted and made again.

use fastrand::Rng;
use kernmill_compiler::pipeline::{Options, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::spec::{Spec, lower};
use kernmill_plan::adapter::{Adapters, SiteShape};
use kernmill_plan::program::Program;
use kernmill_plan::target::Tuning;
use kernmill_runtime::adapter::{AdapterPackError, PackedAdapter};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, EngineConfig, Plan, PlanImage, SeqId, Want};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Tokens that a sequence has before its decoding is timed.
const PROMPT: usize = 16;
/// Tokens decoded per measurement and sequence.
const DECODED: usize = 12;
/// The prompt that is timed.
const PREFILL: usize = 512;

/// The share of the CPUs' time that may be stolen during a pair.
const STOLEN: f64 = 0.05;
/// Void pairs for each one that is wanted, at most.
const MOST_VOID: usize = 2;

struct Arguments {
    plan: String,
    threads: Option<usize>,
    rank: usize,
    pairs: usize,
    all_sites: bool,
    profile: bool,
}

fn arguments() -> Arguments {
    let mut found = Arguments {
        plan: String::new(),
        threads: None,
        rank: 32,
        pairs: 7,
        all_sites: false,
        profile: false,
    };
    let mut list = std::env::args().skip(1);
    while let Some(argument) = list.next() {
        let mut number = || {
            list.next()
                .and_then(|text| text.parse().ok())
                .unwrap_or_else(|| panic!("{argument} takes a number"))
        };
        match argument.as_str() {
            "--threads" => found.threads = Some(number()),
            "--rank" => found.rank = number(),
            "--pairs" => found.pairs = number(),
            "--all-sites" => found.all_sites = true,
            "--profile" => found.profile = true,
            "--bench" => {}
            _ => found.plan = argument,
        }
    }
    assert!(!found.plan.is_empty(), "give a plan that was compiled with adapters");
    found
}

fn main() {
    let arguments = arguments();
    let plan = Plan::open(Path::new(&arguments.plan)).expect("a good plan");
    let target = plan.choose(None).expect("a target for this CPU");
    let image = plan.image(target).expect("a good plan");
    let config = EngineConfig {
        pool: PoolConfig { threads: arguments.threads, pin: true },
        context: Some(1024),
        sequences: 4,
        chunk: None,
    };
    let mut engine = Engine::new(&image, config).expect("it runs here");
    let adapters = image.program.model.adapters.as_ref().expect("the plan takes adapters");
    for slot in 1..=4 {
        let placed = engine.place_adapter(random(adapters, &arguments, u64::from(slot)));
        assert_eq!(placed.expect("it is packed for the plan"), slot);
    }
    decode(&mut engine, &[0]);
    if arguments.profile {
        for slots in [&[0][..], &[1], &[0; 4], &[1, 2, 3, 4]] {
            profile(&mut engine, slots);
        }
        return;
    }
    report("decode", 1, DECODED, &arguments, &mut |on| decode(&mut engine, &[u32::from(on)]));
    report("decode", 4, 4 * DECODED, &arguments, &mut |on| {
        decode(&mut engine, &[1, 2, 3, 4].map(|slot| slot * u32::from(on)))
    });
    report("prefill", 1, PREFILL, &arguments, &mut |on| prefill(&mut engine, u32::from(on)));
    let plain = plan.image_with(without_support(&plan, &image)).expect("a good plan");
    let mut engines = [Engine::new(&plain, config).expect("it runs here"), engine];
    decode(&mut engines[0], &[0]);
    let of = |on: bool| usize::from(on);
    report("support, decode", 1, DECODED, &arguments, &mut |on| decode(&mut engines[of(on)], &[0]));
    report("support, prefill", 1, PREFILL, &arguments, &mut |on| prefill(&mut engines[of(on)], 0));
}

/// The plan's program compiled without support for adapters, over the same weights.
fn without_support(plan: &Plan, image: &PlanImage) -> Program {
    let (metadata, spec) = (plan.metadata(), plan.file().spec().expect("a spec"));
    let graph = lower(&Spec::parse("the plan's spec", &spec).expect("a good spec")).expect("a good spec");
    let preset = Preset::from_name(&metadata.model.preset).expect("a known preset");
    assert!(preset != Preset::Fast, "preset fast decides by weights");
    let options = Options {
        preset,
        adapters: false,
        chunk: metadata.chunk as usize,
        tuning: Tuning::native(),
        ..Options::new(image.program.level)
    };
    let compiled = compile(&graph, &options).expect("it compiles");
    assert_eq!(compiled.layout.bytes, metadata.weight_bytes, "weights lie elsewhere");
    compiled.program
}

fn random(adapters: &Adapters, arguments: &Arguments, seed: u64) -> Arc<PackedAdapter> {
    let mut rng = Rng::with_seed(seed);
    let rank = arguments.rank;
    let wanted = |tensor: &str| arguments.all_sites || tensor.contains("attn");
    let shapes: Vec<Option<SiteShape>> = adapters
        .sites
        .iter()
        .map(|site| wanted(&site.tensor).then_some(SiteShape { rank, factors: false }))
        .collect();
    let packed = PackedAdapter::pack::<AdapterPackError>(adapters, &shapes, &mut |at, layout, bytes| {
        let site = &adapters.sites[at];
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| rng.f32() - 0.5).collect() };
        for expert in 0..(site.experts as usize).max(1) {
            layout.pack_a(expert, &numbers(rank * site.k as usize), bytes)?;
            layout.pack_b(expert, &numbers(rank * site.rows()), bytes)?;
        }
        // Adapters that change nothing: both sides choose the same experts.
        layout.pack_scales(&vec![0.0; rank], bytes);
        Ok(())
    });
    Arc::new(packed.expect("finite numbers and memory for them"))
}

/// Seconds to decode with these adapters, a sequence for each.
fn decode(engine: &mut Engine, slots: &[u32]) -> f64 {
    let ids: Vec<SeqId> = slots.iter().map(|slot| sequence(engine, *slot)).collect();
    let token = |n: usize| (n * 7919 % 50_000) as u32;
    for (n, id) in ids.iter().enumerate() {
        let prompt: Vec<u32> = (0..PROMPT).map(|i| token(n * PROMPT + i)).collect();
        engine.step(&[(*id, &prompt)], Want::None, &mut |_, _| {}).expect("there is room");
    }
    let start = Instant::now();
    for n in 0..DECODED {
        let tokens: Vec<[u32; 1]> = (0..ids.len()).map(|i| [token(1000 + n * 4 + i)]).collect();
        let work: Vec<(SeqId, &[u32])> =
            ids.iter().zip(&tokens).map(|(id, token)| (*id, &token[..])).collect();
        engine.step(&work, Want::Last, &mut |_, _| {}).expect("there is room");
    }
    let seconds = start.elapsed().as_secs_f64();
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
    seconds
}

/// Prints what the kinds of steps take, prompts included.
fn profile(engine: &mut Engine, slots: &[u32]) {
    engine.start_meter(Detail::Steps);
    let seconds = decode(engine, slots);
    let profile = engine.stop_meter();
    println!(
        "slots {slots:?}: {seconds:.3} s to decode, {} bytes of weights in all",
        profile.total.weight_bytes
    );
    for step in &profile.steps {
        let busy: f64 = step.busy.iter().sum::<f64>() / step.busy.len() as f64;
        println!(
            "{:24} {:5} calls {:9.3} ms, busy {:9.3} ms",
            step.name,
            step.calls,
            step.seconds * 1e3,
            busy * 1e3
        );
    }
}

/// Seconds for the prompt.
fn prefill(engine: &mut Engine, slot: u32) -> f64 {
    let id = sequence(engine, slot);
    let prompt: Vec<u32> = (0..PREFILL).map(|i| (i * 7919 % 50_000) as u32).collect();
    let start = Instant::now();
    engine.step(&[(id, &prompt)], Want::Last, &mut |_, _| {}).expect("there is room");
    let seconds = start.elapsed().as_secs_f64();
    engine.drop_sequence(id);
    seconds
}

fn sequence(engine: &mut Engine, slot: u32) -> SeqId {
    let id = engine.create().expect("a free sequence");
    engine.use_adapter(id, slot).expect("the slot exists");
    id
}

/// Seconds for which a CPU of this machine had work and a hypervisor ran something else, per CPU, since the system started (`proc_stat(5)`); 0 where
/// the system does not say.
fn stolen() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks =
        text.lines().next().and_then(|all| all.split_whitespace().nth(8)).and_then(|n| n.parse::<f64>().ok());
    let cpus = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    ticks.unwrap_or(0.0) / TICKS_PER_SECOND / cpus.max(1) as f64
}

fn report(
    what: &str,
    sequences: usize,
    tokens: usize,
    arguments: &Arguments,
    run: &mut dyn FnMut(bool) -> f64,
) {
    let mut pairs: Vec<[f64; 2]> = Vec::new();
    let mut void = 0;
    while pairs.len() < arguments.pairs && void < MOST_VOID * arguments.pairs {
        let (before, start) = (stolen(), Instant::now());
        let mut times = [0.0; 2];
        // Whoever is first changes from pair to pair.
        for turn in 0..2 {
            let on = (pairs.len() + turn) % 2 == 1;
            times[usize::from(on)] = run(on);
        }
        if (stolen() - before) / start.elapsed().as_secs_f64() > STOLEN {
            void += 1;
        } else {
            pairs.push(times);
        }
    }
    if pairs.is_empty() {
        println!("{{\"case\": \"{what}\", \"sequences\": {sequences}, \"pairs\": 0, \"void\": {void}}}");
        return;
    }
    let median = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let rate = |seconds: f64| tokens as f64 / seconds;
    println!(
        "{{\"case\": \"{what}\", \"sequences\": {sequences}, \"rank\": {}, \"pairs\": {}, \"void\": {void}, \"without\": {:.2}, \"with\": {:.2}, \"ratio\": {:.4}}}",
        arguments.rank,
        pairs.len(),
        rate(median(&|pair| pair[0])),
        rate(median(&|pair| pair[1])),
        median(&|pair| pair[0] / pair[1]),
    );
}
