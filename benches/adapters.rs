//! The cost of adapters: `cargo bench --bench adapters -- PLAN [--threads N] [--rank N] [--pairs N]
//! [--all-lora_targets] [--profile]`.
//!
//! Decoding of one sequence and of four with four different adapters, and a prompt of 512 tokens, each with
//! and without adapters in turn. Adapters are random, on the attention's projections or on all LoRA targets.
//! Then the same without adapters, on a program that takes them and on one that was compiled without. In a
//! pair of decodings both sides take turns token by token, so that both meet the same minutes of a machine
//! whose memory others use as well; prompts take turns whole.
//!
//! Prints one line of JSON per case: tokens per second, the median of the ratios of pairs, and all of them. A
//! pair during which a hypervisor gave more than 5 % of the time of this machine's CPUs to others is void: it
//! is counted and made again.

#![allow(clippy::print_stdout)]

use fastrand::Rng;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::adapter::{Adapters, LoraTargetShape};
use kernmill_plan::program::Program;
use kernmill_plan::target::Tuning;
use kernmill_runtime::adapter::{AdapterPackError, PackedAdapter};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, EngineConfig, Plan, PlanImage, SeqId, SequenceTokens, Steps};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Tokens that a sequence has before its decoding is timed.
const PROMPT: usize = 16;
/// Tokens decoded per pair, side and sequence.
const DECODED: usize = 24;
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
        pool: PoolConfig { threads: arguments.threads, pin: true, ..PoolConfig::default() },
        context: Some(1024),
        sequences: 8,
        chunk: None,
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(&image, config).expect("it runs here");
    let adapters = image.program().model.adapters.as_ref().expect("the plan takes adapters");
    for slot in 1..=4 {
        let placed = engine.place_adapter(random(adapters, &arguments, u64::from(slot)));
        assert_eq!(placed.expect("it is packed for the plan"), slot);
    }
    let mut engines = vec![engine];
    decode_pair(&mut engines, [(0, &[0]), (0, &[0])], 0);
    if arguments.profile {
        for slots in [&[0][..], &[1], &[0; 4], &[1, 2, 3, 4]] {
            profile(&mut engines[0], slots);
        }
        return;
    }
    report("decode", 1, DECODED, &arguments, &mut |first| {
        decode_pair(&mut engines, [(0, &[0]), (0, &[1])], first)
    });
    report("decode", 4, 4 * DECODED, &arguments, &mut |first| {
        decode_pair(&mut engines, [(0, &[0; 4]), (0, &[1, 2, 3, 4])], first)
    });
    report("prefill", 1, PREFILL, &arguments, &mut |first| {
        prefill_pair(&mut engines, [(0, 0), (0, 1)], first)
    });
    // SAFETY: the compiler of this process makes the program.
    let plain =
        unsafe { plan.image_with(without_support(&plan, &image), "benches/adapters") }.expect("a good plan");
    engines.push(Engine::new(&plain, config).expect("it runs here"));
    decode_pair(&mut engines, [(1, &[0]), (0, &[0])], 0);
    report("support, decode", 1, DECODED, &arguments, &mut |first| {
        decode_pair(&mut engines, [(1, &[0]), (0, &[0])], first)
    });
    report("support, prefill", 1, PREFILL, &arguments, &mut |first| {
        prefill_pair(&mut engines, [(1, 0), (0, 0)], first)
    });
}

/// The plan's program compiled without support for adapters, over the same weights.
fn without_support(plan: &Plan, image: &PlanImage) -> Program {
    let (metadata, spec) = (plan.metadata(), plan.file().spec().expect("a spec"));
    let graph = lower(&Spec::parse("the plan's spec", &spec).expect("a good spec")).expect("a good spec");
    let preset = Preset::from_name(&metadata.model.preset).expect("a known preset");
    assert!(preset != Preset::Fast, "preset fast decides by weights");
    let options = CompilerOptions {
        preset,
        adapters: false,
        chunk: metadata.chunk as usize,
        tuning: Tuning::native(),
        ..CompilerOptions::new(image.program().level)
    };
    let compiled = compile(&graph, &options).expect("it compiles");
    assert_eq!(compiled.layout.bytes, metadata.weight_bytes, "weights lie elsewhere");
    compiled.program
}

fn random(adapters: &Adapters, arguments: &Arguments, seed: u64) -> Arc<PackedAdapter> {
    let mut rng = Rng::with_seed(seed);
    let rank = arguments.rank;
    let wanted = |tensor: &str| arguments.all_sites || tensor.contains("attn");
    let shapes: Vec<Option<LoraTargetShape>> = adapters
        .lora_targets
        .iter()
        .map(|lora_target| wanted(&lora_target.tensor).then_some(LoraTargetShape { rank, factors: false }))
        .collect();
    let packed = PackedAdapter::pack::<AdapterPackError>(adapters, &shapes, &mut |at, layout, bytes| {
        let lora_target = &adapters.lora_targets[at];
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| rng.f32() - 0.5).collect() };
        for expert in 0..(lora_target.experts as usize).max(1) {
            layout.pack_a(expert, &numbers(rank * lora_target.k as usize), bytes)?;
            layout.pack_b(expert, &numbers(rank * lora_target.rows()), bytes)?;
        }
        // Adapters that change nothing: both sides choose the same experts.
        layout.pack_scales(&vec![0.0; rank], bytes);
        Ok(())
    });
    Arc::new(packed.expect("finite numbers and memory for them"))
}

/// Sequences that decode together, with these adapters.
struct Decoding {
    ids: Vec<SeqId>,
    decoded: usize,
}

impl Decoding {
    fn begin(engine: &mut Engine, slots: &[u32]) -> Decoding {
        let ids: Vec<SeqId> = slots.iter().map(|slot| sequence(engine, *slot)).collect();
        for (n, id) in ids.iter().enumerate() {
            let prompt: Vec<u32> = (0..PROMPT).map(|i| token(n * PROMPT + i)).collect();
            engine.extend(&[SequenceTokens::silent(*id, &prompt)], &()).expect("there is room");
        }
        Decoding { ids, decoded: 0 }
    }

    /// Seconds for a token of each.
    fn step(&mut self, engine: &mut Engine) -> f64 {
        let tokens: Vec<[u32; 1]> =
            (0..self.ids.len()).map(|i| [token(1000 + self.decoded * 4 + i)]).collect();
        let work: Vec<SequenceTokens<'_>> =
            self.ids.iter().zip(&tokens).map(|(id, token)| SequenceTokens::last(*id, &token[..])).collect();
        let start = Instant::now();
        engine.step(&work, &()).expect("there is room");
        self.decoded += 1;
        start.elapsed().as_secs_f64()
    }

    fn end(self, engine: &mut Engine) {
        self.ids.into_iter().for_each(|id| engine.drop_sequence(id));
    }
}

fn token(n: usize) -> u32 {
    (n * 7919 % 50_000) as u32
}

/// Seconds that each side takes to decode, a side being an engine and the slots of its sequences. `first`
/// begins; the beginner changes from token to token.
fn decode_pair(engines: &mut [Engine], sides: [(usize, &[u32]); 2], first: usize) -> [f64; 2] {
    let mut decodings = sides.map(|(engine, slots)| Decoding::begin(&mut engines[engine], slots));
    let mut seconds = [0.0; 2];
    for n in 0..DECODED {
        for side in [(first + n) % 2, (first + n + 1) % 2] {
            seconds[side] += decodings[side].step(&mut engines[sides[side].0]);
        }
    }
    decodings.into_iter().zip(sides).for_each(|(decoding, (engine, _))| decoding.end(&mut engines[engine]));
    seconds
}

/// Seconds that each side takes for the prompt, a side being an engine and a slot.
fn prefill_pair(engines: &mut [Engine], sides: [(usize, u32); 2], first: usize) -> [f64; 2] {
    let mut seconds = [0.0; 2];
    for side in [first, 1 - first] {
        let (engine, slot) = sides[side];
        seconds[side] = prefill(&mut engines[engine], slot);
    }
    seconds
}

/// Prints what the kinds of steps take, prompts included.
fn profile(engine: &mut Engine, slots: &[u32]) {
    engine.start_meter(Detail::Steps);
    let mut decoding = Decoding::begin(engine, slots);
    let seconds: f64 = (0..DECODED).map(|_| decoding.step(engine)).sum();
    decoding.end(engine);
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
    let prompt: Vec<u32> = (0..PREFILL).map(token).collect();
    let start = Instant::now();
    engine.extend(&[SequenceTokens::last(id, &prompt)], &()).expect("there is room");
    let seconds = start.elapsed().as_secs_f64();
    engine.drop_sequence(id);
    seconds
}

fn sequence(engine: &mut Engine, slot: u32) -> SeqId {
    let id = engine.create().expect("a free sequence");
    engine.use_adapter(id, slot).expect("the slot exists");
    id
}

/// Seconds for which a CPU of this machine had work and a hypervisor ran something else, per CPU, since the
/// system started (`proc_stat(5)`); 0 where the system does not say.
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
    run: &mut dyn FnMut(usize) -> [f64; 2],
) {
    let mut pairs: Vec<[f64; 2]> = Vec::new();
    let mut void = 0;
    while pairs.len() < arguments.pairs && void < MOST_VOID * arguments.pairs {
        let (before, start) = (stolen(), Instant::now());
        // Whoever is first changes from pair to pair.
        let times = run(pairs.len() % 2);
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
    let ratios: Vec<String> = pairs.iter().map(|pair| format!("{:.3}", pair[0] / pair[1])).collect();
    println!(
        "{{\"case\": \"{what}\", \"sequences\": {sequences}, \"rank\": {}, \"pairs\": {}, \"void\": {void}, \
         \"without\": {:.2}, \"with\": {:.2}, \"ratio\": {:.4}, \"ratios\": [{}]}}",
        arguments.rank,
        pairs.len(),
        rate(median(&|pair| pair[0])),
        rate(median(&|pair| pair[1])),
        median(&|pair| pair[0] / pair[1]),
        ratios.join(", "),
    );
}
