//! TOML to nodes.

use super::section::{SpannedValue, SpecSection, array, boolean, check_name, scalar, string};
use super::{ExpandedOp, NodeArg, NodeDef, Result, ScalarText, Spanned, SpecError, SpecText};
use crate::ir::ops::keys::{KeyWords, OpInfo, ParamKind};
use crate::ir::ops::spec_ops;
use std::collections::BTreeMap;

/// Nodes of a section at most.
const MAX_NODES: usize = 1 << 15;

/// Nodes, with those that `ops` stand for.
pub(crate) fn nodes(source: &SpecText, item: &SpannedValue<'_>, ops: &[ExpandedOp]) -> Result<Vec<NodeDef>> {
    each_node(source, item, |item| one_node(source, item, ops))
}

/// Reads an array of nodes; `read` gives the nodes that a table of it stands for.
pub(super) fn each_node<T>(
    source: &SpecText,
    item: &SpannedValue<'_>,
    read: impl Fn(&SpannedValue<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut nodes = Vec::new();
    for item in array(source, item)? {
        if nodes.len() > MAX_NODES {
            let message = format!("more than {MAX_NODES} nodes, those that ops stand for included");
            return Err(SpecError::new(source, item.span(), message, "expected fewer"));
        }
        nodes.extend(read(item)?);
    }
    Ok(nodes)
}

/// A node, or those that its op of `ops` stands for.
pub(super) fn one_node(
    source: &SpecText,
    item: &SpannedValue<'_>,
    ops: &[ExpandedOp],
) -> Result<Vec<NodeDef>> {
    let section = SpecSection::new(source, item, "this node")?;
    if let (Some(block), None) = (section.get("block"), section.get("op")) {
        let message = "a block outside of the layer's own nodes";
        return Err(SpecError::new(source, block.span(), message, "expected in a node of [layer] only"));
    }
    let name = string(source, section.require("op")?)?;
    match ops.iter().find(|op| op.name.value == name.value) {
        Some(op) => op.expand(source, item, &name),
        None => Ok(vec![node(source, item, ops)?]),
    }
}

fn node(source: &SpecText, item: &SpannedValue<'_>, ops: &[ExpandedOp]) -> Result<NodeDef> {
    let section = SpecSection::new(source, item, "this node")?;
    let op_name = string(source, section.require("op")?)?;
    let Some(op) = spec_ops().find(|info| info.name == op_name.value) else {
        let own = ops.iter().map(|op| op.name.value.as_str());
        let known: Vec<&str> = spec_ops().map(|info| info.name).chain(own).collect();
        let message = format!("unknown op `{}`", op_name.value);
        let label = format!("expected one of: {}", known.join(", "));
        return Err(SpecError::new(source, op_name.span, message, label).near(&op_name.value, known));
    };
    let known: Vec<&str> = ["op", "out"].into_iter().chain(op.params.iter().map(|p| p.name)).collect();
    let section = SpecSection::new(source, item, &format!("this `{}` node", op.name))?.only(&known)?;
    let out = string(source, section.require("out")?)?;
    check_name(source, &out)?;
    Ok(NodeDef { op, op_span: op_name.span, out, args: args(source, &section, op)? })
}

/// One of the words.
fn key_word(source: &SpecText, item: &SpannedValue<'_>, known: &KeyWords) -> Result<String> {
    let word = string(source, item)?;
    if known.words.contains(&word.value.as_str()) {
        return Ok(word.value);
    }
    let message = format!("unknown {} `{}`", known.what, word.value);
    let label = format!("expected {}", known.expected);
    Err(SpecError::new(source, word.span, message, label).near(&word.value, known.words.iter().copied()))
}

fn args(
    source: &SpecText,
    section: &SpecSection<'_>,
    op: &'static OpInfo,
) -> Result<BTreeMap<&'static str, Spanned<NodeArg>>> {
    let mut args = BTreeMap::new();
    for param in op.params {
        let Some(item) = section.get(param.name) else {
            if param.required {
                return Err(section.missing(param.name).help(format!(
                    "`{}` takes `{}`: {}",
                    op.name,
                    param.name,
                    param.kind.expected()
                )));
            }
            continue;
        };
        let value = match param.kind {
            ParamKind::Number | ParamKind::Window => match scalar(source, item)?.value {
                ScalarText::Expr(text) if text.is_empty() => {
                    NodeArg::Scalar(ScalarText::Expr(string(source, item)?.value))
                }
                value => NodeArg::Scalar(value),
            },
            ParamKind::Values | ParamKind::Tensors => {
                NodeArg::Texts(array(source, item)?.iter().map(|i| string(source, i)).collect::<Result<_>>()?)
            }
            ParamKind::OneOf(words) => NodeArg::Text(key_word(source, item, words)?),
            ParamKind::Flag => NodeArg::Text(boolean(source, item)?.to_string()),
            ParamKind::Value
            | ParamKind::Tensor
            | ParamKind::Rope
            | ParamKind::Rounding
            | ParamKind::Expr => NodeArg::Text(string(source, item)?.value),
        };
        args.insert(param.name, Spanned { value, span: item.span() });
    }
    Ok(args)
}
