//! The graph while it is made from a spec: values and tensors by their names.

use super::scope::NameScope;
use super::{LayerNode, NodeArg, NodeDef, Result, Spanned, Spec, SpecError};
use crate::ir::ops::keys::ParamKind;
use crate::ir::{Graph, Node, Op, TensorId, Type, Value, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Largest extent of anything: token ids, positions and columns are 32-bit in kernels.
pub(crate) const MAX_EXTENT: u64 = 1 << 31;

/// The graph so far.
pub(crate) struct GraphLowering<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) graph: Graph,
    /// Values by the name that the nodes at hand use.
    pub(crate) env: BTreeMap<String, ValueId>,
    /// Where the name of each value but the first, the token ids, stands in the spec.
    pub(super) value_spans: Vec<Range<usize>>,
    /// Values that some node reads.
    pub(crate) read: BTreeSet<ValueId>,
    /// Tensors by their full names.
    pub(crate) made: BTreeMap<String, TensorId>,
    /// Where the names of tensors stand that some node reads.
    pub(crate) used_tensors: BTreeSet<usize>,
    /// Names of the blocks that layers have.
    pub(super) used_blocks: BTreeSet<&'a str>,
    /// Nodes of the spec so far, each in every layer that has it.
    pub(super) lowered: usize,
    /// KV heads, `head_dim` and `v_head_dim` of the attention layers, by kind of layer.
    pub(crate) attention: [Option<[usize; 3]>; 2],
    /// The layer of the spec that each attention with a cache is in, if it is in one.
    pub(crate) attention_layers: Vec<Option<usize>>,
    /// The value that the model leaves, once a node says which.
    pub(crate) output: Option<ValueId>,
}

impl<'a> GraphLowering<'a> {
    pub(crate) fn ty(&self, value: ValueId) -> Type {
        self.graph.values[value.0 as usize].ty
    }

    /// Adds a node that computes a value called `name`, which stands at `span`.
    pub(crate) fn push(
        &mut self,
        name: String,
        span: Range<usize>,
        ty: Type,
        op: Op,
        inputs: Vec<ValueId>,
        tensors: Vec<TensorId>,
    ) -> ValueId {
        let output = ValueId(self.graph.values.len() as u32);
        self.graph.values.push(Value { name, ty });
        self.value_spans.push(span);
        self.read.extend(&inputs);
        self.graph.nodes.push(Node { op, inputs, tensors, output });
        output
    }

    /// The value called `name.value`, for a node of a section whose values are `outs`.
    pub(crate) fn lookup(
        &mut self,
        scope: &NameScope<'_>,
        name: &Spanned<String>,
        outs: &[&Spanned<String>],
    ) -> Result<ValueId> {
        if let Some(&value) = self.env.get(&name.value) {
            return Ok(value);
        }
        let text = &name.value;
        let later = outs.iter().find(|out| out.value == *text);
        if let Some(later) = later {
            let line = scope.source().line_column(later.span.start).0;
            let message = format!("`{text}` is used before it is computed");
            let label = format!("expected a value of a node above; `{text}` is computed in line {line}");
            return Err(SpecError::new(scope.source(), name.span.clone(), message, label)
                .help("nodes run from top to bottom; `carry` hands a value to the next layer"));
        }
        let is_it = |node: &LayerNode| node.out().value == *text;
        let in_layer = self.spec.layer.as_ref().is_some_and(|layer| layer.nodes.iter().any(is_it));
        let message = format!("there is no value `{text}`");
        let error =
            SpecError::new(scope.source(), name.span.clone(), message, "expected a value of a node above");
        if in_layer && scope.layer.is_none() {
            return Err(
                error.help(format!("`{text}` is inside the layer: `carry` it to use it after the layers"))
            );
        }
        if let (true, Some((block, _))) = (in_layer, scope.block) {
            let block = &block.name.value;
            return Err(error.help(format!(
                "`{text}` is a value of the layer: [block.{block}] needs it as one of its `inputs`"
            )));
        }
        Err(error.near(text, self.env.keys().map(String::as_str)))
    }

    /// An argument of `node` as a name.
    pub(crate) fn text(node: &'a NodeDef, key: &str) -> Option<Spanned<String>> {
        debug_assert!(
            node.op
                .params
                .iter()
                .any(|p| p.name == key && !matches!(p.kind, ParamKind::Values | ParamKind::Tensors))
        );
        match node.args.get(key) {
            Some(Spanned { value: NodeArg::Text(text), span }) => {
                Some(Spanned { value: text.clone(), span: span.clone() })
            }
            _ => None,
        }
    }
}
