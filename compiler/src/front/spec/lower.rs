//! [`Spec`] to [`Graph`]: instantiates the layers, resolves names. The demands and results of each op are in
//! its file of `compiler/src/ir/ops/`, layers and blocks in `lower_layers`, tensors in `lower_tensors`.

use super::at::LoweredNode;
use super::lowering::{GraphLowering, MAX_EXTENT};
use super::scope::{NONE, NameScope};
use super::{NodeDef, Result, RopeDef, RopeKind, RopeScalingDef, Scalar, Spanned, Spec, SpecError};
use crate::ir::ops;
use crate::ir::ops::keys::ParamKind;
use crate::ir::{Graph, Op, RopeParameters, RopeScaling, Type, Value, ValueId};
use kernmill_kernels_gen::row_op::HeadRotation;
use kernmill_plan::limit;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// Nodes of a graph at most: a short text repeats nodes in many layers.
const MAX_NODES: usize = 1 << 15;

/// Makes the graph of `spec` and checks shapes on the way.
///
/// # Errors
/// The first thing that is wrong, at the place in the spec.
pub fn lower(spec: &Spec) -> Result<Graph> {
    let scope = NameScope { spec, layer: None, in_last_layer: false, values: Rc::default(), block: None };
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
        vectors: None,
    };
    let mut lowering = GraphLowering {
        spec,
        graph,
        env: BTreeMap::new(),
        value_spans: Vec::new(),
        read: BTreeSet::new(),
        made: BTreeMap::new(),
        used_tensors: BTreeSet::new(),
        used_blocks: BTreeSet::new(),
        lowered: 0,
        attention: [None; 2],
        attention_layers: Vec::new(),
        output: None,
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
    pub(super) fn section(&mut self, scope: &NameScope<'a>, nodes: &'a [NodeDef]) -> Result<()> {
        let outs: Vec<_> = nodes.iter().map(|node| &node.out).collect();
        nodes.iter().try_for_each(|node| self.node(scope, node, &outs))
    }

    pub(super) fn node(
        &mut self,
        scope: &NameScope<'a>,
        node: &'a NodeDef,
        outs: &[&'a Spanned<String>],
    ) -> Result<()> {
        self.begin(scope, &node.out, &node.op_span, outs)?;
        let value = match self.passed_through(scope, node, outs)? {
            Some(value) => value,
            None => ops::lower(&mut LoweredNode { l: self, scope, node, outs })?,
        };
        self.env.insert(node.out.value.clone(), value);
        Ok(())
    }

    /// Checks that a node, whose op or block is named at `span`, may follow those before.
    pub(super) fn begin(
        &mut self,
        scope: &NameScope<'a>,
        out: &Spanned<String>,
        span: &Range<usize>,
        outs: &[&Spanned<String>],
    ) -> Result<()> {
        self.check_new(scope, out, outs)?;
        self.lowered += 1;
        if self.lowered.max(self.graph.nodes.len() + 1) > MAX_NODES {
            let message = format!("the model has more than {MAX_NODES} nodes in all layers");
            return Err(scope.error(span.clone(), &message, "expected fewer layers or nodes"));
        }
        Ok(())
    }

    /// The input of a node that has no rope, which is its value.
    fn passed_through(
        &mut self,
        scope: &NameScope<'a>,
        node: &'a NodeDef,
        outs: &[&Spanned<String>],
    ) -> Result<Option<ValueId>> {
        let named = |kind| {
            let param = node.op.params.iter().find(|param| param.kind == kind)?;
            GraphLowering::text(node, param.name)
        };
        let is_none = |rope: Spanned<String>| scope.name_of(&rope.value) == NONE;
        if !named(ParamKind::Rope).is_some_and(is_none) || self.spec.has_rope(NONE) {
            return Ok(None);
        }
        named(ParamKind::Value).map(|input| self.lookup(scope, &input, outs)).transpose()
    }

    fn check_new(
        &self,
        scope: &NameScope<'_>,
        name: &Spanned<String>,
        outs: &[&Spanned<String>],
    ) -> Result<()> {
        if !self.env.contains_key(&name.value) && name.value != "tokens" {
            return Ok(());
        }
        let before = outs.iter().take_while(|out| out.span != name.span).find(|out| out.value == name.value);
        let (message, label) = (format!("two values are called `{}`", name.value), "expected a new name");
        let error = SpecError::new(scope.source(), name.span.clone(), message, label);
        Err(match before {
            Some(first) => {
                let line = scope.source().line_column(first.span.start).0;
                error.help(format!("the first is in line {line}"))
            }
            None => error,
        })
    }

    fn finish(self) -> Result<Graph> {
        let source = &self.spec.source;
        let Some(computed) = self.output else {
            let message = "no node computes the logits";
            let error =
                SpecError::new(source, self.spec.model.name.span.clone(), message, "expected in this model");
            return Err(
                error.help("end [after] with a `logits` node, or with `embedding` where vectors are wanted")
            );
        };
        // A last node that goes on from the logits has the model's output.
        let last = ValueId(self.graph.values.len() as u32 - 1);
        let follows = self.graph.vectors.is_none() && self.read.contains(&computed);
        let output = if follows && self.ty(last) == self.ty(computed) { last } else { computed };
        for (index, (value, span)) in self.graph.values.iter().skip(1).zip(&self.value_spans).enumerate() {
            let id = ValueId(index as u32 + 1);
            if id != output && !self.read.contains(&id) {
                let message = format!("nothing uses the value `{}`", value.name);
                let label = "expected a later node that reads it";
                return Err(SpecError::new(source, span.clone(), message, label));
            }
        }
        self.check_ropes()?;
        if let Some(block) =
            self.spec.blocks.iter().find(|b| !self.used_blocks.contains(b.name.value.as_str()))
        {
            let message = format!("no layer has [block.{}]", block.name.value);
            let label = "expected a node of [layer], or one of its values, that names it";
            return Err(SpecError::new(source, block.name.span.clone(), message, label));
        }
        let of_layers = self.spec.layer.iter().flat_map(|layer| &layer.tensors);
        let of_blocks = self.spec.blocks.iter().flat_map(|block| &block.tensors);
        for tensor in self.spec.tensors.iter().chain(of_layers).chain(of_blocks) {
            if !self.used_tensors.contains(&tensor.name.span.start) {
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

    /// Every table is of the heads of the attention that reads what it rotates.
    fn check_ropes(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for node in &self.graph.nodes {
            let Some(attention) = node.op.attention() else { continue };
            let head_dim = attention.head_dim;
            let mut left: Vec<ValueId> = node.inputs.clone();
            while let Some(value) = left.pop() {
                if value == ValueId(0) || !seen.insert((value, head_dim)) {
                    continue;
                }
                let before = &self.graph.nodes[value.0 as usize - 1];
                match &before.op {
                    Op::Rope(rope) => self.check_rope(rope.rope as usize, head_dim)?,
                    op if op.matmul().is_some() || op.attention().is_some() => {}
                    _ => left.extend(&before.inputs),
                }
            }
        }
        Ok(())
    }

    fn check_rope(&self, rope: usize, head_dim: usize) -> Result<()> {
        let (def, found) = (&self.spec.ropes[rope], self.graph.ropes[rope].head.head_dim);
        if found == head_dim {
            return Ok(());
        }
        let name = &def.name.value;
        let message =
            format!("[rope.{name}] has heads of {found} elements, those of attention have {head_dim}");
        let label = format!("expected head_dim = {head_dim}");
        let error = SpecError::new(&self.spec.source, def.head_dim.span.clone(), message, label);
        Err(error.help("`rotary_dim` says how many elements of each head rotate, if not all do"))
    }
}
