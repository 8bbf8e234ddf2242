//! `kernmill bench --timeline`: what workers do, in the Trace Event Format that Perfetto loads.

use super::{Ran, kernmill};
use kernmill::locate::nano;
use kernmill::{Opened, Options};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A piece of time: name, category, start and end in nanoseconds, arguments.
struct Slice {
    name: String,
    category: String,
    time: [u64; 2],
    args: Value,
}

/// By process and thread, its slices in the order of the file; and the names of threads.
type Tracks = BTreeMap<(u64, u64), Vec<Slice>>;

fn read(path: &Path) -> (Tracks, BTreeMap<(u64, u64), String>, Vec<String>) {
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let (mut tracks, mut threads, mut processes) = (Tracks::new(), BTreeMap::new(), Vec::new());
    for event in file["traceEvents"].as_array().unwrap() {
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        let at = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let named = || event["args"]["name"].as_str().unwrap().to_owned();
        match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
            ("M", "process_name") => processes.push(named()),
            ("M", "thread_name") => drop(threads.insert(at, named())),
            ("X", _) => {
                // Microseconds, to the nanosecond.
                let nanoseconds = |name: &str| (event[name].as_f64().unwrap() * 1e3).round() as u64;
                let begin = nanoseconds("ts");
                let time = [begin, begin + nanoseconds("dur")];
                let (name, category) = (text("name"), text("cat"));
                tracks.entry(at).or_default().push(Slice {
                    name,
                    category,
                    time,
                    args: event["args"].clone(),
                });
            }
            other => panic!("no event of this format is known: {other:?}"),
        }
    }
    (tracks, threads, processes)
}

fn bench(args: &[&str]) -> Ran {
    kernmill(&[&["bench", "-q", "--read", "16M", "--threads", "2", "--repeat", "1"], args].concat())
}

#[test]
fn a_timeline_has_every_step_of_the_program_on_every_worker() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bench.json");
    let args = ["--pp", "40", "--tg", "10", "--profile", "--json", "--timeline", path.to_str().unwrap()];
    let report: Value = serde_json::from_str(&bench(&args).text()).unwrap();
    let (tracks, threads, processes) = read(&path);
    assert_eq!(processes, ["prompt 40", "decode 10"]);

    let options = Options::default().with(|it| it.threads = Some(2));
    let prepared = Opened::open(nano(), &options).unwrap().prepare(&options).unwrap();
    let program = prepared.program();
    for (pid, tokens, batches) in [(1, 40, 1), (2, 1, 8)] {
        let names = (1..4).map(|tid| threads[&(pid, tid)].as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["batches", "worker 0", "worker 1"]);
        let runs = &tracks[&(pid, 1)];
        assert!(runs.iter().all(|run| run.args["tokens"] == tokens));
        assert_eq!(runs.len(), batches);
        let class = program.classes.iter().find(|class| u64::from(class.max_tokens) >= tokens).unwrap();
        // Steps for adapters are left out: none is loaded.
        let steps = class.steps.iter().chain(&class.logit_steps);
        let steps: Vec<_> = steps.filter(|step| step.lora_targets.is_empty()).collect();
        let expected: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
        let result = &report["results"][pid as usize - 1];
        for tid in [2, 3] {
            let slices = &tracks[&(pid, tid)];
            let mut end = 0;
            for slice in slices {
                assert!(end <= slice.time[0], "{} of {pid}, {tid} overlaps", slice.name);
                end = slice.time[1];
            }
            for (n, run) in runs.iter().enumerate() {
                let inside = |slice: &&Slice| {
                    run.time[0] <= slice.time[0] && slice.time[1] <= run.time[1] && slice.category == "kernel"
                };
                let inside: Vec<&Slice> = slices.iter().filter(inside).collect();
                let found: Vec<&str> =
                    inside.iter().map(|slice| slice.args["step"].as_str().unwrap()).collect();
                assert_eq!(found, expected, "batch {n} of {pid}, {tid}");
                for (slice, step) in inside.iter().zip(&steps) {
                    let kernel = &program.code.symbols[step.kernel as usize].name;
                    assert_eq!(slice.args["kernel"], kernel.as_str());
                    let layer = slice.args["layer"].as_str().unwrap();
                    let (place, kind) = (slice.args["step"].as_str().unwrap(), &slice.name);
                    let whole = if layer == "others" { kind.clone() } else { format!("{layer}.{kind}") };
                    assert_eq!(place, whole);
                }
            }
            // A barrier stands behind every kernel, and behind the moving of wanted rows.
            let count = |category: &str| slices.iter().filter(|slice| slice.category == category).count();
            let gathers = slices.iter().filter(|slice| slice.name.starts_with("gather")).count();
            assert_eq!(count("kernel") + gathers, count("barrier"));
            // The profile has as many calls of each kind in a batch.
            let measured = if pid == 1 { 1 } else { 10 };
            for row in result["steps"].as_array().unwrap().iter().filter(|row| row["step"] != "outside") {
                let (kind, calls) = (row["step"].as_str().unwrap(), row["calls"].as_u64().unwrap());
                let found = slices.iter().filter(|s| s.category == "kernel" && s.name == kind).count();
                assert_eq!(found as u64 * measured, calls * batches as u64, "{kind} of {pid}");
            }
        }
        let bytes = |track: u64| {
            let of = |slice: &Slice, name: &str| slice.args[name].as_u64().unwrap_or(0);
            tracks[&(pid, track)].iter().map(|slice| of(slice, "weight_bytes")).sum::<u64>()
        };
        assert_eq!(bytes(2), bytes(3));
        if pid == 2 {
            assert_eq!(bytes(2), report["decode_bytes"].as_u64().unwrap() * batches as u64);
        }
    }
}

#[test]
fn a_timeline_appears_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere/bench.json");
    bench(&["--timeline", nowhere.to_str().unwrap()]).refused(&["nowhere/bench.json"]);
    let path = dir.path().join("bench.json");
    let path = path.to_str().unwrap();
    kernmill(&["bench", "--timeline", path, "--serve"]).refused(&["--timeline", "leave out --serve"]);
    kernmill(&["bench", "--timeline", path, "--paired"]).refused(&["--timeline", "--paired"]);
    bench(&["--timeline", path, "--lora", "a=nowhere"]).refused(&["nowhere"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_profile_has_rows_for_layers() {
    let report = bench(&["--pp", "20", "--tg", "4", "--profile", "--json"]).text();
    let report: Value = serde_json::from_str(&report).unwrap();
    for result in report["results"].as_array().unwrap() {
        let rows = |name: &str| result[name].as_array().unwrap().clone();
        let layers: Vec<Value> = rows("layers").iter().map(|row| row["layer"].clone()).collect();
        assert_eq!(layers, ["others", "layers.0", "layers.1", "layers.2", "layers.3"]);
        for field in ["calls", "weight_bytes", "cache_bytes"] {
            let sum = |list: &str| rows(list).iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
            assert_eq!(sum("layers"), sum("steps"), "{field}: {result:#}");
        }
    }
    let text = bench(&["--pp", "0", "--tg", "4", "--profile", "--layers"]).text();
    let row = |name: &str| text.lines().any(|line| line.split_whitespace().next() == Some(name));
    assert!(["qkv", "layer", "layers.0", "layers.3", "others"].into_iter().all(row), "{text}");
    let text = bench(&["--pp", "0", "--tg", "4", "--profile"]).text();
    assert!(!text.contains("layers.0"), "{text}");
    bench(&["--layers"]).misused("--profile");
}
