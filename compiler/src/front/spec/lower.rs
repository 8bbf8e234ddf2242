//! [`Spec`] to [`Graph`]: instantiates the layers, resolves names. The demands and results of each op are in
//! its file of `compiler/src/ir/ops/`, tensors are in `lower_tensors`.

use super::at::LoweredNode;
use super::lowering::{GraphLowering, MAX_EXTENT};
use super::number::Number;
use super::scope::NameScope;
use super::{
    LayerDef, NodeDef, Result, RopeDef, RopeKind, RopeScalingDef, Scalar, ScalarText, Spanned, Spec,
    SpecError, TensorFormat,
};
use crate::ir::ops;
use crate::ir::{Graph, RopeParameters, RopeScaling, Type, Value, ValueId};
use kernmill_kernels_gen::row_op::HeadRotation;
use kernmill_plan::limit;
use std::collections::{BTreeMap, BTreeSet};

/// Layers at most.
const MAX_LAYERS: u64 = 1024;
/// Nodes of a graph at most: a short text repeats nodes in many layers.
const MAX_NODES: usize = 1 << 15;

/// Makes the graph of `spec` and checks shapes on the way.
///
/// # Errors
/// The first thing that is wrong, at the place in the spec.
pub fn lower(spec: &Spec) -> Result<Graph> {
    let scope = NameScope { spec, layer: None, in_last_layer: false, values: BTreeMap::new() };
    let extent = |scalar: &Scalar, what: &str, most: usize| scope.whole(scalar, what, 1, most as u64);
    let graph = Graph {
        name: spec.model.name.value.clone(),
        vocab: extent(&spec.model.vocab, "the vocabulary size", limit::VOCAB)? as usize,
        max_context: extent(&spec.model.max_context, "the longest context", limit::CONTEXT)? as usize,
        left_out: spec.model.left_out.clone(),
        values: vec![Value { name: "tokens".into(), ty: Type::TokenIds }],
        tensors: Vec::new(),
        nodes: Vec::new(),
        ropes: spec.ropes.iter().map(|r| rope(&scope, r)).collect::<Result<_>>()?,
        output: ValueId(0),
    };
    let mut lowering = GraphLowering {
        spec,
        graph,
        env: BTreeMap::new(),
        value_spans: Vec::new(),
        read: BTreeSet::new(),
        made: BTreeMap::new(),
        used_tensors: BTreeSet::new(),
        attention: None,
        attention_layers: 0,
        logits: None,
    };
    lowering.section(&scope, &spec.before)?;
    if let Some(layer) = &spec.layer {
        lowering.layers(&scope, layer)?;
    }
    lowering.section(&scope, &spec.after)?;
    lowering.finish()
}

fn rope(scope: &NameScope<'_>, def: &RopeDef) -> Result<RopeParameters> {
    let head_dim = scope.whole(&def.head_dim, "head_dim", 2, limit::HEAD_DIM as u64)? as usize;
    if !head_dim.is_multiple_of(2) {
        let message = format!("head_dim is {head_dim}: RoPE rotates pairs");
        return Err(scope.error(def.head_dim.span.clone(), &message, "expected an even number"));
    }
    let theta = scope.evaluate(&def.theta)?.to_f64();
    if theta <= 1.0 {
        let message = format!("theta is {theta}");
        return Err(scope.error(def.theta.span.clone(), &message, "expected a number above 1"));
    }
    let rotary_dim = match &def.rotary_dim {
        Some(rotary_dim) => scope.whole(rotary_dim, "rotary_dim", 2, head_dim as u64)? as usize,
        None => head_dim,
    };
    if !rotary_dim.is_multiple_of(2) {
        let message = format!("rotary_dim is {rotary_dim}: RoPE rotates pairs");
        let span = def.rotary_dim.as_ref().unwrap_or(&def.head_dim).span.clone();
        return Err(scope.error(span, &message, "expected an even number"));
    }
    let mut factors = Vec::new();
    if let Some(list) = &def.factors {
        if list.value.len() != rotary_dim / 2 {
            let message = format!("{} factors of {} frequencies", list.value.len(), rotary_dim / 2);
            let label = format!("expected {} factors", rotary_dim / 2);
            return Err(scope.error(list.span.clone(), &message, label));
        }
        factors =
            list.value.iter().map(|factor| scope.positive(factor, "a factor")).collect::<Result<_>>()?;
    }
    let attention_factor =
        def.attention_factor.as_ref().map(|factor| scope.positive(factor, "attention_factor")).transpose()?;
    let scaling = match &def.scaling {
        Some(scaling) => rope_scaling(scope, scaling)?,
        None => RopeScaling::Plain,
    };
    let head = HeadRotation { head_dim, rotary_dim, pairs: def.pairs };
    Ok(RopeParameters { head, theta, scaling, factors, attention_factor })
}

fn rope_scaling(scope: &NameScope<'_>, scaling: &RopeScalingDef) -> Result<RopeScaling> {
    let number = |key: &str| scope.positive(&scaling.numbers[key], key);
    let factor = number("factor")?;
    if factor < 1.0 {
        let span = scaling.numbers["factor"].span.clone();
        return Err(scope.error(span, &format!("factor is {factor}"), "expected at least 1"));
    }
    let ordered = |low: f64, high: f64, rule: &str| {
        if low < high {
            Ok(())
        } else {
            Err(scope.error(scaling.span.clone(), rule, "expected in this scaling"))
        }
    };
    Ok(match scaling.kind {
        RopeKind::Linear => RopeScaling::Linear { factor },
        RopeKind::Dynamic => {
            check_dynamic(scope, &scaling.numbers["original_context"])?;
            RopeScaling::Plain
        }
        RopeKind::Yarn => {
            let original_context = number("original_context")?;
            let (beta_fast, beta_slow) = (number("beta_fast")?, number("beta_slow")?);
            ordered(beta_slow, beta_fast, "beta_slow must be below beta_fast")?;
            RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate: scaling.truncate }
        }
        RopeKind::Llama3 => {
            let original_context = number("original_context")?;
            let (low_freq_factor, high_freq_factor) =
                (number("low_freq_factor")?, number("high_freq_factor")?);
            ordered(low_freq_factor, high_freq_factor, "low_freq_factor must be below high_freq_factor")?;
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }
        }
    })
}

/// Dynamic scaling changes nothing up to the original context. Beyond it the frequencies would change with
/// every token, and with them the keys that are in the cache already.
fn check_dynamic(scope: &NameScope<'_>, original_context: &Scalar) -> Result<()> {
    let original = scope.whole(original_context, "the original context", 1, MAX_EXTENT)?;
    let longest = scope.whole(&scope.spec.model.max_context, "the longest context", 1, MAX_EXTENT)?;
    if longest <= original {
        return Ok(());
    }
    let message =
        format!("max_context is {longest}, but dynamic RoPE scaling is known to {original} tokens only");
    let span = scope.spec.model.max_context.span.clone();
    Err(scope.error(span, &message, format!("expected at most {original}")).help(
        "beyond the original context, dynamic scaling turns the keys of earlier tokens anew with every \
         token, which a cache cannot do; `linear`, `yarn` and `llama3` have one rotation for each position",
    ))
}

impl<'a> GraphLowering<'a> {
    fn section(&mut self, scope: &NameScope<'a>, nodes: &'a [NodeDef]) -> Result<()> {
        for node in nodes {
            self.check_new(scope, node, nodes)?;
            if self.graph.nodes.len() >= MAX_NODES {
                let message = format!("the model has more than {MAX_NODES} nodes in all layers");
                return Err(scope.error(node.op_span.clone(), &message, "expected fewer layers or nodes"));
            }
            let value = ops::lower(&mut LoweredNode { l: self, scope, node, nodes })?;
            self.env.insert(node.out.value.clone(), value);
        }
        Ok(())
    }

    fn layers(&mut self, outer: &NameScope<'a>, layer: &'a LayerDef) -> Result<()> {
        let count = outer.whole(&layer.count, "the number of layers", 1, MAX_LAYERS)? as usize;
        self.check_carry(outer, layer)?;
        check_formats(outer, layer, count)?;
        let outside = self.env.clone();
        for index in 0..count {
            let values = layer_values(outer, layer, index, count)?;
            let in_last_layer = index + 1 == count;
            let scope = NameScope { spec: outer.spec, layer: Some(index), in_last_layer, values };
            self.section(&scope, &layer.nodes)?;
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
            let outs = || layer.nodes.iter().map(|n| n.out.value.as_str());
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

    fn check_new(&self, scope: &NameScope<'_>, node: &NodeDef, nodes: &[NodeDef]) -> Result<()> {
        let name = &node.out;
        if !self.env.contains_key(&name.value) && name.value != "tokens" {
            return Ok(());
        }
        let before = nodes.iter().take_while(|n| n.out.span != name.span).find(|n| n.out.value == name.value);
        let (message, label) = (format!("two values are called `{}`", name.value), "expected a new name");
        let error = SpecError::new(scope.source(), name.span.clone(), message, label);
        Err(match before {
            Some(first) => {
                let line = scope.source().line_column(first.out.span.start).0;
                error.help(format!("the first is in line {line}"))
            }
            None => error,
        })
    }

    fn finish(self) -> Result<Graph> {
        let source = &self.spec.source;
        let Some(logits) = self.logits else {
            let message = "no node computes the logits";
            let error =
                SpecError::new(source, self.spec.model.name.span.clone(), message, "expected in this model");
            return Err(error.help("end [after] with a `logits` node"));
        };
        // What the last node makes of the logits takes their place.
        let last = ValueId(self.graph.values.len() as u32 - 1);
        let follows = self.read.contains(&logits) && self.ty(last) == self.ty(logits);
        let output = if follows { last } else { logits };
        for (index, (value, span)) in self.graph.values.iter().skip(1).zip(&self.value_spans).enumerate() {
            let id = ValueId(index as u32 + 1);
            if id != output && !self.read.contains(&id) {
                let message = format!("nothing uses the value `{}`", value.name);
                let label = "expected a later node that reads it";
                return Err(SpecError::new(source, span.clone(), message, label));
            }
        }
        self.check_ropes()?;
        let layer_tensors = self.spec.layer.iter().flat_map(|l| &l.tensors).map(|t| (true, t));
        for (per_layer, tensor) in self.spec.tensors.iter().map(|t| (false, t)).chain(layer_tensors) {
            if !self.used_tensors.contains(&(per_layer, tensor.name.value.as_str())) {
                let message = format!("nothing uses the tensor `{}`", tensor.name.value);
                return Err(SpecError::new(
                    source,
                    tensor.name.span.clone(),
                    message,
                    "expected a node that reads it",
                ));
            }
        }
        Ok(Graph { output, ..self.graph })
    }

    /// Every table is of the heads of attention.
    fn check_ropes(&self) -> Result<()> {
        let Some((_, head_dim)) = self.attention else { return Ok(()) };
        let mut tables = self.spec.ropes.iter().zip(&self.graph.ropes);
        let Some((def, rope)) = tables.find(|(_, rope)| rope.head.head_dim != head_dim) else {
            return Ok(());
        };
        let (name, found) = (&def.name.value, rope.head.head_dim);
        let message =
            format!("[rope.{name}] has heads of {found} elements, those of attention have {head_dim}");
        let label = format!("expected head_dim = {head_dim}");
        let error = SpecError::new(&self.spec.source, def.head_dim.span.clone(), message, label);
        Err(error.help("`rotary_dim` says how many elements of each head rotate, if not all do"))
    }
}

/// A list of formats has one for every layer.
fn check_formats(outer: &NameScope<'_>, layer: &LayerDef, count: usize) -> Result<()> {
    for def in &layer.tensors {
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
) -> Result<BTreeMap<&'a str, Option<Number>>> {
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
        let value = match &item.value {
            ScalarText::Expr(text) if text == "full" => None,
            _ => Some(outer.evaluate(item)?),
        };
        values.insert(def.name.value.as_str(), value);
    }
    Ok(values)
}
