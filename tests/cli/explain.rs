//! `kernmill explain`: one screen, held to figures that are computed here from the model's dimensions.

use super::{Sandbox, kernmill};
use crate::harness::machine;
use kernmill_os::text::size;
use serde_json::Value;
use std::fs;

const SPEC: &str = "model-specs/gpt-oss-20b.toml";

/// GPT-OSS-20B as its card describes it.
const HIDDEN: f64 = 2880.0;
const LAYERS: f64 = 24.0;
const HEADS: f64 = 64.0;
const KV_HEADS: f64 = 8.0;
const HEAD_DIM: f64 = 64.0;
const EXPERTS: f64 = 32.0;
const CHOSEN: f64 = 4.0;
const VOCABULARY: f64 = 201_088.0;
const WINDOW: f64 = 128.0;
const CONTEXT: f64 = 4096.0;

fn explain(more: &[&str]) -> String {
    kernmill(&[&["explain", SPEC, "-q", "--target", "x86-64-v4-vnni"], more].concat()).text()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found}, expected {expected}");
}

/// The number behind a word.
#[track_caller]
fn after(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("`{word}` is not in:\n{text}"));
    let number = rest.trim_start().split([' ', ',', ')', ';']).next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("`{number}` behind `{word}` is no number"))
}

#[test]
fn the_20b_is_explained_on_one_screen() {
    let machine = &machine("many_cores");
    let ways: [&[&str]; 5] = [
        &[],
        &["--preset", "fast"],
        &["--preset", "bf16", "--target", "amx"],
        &["--target", "x86-64-v3", "--context", "131072"],
        &["--machine", machine, "--preset", "exact", "--chunk", "4096"],
    ];
    for more in ways {
        let target = if more.contains(&"--target") { &[][..] } else { &["--target", "x86-64-v4-vnni"] };
        let text = kernmill(&[&["explain", SPEC, "-q"], target, more].concat()).text();
        let (lines, widest) = (text.lines().count(), text.lines().map(|line| line.chars().count()).max());
        assert!(lines <= 40 && widest <= Some(100), "{lines} lines of {widest:?}:\n{text}");
        assert!(!text.contains("-0.0"), "{text}");
        for part in [
            "gpt-oss-20b: 24 layers, vocabulary 201088, context up to 131072",
            "weights ",
            "decode: ",
            "prompts: ",
            "moe_gate_up",
            "rms_norm linear router_topk",
            "only for adapters: ",
            "near misses",
        ] {
            assert!(text.contains(part), "{more:?}: `{part}` is not in:\n{text}");
        }
        assert!(text.ends_with(
            "--all shows every group, kernel and micro-kernel, with what else they could have been\n"
        ));
    }
}

#[test]
fn all_of_it_is_what_the_screen_leaves_out() {
    let (screen, all) = (explain(&[]), explain(&["--all"]));
    let head = screen.lines().next().unwrap();
    assert!(all.starts_with(head) && !all.contains("--all"));
    for part in [
        "layers 0..24",
        "compiled for x86-64-v4-vnni, preset faithful",
        "kernels by the cost model",
        "panels from",
    ] {
        assert!(all.contains(part) && !screen.contains(part), "{part}");
    }
    assert!(all.lines().count() > 150);
}

#[test]
fn the_figures_are_those_of_the_model() {
    let report = parsed(&explain(&["--json"]));
    // By the weight plan, which `inspect` reads from the packed tensors.
    let inspected = parsed(&kernmill(&["inspect", SPEC, "--preset", "faithful", "--json"]).text());
    assert_eq!(report["memory"]["weights"], inspected["weight_bytes"]);
    assert_eq!(report["decode_bytes"], inspected["decode_bytes"]);
    let tensors = inspected["tensors"].as_array().unwrap().iter();
    let packed: f64 = tensors.map(|tensor| number(&tensor["bytes"])).sum();
    near(number(&report["memory"]["weights"]), packed, 1e-4);

    // Keys and values of f16.
    let kv_token = 2.0 * 2.0 * KV_HEADS * HEAD_DIM;
    assert_eq!(number(&report["memory"]["kv_per_token"]), LAYERS * kv_token);
    let kv = LAYERS / 2.0 * kv_token * CONTEXT;
    assert!(number(&report["memory"]["kv"]) >= kv && number(&report["memory"]["kv"]) < 1.3 * kv);

    let query = HEADS * HEAD_DIM;
    let layer = HIDDEN * (query + 2.0 * KV_HEADS * HEAD_DIM)
        + query * HIDDEN
        + HIDDEN * EXPERTS
        + CHOSEN * 3.0 * HIDDEN * HIDDEN;
    let attention = |seen: f64| 2.0 * HEADS * HEAD_DIM * seen;
    let logits = HIDDEN * VOCABULARY;
    let [first, deep, prompt] = [0, 1, 2].map(|at| &report["estimate"][at]);
    near(number(&first["macs"]), LAYERS * (layer + attention(1.0)) + logits, 1e-9);
    let both = attention(CONTEXT) + attention(WINDOW);
    near(number(&deep["macs"]), LAYERS * layer + LAYERS / 2.0 * both + logits, 1e-9);
    let cache = LAYERS / 2.0 * kv_token * (CONTEXT + WINDOW);
    near(number(&deep["bytes"]), number(&report["decode_bytes"]) + cache, 2e-3);
    // 512 tokens choose every expert; the last layer's output is for one of them.
    let whole = LAYERS * layer * 512.0;
    assert!(number(&prompt["macs"]) > 0.94 * whole && number(&prompt["macs"]) < 1.02 * whole);
    near(number(&prompt["bytes"]), number(&report["memory"]["weights"]) - 2.0 * VOCABULARY * HIDDEN, 0.05);

    for batch in [first, deep, prompt] {
        let kinds = batch["kinds"].as_array().unwrap();
        let sum = |field: &str| -> f64 { kinds.iter().map(|kind| number(&kind[field])).sum() };
        near(sum("percent"), 100.0, 1e-9);
        near(sum("microseconds"), number(&batch["microseconds"]), 1e-9);
        near(sum("weight_bytes") + sum("cache_bytes"), number(&batch["bytes"]), 1e-9);
        let speed = number(&batch["tokens"]) / number(&batch["microseconds"]) * 1e6;
        near(number(&batch["tokens_per_second"]), speed, 1e-9);
        let bound =
            number(&batch["tokens"]) * number(&report["machine"]["gb_per_s"]) * 1e9 / number(&batch["bytes"]);
        near(number(&batch["at_most_by_memory"]), bound, 1e-9);
        assert!(speed < bound, "{batch}");
    }
    let nodes: u64 =
        report["groups"].as_array().unwrap().iter().map(|group| group["nodes"].as_u64().unwrap()).sum();
    assert_eq!(report["nodes"], nodes);
}

#[test]
fn steps_name_the_formats_of_their_weights() {
    let (text, report) = (explain(&[]), parsed(&explain(&["--json"])));
    let inspected = parsed(&kernmill(&["inspect", SPEC, "--preset", "faithful", "--json"]).text());
    let class = report["steps"].as_array().unwrap().iter().filter(|step| step["class"] == 1);
    let always = class.filter(|step| step["for_adapters"] == false);
    let read: Vec<&Value> = always.flat_map(|step| step["weights"].as_array().unwrap()).collect();
    let sum = |values: &[&Value]| values.iter().map(|value| value["bytes"].as_u64().unwrap()).sum::<u64>();
    for format in ["mxfp4", "int8"] {
        let of_format: Vec<&Value> = read.iter().copied().filter(|value| value["format"] == format).collect();
        let tensors = inspected["tensors"].as_array().unwrap().iter();
        let tensors: Vec<&Value> = tensors.filter(|tensor| tensor["format"] == format).collect();
        assert!(!tensors.is_empty() && sum(&of_format) == sum(&tensors), "{format}");
    }
    let of_gate_up = |step: &&Value| step["label"].as_str().unwrap().ends_with(".moe_gate_up");
    let steps =
        report["steps"].as_array().unwrap().iter().filter(|step| step["class"] == 1).filter(of_gate_up);
    let experts: Vec<&Value> = steps.flat_map(|step| step["weights"].as_array().unwrap()).collect();
    let experts: Vec<&Value> = experts.into_iter().filter(|value| value["format"] == "mxfp4").collect();
    assert!(text.contains(&format!("mxfp4 {}\n", size(sum(&experts)))), "{text}");
}

#[test]
fn the_screen_rounds_what_the_report_says() {
    let (text, report) = (explain(&[]), parsed(&explain(&["--json"])));
    let [first, deep, prompt] = [0, 1, 2].map(|at| &report["estimate"][at]);
    for (word, value) in [("weights ", "weights"), ("KV ", "kv")] {
        let bytes = size(report["memory"][value].as_u64().unwrap());
        assert!(text.contains(&format!("{word}{bytes}")), "{word}{bytes}:\n{text}");
    }
    for (word, value) in [
        ("decode: ", &first["tokens_per_second"]),
        ("at the start (memory allows ", &first["at_most_by_memory"]),
        ("), ", &deep["tokens_per_second"]),
        ("prompts: ", &prompt["tokens_per_second"]),
    ] {
        assert!((after(&text, word) - number(value)).abs() <= 0.05001, "{word}{value}:\n{text}");
    }
    // Shares of a token and of a prompt stand in the fifth and eighth columns.
    let rows = text.lines().skip_while(|line| !line.starts_with("steps")).skip(2);
    let rows =
        rows.take_while(|line| !line.starts_with("only for adapters")).filter(|line| !line.starts_with(' '));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    for column in [4, 7] {
        let sum: f64 = rows.iter().map(|row| row[column].parse::<f64>().unwrap()).sum();
        assert!((sum - 100.0).abs() < 0.5, "{column}: {sum}:\n{text}");
    }
    let steps: u64 = rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
    let class = report["steps"].as_array().unwrap().iter().filter(|step| step["class"] == 1);
    assert_eq!(steps, class.filter(|step| step["for_adapters"] == false).count() as u64);
}

#[test]
fn a_faster_machine_is_faster_and_has_another_bound() {
    let sandbox = Sandbox::of("gptoss-base");
    let machine = |read: f64| {
        let one = r#""threads": 1, "gb_per_s": 20.0, "tops_per_s": 1.0, "barrier_us": 0.1, "step_us": 1.0"#;
        let all = format!(
            r#""threads": 8, "gb_per_s": {read}, "tops_per_s": 8.0, "barrier_us": 1.0, "step_us": 4.0"#
        );
        let text = fs::read_to_string(machine("many_cores")).unwrap();
        let (head, _) = text.split_once("\"measured\"").unwrap();
        sandbox.write("host.json", format!("{head}\"measured\": [{{{one}}}, {{{all}}}]}}"));
        parsed(&explain(&["--machine", sandbox.path("host.json").to_str().unwrap(), "--json"]))
    };
    let (slow, fast) = (machine(50.0), machine(100.0));
    for (report, read) in [(&slow, 50.0), (&fast, 100.0)] {
        assert_eq!(
            (number(&report["machine"]["gb_per_s"]), number(&report["machine"]["step_us"])),
            (read, 4.0)
        );
        assert_eq!(report["machine"]["cpu"], "Intel Xeon");
        let prompt = &report["estimate"][2];
        near(number(&prompt["at_most_by_arithmetic"]), 512.0 * 8e12 / 2.0 / number(&prompt["macs"]), 1e-9);
    }
    let bound = |report: &Value| number(&report["estimate"][0]["at_most_by_memory"]);
    near(bound(&fast), 2.0 * bound(&slow), 1e-9);
    assert!(
        number(&fast["estimate"][0]["tokens_per_second"])
            > 1.4 * number(&slow["estimate"][0]["tokens_per_second"])
    );
}

#[test]
fn speeds_are_shown_by_numbers_of_workers() {
    let machine = &machine("many_cores");
    let report = |threads: &str| parsed(&explain(&["--machine", machine, "--threads", threads, "--json"]));
    let counts = |report: &Value| -> Vec<u64> {
        let all = report["by_workers"].as_array().unwrap();
        all.iter().map(|one| one["workers"].as_u64().unwrap()).collect()
    };
    let (few, many) = (report("2"), report("112"));
    assert_eq!((counts(&few), few["machine"]["workers"].as_u64()), (vec![1, 2], Some(2)));
    let all = many["by_workers"].as_array().unwrap();
    assert_eq!((counts(&many)[0], counts(&many).last()), (1, Some(&112)));
    let column = |name: &str| all.iter().map(|one| number(&one[name])).collect::<Vec<_>>();
    for name in ["decode_reads_percent", "prompt_arithmetic_percent"] {
        // The work that every worker does for itself, and barriers, are not divided.
        assert!(column(name)[all.len() - 1] < column(name)[0] - 5.0, "{name}: {:?}", column(name));
    }
    let speeds = column("prompt_tokens_per_second");
    assert!(speeds[all.len() - 1] > 20.0 * speeds[0], "{speeds:?}");
    let last = &all[all.len() - 1];
    assert_eq!(last["decode_tokens_per_second"], many["estimate"][0]["tokens_per_second"]);
    assert_eq!(last["prompt_tokens_per_second"], many["estimate"][2]["tokens_per_second"]);
    let text = explain(&["--machine", machine, "--threads", "112"]);
    assert!(text.contains("112 workers") && text.contains("decode, tokens/s"), "{text}");
    assert!(!explain(&[]).contains("decode, tokens/s"));
    kernmill(&["explain", SPEC, "--threads", "2"]).refused(&["--machine"]);
}

#[test]
fn near_misses_say_what_they_would_save() {
    let spec =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/nano/nano.toml")).unwrap();
    // The result of the output projection is used twice: the sum behind it cannot be part of its kernel.
    let add = "{ out = \"attn_residual\", op = \"add\", inputs = [\"x\", \"o\"] },\n";
    let twice = spec.replace(
        add,
        &format!("{add}  {{ out = \"twice\", op = \"add\", inputs = [\"attn_residual\", \"o\"] }},\n"),
    );
    let twice = twice.replace("inputs = [\"attn_residual\", \"moe\"]", "inputs = [\"twice\", \"moe\"]");
    assert_ne!(spec, twice);
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("twice.toml", twice);
    let report = parsed(&sandbox.run(&["explain", "twice.toml", "-q", "--json"]).text());
    let misses = report["near_misses"].as_array().unwrap();
    let miss = misses.iter().find(|miss| miss["rule"] == "linear_residual").expect("a near miss");
    // A projection and a sum in each of four layers.
    assert_eq!((&miss["count"], &miss["steps"]), (&4.into(), &4.into()), "{report:#}");
    assert!(miss["layers"] == "layers 0..4" && miss["reason"].as_str().unwrap().contains("twice"), "{miss}");
    let steps: Vec<u64> = misses.iter().map(|miss| miss["steps"].as_u64().unwrap()).collect();
    assert!(steps.is_sorted_by(|a, b| a >= b), "{steps:?}");
    let text = sandbox.run(&["explain", "twice.toml", "-q"]).text();
    assert!(
        text.contains("near misses, by what they would save") && text.contains("linear_residual"),
        "{text}"
    );
}
