//! Rules with a repeated root: how they are read, what they match, and what is told of the rest.

use super::guard::{Guard, GuardCheck};
use super::*;
use crate::ir::Graph;
use expect_test::expect;
use kernmill_plan::target::Level;

const RULE: &str = r#"
name = "many"
doc = "a norm and up to four projections of it"
kernel = "matmul"

match = [
  { name = "norm", op = "rms_norm", inputs = ["x"], part = "prologue" },
  { name = "a", op = "linear", inputs = ["norm"], part = "root", repeat = 4 },
]
outputs = ["norm", "a"]

[[guard]]
check = "multiple_of"
cols = "a"
by = 32
why = "whole blocks"
"#;

fn parse(text: &str) -> crate::front::spec::Result<FusionRule> {
    FusedSpec::parse("many.toml", text).map(|spec| spec.rule.expect("a rule"))
}

/// A model in which matrices of these widths, `%p0` and so on, read one norm.
fn model(widths: &[usize]) -> Graph {
    let mut text = "model \"m\" vocab 64 context 64\n\
        tensor @e table f32[64, 64] from \"e\"\n\
        tensor @w vector f32[64] from \"w\"\n\
        tensor @u matrix f32[64, 64] from \"u\"\n"
        .to_owned();
    for (i, n) in widths.iter().enumerate() {
        text += &format!("tensor @m{i} matrix f32[{n}, 64] from \"m{i}\"\n");
        text += &format!("tensor @o{i} matrix f32[64, {n}] from \"o{i}\"\n");
    }
    text += "input %tokens : ids[T]\n%x = embed %tokens, @e : f32[T, 64]\n";
    text += "%n = rms_norm(eps=1e-5) %x, @w : f32[T, 64]\n";
    for (i, n) in widths.iter().enumerate() {
        text += &format!("%p{i} = linear %n, @m{i} : f32[T, {n}]\n");
    }
    let mut sum = "x".to_owned();
    for i in 0..widths.len() {
        text += &format!("%b{i} = linear %p{i}, @o{i} : f32[T, 64]\n");
        text += &format!("%s{i} = add %{sum}, %b{i} : f32[T, 64]\n");
        sum = format!("s{i}");
    }
    text += &format!("%last = select_rows %{sum} : f32[R, 64]\n");
    text += "%logits = linear %last, @u : f32[R, 64]\noutput %logits\n";
    text.parse().unwrap()
}

/// Names of the roots of every group that the rule makes, and what was nearly fused.
fn fused(rule: &str, widths: &[usize]) -> (Vec<Vec<String>>, Vec<NearMiss>) {
    let (graph, rule) = (model(widths), parse(rule).unwrap());
    let (fused, report) = fuse(&graph, [&rule], Level::V3);
    fused.verify().unwrap();
    explain(&fused, &report);
    let name = |id: &NodeId| graph.value(graph.node(*id).output).name.clone();
    let groups = fused.groups.iter().filter(|group| group.rule.is_some());
    (groups.map(|group| group.roots.iter().map(name).collect()).collect(), report.near_misses)
}

#[test]
fn what_is_said_of_a_repeated_node_is_said_of_each_copy() {
    let rule = parse(RULE).unwrap();
    let names: Vec<&str> = rule.pattern.iter().map(|node| node.capture.as_str()).collect();
    assert_eq!(names, ["norm", "a", "a.2", "a.3", "a.4"]);
    assert_eq!(rule.outputs, names);
    assert_eq!(rule.guards.iter().flat_map(Guard::captures).collect::<Vec<_>>(), names[1..]);
    let same =
        RULE.replace("check = \"multiple_of\"\ncols = \"a\"\nby = 32", "check = \"same_cols\"\nof = \"a\"");
    let rule = parse(&same).unwrap();
    assert_eq!(rule.guards.len(), 1);
    assert!(matches!(&rule.guards[0].check, GuardCheck::SameCols { of } if *of == names[1..]));
}

#[test]
fn a_match_has_as_many_roots_as_fit() {
    for count in 1..=6 {
        let (groups, misses) = fused(RULE, &vec![32; count]);
        let expected: Vec<String> = (0..count.min(4)).map(|i| format!("p{i}")).collect();
        assert_eq!((groups, misses), (vec![expected], Vec::new()), "{count} matrices");
    }
}

#[test]
fn a_root_that_a_guard_refuses_stays_outside_and_is_told() {
    let reason = "columns of %p1 = 48 is not a multiple of 32 (whole blocks)";
    let (groups, misses) = fused(RULE, &[64, 48, 32]);
    assert_eq!(groups, [["p0", "p2"]]);
    assert_eq!(misses.len(), 1);
    assert_eq!((&*misses[0].reason, &misses[0].without[..]), (reason, &["a.3".to_owned()][..]));
    // The guard that compares all of them leaves the first with those that are like it.
    let same =
        RULE.replace("check = \"multiple_of\"\ncols = \"a\"\nby = 32", "check = \"same_cols\"\nof = \"a\"");
    let (groups, misses) = fused(&same, &[64, 32, 64, 64]);
    assert_eq!(groups, [["p0", "p2", "p3"]]);
    assert_eq!(misses[0].reason, "%p0 has 64 columns and %p1 has 32 (whole blocks)");
}

/// However many matrices there are, each choice of them is tried once.
#[test]
fn refused_roots_are_not_tried_in_every_order() {
    let refused = RULE.replace("by = 32", "by = 4096");
    let (groups, misses) = fused(&refused, &[32; 16]);
    assert!(groups.is_empty());
    assert!(misses.iter().all(|miss| miss.reason.starts_with("columns of %p")), "{misses:?}");
}

#[test]
fn slips_with_repeated_nodes_are_told() {
    let (repeat, node) = ("repeat = 4", "{ name = \"a\"");
    let optional: String = (0..11)
        .map(|i| {
            format!(
                "{{ name = \"o{i}\", op = \"mul\", inputs = [\"x\", \"x\"], part = \"prologue\", \
            optional = true }},\n"
            )
        })
        .collect();
    let second = "{ name = \"b\", op = \"linear\", inputs = [\"norm\"], part = \"root\", repeat = 2 },\n";
    let mut told = String::new();
    for (from, to) in [
        (repeat, "repeat = 1"),
        (repeat, "repeat = 17"),
        (repeat, "repeat = true"),
        (repeat, "optional = true, repeat = 4"),
        ("part = \"prologue\"", "part = \"prologue\", repeat = 2"),
        (node, &format!("{second}{node}")),
        (
            node,
            &format!(
                "{{ name = \"sum\", op = \"add\", inputs = [\"a\", \"x\"], part = \"epilogue\" }},\n{node}"
            ),
        ),
        (node, &format!("{optional}{node}")),
        ("outputs = [\"norm\", \"a\"]", "outputs = [\"a.2\"]"),
        ("outputs = [\"norm\", \"a\"]", "outputs = [\"norm\", \"a\"]\nkv_write = [\"a\", \"norm\"]"),
        (
            "check = \"multiple_of\"\ncols = \"a\"\nby = 32",
            "check = \"used_only_by\"\nvalue = \"norm\"\nuser = \"a\"",
        ),
        ("cols = \"a\"", "cols = \"a.4\""),
        ("why =", "when = \"a\"\nwhy ="),
    ] {
        assert!(RULE.contains(from), "{from}");
        let error = parse(&RULE.replacen(from, to, 1)).err().unwrap_or_else(|| panic!("{to} is taken"));
        told.push_str(&format!("{error:?}\n"));
    }
    expect![[r#"
        many.toml:8:75: 1 is out of range (expected a whole number from 2 to 16)
        many.toml:8:75: 17 is out of range (expected a whole number from 2 to 16)
        many.toml:8:75: wrong type: a boolean (expected a number or an expression over dims)
        many.toml:8:77: `a` is optional (expected only in the prologue and the epilogue)
        many.toml:7:81: `norm` is repeated (expected only of roots)
        many.toml:9:10: `b` and `a` are both repeated (expected one such node)
        many.toml:8:12: `sum` reads `a`, of which there may be several (expected another input)
        many.toml:6:9: too many optional nodes beside `a`, which is repeated (expected at most 10)
        many.toml:10:12: there is no node `a.2` (expected the name of a node of the pattern)
        many.toml:11:13: `a` is repeated and cannot be keys or values (expected a node that is there once)
        many.toml:15:8: `a` is repeated and cannot be the one reader (expected a node that is there once)
        many.toml:14:8: there is no node `a.4` (expected the name of a node of the pattern)
        many.toml:16:8: `a` is always there (expected an optional node)
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_name_that_is_gone_says_what_took_its_place() {
    let gone = |name| FusedSet::builtin().without(name).unwrap_err();
    for name in ["shrink1", "shrink2", "shrink3"] {
        assert_eq!(
            gone(name),
            format!("there is no fused-op spec `{name}` any more: it is part of `shrink` now")
        );
    }
    assert!(gone("shrink4").ends_with("did you mean `shrink`?"));
}
