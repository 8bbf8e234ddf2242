//! Additions of a fused-op spec to the language: functions of expressions, and ops that stand for nodes.

use super::rule::PatternNode;
use crate::front::spec::section::{SpecSection, array, check_name, string, strings};
use crate::front::spec::{
    ExpandedOp, NodeArg, NodeDef, Result, Spanned, SpecError, SpecText, inner_span, nodes,
};
use crate::ir::OpKind;
use crate::ir::expr::{self, ExprFunction};
use crate::ir::ops::form::check_expr;
use crate::ir::ops::keys::ParamKind;
use crate::ir::ops::places::MemberRole;
use crate::ir::ops::spec_ops;
use kernmill_kernels_gen::expr::Expr;

/// Keys of `[[function]]`.
pub(super) const FUNCTION_KEYS: [&str; 4] = ["name", "doc", "params", "expr"];
/// Keys of `[[op]]`.
pub(super) const OP_KEYS: [&str; 6] = ["name", "doc", "inputs", "tensors", "numbers", "node"];

/// Nodes that an op stands for at most: ops stand for those of others.
const MAX_OP_NODES: usize = 64;

/// `[[function]]`, each over those before it.
pub(super) fn functions(root: &SpecSection<'_>) -> Result<Vec<ExprFunction>> {
    let source = root.source;
    let mut functions: Vec<ExprFunction> = Vec::new();
    for item in root.get("function").map_or(Ok(&[][..]), |item| array(source, item))? {
        let section = SpecSection::new(source, item, "this [[function]]")?.only(&FUNCTION_KEYS)?;
        let name = string(source, section.require("name")?)?;
        check_name(source, &name)?;
        let own = functions.iter().any(|function| function.name == name.value);
        if own || expr::function_names().any(|other| other == name.value) {
            let message = format!("there is a function `{}` already", name.value);
            return Err(SpecError::new(source, name.span, message, "expected a new name"));
        }
        let params = strings(source, section.require("params")?)?;
        distinct(source, &params, "parameters")?;
        if params.is_empty() {
            let item = section.require("params")?;
            return Err(SpecError::new(source, item.span(), "no parameters", "expected at least one name"));
        }
        let vars: Vec<&str> = params.iter().map(|name| name.value.as_str()).collect();
        let body = expression(source, &string(source, section.require("expr")?)?, &vars, &functions)?;
        let doc = string(source, section.require("doc")?)?.value;
        let params = params.into_iter().map(|name| name.value).collect();
        functions.push(ExprFunction { name: name.value, params, body, doc });
    }
    Ok(functions)
}

/// An expression over `vars`.
pub(super) fn expression(
    source: &SpecText,
    text: &Spanned<String>,
    vars: &[&str],
    functions: &[ExprFunction],
) -> Result<Expr> {
    let expr = expr::parse_with(&text.value, vars, functions).map_err(|e| {
        let end = (e.offset + 1).min(text.value.len()).max(e.offset);
        let span = inner_span(source, &text.span, &text.value, &(e.offset..end));
        SpecError::new(source, span, "the expression does not parse", e.message)
    })?;
    match check_expr(&expr, vars.len()) {
        Ok(()) => Ok(expr),
        Err(message) => {
            Err(SpecError::new(source, text.span.clone(), message, "expected a simpler expression"))
        }
    }
}

fn distinct(source: &SpecText, names: &[Spanned<String>], what: &str) -> Result<()> {
    for (i, name) in names.iter().enumerate() {
        check_name(source, name)?;
        if names[..i].iter().any(|other| other.value == name.value) {
            let message = format!("two {what} are called `{}`", name.value);
            return Err(SpecError::new(source, name.span.clone(), message, "expected a new name"));
        }
    }
    Ok(())
}

/// `[[op]]`; an op may use those before it.
pub(super) fn ops(root: &SpecSection<'_>, functions: &[ExprFunction]) -> Result<Vec<ExpandedOp>> {
    let source = root.source;
    let mut ops: Vec<ExpandedOp> = Vec::new();
    for item in root.get("op").map_or(Ok(&[][..]), |item| array(source, item))? {
        let section = SpecSection::new(source, item, "this [[op]]")?.only(&OP_KEYS)?;
        let name = string(source, section.require("name")?)?;
        check_name(source, &name)?;
        let known = spec_ops().map(|op| op.name).chain(OpKind::all().map(|op| op.name));
        let own = ops.iter().map(|op| op.name.value.as_str());
        if known.chain(own).any(|other| other == name.value) {
            let message = format!("there is an op `{}` already", name.value);
            return Err(SpecError::new(source, name.span, message, "expected a new name"));
        }
        let list = |key: &str| section.get(key).map_or(Ok(Vec::new()), |item| strings(source, item));
        let inputs = strings(source, section.require("inputs")?)?;
        let (tensors, numbers) = (list("tensors")?, list("numbers")?);
        let keys: Vec<Spanned<String>> = inputs.iter().chain(&tensors).chain(&numbers).cloned().collect();
        distinct(source, &keys, "keys")?;
        if let Some(key) = keys.iter().find(|key| matches!(key.value.as_str(), "op" | "out")) {
            let message = format!("`{}` is a key of every node", key.value);
            return Err(SpecError::new(source, key.span.clone(), message, "expected another name"));
        }
        let item = section.require("node")?;
        let nodes = nodes(source, item, &ops)?;
        if nodes.len() > MAX_OP_NODES {
            let message = format!("`{}` stands for {} nodes", name.value, nodes.len());
            let label = format!("expected at most {MAX_OP_NODES}");
            return Err(SpecError::new(source, item.span(), message, label));
        }
        if inputs.is_empty() || nodes.is_empty() {
            let message = "an op needs inputs and nodes";
            return Err(SpecError::new(source, item.span(), message, "expected at least one of each"));
        }
        let values =
            |names: &[Spanned<String>]| names.iter().map(|name| name.value.clone()).collect::<Vec<_>>();
        let doc = string(source, section.require("doc")?)?.value;
        let op = ExpandedOp {
            name,
            doc,
            inputs: values(&inputs),
            tensors: values(&tensors),
            numbers: values(&numbers),
            nodes,
        };
        check_names(source, &op, functions)?;
        ops.push(op);
    }
    Ok(ops)
}

/// Every name in the op's nodes is one of its keys or of a node above; every expression parses.
fn check_names(source: &SpecText, op: &ExpandedOp, functions: &[ExprFunction]) -> Result<()> {
    let mut values: Vec<&str> = op.inputs.iter().map(String::as_str).collect();
    let tensors: Vec<&str> = op.tensors.iter().map(String::as_str).collect();
    for node in &op.nodes {
        for param in node.op.params {
            let Some(arg) = node.args.get(param.name) else { continue };
            let known = match param.kind {
                ParamKind::Value | ParamKind::Values => &values,
                ParamKind::Tensor | ParamKind::Tensors => &tensors,
                ParamKind::Rope => {
                    let message = "an op cannot name a [rope.NAME] section";
                    return Err(SpecError::new(source, arg.span.clone(), message, "expected no rope"));
                }
                ParamKind::Expr => {
                    if let NodeArg::Text(text) = &arg.value {
                        let text = Spanned { value: text.clone(), span: arg.span.clone() };
                        let mut vars = variables(node);
                        vars.extend(op.numbers.iter().map(String::as_str));
                        expression(source, &text, &vars, functions)?;
                    }
                    continue;
                }
                ParamKind::Number
                | ParamKind::Window
                | ParamKind::OneOf(_)
                | ParamKind::Rounding
                | ParamKind::Flag => continue,
            };
            let names: Vec<(&str, std::ops::Range<usize>)> = match &arg.value {
                NodeArg::Text(text) => vec![(text, arg.span.clone())],
                NodeArg::Texts(texts) => {
                    texts.iter().map(|text| (text.value.as_str(), text.span.clone())).collect()
                }
                NodeArg::Scalar(_) => Vec::new(),
            };
            if let Some((name, span)) = names.into_iter().find(|(name, _)| !known.contains(name)) {
                let message = format!("`{name}` is no key of the op and no node above");
                let error =
                    SpecError::new(source, span, message, format!("expected one of: {}", known.join(", ")));
                return Err(error.near(name, known.iter().copied()));
            }
        }
        if values.contains(&node.out.value.as_str()) || tensors.contains(&node.out.value.as_str()) {
            let message = format!("two values are called `{}`", node.out.value);
            return Err(SpecError::new(source, node.out.span.clone(), message, "expected a new name"));
        }
        values.push(&node.out.value);
    }
    Ok(())
}

/// Variables of a node's expression, in order.
fn variables(node: &NodeDef) -> Vec<&str> {
    match node.args.get("inputs").map(|arg| &arg.value) {
        Some(NodeArg::Texts(texts)) => texts.iter().map(|text| text.value.as_str()).collect(),
        _ => vec!["gate", "up"],
    }
}

/// The pattern that an op stands for: its last node is called `name`, the others `name_node`.
///
/// # Errors
/// What of it has no place in a pattern.
pub(super) fn pattern_of(
    op: &ExpandedOp,
    functions: &[ExprFunction],
    name: &str,
    inputs: &[Spanned<String>],
    part: MemberRole,
) -> std::result::Result<Vec<PatternNode>, String> {
    let last = op.nodes.len() - 1;
    let own = |i: usize| match i == last {
        true => name.to_owned(),
        false => format!("{name}_{}", op.nodes[i].out.value),
    };
    let rename = |text: &str| {
        let input = op.inputs.iter().position(|input| input == text).map(|i| inputs[i].value.clone());
        let node = || op.nodes.iter().position(|node| node.out.value == text).map(own);
        input.or_else(node).unwrap_or_else(|| text.to_owned())
    };
    let mut pattern = Vec::with_capacity(op.nodes.len());
    for (i, node) in op.nodes.iter().enumerate() {
        let ops: Vec<OpKind> = node.op.pattern.iter().filter_map(|name| OpKind::from_name(name)).collect();
        if ops.is_empty() {
            return Err(format!(
                "`{}` stands for `{}`, which a pattern names itself",
                op.name.value, node.op.name
            ));
        }
        let mut names = Vec::new();
        for param in
            node.op.params.iter().filter(|param| matches!(param.kind, ParamKind::Value | ParamKind::Values))
        {
            match node.args.get(param.name).map(|arg| &arg.value) {
                Some(NodeArg::Text(text)) => names.push(rename(text)),
                Some(NodeArg::Texts(texts)) => names.extend(texts.iter().map(|text| rename(&text.value))),
                _ => {}
            }
        }
        // With numbers of the use's own, any expression fits.
        let expr = match node.args.get("expr").map(|arg| &arg.value) {
            Some(NodeArg::Text(text)) => expr::parse_with(text, &variables(node), functions).ok(),
            _ => None,
        };
        pattern.push(PatternNode {
            capture: own(i),
            commutative: ops[0].commutes,
            ops,
            expr,
            inputs: names,
            optional: false,
            copy: 0,
            part,
        });
    }
    Ok(pattern)
}
