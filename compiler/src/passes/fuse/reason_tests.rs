//! Every reason why a pattern that is in a model is not applied, as `kernmill explain` shows it.

use super::*;
use crate::ir::Graph;
use expect_test::expect_file;
use kernmill_plan::target::Level;

/// The beginning of every model.
const START: &str = r#"
model "m" vocab 64 context 64
rope 0 head_dim 32 theta 10000.0 plain
rope 1 head_dim 16 theta 10000.0 plain
tensor @e table f32[64, 64] from "e"
tensor @w vector f32[64] from "w"
tensor @m matrix f32[64, 64] from "m"
tensor @half matrix f32[32, 64] from "half"
tensor @int8 matrix int8[64, 64] stored bf16 from "int8"
tensor @router matrix f32[4, 64] from "router"
tensor @experts expert_matrix f32[4, 64, 64] from "experts"
input %tokens : ids[T]
%x = embed %tokens, @e : f32[T, 64]
"#;

const SUM: &str = r#"
%a = linear %x, @m
%b = add %a, %x
%c = mul %b, %a
"#;
const SUM_NODES: &str = "root a linear x; epilogue sum add a x";

const QKV: &str = r#"
%q = linear %x, @m
%k = linear %x, @m
%v = linear %x, @m
"#;
const ATTENTION: &str = r#"
%attn = attention(layer=0, heads=4, kv_heads=4, head_dim=16, scale=0.25, kv=f32) %q, %k, %v
"#;

const EXPERTS: &str = r#"
%scores = linear %x, @router : f32[T, 4]
%r = router_topk(k=2) %scores : routing[T, 2]
%gate = expert_linear %x, %r, @experts : f32[T*2, 64]
%up = expert_linear %x, %r, @experts : f32[T*2, 64]
%h = elementwise("silu(x0) * x1") %gate, %up : f32[T*2, 64]
%down = expert_linear %h, %r, @experts : f32[T*2, 64]
%s = expert_sum %down, %r
%y = add %s, %x
"#;

/// A rule and a model that it meets; the rule's name says what is wrong.
struct Case<'c> {
    name: &'c str,
    /// The model's nodes; those without a type are f32[T, 64], as is the last one.
    model: String,
    kernel: &'c str,
    /// The pattern: part, name (with a `?` optional), op, inputs.
    nodes: &'c str,
    /// The rest of the spec.
    rest: &'c str,
}

fn case<'c>(name: &'c str, model: &[&str], kernel: &'c str, nodes: &'c str, rest: &'c str) -> Case<'c> {
    Case { name, model: model.concat(), kernel, nodes, rest }
}

impl Case<'_> {
    fn graph(&self) -> Graph {
        let mut text = START.trim_start().to_owned();
        let mut last = "x";
        for line in self.model.lines().filter(|line| !line.is_empty()) {
            let ty = if line.contains(" : ") { "" } else { " : f32[T, 64]" };
            text.push_str(&format!("{line}{ty}\n"));
            last = line[1..].split(' ').next().unwrap();
        }
        text.push_str(&format!("%last = select_rows %{last} : f32[R, 64]\n"));
        text.push_str("%logits = linear %last, @m : f32[R, 64]\noutput %logits\n");
        text.parse().unwrap_or_else(|error| panic!("{}: {error}\n{text}", self.name))
    }

    fn rule(&self) -> FusionRule {
        let mut text =
            format!("name = \"{}\"\ndoc = \"a test\"\nkernel = \"{}\"\nmatch = [\n", self.name, self.kernel);
        for node in self.nodes.split("; ") {
            let mut words = node.split(' ');
            let [part, name, op] = [(); 3].map(|()| words.next().unwrap());
            let inputs: Vec<String> = words.map(|input| format!("\"{input}\"")).collect();
            let (name, optional) = (name.trim_end_matches('?'), name.ends_with('?'));
            let inputs = inputs.join(", ");
            text.push_str(&format!(
                "  {{ name = \"{name}\", op = \"{op}\", inputs = [{inputs}], part = \"{part}\", optional = \
                 {optional} }},\n"
            ));
        }
        text.push_str(&format!("]\n{}\n", self.rest));
        FusedSpec::parse("case.toml", &text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).rule.unwrap()
    }
}

/// Guards alone keep these rules from applying.
fn guards() -> Vec<(&'static str, Case<'static>)> {
    let mut cases = Vec::new();
    for (name, guard) in [
        ("another_reader", r#"check = "used_only_by", value = "a", user = "sum""#),
        ("no_output", r#"check = "is_output", value = "sum""#),
        ("no_multiple", r#"check = "multiple_of", cols = "sum", by = 48"#),
        ("too_small", r#"check = "between", inner = "a", min = 128"#),
        ("too_large", r#"check = "between", cols = "sum", max = 32"#),
        ("other_format", r#"check = "format", of = "a", is = ["int8", "mxfp4"]"#),
        ("other_rows", r#"check = "rows", of = "sum", is = "wanted""#),
        ("no_feature", r#"check = "features", has = ["avx2", "amx_tile"]"#),
    ] {
        cases.push((guard, case(name, &[SUM], "matmul", SUM_NODES, "outputs = [\"a\", \"sum\"]")));
    }
    cases.push((
        r#"check = "used_only_by", value = "logits", user = "last""#,
        case(
            "read_as_output",
            &[SUM],
            "matmul",
            "prologue last select_rows x; root logits linear last",
            r#"outputs = ["logits"]"#,
        ),
    ));
    cases.push((
        r#"check = "same_cols", of = ["a", "b"]"#,
        case(
            "other_columns",
            &["%h = linear %x, @half : f32[T, 32]\n%g = mul %h, %h : f32[T, 32]\n%a = linear %x, @m\n"],
            "matmul",
            "root a linear x; root b linear x",
            r#"outputs = ["a", "b"]"#,
        ),
    ));
    cases.push((
        r#"check = "multiple_of", group_cols = "attn", by = 32, when = "quant""#,
        case(
            "goes_without",
            &[QKV, ATTENTION, "%quant = quantize_q8 %attn : q8[T, 64]\n%o = quant_linear %quant, @int8\n"],
            "attention",
            "root attn attention q k v; epilogue quant? quantize_q8 attn",
            r#"outputs = ["quant", "attn"]"#,
        ),
    ));
    // Eight nodes that can stand for each other.
    let same: String = (0..8).map(|i| format!("%e{i} = elementwise(\"x0\") %x\n")).collect();
    cases.push((
        r#"check = "is_output", value = "norm""#,
        case(
            "many_ways",
            &["%n = rms_norm(eps=1e-5) %x, @w\n", &same],
            "rows",
            "root norm rms_norm x; epilogue a elementwise x; epilogue b elementwise x; epilogue c \
             elementwise x; epilogue d elementwise x; epilogue e elementwise x; epilogue f elementwise x; \
             epilogue g elementwise x; epilogue h elementwise x",
            r#"outputs = ["norm", "a", "b", "c", "d", "e", "f", "g", "h"]"#,
        ),
    ));
    cases
}

/// Rules without guards that do not apply.
fn unfit<'c>(doubled: &'c str, doubling: &'c str) -> Vec<Case<'c>> {
    vec![
        // Matches that are refused.
        case("unnamed_output", &[SUM], "matmul", SUM_NODES, r#"outputs = ["sum"]"#),
        case(
            "unnamed_logits",
            &[SUM],
            "matmul",
            "prologue last select_rows x; root logits linear last",
            r#"outputs = ["last"]"#,
        ),
        case(
            "no_order",
            &["%a = rms_norm(eps=1e-5) %x, @w\n%b = mul %a, %x\n%c = add %a, %b\n"],
            "rows",
            "root norm rms_norm x; epilogue add add norm y",
            r#"outputs = ["norm", "add"]"#,
        ),
        case(
            "one_missing",
            &["%n = rms_norm(eps=1e-5) %x, @w\n%a = linear %n, @m\n%b = linear %n, @m\n%c = add %a, %b\n"],
            "matmul",
            "prologue norm rms_norm x; root a linear norm; root b linear norm; epilogue product mul a b",
            r#"outputs = ["product"]"#,
        ),
        case(
            "no_attention",
            &[SUM],
            "matmul",
            SUM_NODES,
            "outputs = [\"a\", \"sum\"]\nkv_write = [\"a\", \"sum\"]",
        ),
        case(
            "keys_read_twice",
            &[QKV, ATTENTION, "%y = mul %attn, %k\n"],
            "matmul",
            "root k linear x; root v linear x; context attn attention q k v",
            "outputs = [\"k\", \"v\"]\nkv_write = [\"k\", \"v\"]",
        ),
        // Nodes that make no kernel.
        case(
            "cache_of_rows",
            &[
                "%q = linear %x, @m\n%k = kv_cast %x : f16[T, 64]\n%v = kv_cast %q : f16[T, 64]\n",
                &ATTENTION.replace("kv=f32", "kv=f16"),
            ],
            "rows",
            "root k kv_cast x; root v kv_cast y; context attn attention q k v",
            "outputs = [\"k\", \"v\"]\nkv_write = [\"k\", \"v\"]",
        ),
        case(
            "cache_of_prologue",
            &[QKV, ATTENTION],
            "matmul",
            "root q linear x; root k linear x; prologue v linear x; context attn attention q k v",
            "outputs = [\"q\", \"k\", \"v\"]\nkv_write = [\"k\", \"v\"]",
        ),
        case(
            "cache_of_one_value",
            &[QKV, &ATTENTION.replace("%k, %v", "%k, %k")],
            "matmul",
            "root q linear x; root k linear x; context attn attention q k k",
            "outputs = [\"q\", \"k\"]\nkv_write = [\"k\", \"k\"]",
        ),
        case(
            "two_kinds_of_rows",
            &["%a = linear %x, @m\n%b = add %a, %x\n"],
            "rows",
            "root sum add y x; epilogue last select_rows sum",
            r#"outputs = ["last"]"#,
        ),
        case(
            "late_prologue",
            &["%a = linear %x, @m\n%n = rms_norm(eps=1e-5) %a, @w\n%b = mul %n, %a\n"],
            "matmul",
            "root a linear x; prologue norm rms_norm a",
            r#"outputs = ["a", "norm"]"#,
        ),
        case(
            "two_inputs",
            &[
                "%a = linear %x, @m\n%n = rms_norm(eps=1e-5) %x, @w\n%b = linear %n, @m\n%c = elementwise(\"silu(x0) * \
                 x1\") %a, %b\n",
            ],
            "matmul",
            "root a linear x; root b linear y; epilogue glu glu a b",
            r#"outputs = ["glu"]"#,
        ),
        case(
            "two_head_sizes",
            &["%a = linear %x, @m\n%b = linear %x, @m\n%c = rope(rope=0, head_dim=32) %a\n%d = \
                 rope(rope=1, head_dim=16) %b\n%f = add %c, %d\n"],
            "matmul",
            "root a linear x; root b linear x; epilogue c rope a; epilogue d rope b",
            r#"outputs = ["c", "d"]"#,
        ),
        case(
            "rounded_heads",
            &["%a = linear %x, @m\n%c = rope(rope=1, head_dim=16) %a\n%d = quantize_q8 %c : q8[T, 64]\n%f \
                 = quant_linear %d, @int8\n"],
            "matmul",
            "root a linear x; epilogue c rope a; epilogue d quantize_q8 c",
            r#"outputs = ["d"]"#,
        ),
        case(
            "apart_from_roots",
            &["%n = rms_norm(eps=1e-5) %x, @w\n%a = linear %n, @m\n%b = add %n, %x\n%c = mul %a, %b\n"],
            "matmul",
            "prologue n rms_norm x; root a linear n; epilogue sum add n x",
            r#"outputs = ["a", "sum"]"#,
        ),
        case(
            "unused",
            &["%a = linear %x, @m\n%b = elementwise(\"-x0\") %a\n%c = mul %x, %x\n"],
            "matmul",
            "root a linear x; epilogue b elementwise a",
            r#"outputs = ["b"]"#,
        ),
        case(
            "long_expression",
            &["%d0 = linear %x, @m\n", doubled],
            "matmul",
            doubling,
            "outputs = [\"d11\"]",
        ),
        case(
            "stored_too_early",
            &[
                "%a = linear %x, @m\n%b = linear %x, @m\n%c = elementwise(\"silu(x0) * x1\") %a, %b\n%d = add %c, %a\n",
            ],
            "matmul",
            "root a linear x; root b linear x; epilogue glu glu a b",
            r#"outputs = ["a", "glu"]"#,
        ),
        case(
            "rotated_too_early",
            &["%a = linear %x, @m\n%b = rope(rope=0, head_dim=32) %a\n%c = add %b, %a\n"],
            "matmul",
            "root a linear x; epilogue b rope a; epilogue sum add b a",
            r#"outputs = ["sum"]"#,
        ),
        case(
            "experts_apart",
            &[EXPERTS],
            "experts",
            "root gate expert_linear x r; root up expert_linear x r",
            r#"outputs = ["gate", "up"]"#,
        ),
        case(
            "experts_unsummed",
            &[EXPERTS],
            "expert_down",
            "root down expert_linear h r",
            r#"outputs = ["down"]"#,
        ),
        case(
            "two_sums",
            &[EXPERTS, "%also = expert_linear %h, %r, @experts : f32[T*2, 64]\n%z = mul %y, %y\n"],
            "expert_down",
            "root a expert_linear h r; root b expert_linear h r; epilogue sum expert_sum a r",
            r#"outputs = ["sum"]"#,
        ),
        case(
            "added_to_itself",
            &[&EXPERTS.replace("add %s, %x", "add %s, %s")],
            "expert_down",
            "root down expert_linear h r; epilogue sum expert_sum down r; epilogue twice add sum sum",
            r#"outputs = ["twice"]"#,
        ),
        case(
            "sum_read_outside",
            &[EXPERTS, "%z = mul %y, %s\n"],
            "expert_down",
            "root down expert_linear h r; epilogue sum expert_sum down r; epilogue add add sum y",
            r#"outputs = ["sum", "add"]"#,
        ),
        case(
            "norm_read_outside",
            &["%n = rms_norm(eps=1e-5) %x, @w\n%s = lora_shrink(site=0, format=bf16) %n : f32[T, 256]\n%a \
                 = linear %n, %s, @m\n"],
            "shrink",
            "prologue norm rms_norm x; root s lora_shrink norm",
            r#"outputs = ["s", "norm"]"#,
        ),
        case(
            "two_attentions",
            &[
                QKV,
                ATTENTION,
                &ATTENTION.replace("layer=0", "layer=1").replace("%attn", "%b"),
                "%c = add %attn, %b\n",
            ],
            "attention",
            "root a attention q k v; root b attention q k v",
            r#"outputs = ["a", "b"]"#,
        ),
        case(
            "small_heads",
            &[QKV, ATTENTION, "%quant = quantize_q8 %attn : q8[T, 64]\n%o = quant_linear %quant, @int8\n"],
            "attention",
            "root attn attention q k v; epilogue quant quantize_q8 attn",
            r#"outputs = ["quant"]"#,
        ),
        case(
            "other_quantisation",
            &[
                QKV,
                &ATTENTION.replace("heads=4, kv_heads=4, head_dim=16", "heads=2, kv_heads=2, head_dim=32"),
                "%quant = quantize_q8 %q : q8[T, 64]\n%p = quant_linear %quant, @int8\n%y = mul %attn, %p\n",
            ],
            "attention",
            "root attn attention q k v; epilogue quant quantize_q8 q",
            r#"outputs = ["attn", "quant"]"#,
        ),
    ]
}

/// The text of `explain` for a rule that is not applied, or not with all of its nodes.
fn nearly(graph: &Graph, rule: &FusionRule) -> String {
    let (fused, report) = fuse(graph, [rule], Level::V4Vnni);
    fused.verify().unwrap_or_else(|error| panic!("{}: {error}", rule.name));
    let text = explain(&fused, &report);
    let applied = fused.groups.iter().any(|group| group.rule.is_some());
    let (_, nearly) = text.split_once("nearly fused:\n").unwrap_or_else(|| panic!("{}:\n{text}", rule.name));
    assert_eq!(applied, !nearly.contains("not applied"), "{}:\n{text}", rule.name);
    nearly.to_owned()
}

#[test]
fn every_reason_is_told() {
    let mut told = String::new();
    for (guard, case) in guards() {
        let (graph, mut rule) = (case.graph(), case.rule());
        let without = fuse(&graph, [&rule], Level::V4Vnni).0;
        assert!(without.groups.iter().any(|group| group.rule.is_some()), "{}", case.name);
        let rest = format!("{}\nguard = [{{ {guard}, why = \"the reason\" }}]", case.rest);
        rule = Case { rest: &rest, ..case }.rule();
        told.push_str(&nearly(&graph, &rule));
    }
    // Eleven times twice the last value.
    let doubled: String = (1..12).map(|i| format!("%d{i} = add %d{}, %d{}\n", i - 1, i - 1)).collect();
    let doubling: String = (1..12).map(|i| format!("; epilogue d{i} add d{} d{}", i - 1, i - 1)).collect();
    for case in unfit(&doubled, &format!("root d0 linear x{doubling}")) {
        told.push_str(&nearly(&case.graph(), &case.rule()));
    }
    expect_file!["reasons.txt"].assert_eq(&told);
}
