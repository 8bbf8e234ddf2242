//! `kernmill bench` and `kernmill cpu --measure`.

use super::{interrupt, interruptible, kernmill};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

/// Little enough to read for a test.
const READ: [&str; 2] = ["--read", "16M"];

fn bench(args: &[&str]) -> Value {
    let all = [&["bench", "--json", "-q"], &READ[..], args].concat();
    serde_json::from_str(&kernmill(&all).text()).expect("JSON")
}

#[track_caller]
fn numbers(value: &Value, count: usize) -> Vec<f64> {
    let list: Vec<f64> =
        value.as_array().expect("a list").iter().map(|n| n.as_f64().expect("a number")).collect();
    assert_eq!(list.len(), count, "{value}");
    list
}

#[test]
fn every_case_is_measured_and_has_its_figures() {
    let args = ["--pp", "20,33", "--tg", "6", "--depth", "0,40", "--batch", "1,3", "--repeat", "2"];
    let report = bench(&args);
    for field in ["model", "preset", "level", "threads", "chunk", "seconds", "decode_bytes"] {
        assert!(!report[field].is_null(), "`{field}` is not in {report:#}");
    }
    let bandwidth = report["bandwidth"]["gb_per_s"].as_f64().unwrap();
    let reads = report["bandwidth"]["reads"].as_array().unwrap().len();
    assert!(bandwidth > 0.0 && reads == 6 * 3, "{report:#}");
    assert!(report["integer_peak"]["tops_per_s"].as_f64().unwrap() > 0.0);
    let memory = &report["memory"];
    assert!(memory["peak_rss_bytes"].as_u64().unwrap() >= memory["weights_bytes"].as_u64().unwrap());
    assert!(memory["huge_pages"]["mapped_bytes"].as_u64() >= memory["weights_bytes"].as_u64());
    assert_eq!(report["experts"].as_array().unwrap().len(), 4);

    let results = report["results"].as_array().unwrap();
    let case = |r: &Value| {
        let number = |name: &str| r[name].as_u64().unwrap();
        (r["kind"].as_str().unwrap().to_owned(), number("tokens"), number("depth"), number("batch"))
    };
    let expected = [
        ("prompt", 20, 0, 1),
        ("prompt", 33, 0, 1),
        ("decode", 6, 0, 1),
        ("decode", 6, 0, 3),
        ("decode", 6, 40, 1),
        ("decode", 6, 40, 3),
    ];
    let expected = expected.map(|(kind, tokens, depth, batch)| (kind.to_owned(), tokens, depth, batch));
    assert_eq!(results.iter().map(case).collect::<Vec<_>>(), expected);
    for result in results {
        let runs = numbers(&result["runs"], 2);
        let at = |name: &str| result[name].as_f64().unwrap();
        assert!((at("median") - (runs[0] + runs[1]) / 2.0).abs() < 1e-6 * at("median"), "{result:#}");
        assert!(at("q1") <= at("median") && at("median") <= at("q3"), "{result:#}");
        let rate = at("bytes_per_token") * at("median") / 1e9;
        assert!((rate - at("gb_per_s")).abs() < 1e-6 * rate, "{result:#}");
        for positive in ["gops", "percent_of_bandwidth", "percent_of_peak", "percent_of_bound"] {
            assert!(at(positive) > 0.0, "{positive}: {result:#}");
        }
        numbers(&result["major_faults"], 2);
        assert!(result.get("steps").is_none(), "nobody asked for steps: {result:#}");
        assert!(result["void"].as_array().unwrap().is_empty(), "the nano model fits the cache: {result:#}");
    }
}

#[test]
fn bytes_are_those_of_the_weights_and_the_keys_in_view() {
    let report = bench(&["--pp", "0", "--tg", "4", "--depth", "0,64", "--batch", "1,2", "--repeat", "1"]);
    let weights = report["decode_bytes"].as_f64().unwrap();
    let results = report["results"].as_array().unwrap();
    let at = |n: usize, name: &str| results[n][name].as_f64().unwrap();
    // The f16 cache of one token: 4 layers, keys and values. 1 to 4 keys are in view, 2.5 on average; at
    // depth 64 more, but no more than 64 in the half of the layers that have this window.
    let key = at(0, "cache_bytes_per_token") / 2.5;
    assert_eq!(key % 16.0, 0.0, "{report:#}");
    assert_eq!(at(2, "cache_bytes_per_token"), (66.5 + 64.0) / 2.0 * key, "{report:#}");
    for n in [0, 2] {
        assert_eq!(at(n, "bytes_per_token") - at(n, "cache_bytes_per_token"), weights, "{report:#}");
    }
    let together = at(1, "bytes_per_token") - at(1, "cache_bytes_per_token");
    assert!(
        together < weights && together >= weights / 2.0,
        "two tokens share what is not their experts': {report:#}"
    );
}

#[test]
fn a_context_of_random_numbers_is_measured_like_another() {
    let usual = ["--pp", "5", "--pp-depth", "0,80", "--tg", "4", "--depth", "64", "--repeat", "1"];
    let bytes = |more: &[&str]| {
        let report = bench(&[&usual, more].concat());
        let cases = report["results"].as_array().unwrap().iter().map(|result| {
            let at = |name: &str| result[name].as_f64().unwrap();
            (result["kind"].to_string(), at("depth"), at("cache_bytes_per_token"))
        });
        cases.collect::<Vec<_>>()
    };
    let run = bytes(&[]);
    let depths: Vec<f64> = run.iter().map(|(_, depth, _)| *depth).collect();
    assert_eq!(depths, [0.0, 80.0, 64.0], "{run:?}");
    assert_eq!(bytes(&["--fill", "random"]), run);
    // Half of the layers see everything, and the others have a window of 64: in int8 a key of the former and
    // its value have 8 bits, and a scale each for 64 elements.
    let int8 = bytes(&["--fill", "random", "--kv-format", "int8"]);
    for ((_, _, f16), (_, _, int8)) in run.iter().zip(&int8) {
        assert!(int8 < f16 && *int8 > f16 / 2.0, "{int8} of {f16}");
    }
    let all = bytes(&["--fill", "random", "--kv-format", "int8,sliding=int8"]);
    assert!(all[1].2 < int8[1].2, "{all:?} {int8:?}");
}

#[test]
fn a_profile_times_every_kind_of_step() {
    let report = bench(&["--pp", "20", "--tg", "5", "--repeat", "2", "--profile", "--threads", "2"]);
    for result in report["results"].as_array().unwrap() {
        let steps = result["steps"].as_array().unwrap();
        let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
        for name in ["embed", "qkv", "attention", "moe_gate_up", "moe_down", "logits", "outside"] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        let percent: f64 = steps.iter().map(|step| step["percent"].as_f64().unwrap()).sum();
        assert!((percent - 100.0).abs() < 0.1, "{percent}: {result:#}");
        let qkv = &steps[names.iter().position(|name| *name == "qkv").unwrap()];
        // In prompts the queries of the last layer are a separate step, for the wanted rows.
        let calls = if result["kind"] == "prompt" { 2 * 5 } else { 10 * 4 };
        assert_eq!(qkv["calls"], calls, "{qkv:#}");
        numbers(&qkv["busy_ms"], 2);
        assert!(qkv["gb_per_s"].as_f64().unwrap() > 0.0 && qkv["gops"].as_f64().unwrap() > 0.0, "{qkv:#}");
        let bytes: u64 = steps.iter().filter_map(|step| step["weight_bytes"].as_u64()).sum();
        let tokens = result["tokens"].as_f64().unwrap() * 2.0;
        let per_token = result["bytes_per_token"].as_f64().unwrap();
        let cache = result["cache_bytes_per_token"].as_f64().unwrap();
        assert!((bytes as f64 / tokens + cache - per_token).abs() < 1e-6 * per_token, "{result:#}");
    }
    let text = kernmill(&["bench", "--pp", "0", "--tg", "5", "--profile", "--read", "16M"]).text();
    for part in ["tokens/s", "of bound", "moe_gate_up", "us/token", "on huge pages", "GB/s (5 reads of"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |args: &[&str], parts: &[&str]| kernmill(&[&["bench"], args].concat()).refused(parts);
    refused(&["--pp", "0", "--tg", "0"], &["nothing to measure"]);
    for (option, value) in [("--pp", "9"), ("--pp-depth", "9"), ("--repeat", "2"), ("--lora", "a=nowhere")] {
        refused(&["--paired", option, value], &[option, "--paired measures steps of decoding"]);
    }
    refused(&["--pp", "12,x"], &["'x'", "--pp"]);
    refused(&["--batch", "1,0"], &["--batch", "1..="]);
    refused(&["--depth=-1"], &["--depth"]);
    refused(&["--repeat", "0"], &["--repeat"]);
    refused(&["--read", "some"], &["--read", "number of bytes"]);
    refused(&["--fill", "zeros"], &["--fill", "random"]);
    refused(&["--pp", "1500", "--pp-depth", "1000"], &["--pp-depth 1000", "longest context"]);
    refused(&["--kv-format", "int9"], &["--kv-format", "`int9`", "int8"]);
    refused(&["--kv-format", "q=int8"], &["--kv-format", "`q`", "sliding"]);
    refused(&["--pp", "0", "--batch", "1,2048", "--max-memory", "30M"], &["not enough memory"]);
    kernmill(&["cpu", "--threads", "2"]).refused(&["--measure"]);
}

/// The report of `bench --serve`.
fn served(args: &[&str]) -> Value {
    let all = [&["bench", "--json", "-q", "--serve"], args].concat();
    serde_json::from_str(&kernmill(&all).text()).expect("JSON")
}

/// Load from a trace: its requests at their times, sessions as conversations.
#[test]
fn a_trace_is_served_as_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.jsonl");
    let lines = [
        r#"{"at": 0, "prompt": [1, 2, 3, 4, 5], "answer": 6, "session": "a", "tenant": "x"}"#,
        r#"{"at": 0.05, "prompt": 40, "answer": 5, "tenant": "y"}"#,
        r#"{"at": 0.1, "prompt": 7, "answer": 4, "session": "a", "tenant": "x"}"#,
        r#"{"at": 0.1, "prompt": 9, "answer": 3}"#,
    ];
    fs::write(&trace, lines.join("\n")).unwrap();
    let trace = trace.to_str().unwrap();
    let of = |more: &[&str]| served(&[&["--trace", trace], more].concat());
    let report = of(&[]);
    assert_eq!((&report["load"]["requests"], &report["load"]["conversations"]), (&4.into(), &3.into()));
    assert_eq!((&report["load"]["rate"], &report["load"]["clients"]), (&Value::Null, &Value::Null));
    assert_eq!(report["requests"]["served"], 4, "{report:#}");
    // The second turn has all that was said before it in its prompt, and finds it cached.
    assert_eq!(report["tokens"]["answer"], 6 + 5 + 4 + 3);
    assert_eq!(report["tokens"]["prompt"], 5 + 40 + (5 + 6 + 7) + 9);
    assert!(report["tokens"]["cached"].as_u64() >= Some(5 + 6 - 1), "{report:#}");
    assert_eq!(report["tenants"].as_array().unwrap().len(), 3);
    assert!(report["seconds"].as_f64() >= Some(0.1));
    // A part of it, and by clients instead of at its times.
    let part = of(&["--requests", "2", "--clients", "1"]);
    assert_eq!((&part["requests"]["served"], &part["load"]["clients"]), (&2.into(), &1.into()));
    fs::write(trace, format!("{}\n{{\"prompt\": 3}}", lines[0])).unwrap();
    kernmill(&["bench", "--serve", "--trace", trace]).refused(&["trace.jsonl: line 2: ", "answer"]);
}

/// A load that would take for days ends when it should, with what has come until then.
#[test]
fn a_load_ends_after_its_seconds_or_at_ctrl_c() {
    // Answers of several lengths: some are on their way at any time.
    let endless = ["--requests", "1000000", "--mix", "prompt=20,answer=20-60"];
    let report = served(&[&endless[..], &["--seconds", "1"]].concat());
    let counts = |report: &Value| {
        let count = |what: &str| report["requests"][what].as_u64().unwrap();
        (count("served"), count("unfinished"), count("failed") + count("rejected"))
    };
    let (served, unfinished, lost) = counts(&report);
    assert!(served > 0 && unfinished > 0 && lost == 0, "{report:#}");
    let seconds = report["seconds"].as_f64().unwrap();
    assert!(seconds >= 1.0, "{seconds}");

    // The first answers come when the model has been compiled, which takes longer on a slow machine.
    let ended = [500, 1000, 2000, 4000, 8000, 16_000, 32_000].into_iter().find_map(|wait| {
        let mut command = interruptible();
        command.args(["bench", "--json", "-q", "--serve"]).args(endless).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        if output.status.code() != Some(130) {
            assert_eq!(output.status.signal(), Some(libc::SIGINT));
            return None;
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (counts(&report).0 > 0).then_some(report)
    });
    let report = ended.expect("some of the waits are long enough");
    let (_, unfinished, lost) = counts(&report);
    assert!(unfinished > 0 && lost == 0, "{report:#}");
}

#[test]
fn cpu_measures_one_thread_and_all() {
    let report = kernmill(&["cpu", "--measure", "--threads", "2", "--read", "16M", "--json"]).text();
    let report: Value = serde_json::from_str(&report).unwrap();
    let measured = report["measured"].as_array().unwrap();
    assert_eq!(measured.iter().map(|one| one["threads"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    for one in measured {
        assert!(numbers(&one["reads"], 5).contains(&one["gb_per_s"].as_f64().unwrap()));
        assert!(numbers(&one["peaks"], 5).contains(&one["tops_per_s"].as_f64().unwrap()));
    }
    let text = kernmill(&["cpu", "--measure", "--threads", "2", "--read", "16M"]).text();
    assert!(text.contains("1 thread: reads memory at") && text.contains("2 threads: reads"), "{text}");
}
