//! TOML to the layers and blocks of a [`Spec`](super::Spec).

use super::read_nodes::{each_node, nodes, one_node};
use super::read_tensors::tensors;
use super::section::{SpannedValue, SpecSection, array, check_name, scalar, scalars, string};
use super::{
    BlockDef, BlockUse, ExpandedOp, LayerDef, LayerNode, LayerValueDef, NodeArg, NodeDef, Result, Spanned,
    SpecError, SpecText,
};
use crate::ir::ops::keys::ParamKind;

/// Keys of a node that uses a block, which no input can have for its name.
const OWN_KEYS: [&str; 3] = ["out", "block", "op"];

pub(super) fn layer(source: &SpecText, item: &SpannedValue<'_>, ops: &[ExpandedOp]) -> Result<LayerDef> {
    let section = SpecSection::new(source, item, "[layer]")?;
    let section = section.only(&["count", "carry", "values", "tensors", "node"])?;
    let mut carry = Vec::new();
    for (name, item) in SpecSection::new(source, section.require("carry")?, "`carry`")?.entries() {
        check_name(source, &name)?;
        carry.push((name, string(source, item)?));
    }
    let mut values = Vec::new();
    if let Some(item) = section.get("values") {
        for (name, item) in SpecSection::new(source, item, "[layer.values]")?.entries() {
            check_name(source, &name)?;
            values.push(layer_value(source, name, item)?);
        }
    }
    Ok(LayerDef {
        count: scalar(source, section.require("count")?)?,
        carry,
        values,
        tensors: match section.get("tensors") {
            Some(item) => tensors(source, item, "[layer.tensors]", true)?,
            None => Vec::new(),
        },
        nodes: each_node(source, section.require("node")?, |item| layer_node(source, item, ops))?,
    })
}

fn layer_value(source: &SpecText, name: Spanned<String>, item: &SpannedValue<'_>) -> Result<LayerValueDef> {
    let what = format!("per-layer value `{}`", name.value);
    let section = SpecSection::new(source, item, &what)?.only(&["cycle", "list"])?;
    match (section.get("cycle"), section.get("list")) {
        (Some(items), None) => Ok(LayerValueDef { name, cycle: true, items: scalars(source, items)? }),
        (None, Some(items)) => Ok(LayerValueDef { name, cycle: false, items: scalars(source, items)? }),
        _ => Err(SpecError::new(
            source,
            item.span(),
            format!("{what} must have either `cycle` or `list`"),
            "expected { cycle = [...] } (repeated) or { list = [...] } (one per layer)",
        )),
    }
}

fn layer_node(source: &SpecText, item: &SpannedValue<'_>, ops: &[ExpandedOp]) -> Result<Vec<LayerNode>> {
    let section = SpecSection::new(source, item, "this node")?;
    let Some(block) = section.get("block") else {
        return Ok(one_node(source, item, ops)?.into_iter().map(LayerNode::Op).collect());
    };
    if section.get("op").is_some() {
        let message = "a node with both `op` and `block`";
        return Err(SpecError::new(source, block.span(), message, "expected one of them"));
    }
    let out = string(source, section.require("out")?)?;
    check_name(source, &out)?;
    let inputs = section.entries().into_iter().filter(|(key, _)| !OWN_KEYS.contains(&key.value.as_str()));
    let inputs = inputs.map(|(key, item)| Ok((key, string(source, item)?))).collect::<Result<_>>()?;
    Ok(vec![LayerNode::Block(BlockUse { out, block: string(source, block)?, inputs })])
}

pub(super) fn blocks(
    source: &SpecText,
    item: &SpannedValue<'_>,
    ops: &[ExpandedOp],
) -> Result<Vec<BlockDef>> {
    let entries = SpecSection::new(source, item, "[block]")?.entries();
    entries.into_iter().map(|(name, item)| block(source, name, item, ops)).collect()
}

fn block(
    source: &SpecText,
    name: Spanned<String>,
    item: &SpannedValue<'_>,
    ops: &[ExpandedOp],
) -> Result<BlockDef> {
    check_name(source, &name)?;
    let what = format!("[block.{}]", name.value);
    let section = SpecSection::new(source, item, &what)?.only(&["inputs", "node", "tensors"])?;
    let error = |span, message: String, label: &str| Err(SpecError::new(source, span, message, label));
    let items = array(source, section.require("inputs")?)?;
    let inputs: Vec<_> = items.iter().map(|item| string(source, item)).collect::<Result<_>>()?;
    let node_item = section.require("node")?;
    let nodes = nodes(source, node_item, ops)?;
    if nodes.is_empty() {
        return error(node_item.span(), format!("{what} has no node"), "expected the nodes of the block");
    }
    for (i, input) in inputs.iter().enumerate() {
        check_name(source, input)?;
        let (text, span) = (&input.value, input.span.clone());
        if OWN_KEYS.contains(&text.as_str()) || inputs[..i].iter().any(|other| other.value == *text) {
            return error(span, format!("`{text}` is taken"), "expected another name of an input");
        }
        if !nodes.iter().any(|node| reads(node, text)) {
            let message = format!("nothing in {what} reads its input `{text}`");
            return error(span, message, "expected a value that its nodes read");
        }
    }
    let tensors = match section.get("tensors") {
        Some(item) => tensors(source, item, &format!("[block.{}.tensors]", name.value), true)?,
        None => Vec::new(),
    };
    Ok(BlockDef { name, inputs, tensors, nodes })
}

/// Whether one of the node's keys names that value.
fn reads(node: &NodeDef, value: &str) -> bool {
    node.op.params.iter().any(|param| match node.args.get(param.name).map(|arg| (&arg.value, param.kind)) {
        Some((NodeArg::Text(text), ParamKind::Value)) => text == value,
        Some((NodeArg::Texts(texts), ParamKind::Values)) => texts.iter().any(|text| text.value == *value),
        _ => false,
    })
}
