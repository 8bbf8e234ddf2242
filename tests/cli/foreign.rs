//! Plans of strangers whose code is generated anew: what their specs and rules ask for is right, or refused
//! at once.

use super::Sandbox;
use crate::harness::shell;
use crate::hostile::targets::{Part, assemble, sign_plan};
use kernmill_plan::file::SectionKind;
use kernmill_plan::file::check::{PlanFile, Section};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// The project's fused-op spec of q, k and v, with another matrix of the same norm.
const RULE: &str = r#"
name = "with_gate"
doc = "q, k, v and a gate of the same norm"
kernel = "matmul"
before = "qkv"
match = [
  { name = "norm", op = "rms_norm", inputs = ["x"], part = "prologue" },
  { name = "gate", op = "linear", inputs = ["norm"], part = "root" },
  { name = "v", op = "linear", inputs = ["norm"], part = "root" },
  { name = "k", op = "linear", inputs = ["norm"], part = "root" },
  { name = "q", op = "linear", inputs = ["norm"], part = "root" },
  { name = "q_turned", op = "rope", inputs = ["q"], part = "epilogue" },
  { name = "k_turned", op = "rope", inputs = ["k"], part = "epilogue" },
  { name = "attention", op = "attention", inputs = ["q_turned", "k_turned", "v"], part = "context" },
]
outputs = ["q_turned", "k_turned", "v", "gate"]
"#;

/// A model of one layer with two heads of `head_dim`, and a gate of `gate` rows beside them.
fn gated(head_dim: usize, gate: usize) -> String {
    format!(
        r#"
[model]
name = "gated"
vocab = 96
max_context = 64
[dims]
hidden = 96
layers = 1
[rope.main]
head_dim = {head_dim}
theta = 10000.0
[tensors]
table = {{ from = "table", shape = [96, "hidden"], format = "bf16" }}
unembed = {{ from = "table", shape = [96, "hidden"], format = "bf16" }}
[before]
node = [{{ out = "x", op = "embed", table = "table" }}]
[layer]
count = "layers"
carry = {{ x = "out" }}
node = [
  {{ out = "n", op = "rms_norm", input = "x", weight = "norm", eps = 1e-5 }},
  {{ out = "q", op = "linear", input = "n", weight = "q" }},
  {{ out = "k", op = "linear", input = "n", weight = "k" }},
  {{ out = "v", op = "linear", input = "n", weight = "v" }},
  {{ out = "tq", op = "rope", input = "q", rope = "main" }},
  {{ out = "tk", op = "rope", input = "k", rope = "main" }},
  {{ out = "a", op = "attention", q = "tq", k = "tk", v = "v", heads = 2, kv_heads = 1 }},
  {{ out = "o", op = "linear", input = "a", weight = "o" }},
  {{ out = "gate", op = "linear", input = "n", weight = "gate" }},
  {{ out = "g", op = "linear", input = "gate", weight = "back" }},
  {{ out = "out", op = "add", inputs = ["o", "g"] }},
]
[layer.tensors]
norm = {{ from = "{{layer}}.norm", shape = ["hidden"], format = "bf16" }}
q = {{ from = "{{layer}}.q", shape = [{q}, "hidden"], format = "bf16" }}
k = {{ from = "{{layer}}.k", shape = [{head_dim}, "hidden"], format = "bf16" }}
v = {{ from = "{{layer}}.v", shape = [{head_dim}, "hidden"], format = "bf16" }}
o = {{ from = "{{layer}}.o", shape = ["hidden", {q}], format = "bf16" }}
gate = {{ from = "{{layer}}.gate", shape = [{gate}, "hidden"], format = "bf16" }}
back = {{ from = "{{layer}}.back", shape = ["hidden", {gate}], format = "bf16" }}
[after]
node = [
  {{ out = "last", op = "select_rows", input = "x" }},
  {{ out = "logits", op = "logits", input = "last", weight = "unembed" }},
]
"#,
        q = 2 * head_dim
    )
}

#[test]
fn rules_in_plans_of_strangers_make_right_kernels() {
    for (head_dim, gate) in [(32, 48), (64, 8), (16, 112), (128, 130), (512, 528)] {
        let sandbox = Sandbox { dir: TempDir::new().unwrap() };
        sandbox.write("model.toml", gated(head_dim, gate));
        sandbox.write("rule.toml", RULE);
        sandbox.write("ids.json", "[5, 90, 33, 7, 7, 61, 12, 80, 2]");
        sandbox.run(&["synth", "model.toml", "-o", "weights", "-q"]).text();
        let model = ["model.toml", "--weights", "weights", "--preset", "exact", "-q"];
        let rule = ["--fused", "rule.toml", "-o", "a.plan"];
        sandbox.run(&[&["compile"], &model[..], &rule].concat()).text();
        let explained = sandbox.run(&["explain", "a.plan", "--emit", "fused"]).text();
        assert!(explained.contains("with_gate"), "{head_dim} {gate}: the rule does not apply");
        fs::set_permissions(sandbox.path("a.plan"), Permissions::from_mode(0o666)).unwrap();
        let logits = |args: &[&str]| {
            let usual = ["--tokens", "ids.json", "--out", "out.safetensors"];
            sandbox.run(&[&["logits"], args, &usual].concat()).text();
            fs::read(sandbox.path("out.safetensors")).unwrap()
        };
        let expected = logits(&[&model[..], &["--no-fuse"]].concat());
        for more in
            [&[][..], &["--chunk", "1"], &["--chunk", "4", "--threads", "3"], &["--target", "x86-64-v3"]]
        {
            let foreign = logits(&[&["a.plan", "--regenerate", "-q"], more].concat());
            assert!(foreign == expected, "heads of {head_dim}, a gate of {gate}, {more:?}");
        }
    }
}

/// The plan with another spec in it: every hash fits, only the spec is not what it was compiled from.
fn with_spec(plan: &[u8], spec: &str) -> Vec<u8> {
    let read = PlanFile::open(plan).unwrap();
    let part = |section: &Section| Part {
        kind: section.kind as u32,
        target: section.target,
        bytes: match section.kind {
            SectionKind::Spec => spec.as_bytes().to_vec(),
            _ => plan[section.offset as usize..section.end() as usize].to_vec(),
        },
    };
    let parts: Vec<Part> = read.sections().iter().map(part).collect();
    let mut file = assemble(&parts);
    sign_plan(&mut file);
    file
}

/// The texts that replace others in the spec of a plan, and the words of the message.
type Bomb = (&'static [[&'static str; 2]], &'static str);

const BOMBS: [Bomb; 7] = [
    (
        &[["top_k          = 2", "top_k          = 100"], ["experts        = 8", "experts        = 300"]],
        "`k` is 100",
    ),
    (&[["top_k          = 2", "top_k = 65536"], ["experts        = 8", "experts = 65536"]], "`k` is 65536"),
    (&[["experts        = 8", "experts        = 4000000"]], "tensor `router` makes 4000000 columns"),
    (&[["\nheads          = 8", "\nheads          = 400"]], "200 heads share a KV head"),
    (
        &[["\nheads          = 8", "\nheads = 16384"], ["kv_heads       = 2", "kv_heads = 1"]],
        "16384 heads share a KV head",
    ),
    (&[["layers         = 4", "layers         = 4000"]], "expected a whole number from 1 to 1024"),
    (&[["vocab          = 3072", "vocab          = 999999999"]], "the vocabulary size is 999999999"),
];

#[test]
fn specs_in_plans_of_strangers_cost_nothing_unless_they_are_small() {
    let nano = include_str!("../../model-specs/nano/nano.toml");
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "-o", "nano.plan", "-q"]).text();
    let plan = fs::read(sandbox.path("nano.plan")).unwrap();
    let ran = |args: &str| {
        let script = format!(
            "ulimit -v 1000000; ulimit -t 10; exec \"$0\" {args} --tokens ids.json -n 1 -q --threads 1"
        );
        let output = shell(&script).current_dir(sandbox.dir.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    sandbox.write("same.plan", with_spec(&plan, nano));
    assert_eq!(ran("run same.plan --regenerate").0, Some(0), "a small spec fits the limits of this test");
    for (changes, says) in BOMBS {
        let mut spec = nano.to_owned();
        for [from, to] in changes {
            assert_eq!(spec.matches(from).count(), 1, "`{from}`");
            spec = spec.replace(from, to);
        }
        sandbox.write("bomb.plan", with_spec(&plan, &spec));
        for mode in [0o666, 0o644] {
            fs::set_permissions(sandbox.path("bomb.plan"), Permissions::from_mode(mode)).unwrap();
            let (status, message) = ran("run bomb.plan --regenerate");
            assert_eq!(status, Some(2), "{says}: {message}");
            assert!(message.contains(says) && message.contains("embedded spec"), "{says}: {message}");
        }
        // Nothing of it is compiled unasked.
        fs::set_permissions(sandbox.path("bomb.plan"), Permissions::from_mode(0o666)).unwrap();
        let (status, message) = ran("run bomb.plan");
        assert_eq!(status, Some(2), "{message}");
        assert!(message.contains("the plan's machine code is not used"), "{message}");
    }
}
