//! A right fused-op spec, and one wrong turn after another.

#[path = "../../../tests/support/any_bytes.rs"]
mod any_bytes;

use super::*;
use crate::front::spec::{Result, Spec, SpecError};
use any_bytes::parse_bytes;
use expect_test::expect_file;

const RIGHT: &str = r#"
name = "small"
doc = "norm, two matrices, their product"
priority = 5
kernel = "matmul"
match = [
  { name = "norm", op = "flat_norm", inputs = ["x"], part = "prologue" },
  { name = "quant", op = "quantize_q8", inputs = ["norm"], part = "prologue", optional = true },
  { name = "a", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "b", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "act", op = "elementwise", inputs = ["a", "b"], part = "epilogue", expr = "soft(a) * b" },
  { name = "sum", op = "add", inputs = ["act", "x"], part = "epilogue", commutative = true },
  { name = "reader", op = "rms_norm", inputs = ["sum"], part = "context" },
]
outputs = ["sum"]

[[guard]]
check = "multiple_of"
cols = "a"
by = 32
when = "quant"
why = "whole blocks"

[[guard]]
check = "same_cols"
of = ["a", "b"]
why = "they meet"

[[guard]]
check = "format"
of = "a"
is = ["int8", "mxfp4"]
why = "a test"

[schedule]
prologue = "workers"
rows_per_item = 16

[[function]]
name = "soft"
doc = "x / (1 + |x|)"
params = ["x"]
expr = "x / (1 + max(x, -x))"

[[op]]
name = "flat_norm"
doc = "a norm and a cap"
inputs = ["x"]
tensors = ["weight"]
numbers = ["eps", "cap"]
node = [
  { out = "n", op = "rms_norm", input = "x", weight = "weight", eps = "eps" },
  { out = "flat", op = "elementwise", inputs = ["n"], expr = "clamp(soft(n), -cap, cap)" },
]
"#;

fn parse(text: &str) -> Result<FusedSpec> {
    FusedSpec::parse("small.toml", text)
}

/// The error of the right spec with `from` replaced by `to`.
fn wrong(from: &str, to: &str) -> SpecError {
    assert!(RIGHT.contains(from), "{from}");
    parse(&RIGHT.replacen(from, to, 1)).err().unwrap_or_else(|| panic!("{to} is taken"))
}

#[test]
fn the_right_spec_is_read() {
    let spec = parse(RIGHT).unwrap();
    let rule = spec.rule.unwrap();
    let captures: Vec<&str> = rule.pattern.iter().map(|node| node.capture.as_str()).collect();
    assert_eq!(captures, ["norm_n", "norm", "quant", "a", "b", "act", "sum", "reader"]);
    assert_eq!(rule.pattern[1].inputs, ["norm_n"]);
    assert_eq!(rule.guards.len(), 3);
    assert_eq!(rule.hints.prologue_by_workers, Some(true));
    assert_eq!(spec.functions[0].body.operators(), 4);
    for seed in 0..20 {
        sample(&rule_without_context(), seed).unwrap();
    }
}

fn rule_without_context() -> FusionRule {
    parse(RIGHT).unwrap().rule.unwrap()
}

#[test]
fn every_kind_of_slip_is_told_with_its_place() {
    let cases = [
        ("name = \"small\"\n", ""),
        ("name = \"small\"", "name = \"small op\""),
        ("name = \"small\"", "name = 3"),
        ("name = \"small\"", "name = \"\""),
        ("priority = 5", "priority = ["),
        ("priority = 5", "colour = 5"),
        ("priority = 5", "priority = 5\nafter = \"qkv\""),
        ("priority = 5", "priority = 5000000"),
        ("priority = 5", "priority = \"high\""),
        ("kernel = \"matmul\"\n", ""),
        ("kernel = \"matmul\"", "kernel = \"matmull\""),
        ("kernel = \"matmul\"", "kernel = [\"matmul\"]"),
        ("kernel = \"matmul\"", "kernel = \"attention\""),
        (
            "kernel = \"matmul\"\nmatch = [\n",
            "kernel = \"rows\"\nmatch = [\n  { name = \"square\", op = \"mul\", inputs = [\"x\", \"x\"], \
             part = \"prologue\" },\n",
        ),
        ("outputs = [\"sum\"]", "outputs = 5"),
        ("outputs = [\"sum\"]", "outputs = [5]"),
        (
            "[[guard]]\ncheck = \"multiple_of\"\ncols = \"a\"\nby = 32\nwhen = \"quant\"\nwhy = \"whole \
             blocks\"\n\n[[guard]]\ncheck = \"same_cols\"\nof = [\"a\", \"b\"]\nwhy = \"they meet\"\n\n\
             [[guard]]\ncheck = \"format\"\nof = \"a\"\nis = [\"int8\", \"mxfp4\"]\nwhy = \"a test\"\n",
            "guard = 3\n",
        ),
        (
            "[[guard]]\ncheck = \"multiple_of\"\ncols = \"a\"\nby = 32\nwhen = \"quant\"\nwhy = \"whole \
             blocks\"\n\n[[guard]]\ncheck = \"same_cols\"\nof = [\"a\", \"b\"]\nwhy = \"they meet\"\n\n\
             [[guard]]\ncheck = \"format\"\nof = \"a\"\nis = [\"int8\", \"mxfp4\"]\nwhy = \"a test\"\n",
            "guard = [3]\n",
        ),
        ("part = \"prologue\", optional = true", "part = \"prologue\", wide = true"),
        ("part = \"prologue\", optional = true", "part = \"prolog\""),
        ("op = \"quantize_q8\"", "op = \"quantise_q8\""),
        ("op = \"quantize_q8\"", "op = []"),
        ("op = \"quantize_q8\"", "op = \"attention\""),
        ("op = \"quantize_q8\"", "op = [\"quantize_q8\", \"flat_norm\"]"),
        ("inputs = [\"norm\"]", "inputs = [\"norm\", \"x\"]"),
        ("inputs = [\"norm\"]", "inputs = [\"no-rm\"]"),
        ("inputs = [\"x\"], part", "inputs = [\"x\", \"y\"], part"),
        ("op = \"flat_norm\", inputs = [\"x\"]", "op = \"flat_norm\", inputs = [\"x\"], optional = true"),
        ("part = \"prologue\" }", "part = \"epilogue\" }"),
        (
            "inputs = [\"norm\"], part = \"prologue\", optional = true",
            "inputs = [\"norm\"], part = \"prologue\", optional = 1",
        ),
        ("[\"quant\"], part = \"root\"", "[\"quant\"], part = \"root\", optional = true"),
        ("expr = \"soft(a) * b\"", "expr = \"soft(a) * c\""),
        ("expr = \"soft(a) * b\"", "commutative = true"),
        ("commutative = true", "expr = \"act + x\""),
        ("name = \"b\"", "name = \"a\""),
        ("name = \"b\"", "name = \"norm_n\""),
        (
            "op = [\"linear\", \"quant_linear\"], inputs = [\"quant\"], part = \"root\" },\n  { name = \
             \"b\", op = [\"linear\", \"quant_linear\"], inputs = [\"quant\"], part = \"root\" }",
            "op = \"linear\", inputs = [\"quant\"], part = \"context\" },\n  { name = \"b\", op = \
             \"linear\", inputs = [\"quant\"], part = \"context\" }",
        ),
        ("inputs = [\"x\"], part = \"prologue\"", "inputs = [\"sum\"], part = \"prologue\""),
        ("inputs = [\"sum\"], part = \"context\"", "inputs = [\"z\"], part = \"context\""),
        (
            "name = \"b\", op = [\"linear\", \"quant_linear\"], inputs = [\"quant\"]",
            "name = \"b\", op = [\"linear\", \"quant_linear\"], inputs = [\"a\"]",
        ),
        ("outputs = [\"sum\"]", "outputs = [\"sun\"]"),
        ("outputs = [\"sum\"]", "outputs = [\"reader\"]"),
        ("outputs = [\"sum\"]", "outputs = []"),
        ("outputs = [\"sum\"]\n", ""),
        ("outputs = [\"sum\"]", "outputs = [\"sum\"]\nkv_write = [\"a\"]"),
        ("outputs = [\"sum\"]", "outputs = [\"sum\"]\nkv_write = [\"a\", \"b\"]"),
        ("outputs = [\"sum\"]", "outputs = [\"sum\"]\nkv_write = [\"sum\", \"reader\"]"),
        ("check = \"multiple_of\"", "check = \"multiple\""),
        ("cols = \"a\"", "cols = \"a\"\ninner = \"a\""),
        ("cols = \"a\"\n", ""),
        ("cols = \"a\"", "cols = \"aa\""),
        ("by = 32", "by = 0"),
        ("by = 32", "of = \"a\""),
        ("when = \"quant\"", "when = \"a\""),
        ("why = \"whole blocks\"\n", ""),
        ("of = [\"a\", \"b\"]", "of = [\"a\"]"),
        ("\"mxfp4\"]", "\"fp4\"]"),
        (
            "check = \"format\"\nof = \"a\"\nis = [\"int8\", \"mxfp4\"]",
            "check = \"rows\"\nof = \"a\"\nis = \"token\"",
        ),
        (
            "check = \"format\"\nof = \"a\"\nis = [\"int8\", \"mxfp4\"]",
            "check = \"features\"\nhas = [\"avx512\"]",
        ),
        ("prologue = \"workers\"", "prologue = \"worker\""),
        ("prologue = \"workers\"", "unit = 3"),
        ("rows_per_item = 16", "rows_per_item = 24"),
        ("rows_per_item = 16", "rows_per_item = 64"),
        ("name = \"soft\"", "name = \"silu\""),
        ("name = \"soft\"", "name = \"select\""),
        ("name = \"soft\"", "name = \"gelu_tanh\""),
        ("params = [\"x\"]", "params = []"),
        ("params = [\"x\"]", "params = [\"x\"]\nwide = 1"),
        ("doc = \"x / (1 + |x|)\"\n", ""),
        ("params = [\"x\"]", "params = [\"x\", \"x\"]"),
        ("x / (1 + max(x, -x))", "x / (1 + max(x, -y))"),
        ("x / (1 + max(x, -x))", "soft(x)"),
        (
            "x / (1 + max(x, -x))",
            "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((x)))))))))))))))))))))))))))))\
             )))))))))))))))))))))))))))))))))))))))",
        ),
        ("name = \"flat_norm\"\ndoc", "name = \"rms_norm\"\ndoc"),
        ("tensors = [\"weight\"]", "tensors = [\"x\"]"),
        ("tensors = [\"weight\"]", "tensors = [\"weight\"]\nwide = 1"),
        ("numbers = [\"eps\", \"cap\"]\n", ""),
        ("inputs = [\"x\"]\ntensors", "inputs = []\ntensors"),
        ("op = \"rms_norm\", input = \"x\"", "op = \"rms_form\", input = \"x\""),
        ("tensors = [\"weight\"]", "tensors = [\"out\"]"),
        ("weight = \"weight\"", "weight = \"wait\""),
        ("weight = \"weight\", eps", "wieght = \"weight\", eps"),
        ("input = \"x\"", "input = \"y\""),
        ("out = \"flat\"", "out = \"n\""),
        ("-cap, cap", "-cap, cup"),
        (
            "{ out = \"n\", op = \"rms_norm\", input = \"x\", weight = \"weight\", eps = \"eps\" }",
            "{ out = \"n\", op = \"rope\", input = \"x\", rope = \"main\" }",
        ),
        (
            "{ out = \"n\", op = \"rms_norm\", input = \"x\", weight = \"weight\", eps = \"eps\" }",
            "{ out = \"n\", op = \"embed\", table = \"weight\" }",
        ),
    ];
    let mut told = String::new();
    for (from, to) in cases {
        told.push_str(&format!("{:?}\n", wrong(from, to)));
    }
    // Too much of something.
    let many = |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<String>();
    let add = |i: usize| format!("{{ out = \"m{i}\", op = \"add\", inputs = [\"x\", \"x\"] }},\n");
    let quant = |optional: &'static str| {
        move |i: usize| {
            format!(
                "{{ name = \"m{i}\", op = \"rms_norm\", inputs = [\"x\"], part = \"prologue\"{optional} }},\n"
            )
        }
    };
    let (first_match, first_node) = ("match = [\n", "node = [\n");
    for (place, text) in [
        (first_match, many(58, &quant(""))),
        (first_match, many(57, &quant(""))),
        (first_match, many(12, &quant(", optional = true"))),
        (first_node, many(63, &add)),
    ] {
        told.push_str(&format!("{:?}\n", wrong(place, &format!("{place}{text}"))));
    }
    let deep: String = many(40, &|i| {
        let body = if i == 0 { "-(-(x))".to_owned() } else { format!("-(-(d{}(x)))", i - 1) };
        format!("[[function]]\nname = \"d{i}\"\ndoc = \"x\"\nparams = [\"x\"]\nexpr = \"{body}\"\n")
    });
    told.push_str(&format!("{:?}\n", wrong("[[function]]\n", &format!("{deep}[[function]]\n"))));
    let nothing = parse("name = \"small\"\ndoc = \"x\"").unwrap_err();
    told.push_str(&format!("{nothing:?}\n"));
    expect_file!["errors.txt"].assert_eq(&told);
}

#[test]
fn errors_between_specs_are_told() {
    let spec = |name: &str, rest: &str| {
        FusedSpec::parse(
            &format!("{name}.toml"),
            &format!(
                "name = \"{name}\"\ndoc = \"x\"\n{rest}\n[[function]]\nname = \"f_{name}\"\ndoc = \
                \"x\"\nparams = [\"x\"]\nexpr = \"x\"\n"
            ),
        )
        .unwrap()
    };
    let mut told = String::new();
    for specs in [
        vec![spec("a", "before = \"qvk\"")],
        vec![spec("a", "before = \"b\""), spec("b", "after = \"a\"")],
        vec![spec("a", ""), spec("a", "")],
        vec![
            spec("a", ""),
            spec("b", "[[function]]\nname = \"f_a\"\ndoc = \"x\"\nparams = [\"x\"]\nexpr = \"x\""),
        ],
    ] {
        told.push_str(&format!("{:?}\n", FusedSet::builtin().with(specs).unwrap_err()));
    }
    told.push_str(&FusedSet::builtin().without("qk").unwrap_err());
    expect_file!["set_errors.txt"].assert_eq(&format!("{told}\n"));
}

/// A model that uses the right spec's op.
const MODEL: &str = r#"
[model]
name = "user"
vocab = 32
max_context = 64

[dims]
hidden = 32

[tensors]
embed = { from = "e", shape = ["hidden", "hidden"], format = "f32" }
norm = { from = "n", shape = ["hidden"], format = "f32" }
unembed = { from = "u", shape = [32, "hidden"], format = "f32" }

[before]
node = [{ out = "x", op = "embed", table = "embed" }]

[after]
node = [
  { out = "y", op = "flat_norm", x = "x", weight = "norm", eps = 1e-5, cap = 3 },
  { out = "last", op = "select_rows", input = "y" },
  { out = "logits", op = "logits", input = "last", weight = "unembed" },
]
"#;

#[test]
fn errors_where_an_op_is_used_are_told() {
    let set = FusedSet::builtin().with(vec![parse(RIGHT).unwrap()]).unwrap();
    let lower = |text: &str| {
        let spec = Spec::parse_with("model.toml", text, &set.language())?;
        crate::front::spec::lower(&spec)
    };
    lower(MODEL).unwrap();
    let mut told = String::new();
    for (from, to) in [
        (", cap = 3", ""),
        (", cap = 3", ", cup = 3"),
        ("cap = 3", "cap = \"hidden\""),
        ("cap = 3", "cap = [3]"),
        ("eps = 1e-5", "eps = \"hiden\""),
        ("eps = 1e-5", "eps = -1"),
        ("op = \"flat_norm\", x = \"x\"", "op = \"flat_norm\", x = \"z\""),
        ("op = \"flat_norm\", x = \"x\"", "op = \"flat_norm\", x = 3"),
        ("weight = \"norm\"", "weight = \"embed\""),
        ("weight = \"norm\"", "weight = \"gnorm\""),
        ("op = \"flat_norm\"", "op = \"flat_form\""),
        ("out = \"y\"", "out = \"x\""),
    ] {
        assert!(MODEL.contains(from), "{from}");
        let error = lower(&MODEL.replacen(from, to, 1)).map(drop).unwrap_err();
        told.push_str(&format!("{error:?}\n"));
    }
    expect_file!["use_errors.txt"].assert_eq(&told);
}

#[test]
fn specs_take_their_places() {
    let spec = |name: &str, place: &str| {
        let text = format!(
            "name = \"{name}\"\ndoc = \"x\"\n{place}\n[[function]]\nname = \"f_{name}\"\ndoc = \"x\"\nparams \
             = [\"x\"]\nexpr = \"x\"\n"
        );
        FusedSpec::parse("x.toml", &text).unwrap()
    };
    let names = |specs: Vec<FusedSpec>| {
        let set = FusedSet::builtin().with(specs).unwrap();
        set.names().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let qkv = "post_qkv_norm qkv_norm post_qkv qkv qkv_alone post_q q";
    let moe = "moe_router moe_gate_up moe_routed moe_down";
    let rest = format!("linear_act linear_residual {moe} post_mlp_gate_up mlp_gate_up linear_combined");
    let end = "post_norm_add norm_quant routed_shrink shrink";
    assert_eq!(names(vec![]), format!("{qkv} attention {rest} logits {end}"));
    assert_eq!(
        names(vec![
            spec("a", ""),
            spec("b", "priority = 700"),
            spec("c", "before = \"d\""),
            spec("d", "after = \"logits\"")
        ]),
        format!("a {qkv} attention b {rest} logits c d {end}")
    );
    assert_eq!(names(vec![spec("logits", "")]), format!("{qkv} attention {rest} logits {end}"));
    assert_eq!(
        names(vec![spec("logits", "priority = 9999")]),
        format!("logits {qkv} attention {rest} {end}")
    );
    // The specs of a plan are in order already.
    let set = FusedSet::builtin().with(vec![spec("c", "after = \"logits\"")]).unwrap();
    let texts: Vec<(&str, &str)> = set.specs().map(|spec| ("plan", spec.source.text())).collect();
    let again = FusedSet::from_texts(texts).unwrap();
    assert_eq!(again.names().collect::<Vec<_>>(), set.names().collect::<Vec<_>>());
}

#[test]
fn errors_show_the_source() {
    let text = wrong("expr = \"soft(a) * b\"", "expr = \"sopt(a) * b\"").excerpt(false);
    expect_test::expect![[r#"
        error: the expression does not parse
          --> small.toml:11:87
           |
        11 |   { name = "act", op = "elementwise", inputs = ["a", "b"], part = "epilogue", expr = "sopt(a) * b" },
           |                                                                                       ^ expected a variable (a, b) or a function (exp, sigmoid, silu, tanh, gelu, sqrt, rsqrt, abs, log, softplus, gelu_erf, bf16, f16, min, max, clamp, select, gelu_tanh, soft), found `sopt`; did you mean `soft`?
    "#]].assert_eq(&text);
}

/// Whatever the bytes: an answer, and samples of what is taken.
#[test]
fn hostile_specs_do_not_panic() {
    for cut in 0..RIGHT.len() {
        parse_bytes(&RIGHT.as_bytes()[..cut]);
        for more in [1, 3, 17] {
            let end = (cut + more).min(RIGHT.len());
            parse_bytes(&[&RIGHT.as_bytes()[..cut], &RIGHT.as_bytes()[end..]].concat());
            parse_bytes(&[&RIGHT.as_bytes()[..end], &RIGHT.as_bytes()[cut..]].concat());
        }
    }
    let mut rng = crate::testing::Rng::new(1);
    let words = [
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "norm",
        "a",
        "-1",
        "9223372036854775807",
        "\u{fe}",
        "expr",
        "(",
        "op",
        "[[op]]",
    ];
    for _ in 0..3000 {
        let mut text = RIGHT.as_bytes().to_vec();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(text.len());
            let word = rng.pick(&words);
            let end = (at + rng.below(word.len() + 2)).min(text.len());
            text.splice(at..end, word.bytes());
        }
        parse_bytes(&text);
    }
}
