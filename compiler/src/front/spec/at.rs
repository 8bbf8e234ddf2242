//! A node of a spec while it is lowered, as its op sees it.

use super::lower_layers::MAX_LAYERS;
use super::lowering::{GraphLowering, MAX_EXTENT};
use super::scope::{FULL, NameScope, inner_span};
use super::{NodeArg, NodeDef, Result, ScalarText, Spanned, SpecError};
use crate::ir::expr;
use crate::ir::ops::SpecNode;
use crate::ir::ops::keys::ParamKind;
use crate::ir::{Activations, Graph, Node, NodeId, Op, Role, TensorId, Type, ValueId};
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::kv::LayerKind;
use kernmill_plan::vectors::VectorForm;
use std::ops::Range;

/// A node being lowered.
pub(super) struct LoweredNode<'l, 'a> {
    /// The graph so far.
    pub(super) l: &'l mut GraphLowering<'a>,
    /// Names in reach.
    pub(super) scope: &'l NameScope<'a>,
    /// The node.
    pub(super) node: &'a NodeDef,
    /// The names of the values of its section.
    pub(super) outs: &'l [&'a Spanned<String>],
}

impl LoweredNode<'_, '_> {
    /// A number as it is written.
    fn scalar(&self, key: &str) -> Spanned<ScalarText> {
        match &self.node.args[key] {
            Spanned { value: NodeArg::Scalar(value), span } => {
                Spanned { value: value.clone(), span: span.clone() }
            }
            _ => unreachable!("the reader made `{key}` a scalar"),
        }
    }
}

impl SpecNode for LoweredNode<'_, '_> {
    fn op_name(&self) -> &str {
        self.node.op.name
    }

    fn graph(&self) -> &Graph {
        &self.l.graph
    }

    fn has(&self, key: &str) -> bool {
        self.node.args.contains_key(key)
    }

    fn text(&self, key: &str) -> Spanned<String> {
        GraphLowering::text(self.node, key).expect("the reader made it text")
    }

    fn texts(&self, key: &str) -> Vec<Spanned<String>> {
        match &self.node.args[key].value {
            NodeArg::Texts(texts) => texts.clone(),
            _ => unreachable!("the reader made `{key}` an array of names"),
        }
    }

    fn value(&mut self, name: &Spanned<String>) -> Result<ValueId> {
        self.l.lookup(self.scope, name, self.outs)
    }

    fn tensor(&mut self, key: &str, role: Role) -> Result<TensorId> {
        self.named_tensor(&self.text(key), role)
    }

    fn named_tensor(&mut self, name: &Spanned<String>, role: Role) -> Result<TensorId> {
        self.l.tensor(self.scope, name, role)
    }

    fn rope(&self, key: &str) -> Result<u32> {
        let text = self.text(key).value;
        let name = self.scope.name_of(&text);
        let ropes = || self.l.spec.ropes.iter().map(|rope| rope.name.value.as_str());
        ropes().position(|rope| rope == name).map(|at| at as u32).ok_or_else(|| {
            let message = format!("there is no [rope.{name}]");
            let label = "expected the NAME of a [rope.NAME] section".to_owned();
            self.error_at(key, &message, label).near(name, ropes())
        })
    }

    fn parsed_expr(&self, key: &str, vars: &[&str]) -> Result<Expr> {
        let text = self.text(key);
        expr::parse_with(&text.value, vars, &self.scope.spec.functions).map_err(|e| {
            let end = (e.offset + e.len.max(1)).min(text.value.len()).max(e.offset);
            let span = inner_span(self.scope.source(), &text.span, &text.value, &(e.offset..end));
            self.scope.error(span, "the expression does not parse", e.message)
        })
    }

    fn whole_of(&self, key: &str, what: &str, most: u64) -> Result<u64> {
        self.scope.whole(&self.scalar(key), what, 1, most)
    }

    fn positive(&self, key: &str, what: &str) -> Result<f32> {
        Ok(self.scope.positive(&self.scalar(key), what)? as f32)
    }

    fn window(&self) -> Result<Option<u32>> {
        if !self.has("window") {
            return Ok(None);
        }
        if let ScalarText::Expr(text) = self.scalar("window").value
            && self.scope.name_of(&text) == FULL
        {
            return Ok(None);
        }
        Ok(Some(self.whole_of("window", "the window", MAX_EXTENT)? as u32))
    }

    fn activations(&self) -> Result<Activations> {
        if !self.has("activations") {
            return Ok(Activations::AsPreset);
        }
        const IN_LAST_LAYER: &str = "f32_in_last_layer";
        let text = self.text("activations").value;
        let word = self.scope.name_of(&text);
        if let Some(activations) = Activations::of(word) {
            return Ok(activations);
        }
        let (message, label) = match (word, self.scope.layer) {
            (IN_LAST_LAYER, Some(_)) => {
                let last = self.scope.in_last_layer;
                return Ok(if last { Activations::F32 } else { Activations::AsPreset });
            }
            (IN_LAST_LAYER, None) => (
                "a node outside of the layers is in none of them".to_owned(),
                "expected \"preset\", \"f32\" or \"q8x2\"".to_owned(),
            ),
            _ => (
                format!("unknown activations `{word}`"),
                format!("expected {}", ParamKind::Rounding.expected()),
            ),
        };
        let words = Activations::ALL.map(Activations::name).into_iter().chain([IN_LAST_LAYER]);
        Err(self.error_at("activations", &message, label).near(word, words))
    }

    fn next_attention(&mut self, shape: [usize; 3], causal: bool) -> Result<u32> {
        let (kind, word) = match self.window()?.filter(|_| causal) {
            Some(_) => (LayerKind::Sliding, "with a window"),
            None => (LayerKind::Full, "without a window"),
        };
        let first = *self.l.attention[kind.index()].get_or_insert(shape);
        if first != shape {
            let message = format!("attention layers {word} have different heads");
            let [kv_heads, head_dim, v_head_dim] = first;
            let values = match v_head_dim == head_dim {
                true => String::new(),
                false => format!(" and values of {v_head_dim}"),
            };
            let label = format!("expected {kv_heads} KV heads of {head_dim}{values}, as the first one has");
            return Err(self.error_at("kv_heads", &message, label));
        }
        self.l.attention_layers.push(self.scope.layer);
        Ok(self.l.attention_layers.len() as u32 - 1)
    }

    fn attention_of_layer(&self, key: &str) -> Result<NodeId> {
        if let ScalarText::Expr(text) = self.scalar(key).value
            && self.scope.name_of(&text) != text
        {
            let message = format!("`{text}` is no layer here, but `{}`", self.scope.name_of(&text));
            let label = "expected the number of a layer above, counted from 0";
            return Err(self.error_at(key, &message, label.to_owned()));
        }
        let layer = self.scope.whole(&self.scalar(key), &format!("`{key}`"), 0, MAX_LAYERS - 1)? as usize;
        let caches = self.l.attention_layers.iter().enumerate().filter(|(_, of)| **of == Some(layer));
        let caches: Vec<u32> = caches.map(|(number, _)| number as u32).collect();
        let [number] = caches[..] else {
            let message = match caches.len() {
                0 => format!("layer {layer} has no attention with a cache of its own above this node"),
                many => format!("layer {layer} has {many} attentions with caches"),
            };
            let label = "expected the number of a layer that has one, counted from 0";
            return Err(self.error_at(key, &message, label.to_owned()));
        };
        let has = |node: &Node| node.op.attention().is_some_and(|a| a.layer == number && !a.shared);
        let (id, _) = self.l.graph.nodes().find(|(_, node)| has(node)).expect("it was lowered");
        Ok(id)
    }

    fn set_output(&mut self, value: ValueId, vectors: Option<VectorForm>) -> Result<()> {
        if self.l.output.is_some() {
            let message = match self.node.op.name {
                "logits" => "a second `logits` node",
                _ => "a second output",
            };
            return Err(self.error(self.node.op_span.clone(), message, "expected one in the model".into()));
        }
        self.l.output = Some(value);
        self.l.graph.vectors = vectors;
        Ok(())
    }

    fn push_as(
        &mut self,
        part: Option<&str>,
        ty: Type,
        op: Op,
        inputs: Vec<ValueId>,
        tensors: Vec<TensorId>,
    ) -> ValueId {
        let mut name = self.scope.value_name(&self.node.out.value);
        if let Some(part) = part {
            name = format!("{name}.{part}");
        }
        self.l.push(name, self.node.out.span.clone(), ty, op, inputs, tensors)
    }

    fn error(&self, span: Range<usize>, message: &str, label: String) -> SpecError {
        self.scope.error(span, message, label)
    }

    fn error_at(&self, key: &str, message: &str, label: String) -> SpecError {
        self.error(self.node.args[key].span.clone(), message, label)
    }
}
