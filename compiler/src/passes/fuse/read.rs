//! TOML to [`FusedSpec`]: structure and names, with the place of everything that is wrong.
//! `docs/user/fused-ops.md` is the reference.

use super::define::{expression, functions, ops, pattern_of};
use super::read_guard::{capture, guard};
use super::repeat::{self, MAX_REPEAT};
use super::rule::{FusionRule, Hints, PatternNode};
use super::spec::{FusedSpec, RuleOrder};
use crate::front::spec::section::{
    SpannedValue, SpecSection, array, boolean, check_name, one_of, string, strings, whole,
};
use crate::front::spec::{ExpandedOp, Result, Spanned, SpecError, SpecText};
use crate::ir::OpKind;
use crate::ir::expr::ExprFunction;
use crate::ir::ops::places::{KernelTemplate, MemberRole};
use crate::ir::ops::{legal, pattern_ops};
use kernmill_kernels_gen::expr::Expr;
use toml::de::DeTable;

/// Keys of a fused-op spec.
pub(super) const KEYS: [&str; 13] = [
    "name", "doc", "priority", "before", "after", "kernel", "match", "outputs", "kv_write", "guard",
    "schedule", "function", "op",
];
/// Keys that only a rule has.
const RULE_KEYS: [&str; 6] = ["kernel", "match", "outputs", "kv_write", "guard", "schedule"];
/// Keys of a node of the pattern.
pub(super) const NODE_KEYS: [&str; 8] =
    ["name", "op", "inputs", "part", "optional", "repeat", "commutative", "expr"];
/// Keys of `[schedule]`.
pub(super) const SCHEDULE_KEYS: [&str; 3] = ["prologue", "tiling", "rows_per_item"];
/// Priorities lie between this and its negative.
const MAX_PRIORITY: i64 = 1_000_000;
/// Optional captures at most: every choice of them is a separate pattern, with each number of copies of a
/// repeated node.
const MAX_OPTIONAL: usize = 12;
/// Nodes of a pattern at most.
const MAX_NODES: usize = 64;

impl FusedSpec {
    /// Reads a spec; `name` is its file's, for errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str) -> Result<FusedSpec> {
        fused_spec(&SpecText::new(name, text))
    }
}

/// Reads the whole document.
fn fused_spec(source: &SpecText) -> Result<FusedSpec> {
    let document = DeTable::parse(source.text()).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        SpecError::new(source, span, format!("not TOML: {}", e.message()), "here")
    })?;
    let root = SpecSection::root(source, document.get_ref(), "the fused-op spec").only(&KEYS)?;
    let name = string(source, root.require("name")?)?;
    check_name(source, &name)?;
    let doc = string(source, root.require("doc")?)?.value;
    let functions = functions(&root)?;
    let ops = ops(&root, &functions)?;
    let of_rules = RULE_KEYS.iter().find(|key| root.get(key).is_some());
    if of_rules.is_none() && functions.is_empty() && ops.is_empty() {
        let message = "the fused-op spec says nothing";
        let label = "expected a rule (kernel, match, outputs), [[function]] or [[op]]";
        return Err(SpecError::new(source, name.span, message, label));
    }
    let rule = of_rules.map(|_| rule(&root, &name.value, &doc, &functions, &ops)).transpose()?;
    Ok(FusedSpec { rule, functions, ops, place: place(&root)?, source: source.clone(), name, doc })
}

fn place(root: &SpecSection<'_>) -> Result<Option<RuleOrder>> {
    let source = root.source;
    let mut places = Vec::new();
    for key in ["priority", "before", "after"] {
        let Some(item) = root.get(key) else { continue };
        let place = match key {
            "priority" => RuleOrder::Priority(whole(source, item, -MAX_PRIORITY, MAX_PRIORITY)?),
            "before" => RuleOrder::Before(string(source, item)?),
            _ => RuleOrder::After(string(source, item)?),
        };
        places.push((item, place));
    }
    if let Some((second, _)) = places.get(1) {
        let message = "two places in the order";
        return Err(SpecError::new(
            source,
            second.span(),
            message,
            "expected one of: priority, before, after",
        ));
    }
    Ok(places.pop().map(|(_, place)| place))
}

fn rule(
    root: &SpecSection<'_>,
    name: &str,
    doc: &str,
    functions: &[ExprFunction],
    ops: &[ExpandedOp],
) -> Result<FusionRule> {
    let source = root.source;
    let template = string(source, root.require("kernel")?)?;
    let template = one_of(source, &template, &KernelTemplate::NAMED, "kind of kernel")?;
    let item = root.require("match")?;
    let items = array(source, item)?;
    if items.is_empty() || items.len() > MAX_NODES {
        let message = format!("a pattern of {} nodes", items.len());
        return Err(SpecError::new(source, item.span(), message, format!("expected 1 to {MAX_NODES}")));
    }
    let mut pattern: Vec<(PatternNode, Spanned<String>)> = Vec::with_capacity(items.len());
    for item in items {
        let (node, place) = node(source, item, template, functions, ops)?;
        for node in node {
            if pattern.iter().any(|(other, _)| other.capture == node.capture) {
                let message = format!("two nodes are called `{}`", node.capture);
                return Err(SpecError::new(source, place.span, message, "expected a new name"));
            }
            pattern.push((node, place.clone()));
        }
    }
    if pattern.len() > MAX_NODES {
        let message = format!("a pattern of {} nodes with those that ops stand for", pattern.len());
        return Err(SpecError::new(source, item.span(), message, format!("expected 1 to {MAX_NODES}")));
    }
    check_pattern(source, item, &pattern)?;
    if matches!(template, KernelTemplate::Matmul | KernelTemplate::Experts) {
        check_roots(source, &pattern)?;
    }
    check_repeats(source, item, &pattern)?;
    let (pattern, _): (Vec<PatternNode>, Vec<_>) = pattern.into_iter().unzip();
    let outputs = captures(source, &pattern, root.require("outputs")?, "an output")?;
    if outputs.is_empty() {
        let item = root.require("outputs")?;
        return Err(SpecError::new(source, item.span(), "no outputs", "expected the name of a node"));
    }
    let kv_write = match root.get("kv_write") {
        Some(item) => kv_write(source, &pattern, item, &outputs)?,
        None => Vec::new(),
    };
    let mut guards = Vec::new();
    for item in root.get("guard").map_or(Ok(&[][..]), |item| array(source, item))? {
        guards.extend(repeat::spread(&pattern, guard(source, &pattern, item)?));
    }
    let hints = root.get("schedule").map_or(Ok(Hints::default()), |item| hints(source, item))?;
    let outputs = outputs.iter().flat_map(|name| repeat::names_of(&pattern, &name.value)).collect();
    Ok(FusionRule {
        name: name.to_owned(),
        doc: doc.to_owned(),
        template,
        pattern,
        outputs,
        kv_write: kv_write.into_iter().map(|name| name.value).collect(),
        guards,
        hints,
    })
}

/// A node of the pattern, or those that its op stands for.
fn node(
    source: &SpecText,
    item: &SpannedValue<'_>,
    template: KernelTemplate,
    functions: &[ExprFunction],
    own: &[ExpandedOp],
) -> Result<(Vec<PatternNode>, Spanned<String>)> {
    let section = SpecSection::new(source, item, "this node of the pattern")?.only(&NODE_KEYS)?;
    let name = string(source, section.require("name")?)?;
    check_name(source, &name)?;
    let part = string(source, section.require("part")?)?;
    let part = one_of(source, &part, &MemberRole::NAMED, "part of a kernel")?;
    let ops = strings(source, section.require("op")?)?;
    let inputs = strings(source, section.require("inputs")?)?;
    inputs.iter().try_for_each(|name| check_name(source, name))?;
    if let [op] = ops.as_slice()
        && let Some(def) = own.iter().find(|def| def.name.value == op.value)
    {
        let keys = ["optional", "repeat", "commutative", "expr"];
        if let Some(item) = keys.iter().find_map(|key| section.get(key)) {
            let message = format!("`{}` stands for nodes", op.value);
            return Err(SpecError::new(source, item.span(), message, "expected without this key"));
        }
        if inputs.len() != def.inputs.len() {
            let item = section.require("inputs")?;
            let message = format!("`{}` with {} inputs", op.value, inputs.len());
            return Err(SpecError::new(
                source,
                item.span(),
                message,
                format!("expected {}", def.inputs.len()),
            ));
        }
        let nodes = pattern_of(def, functions, &name.value, &inputs, part);
        let may_be = legal(template, part);
        let nodes =
            nodes.map_err(|message| SpecError::new(source, op.span.clone(), message, "in a pattern"))?;
        if let Some(kind) = nodes.iter().flat_map(|node| &node.ops).find(|kind| !may_be.contains(kind)) {
            let message =
                format!("`{}` stands for `{kind}`, which cannot be in the {}", op.value, part.name());
            return Err(SpecError::new(
                source,
                op.span.clone(),
                message,
                format!("of a `{}` kernel", template.name()),
            ));
        }
        return Ok((nodes, name));
    }
    let names = || own.iter().map(|def| def.name.value.as_str());
    let known: Vec<(&str, Option<OpKind>)> = pattern_ops()
        .map(|(name, kind)| (name, Some(kind)))
        .chain(names().map(|name| (name, None)))
        .collect();
    let mut kinds = Vec::with_capacity(ops.len());
    for op in &ops {
        let Some(kind) = one_of(source, op, &known, "op")? else {
            let message = format!("`{}` stands for nodes", op.value);
            return Err(SpecError::new(source, op.span.clone(), message, "expected it alone"));
        };
        let may_be = legal(template, part);
        if !may_be.contains(&kind) {
            let message =
                format!("`{}` cannot be in the {} of a `{}` kernel", op.value, part.name(), template.name());
            let names: Vec<&str> = may_be.iter().map(|op| op.name).collect();
            let label = match names.as_slice() {
                [] => format!("a `{}` kernel has no {}", template.name(), part.name()),
                names => format!("expected one of: {}", names.join(", ")),
            };
            return Err(SpecError::new(source, op.span.clone(), message, label));
        }
        let arity = kind.arity();
        if !arity.contains(&inputs.len()) {
            let item = section.require("inputs")?;
            let message = format!("`{}` with {} inputs", op.value, inputs.len());
            let (least, most) = (arity.start(), arity.end());
            let label = if least == most {
                format!("expected {least}")
            } else {
                format!("expected {least} to {most}")
            };
            return Err(SpecError::new(source, item.span(), message, label));
        }
        kinds.push(kind);
    }
    if kinds.is_empty() {
        let item = section.require("op")?;
        return Err(SpecError::new(source, item.span(), "no op", "expected the name of an op"));
    }
    let flag = |key: &str, default: bool| section.get(key).map_or(Ok(default), |item| boolean(source, item));
    let swaps = kinds.iter().all(|op| op.commutes);
    let expr = section.get("expr").map(|item| expr(source, item, &kinds, &inputs, functions)).transpose()?;
    let node = PatternNode {
        capture: name.value.clone(),
        expr,
        inputs: inputs.into_iter().map(|name| name.value).collect(),
        commutative: flag("commutative", swaps)?,
        optional: flag("optional", false)?,
        copy: 0,
        ops: kinds,
        part,
    };
    if let (Some(item), true) = (section.get("commutative"), node.commutative && !swaps) {
        let message = format!(
            "`{}` is not commutative",
            node.ops.iter().find(|op| !op.commutes).map_or("", |op| op.name)
        );
        return Err(SpecError::new(source, item.span(), message, "expected only with add and mul"));
    }
    if let (Some(item), true) =
        (section.get("optional"), node.optional && matches!(part, MemberRole::Root | MemberRole::Context))
    {
        let message = format!("`{}` is optional", node.capture);
        return Err(SpecError::new(
            source,
            item.span(),
            message,
            "expected only in the prologue and the epilogue",
        ));
    }
    let times = match section.get("repeat") {
        None => 1,
        Some(item) if part != MemberRole::Root => {
            let message = format!("`{}` is repeated", node.capture);
            return Err(SpecError::new(source, item.span(), message, "expected only of roots"));
        }
        Some(item) => whole(source, item, 2, MAX_REPEAT)? as usize,
    };
    Ok((repeat::copies(node, times), name))
}

/// The expression that a node must have.
fn expr(
    source: &SpecText,
    item: &SpannedValue<'_>,
    kinds: &[OpKind],
    inputs: &[Spanned<String>],
    functions: &[ExprFunction],
) -> Result<Expr> {
    if let Some(kind) = kinds.iter().find(|kind| kind.name != "elementwise") {
        let message = format!("`{kind}` has no expression");
        return Err(SpecError::new(source, item.span(), message, "expected only with glu and elementwise"));
    }
    let vars: Vec<&str> = inputs.iter().map(|name| name.value.as_str()).collect();
    expression(source, &string(source, item)?, &vars, functions)
}

/// Roots, cycles, connection.
fn check_pattern(
    source: &SpecText,
    item: &SpannedValue<'_>,
    pattern: &[(PatternNode, Spanned<String>)],
) -> Result<()> {
    if !pattern.iter().any(|(node, _)| node.part == MemberRole::Root) {
        return Err(SpecError::new(
            source,
            item.span(),
            "the pattern has no root",
            "expected a node with part = \"root\"",
        ));
    }
    if pattern.iter().filter(|(node, _)| node.optional).count() > MAX_OPTIONAL {
        let message = "too many optional nodes";
        return Err(SpecError::new(source, item.span(), message, format!("expected at most {MAX_OPTIONAL}")));
    }
    let find = |name: &str| pattern.iter().position(|(node, _)| node.capture == name);
    let mut done = vec![false; pattern.len()];
    while let Some(next) = (0..pattern.len())
        .find(|&i| !done[i] && pattern[i].0.inputs.iter().all(|input| find(input).is_none_or(|j| done[j])))
    {
        done[next] = true;
    }
    if let Some(i) = done.iter().position(|done| !done) {
        let place = &pattern[i].1;
        let message = format!("`{}` needs its own result", place.value);
        return Err(SpecError::new(source, place.span.clone(), message, "expected inputs without a cycle"));
    }
    let mut seen = vec![false; pattern.len()];
    let mut names: Vec<&str> = vec![&pattern[0].0.capture];
    while let Some(i) = (0..pattern.len()).find(|&i| {
        let node = &pattern[i].0;
        let linked = |name: &String| names.contains(&name.as_str());
        !seen[i] && (linked(&node.capture) || node.inputs.iter().any(linked))
    }) {
        seen[i] = true;
        names.push(&pattern[i].0.capture);
        names.extend(pattern[i].0.inputs.iter().map(String::as_str));
    }
    if let Some(i) = seen.iter().position(|seen| !seen) {
        let place = &pattern[i].1;
        let message = format!("`{}` is not connected to the rest of the pattern", place.value);
        return Err(SpecError::new(
            source,
            place.span.clone(),
            message,
            "expected an input that another node has or makes",
        ));
    }
    Ok(())
}

/// The matrices of a kernel all read the same rows: none of them reads what another one makes.
fn check_roots(source: &SpecText, pattern: &[(PatternNode, Spanned<String>)]) -> Result<()> {
    let is_root = |i: usize| pattern[i].0.part == MemberRole::Root;
    for root in (0..pattern.len()).filter(|&i| is_root(i)) {
        let (mut above, mut seen) = (vec![root], vec![false; pattern.len()]);
        while let Some(i) = above.pop() {
            if i != root && is_root(i) {
                let (reader, made) = (&pattern[root].1, &pattern[i].1.value);
                let message = format!("`{}` reads what the root `{made}` makes", reader.value);
                let label = "expected roots of one input: a matrix behind another one is a kernel of its own";
                return Err(SpecError::new(source, reader.span.clone(), message, label));
            }
            let inputs = &pattern[i].0.inputs;
            let makers = (0..pattern.len()).filter(|&j| inputs.contains(&pattern[j].0.capture));
            above.extend(makers.filter(|&j| !std::mem::replace(&mut seen[j], true)));
        }
    }
    Ok(())
}

/// At most one node is repeated, nothing in the pattern reads it, and there are not too many ways to leave
/// nodes out.
fn check_repeats(
    source: &SpecText,
    item: &SpannedValue<'_>,
    pattern: &[(PatternNode, Spanned<String>)],
) -> Result<()> {
    let copies: Vec<_> = pattern.iter().filter(|(node, _)| node.copy > 0).collect();
    let Some((_, first)) = copies.first() else { return Ok(()) };
    if let Some((_, other)) = copies.iter().find(|(_, name)| name.value != first.value) {
        let message = format!("`{}` and `{}` are both repeated", first.value, other.value);
        return Err(SpecError::new(source, other.span.clone(), message, "expected one such node"));
    }
    if let Some((_, reader)) = pattern.iter().find(|(node, _)| node.inputs.contains(&first.value)) {
        let message = format!("`{}` reads `{}`, of which there may be several", reader.value, first.value);
        return Err(SpecError::new(source, reader.span.clone(), message, "expected another input"));
    }
    let optional = pattern.iter().filter(|(node, _)| node.optional).count();
    if (copies.len() + 1) << optional > 1 << MAX_OPTIONAL {
        let message = format!("too many optional nodes beside `{}`, which is repeated", first.value);
        let most = MAX_OPTIONAL - (copies.len() + 1).next_power_of_two().ilog2() as usize;
        return Err(SpecError::new(source, item.span(), message, format!("expected at most {most}")));
    }
    Ok(())
}

/// Names of nodes that are members.
fn captures(
    source: &SpecText,
    pattern: &[PatternNode],
    item: &SpannedValue<'_>,
    what: &str,
) -> Result<Vec<Spanned<String>>> {
    let names = strings(source, item)?;
    for name in &names {
        if capture(source, pattern, name)?.part == MemberRole::Context {
            let message = format!("`{}` stays outside the kernel and cannot be {what}", name.value);
            return Err(SpecError::new(
                source,
                name.span.clone(),
                message,
                "expected a node that is not context",
            ));
        }
    }
    Ok(names)
}

fn kv_write(
    source: &SpecText,
    pattern: &[PatternNode],
    item: &SpannedValue<'_>,
    outputs: &[Spanned<String>],
) -> Result<Vec<Spanned<String>>> {
    let names = captures(source, pattern, item, "written to the cache")?;
    if names.len() != 2 {
        let message = format!("`kv_write` names {} nodes", names.len());
        return Err(SpecError::new(source, item.span(), message, "expected two: keys and values"));
    }
    for name in &names {
        if repeat::is_repeated(pattern, &name.value) {
            let message = format!("`{}` is repeated and cannot be keys or values", name.value);
            return Err(SpecError::new(
                source,
                name.span.clone(),
                message,
                "expected a node that is there once",
            ));
        }
        if !outputs.iter().any(|output| output.value == name.value) {
            let message = format!("`{}` is not among the outputs", name.value);
            return Err(SpecError::new(
                source,
                name.span.clone(),
                message,
                "expected an output: the attention reads it",
            ));
        }
    }
    Ok(names)
}

fn hints(source: &SpecText, item: &SpannedValue<'_>) -> Result<Hints> {
    let section = SpecSection::new(source, item, "[schedule]")?.only(&SCHEDULE_KEYS)?;
    let choice = |key: &str, yes: &str, no: &str| -> Result<Option<bool>> {
        let Some(item) = section.get(key) else { return Ok(None) };
        let name = string(source, item)?;
        one_of(source, &name, &[(yes, true), (no, false)], key).map(Some)
    };
    let rows_per_item = match section.get("rows_per_item") {
        None => None,
        Some(item) => match whole(source, item, 16, 32)? {
            rows @ (16 | 32) => Some(rows as usize),
            rows => {
                let message = format!("{rows} rows per work item");
                return Err(SpecError::new(source, item.span(), message, "expected 16 or 32: whole tiles"));
            }
        },
    };
    Ok(Hints {
        prologue_by_workers: choice("prologue", "workers", "step")?,
        panels: choice("tiling", "panels", "dots")?,
        rows_per_item,
    })
}
