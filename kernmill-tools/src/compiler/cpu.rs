//! Abilities of this machine: targets, features, cores, memory, and the limits that speeds are compared with.

use super::bench::{best, buffer, caches, limits};
use kernmill::Result;
use kernmill::Target;
use kernmill::observe::{Observer, Silent, Unit};
use kernmill_compiler::passes::quant::Preset;
use kernmill_kernels_gen::tile_probe;
use kernmill_os::affinity::{CpuSet, usable};
use kernmill_os::cpu::host_has;
use kernmill_os::memory::available_memory;
use kernmill_os::numa;
use kernmill_os::proc;
use kernmill_os::sisters::{may_be_hidden, sisters};
use kernmill_os::text::size;
use kernmill_os::tiles;
use kernmill_plan::target::{Level, Tuning};
use kernmill_runtime::measure;
use kernmill_runtime::pool::default_threads;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The measurements of this machine; empty by default.
#[derive(Default)]
pub struct MeasuredMachine {
    /// The speeds of numbers of threads, ascending.
    pub reached: Vec<ThreadSpeeds>,
    /// A row's products on AMX tiles as a share of what vectors take for them: of bf16, and of int8. `None`
    /// without tiles.
    pub tile_shares: Option<[f64; 2]>,
    /// Pairs of CPUs that are hardware threads of one core, which the system does not say; `None` if they
    /// were not looked for.
    pub hidden_pairs: Option<Vec<CpuSet>>,
}

/// Speeds that a number of threads reach.
pub struct ThreadSpeeds {
    /// Number of threads.
    pub threads: usize,
    /// Bytes per second of each read from memory.
    pub reads: Vec<f64>,
    /// Integer operations per second of each try.
    pub peaks: Vec<f64>,
    /// Seconds of a barrier, the least of some tries.
    pub barrier: f64,
    /// Seconds that a step more costs among reads of memory.
    pub step: f64,
}

/// Tries of each measurement; the best counts.
const TRIES: usize = 5;
/// Steps that a stretch of memory is read in, to find out what a step costs.
const STEPS: usize = 256;
/// Least bytes of that stretch, if there are as many: steps of a token read some megabytes each.
const STRETCH: usize = 256 << 20;

impl MeasuredMachine {
    /// Measures the speeds of numbers of threads: one, all, and some between. All is by default one for each
    /// physical core that this process may use. Reads are of `bytes` bytes.
    ///
    /// # Errors
    /// When this CPU runs no kernels, or the system refuses memory or threads.
    pub fn all(threads: Option<u16>, bytes: u64, observer: &dyn Observer) -> Result<MeasuredMachine> {
        let level = Target::Native.runnable_level(Preset::Faithful, &Silent)?;
        let bytes = bytes.max(1 << 20);
        let memory = buffer(bytes)?;
        let counts = counts(threads.map_or_else(default_threads, usize::from));
        let hidden_pairs = Some(sisters(&usable()));
        let progress = observer.begin("measuring", Unit::Count, (counts.len() * TRIES) as u64);
        let measure = |threads: usize| {
            let mut limits = limits(level, threads)?;
            limits.choose_read(memory.as_slice());
            let stretch = memory.len().min(STRETCH.max(2 * caches().last as usize));
            let mut reached =
                ThreadSpeeds { threads, reads: Vec::new(), peaks: Vec::new(), barrier: f64::MAX, step: 0.0 };
            let mut least = [f64::MAX; 2];
            for _ in 0..TRIES {
                reached.reads.push(limits.read(memory.as_slice(), bytes));
                reached.peaks.push(limits.multiply());
                reached.barrier = reached.barrier.min(limits.barrier());
                let times = limits.read_in_steps(&memory.as_slice()[..stretch], STEPS);
                least = [least[0].min(times[0]), least[1].min(times[1])];
                progress.advance(1);
            }
            // A step is never cheaper than its barrier, whatever the noise says.
            reached.step = ((least[1] - least[0]) / (STEPS - 1) as f64).max(reached.barrier);
            Ok(reached)
        };
        let reached = counts.into_iter().map(measure).collect::<Result<_>>()?;
        let tiles = tiles_state();
        let usable = tiles.present && tiles.refusal.is_none() && Level::Amx.missing().is_empty();
        let tile_shares = usable.then(|| tile_shares(Level::Amx)).transpose()?;
        Ok(MeasuredMachine { reached, tile_shares, hidden_pairs })
    }
}

/// Shares that tiles take, at a level without tiles those of the code that stands in for them.
fn tile_shares(level: Level) -> Result<[f64; 2]> {
    let probe = tile_probe::tile_probe(level)?;
    // SAFETY: the generator has just made the probe.
    let shares = unsafe { measure::tile_shares(&probe) }?;
    Ok([shares[0], shares[1]])
}

/// Numbers of threads that are measured: one, twice and three times as many again and again, and all.
fn counts(all: usize) -> Vec<usize> {
    let doubled = (0..usize::BITS).map(|bit| 1 << bit).take_while(|count| *count < all);
    let mut counts: Vec<usize> = doubled.flat_map(|count| [count, count * 3 / 2]).collect();
    counts.retain(|count| *count < all);
    counts.push(all);
    counts.dedup();
    counts
}

/// Targets, features, cores and memory as text, and what was measured.
pub fn text(measured: &MeasuredMachine) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", model_name());
    let native = Level::native(false);
    for level in Level::ALL {
        let missing = level.missing();
        let says = match (missing.is_empty(), native == Some(level)) {
            (true, true) => "yes (native)".to_owned(),
            (true, false) => "yes".to_owned(),
            (false, _) => format!("no: lacks {}", missing.join(", ")),
        };
        let _ = writeln!(text, "  {:16} {says}", level.name());
    }
    let _ = writeln!(text, "features: {}", features().join(" "));
    let _ = writeln!(text, "AMX tiles: {}", tiles_text(&tiles_state()));
    let may_hide = may_be_hidden(&usable()) && measured.hidden_pairs.is_none();
    let _ = writeln!(text, "{}", threads_text(default_threads(), cpus(), may_hide));
    if let Some(pairs) = measured.hidden_pairs.as_deref().filter(|pairs| !pairs.is_empty()) {
        let _ = writeln!(text, "{}", pairs_text(pairs));
    }
    let nodes: Vec<CpuSet> = numa::nodes().into_iter().map(|node| node.cpus).collect();
    if nodes.len() > 1 {
        let _ = writeln!(text, "{}", nodes_text(&nodes));
    }
    if let Some(bytes) = available_memory() {
        let _ = writeln!(text, "memory: {} available", size(bytes));
    }
    for ThreadSpeeds { threads, reads, peaks, barrier, step } in &measured.reached {
        let plural = if *threads == 1 { "" } else { "s" };
        let (read, peak) = (best(reads) / 1e9, best(peaks) / 1e12);
        let (barrier, step) = (barrier * 1e6, step * 1e6);
        let _ = writeln!(
            text,
            "{threads} thread{plural}: reads memory at {read:.1} GB/s, int8 at {peak:.2} TOPS, barrier \
             {barrier:.2} us, step {step:.1} us"
        );
    }
    if let Some([bf16, int8]) = measured.tile_shares {
        let _ = writeln!(text, "AMX tiles: {bf16:.2} of the time of vectors with bf16, {int8:.2} with int8");
    }
    text
}

/// Targets, features, cores and memory, and what was measured, as one JSON object.
pub fn json(measured: &MeasuredMachine) -> Value {
    let levels: Vec<_> = Level::ALL
        .into_iter()
        .map(|level| {
            json!({ "name": level.name(), "supported": level.missing().is_empty(),
            "missing": level.missing() })
        })
        .collect();
    let tiles = tiles_state();
    let mut report = json!({
        "cpu": model_name(),
        "native": Level::native(false).map(Level::name),
        "levels": levels,
        "amx": { "present": tiles.present, "permitted": tiles.refusal.is_none() },
        "features": features(),
        "family": Tuning::native().name(),
        "cpus": cpus(),
        "default_threads": default_threads(),
        "available_memory": available_memory(),
        "core_cache": caches().core,
        "last_level_cache": caches().last,
        "nodes": lists(&numa::nodes().into_iter().map(|node| node.cpus).collect::<Vec<_>>()),
        "caches": lists(&usable().caches()),
    });
    if let Some(pairs) = &measured.hidden_pairs {
        report["hidden_pairs"] = lists(pairs);
    }
    if let Some([bf16, int8]) = measured.tile_shares {
        report["amx"]["tile_shares"] = json!({ "bf16": bf16, "int8": int8 });
    }
    if !measured.reached.is_empty() {
        let scaled =
            |values: &[f64], unit: f64| values.iter().map(|value| value / unit).collect::<Vec<f64>>();
        let of = |one: &ThreadSpeeds| {
            json!({
                "threads": one.threads,
                "gb_per_s": best(&one.reads) / 1e9,
                "reads": scaled(&one.reads, 1e9),
                "tops_per_s": best(&one.peaks) / 1e12,
                "peaks": scaled(&one.peaks, 1e12),
                "barrier_us": one.barrier * 1e6,
                "step_us": one.step * 1e6,
            })
        };
        report["measured"] = measured.reached.iter().map(of).collect();
    }
    report
}

/// Whether there are AMX tiles, and whether this process may use them.
struct TilesState {
    present: bool,
    /// Why this process may not use AMX tiles.
    refusal: Option<String>,
}

fn tiles_state() -> TilesState {
    let present = ["amx_tile", "amx_bf16", "amx_int8"].into_iter().all(host_has);
    TilesState { present, refusal: tiles::request().err().map(|error| error.to_string()) }
}

fn tiles_text(state: &TilesState) -> String {
    match (state.present, &state.refusal) {
        (false, _) => "none in this CPU, or not enabled".to_owned(),
        (true, None) => "there and permitted; preset bf16 uses them".to_owned(),
        (true, Some(error)) => format!("there, but the system does not permit them: {error}"),
    }
}

/// Features that any level uses and this CPU has.
fn features() -> Vec<&'static str> {
    let known: BTreeSet<&str> = Level::ALL.iter().flat_map(|level| level.features().names()).collect();
    known.into_iter().filter(|feature| host_has(feature)).collect()
}

fn lists(sets: &[CpuSet]) -> Value {
    sets.iter().map(ToString::to_string).collect()
}

fn joined(sets: &[CpuSet]) -> String {
    sets.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn pairs_text(pairs: &[CpuSet]) -> String {
    format!(
        "pairs: CPUs {} are two hardware threads of a core each, which the system does not say; fewer workers \
         than CPUs take one of each first",
        joined(pairs)
    )
}

fn nodes_text(nodes: &[CpuSet]) -> String {
    format!(
        "nodes: {}, of CPUs {}; workers stay on theirs, with the weights that they read (--numa)",
        nodes.len(),
        joined(nodes)
    )
}

fn threads_text(threads: usize, cpus: usize, may_hide: bool) -> String {
    let text = format!("threads: {threads} by default, {cpus} CPUs");
    if !may_hide {
        return text;
    }
    format!("{text}; a virtual machine may show threads of one core as cores: --measure finds out")
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The CPU's name for itself.
pub fn model_name() -> String {
    name_in(&proc::text("cpuinfo").unwrap_or_default())
}

fn name_in(info: &str) -> String {
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = name.map(|(_, name)| name.trim()).filter(|name| !name.is_empty());
    name.unwrap_or("unknown x86-64 CPU").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_compiler::machine::{Description, SCHEMA};

    #[test]
    fn cores_that_may_be_none_are_told() {
        assert_eq!(threads_text(4, 8, false), "threads: 4 by default, 8 CPUs");
        assert!(threads_text(8, 8, true).starts_with("threads: 8 by default, 8 CPUs; a virtual machine may"));
        // The system's description of its CPU agrees about a hypervisor.
        let flags = proc::text("cpuinfo").unwrap();
        let has_flag = flags.split_whitespace().any(|flag| flag == "hypervisor");
        assert_eq!(host_has("hypervisor"), has_flag);
        assert!(has_flag || !may_be_hidden(&usable()));
    }

    #[test]
    fn pairs_and_nodes_are_listed() {
        let sets = ["0,4", "1,5"].map(|list| list.parse().unwrap());
        assert!(
            pairs_text(&sets).starts_with("pairs: CPUs 0,4; 1,5 are two hardware threads of a core each")
        );
        assert!(nodes_text(&sets).starts_with("nodes: 2, of CPUs 0,4; 1,5; workers stay on theirs"));
    }

    #[test]
    fn threads_are_counted_up_to_all() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(5), [1, 2, 3, 4, 5]);
        assert_eq!(counts(64), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        assert_eq!(counts(70), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 70]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let reached = |threads: usize, read: f64, step: f64| ThreadSpeeds {
            threads,
            reads: vec![1e9, read],
            peaks: vec![2e12],
            barrier: 1.5e-6,
            step,
        };
        let reached = vec![reached(1, 17e9, 2e-6), reached(4, 51e9, 9e-6)];
        let hidden_pairs = Some(vec!["0,4".parse().unwrap()]);
        let mut report = json(&MeasuredMachine { reached, tile_shares: Some([0.5, 0.75]), hidden_pairs });
        report["schema"] = SCHEMA.into();
        report["version"] = "7".into();
        let read = Description::parse(&report.to_string()).unwrap();
        assert_eq!(read.cpu, model_name());
        let costs = read.costs();
        assert_eq!((costs.workers, costs.worker_bytes, costs.all_bytes), (4, 17.0, 51.0));
        assert!((costs.barrier - 9000.0).abs() < 1e-6, "{}", costs.barrier);
        assert_eq!(read.tile_shares, Some([0.5, 0.75]));
        assert_eq!((read.hidden_pairs, read.nodes), (1, numa::nodes().len()));
        // Tiles that pay are taken where there are some.
        assert_eq!(Some(read.level(Preset::Faithful)), Level::native(tiles::request().is_ok()));
        assert_eq!(read.family, Tuning::native());
    }

    /// Vectors of 128 bits stand in for tiles. Other work of the machine decides how much longer they take.
    #[test]
    fn shares_of_tiles_are_ratios_of_times() {
        for share in tile_shares(Level::V3).unwrap() {
            assert!(share.is_finite() && share > 0.0, "{share}");
        }
    }

    #[test]
    fn a_cpu_without_a_name_is_unknown() {
        assert_eq!(name_in("vendor_id\t: A\nmodel\t\t: 1\nmodel name\t: A B: C \n"), "A B: C");
        for info in ["", "model name", "model name\t:  \n", "Processor: ARM\n", "\u{fffd}\0"] {
            assert_eq!(name_in(info), "unknown x86-64 CPU", "{info:?}");
        }
    }
}
