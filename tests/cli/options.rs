//! Options are never ignored: one that does nothing for what was given is refused, by its name and with the
//! reason.

use super::Sandbox;

/// The command line, and the words of the message.
type Case = (&'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    // A plan says how it was compiled.
    (&["run", "a.plan", "--preset", "exact"], &["--preset: a plan is compiled already"]),
    (&["run", "a.plan", "--no-fuse"], &["--no-fuse: a plan"]),
    (&["run", "a.plan", "--no-adapters"], &["--no-adapters: a plan"]),
    (&["run", "a.plan", "--fused", "x.toml"], &["--fused: a plan"]),
    (&["run", "a.plan", "--without-fusion", "qkv"], &["--without-fusion: a plan"]),
    (&["run", "a.plan", "--tune", "generic"], &["--tune: a plan"]),
    (&["run", "a.plan", "--chunk", "8"], &["--chunk 8: expected at most 7", "--regenerate"]),
    (&["logits", "a.plan", "--preset", "exact", "--tokens", "ids.json", "--out", "o"], &["--preset: a plan"]),
    (&["bench", "a.plan", "--no-fuse"], &["--no-fuse: a plan"]),
    (&["explain", "a.plan", "--chunk", "4"], &["--chunk: a plan has its own"]),
    (&["explain", "a.plan", "--preset", "fast"], &["--preset: a plan says itself"]),
    (&["inspect", "a.plan", "--preset", "exact"], &["--preset: a plan says itself"]),
    (&["inspect", "a.plan", "--disasm", "--json"], &["--disasm: machine code is not shown as JSON"]),
    (&["inspect", "a.plan", "--target", "x86-64-v3", "--json"], &["--target: --json shows every target"]),
    (&["synth", "a.plan", "-o", "new", "--fused", "x.toml"], &["--fused: a plan has its own"]),
    (&["import", "spec.toml"], &["it is a spec already"]),
    (&["compile", "a.plan", "-o", "b.plan"], &["it is a plan, which is compiled already"]),
    // Options for plans only.
    (&["run", ".", "--regenerate"], &["--regenerate: only a plan's code"]),
    (&["bench", ".", "--regenerate"], &["--regenerate: only a plan's code"]),
    (&["inspect", ".", "--verify"], &["--verify: expected a plan"]),
    (&["inspect", ".", "--disasm"], &["--disasm: expected a plan"]),
    (&["inspect", ".", "--target", "native"], &["--target: expected a plan"]),
    (&["inspect", "--verify"], &["--verify: expected a plan"]),
    // Two outputs for one place.
    (
        &["run", ".", "--tokens", "ids.json", "--json", "--emit", "graph"],
        &["--json: --emit prints to the same place"],
    ),
    (&["explain", ".", "--json", "--emit", "graph"], &["--json", "cannot be used with"]),
    (&["explain", ".", "--emit-dir", "stages"], &["--emit"]),
    (&["compile", ".", "-o", "b.plan", "--json"], &["--json: expected"]),
    (&["compile", ".", "-o", "b.plan", "--context", "5"], &["--dry-run"]),
    // Parts that are left out.
    (&["bench", ".", "--tg", "0", "--depth", "5"], &["--depth: they are for decoding"]),
    (&["bench", ".", "--tg", "0", "--batch", "2"], &["--batch: they are for decoding"]),
    (&["bench", ".", "--lora", "a=lora", "--lora", "b=lora"], &["--lora b: no sequence has it", "--batch"]),
    (&["bench", ".", "--pp", "0", "--tg", "0"], &["nothing to measure"]),
    (&["run", ".", "--no-adapters", "--lora", "a=lora"], &["--no-adapters", "cannot be used with"]),
    (&["run", ".", "--no-fuse", "--without-fusion", "qkv"], &["--without-fusion: --no-fuse leaves out all"]),
    (&["run", ".", "--tokens", "ids.json", "--prompt", "x"], &["cannot be used with"]),
    (&["synth", "spec.toml", "-o", "new", "--targets", "q"], &["--lora"]),
    (&["synth", "spec.toml", "-o", "new", "--dora"], &["--lora"]),
    (&["cpu", "--threads", "2"], &["--measure"]),
    (&["fuse", "check", "x.toml", "--preset", "exact"], &["--spec"]),
];

#[test]
fn an_option_that_does_nothing_is_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q", "--chunk", "7"]).text();
    sandbox.run(&["synth", "spec.toml", "-o", "lora", "--lora", "2", "-q"]).text();
    let before = sandbox.files();
    for (args, parts) in CASES {
        sandbox.run(args).refused(parts);
        assert_eq!(sandbox.files(), before, "{args:?}");
    }
}

#[test]
fn code_that_is_generated_anew_is_tuned_and_cut_as_asked_for() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q", "--chunk", "7"]).text();
    let run = |more: &[&str]| {
        let usual = ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "-q", "--emit", "asm"];
        sandbox.run(&[&usual, more].concat()).text()
    };
    let anew = |tune: &str| run(&["--regenerate", "--target", "x86-64-v3", "--tune", tune]);
    assert_eq!(anew("generic"), anew("generic"));
    assert!(run(&["--regenerate", "--chunk", "9"]).len() > 100);
    let bench =
        ["bench", "a.plan", "--pp", "9", "--tg", "0", "--repeat", "1", "--read", "1M", "--json", "-q"];
    let chunk = |more: &[&str]| {
        let text = sandbox.run(&[&bench, more].concat()).text();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["chunk"].as_u64()
    };
    assert_eq!(chunk(&[]), Some(7));
    assert_eq!(chunk(&["--chunk", "3"]), Some(3));
    assert_eq!(chunk(&["--regenerate", "--chunk", "9"]), Some(9));
}
