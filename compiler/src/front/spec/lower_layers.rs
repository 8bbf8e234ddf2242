//! The layers of a [`Spec`](super::Spec): its nodes and blocks, layer by layer.

use super::lowering::GraphLowering;
use super::scope::{FULL, LayerValue, NONE, NameScope};
use super::{
    BlockUse, LayerDef, LayerNode, Result, Scalar, ScalarText, Spanned, SpecError, TensorDef, TensorFormat,
};
use crate::ir::{Activations, ValueId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Layers at most.
pub(super) const MAX_LAYERS: u64 = 1024;

impl<'a> GraphLowering<'a> {
    pub(super) fn layers(&mut self, outer: &NameScope<'a>, layer: &'a LayerDef) -> Result<()> {
        let count = outer.whole(&layer.count, "the number of layers", 1, MAX_LAYERS)? as usize;
        self.check_carry(outer, layer)?;
        let of_blocks = outer.spec.blocks.iter().flat_map(|block| &block.tensors);
        check_formats(outer, layer.tensors.iter().chain(of_blocks), count)?;
        let outs: Vec<_> = layer.nodes.iter().map(LayerNode::out).collect();
        let outside = self.env.clone();
        for index in 0..count {
            let values = Rc::new(layer_values(outer, layer, index, count)?);
            let in_last_layer = index + 1 == count;
            let scope =
                NameScope { spec: outer.spec, layer: Some(index), in_last_layer, values, block: None };
            for node in &layer.nodes {
                match node {
                    LayerNode::Op(node) => self.node(&scope, node, &outs)?,
                    LayerNode::Block(used) => self.block(&scope, used, &outs)?,
                }
            }
            let mut next = outside.clone();
            for (name, from) in &layer.carry {
                let value = self.env[&from.value];
                self.same_type(&scope, from, self.env[&name.value], value)?;
                next.insert(name.value.clone(), value);
            }
            self.env = next;
        }
        Ok(())
    }

    /// The nodes of the block that a node of the layer names, in its place.
    fn block(
        &mut self,
        scope: &NameScope<'a>,
        used: &'a BlockUse,
        outs: &[&'a Spanned<String>],
    ) -> Result<()> {
        self.begin(scope, &used.out, &used.block.span, outs)?;
        let name = scope.name_of(&used.block.value);
        let Some(block) = scope.spec.block(name) else {
            let number = scope.values.get(name).is_some_and(|value| value.name.is_none());
            let message = match number {
                true => format!("the per-layer value `{name}` is a number"),
                false => format!("there is no [block.{name}]"),
            };
            let label = "expected the NAME of a [block.NAME], or a per-layer value that says one";
            let error = scope.error(used.block.span.clone(), &message, label);
            let blocks = scope.spec.blocks.iter().map(|block| block.name.value.as_str());
            return Err(error.near(name, blocks.chain(scope.values.keys().copied())));
        };
        self.used_blocks.insert(&block.name.value);
        let inputs = || block.inputs.iter().map(|input| input.value.as_str());
        let mut env = BTreeMap::new();
        for (input, value) in &used.inputs {
            if !inputs().any(|name| name == input.value) {
                let message = format!("[block.{name}] has no input `{}`", input.value);
                let label = format!("expected one of: {}", inputs().collect::<Vec<_>>().join(", "));
                return Err(scope.error(input.span.clone(), &message, label).near(&input.value, inputs()));
            }
            env.insert(input.value.clone(), self.lookup(scope, value, outs)?);
        }
        if let Some(missing) = inputs().find(|input| !env.contains_key(*input)) {
            let message = format!("[block.{name}] needs its input `{missing}`");
            let label = format!("expected a key `{missing}` beside this one, with the name of a value");
            return Err(scope.error(used.block.span.clone(), &message, label));
        }
        let of_layer = std::mem::replace(&mut self.env, env);
        let (values, place) = (Rc::clone(&scope.values), Some((block, used.out.value.as_str())));
        self.section(&NameScope { values, block: place, ..*scope }, &block.nodes)?;
        let last = block.nodes.last().expect("the reader has seen a node");
        let value = self.env[&last.out.value];
        self.env = of_layer;
        self.env.insert(used.out.value.clone(), value);
        Ok(())
    }

    /// A carried value exists on entry and is computed in the layer.
    fn check_carry(&self, scope: &NameScope<'_>, layer: &LayerDef) -> Result<()> {
        for (name, from) in &layer.carry {
            if !self.env.contains_key(&name.value) {
                let message =
                    format!("`{}` is carried through the layers but has no first value", name.value);
                let label = "expected the name of a value of [before]";
                let error = SpecError::new(scope.source(), name.span.clone(), message, label);
                return Err(error.near(&name.value, self.env.keys().map(String::as_str)));
            }
            let outs = || layer.nodes.iter().map(|node| node.out().value.as_str());
            if !outs().any(|out| out == from.value) {
                let message = format!("no node of the layer computes `{}`", from.value);
                let label = "expected the name of a value of the layer";
                let error = SpecError::new(scope.source(), from.span.clone(), message, label);
                return Err(error.near(&from.value, outs()));
            }
        }
        Ok(())
    }

    fn same_type(
        &self,
        scope: &NameScope<'_>,
        from: &Spanned<String>,
        entry: ValueId,
        exit: ValueId,
    ) -> Result<()> {
        let (entry, exit) = (self.ty(entry), self.ty(exit));
        if entry == exit {
            return Ok(());
        }
        let message =
            format!("the carried value changes its type: {} becomes {}", entry.in_words(), exit.in_words());
        Err(scope.error(from.span.clone(), &message, format!("expected {}", entry.in_words())))
    }
}

/// A list of formats has one for every layer.
fn check_formats<'t>(
    outer: &NameScope<'_>,
    defs: impl Iterator<Item = &'t TensorDef>,
    count: usize,
) -> Result<()> {
    for def in defs {
        if let TensorFormat::ByLayer(list) = &def.format
            && list.value.len() != count
        {
            let (name, listed) = (&def.name.value, list.value.len());
            let message = format!("tensor `{name}` lists {listed} formats for {count} layers");
            return Err(outer.error(list.span.clone(), &message, format!("expected {count} formats")));
        }
    }
    Ok(())
}

fn layer_values<'a>(
    outer: &NameScope<'a>,
    layer: &'a LayerDef,
    index: usize,
    count: usize,
) -> Result<BTreeMap<&'a str, LayerValue<'a>>> {
    let mut values = BTreeMap::new();
    for def in &layer.values {
        let items = &def.items.value;
        if outer.spec.dims.contains_key(&def.name.value) {
            let message = format!("`{}` is both a dim and a per-layer value", def.name.value);
            return Err(outer.error(def.name.span.clone(), &message, "expected a new name"));
        }
        if !def.cycle && items.len() != count {
            let message = format!("`{}` lists {} values for {count} layers", def.name.value, items.len());
            return Err(outer.error(def.items.span.clone(), &message, format!("expected {count} values")));
        }
        let item = &items[index % items.len()];
        values.insert(def.name.value.as_str(), layer_value(outer, item)?);
    }
    Ok(values)
}

/// A number, or a name; a dim may have the name of a rope or block too.
fn layer_value<'a>(outer: &NameScope<'a>, item: &'a Scalar) -> Result<LayerValue<'a>> {
    let (spec, is_dim) = (outer.spec, |name: &str| outer.spec.dims.contains_key(name));
    let ScalarText::Expr(text) = &item.value else {
        return Ok(LayerValue { number: Some(outer.evaluate(item)?), name: None });
    };
    let name = Some(text.as_str()).filter(|name| {
        let is_word = [FULL, NONE].contains(name) || Activations::of(name).is_some();
        is_word || spec.has_rope(name) || spec.block(name).is_some()
    });
    if name.is_some_and(|name| name == FULL || !is_dim(name)) {
        return Ok(LayerValue { number: None, name });
    }
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_dim(text) {
        let message = format!("`{text}` is the name of no dim, rope or block");
        let label = "expected one of their names, a number, \"full\" or \"none\"";
        let known = spec.dims.keys().map(String::as_str);
        let ropes = spec.ropes.iter().map(|rope| rope.name.value.as_str());
        let blocks = spec.blocks.iter().map(|block| block.name.value.as_str());
        let error = outer.error(item.span.clone(), &message, label);
        return Err(error.near(text, known.chain(ropes).chain(blocks).chain([FULL, NONE])));
    }
    Ok(LayerValue { number: Some(outer.evaluate(item)?), name })
}
