//! Faults in a spec: exit status 2, with the place and what was expected there.

use super::{Sandbox, kernmill};
use crate::docs::root;
use tempfile::TempDir;

/// The fault, what makes it, and what the message must say.
type Fault = (&'static str, [&'static str; 2], &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (
        "unknown key",
        ["max_context = 2048", "max_context = 2048\nwheels = 4"],
        &["unknown key `wheels`", ":8:1\n", "expected one of: name, vocab, max_context"],
    ),
    (
        "unknown op",
        [r#"op = "rms_norm", input = "x""#, r#"op = "rms_nrom", input = "x""#],
        &["unknown op `rms_nrom`", "did you mean `rms_norm`?"],
    ),
    (
        "wrong type",
        ["max_context = 2048", "max_context = true"],
        &["wrong type: a boolean", ":7:15\n", "expected a number"],
    ),
    (
        "unused tensor",
        [
            r#"format = "bf16" }

[before]"#,
            r#"format = "bf16" }
spare = { from = "spare", shape = ["hidden"], format = "bf16" }

[before]"#,
        ],
        &["spare", "spec.toml:"],
    ),
    (
        "shape mismatch",
        [r#"input = "x", weight = "attn_norm""#, r#"input = "x", weight = "q_bias""#],
        &["has shape [256]", "expected [224]"],
    ),
    (
        "dangling input",
        [r#"input = "attn_in", weight = "q""#, r#"input = "attn_inn", weight = "q""#],
        &["no value `attn_inn`", "did you mean `attn_in`?"],
    ),
    (
        "cycle",
        [r#"input = "x", weight = "attn_norm""#, r#"input = "moe", weight = "attn_norm""#],
        &["`moe` is used before it is computed", "a value of a node above"],
    ),
    (
        "heads that do not divide",
        ["kv_heads       = 2", "kv_heads       = 3"],
        &["8 heads do not divide among 3 KV heads"],
    ),
    (
        "rows that are not whole blocks",
        ["hidden         = 224", "hidden         = 225"],
        &["225", "expected a multiple of 32"],
    ),
    (
        "zero experts",
        ["experts        = 8", "experts        = 0"],
        &["is 0", "expected a whole number from 1"],
    ),
    (
        "top-k over experts",
        ["top_k          = 2", "top_k          = 9"],
        &["top-9 of 8 experts", "expected at most 8"],
    ),
    (
        "top-k beyond what kernels search for",
        ["top_k          = 2", "top_k          = 65"],
        &["`k` is 65", "expected a whole number from 1 to 64"],
    ),
    (
        "top-k of a thousand",
        ["top_k          = 2", "top_k          = 1024"],
        &["`k` is 1024", "expected a whole number from 1 to 64"],
    ),
    (
        "more experts than counters",
        ["experts        = 8", "experts        = 1048576"],
        &["a router of 1048576 experts", "expected at most 65536"],
    ),
    (
        "one expert more than counters",
        ["experts        = 8", "experts        = 65537"],
        &["a router of 65537 experts", "expected at most 65536"],
    ),
    (
        "many heads for a KV head",
        ["\nheads          = 8", "\nheads          = 512"],
        &["256 heads share a KV head", "expected at most 128"],
    ),
    (
        "one head more for a KV head",
        ["\nheads          = 8", "\nheads          = 258"],
        &["129 heads share a KV head", "expected at most 128"],
    ),
    (
        "a million heads",
        ["\nheads          = 8", "\nheads          = 1048576"],
        &["tensor `q` makes 33554432 columns", "expected at most 1048576"],
    ),
    (
        "a vocabulary beyond ids",
        ["vocab          = 3072", "vocab          = 2147483648"],
        &["the vocabulary size is 2147483648", "expected a whole number from 1 to 67108864"],
    ),
    (
        "one id more than a vocabulary may have",
        ["vocab          = 3072", "vocab          = 67108865"],
        &["the vocabulary size is 67108865", "expected a whole number from 1 to 67108864"],
    ),
    (
        "a context beyond positions",
        ["max_context = 2048", "max_context = 2147483647"],
        &["the longest context is 2147483647", "expected a whole number from 1 to 16777216"],
    ),
    (
        "one position more than a context may have",
        ["max_context = 2048", "max_context = 16777217"],
        &["the longest context is 16777217", "expected a whole number from 1 to 16777216"],
    ),
    (
        "rows too wide",
        ["expert_hidden  = 192", "expert_hidden  = 1048608"],
        &["tensor `gate` makes 1048608 columns", "expected at most 1048576"],
    ),
    (
        "RoPE of other heads than attention's",
        ["[rope.main]\nhead_dim = \"head_dim\"", "[rope.main]\nhead_dim = 16"],
        &[
            "[rope.main] has heads of 16 elements, those of attention have 32",
            "expected head_dim = 32",
            "`rotary_dim` says how many elements of each head rotate",
        ],
    ),
    ("zero layers", ["layers         = 4", "layers         = 0"], &["the number of layers is 0"]),
    ("not TOML", ["top_k          = 2", "top_k          = 2 +"], &["not TOML", ":19:"]),
];

#[test]
fn a_faulty_spec_is_refused_with_its_place() {
    let nano = include_str!("../../model-specs/nano/nano.toml");
    let sandbox = Sandbox::of("gptoss-base");
    for (what, [from, to], parts) in FAULTS {
        assert_eq!(nano.matches(from).count(), 1, "{what}: `{from}`");
        sandbox.write("spec.toml", nano.replace(from, to));
        let before = sandbox.files();
        let mut expected = vec!["--> spec.toml:"];
        expected.extend_from_slice(parts);
        sandbox.run(&["explain", "spec.toml", "--emit", "graph,asm"]).refused(&expected);
        sandbox.refuses(&[], &expected);
        sandbox.run(&["synth", "spec.toml", "-o", "new"]).refused(&expected);
        assert_eq!(sandbox.files(), before, "{what}");
    }
}

#[test]
fn a_spec_that_is_not_there_is_refused() {
    kernmill(&["explain", "no-such-spec.toml"]).refused(&["no-such-spec.toml", "No such file"]);
    kernmill(&["import", "docs"]).refused(&["docs: no config.json in this directory", "--spec"]);
}

#[test]
fn a_config_of_another_architecture_is_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.replace("config.json", "GptOssForCausalLM", "SomeOtherForCausalLM");
    sandbox.run(&["import", "."]).refused(&["SomeOtherForCausalLM", "docs/user/architectures.md lists"]);
    sandbox.write("config.json", "{");
    sandbox.run(&["import", ".", "-o", "new.toml"]).refused(&["config.json"]);
    assert!(!sandbox.path("new.toml").exists());
}

/// The nano model with `adds` more nodes in each of its `layers` layers.
fn nano_of(layers: usize, adds: usize) -> String {
    let nano = std::fs::read_to_string(root().join("model-specs/nano/nano.toml")).unwrap();
    let add = |i: usize| {
        let of = if i == 0 { "attn_in".to_owned() } else { format!("more{}", i - 1) };
        format!("  {{ out = \"more{i}\", op = \"add\", inputs = [\"{of}\", \"attn_in\"] }},\n")
    };
    let more: String = (0..adds).map(add).collect();
    let q = "  { out = \"q\", op = \"linear\", input = \"attn_in\"";
    nano.replace("layers         = 4", &format!("layers         = {layers}"))
        .replace(q, &(more + &q.replace("attn_in", &format!("more{}", adds - 1))))
}

#[test]
fn models_of_more_nodes_than_a_program_can_have_are_refused_with_what_helps() {
    let sandbox = Sandbox { dir: TempDir::new().unwrap() };
    for (layers, adds, says) in [
        (1000, 20, "the model has more than 32768 nodes in all layers"),
        (1025, 1, "expected a whole number from 1 to 1024"),
        (400, 15, "values in buffers, expected at most 16384; fewer layers or nodes make fewer of them"),
    ] {
        std::fs::write(sandbox.path("many.toml"), nano_of(layers, adds)).unwrap();
        sandbox.run(&["explain", "many.toml", "--no-fuse", "--emit", "hashes"]).refused(&[says]);
    }
}
