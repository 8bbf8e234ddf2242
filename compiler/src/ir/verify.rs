//! Checks a graph, whoever made it.

use super::{Attention, Graph, GraphError, Node, Role, RopeParameters, RopeScaling, Rows, Type, ValueId};
use crate::ir::ops::form::check_tensor;
use crate::ir::ops::infer;
use kernmill_kernels_gen::row_op::HeadRotation;
use std::collections::HashSet;

impl Graph {
    /// Checks that this is a legal graph: unique names; value 0 the token ids and value `i + 1` the output of
    /// node `i`, so that each value has one definition; topological order; legal ops, types, tensors and
    /// divisibility; attention layers numbered in order, and those of a kind alike; the output f32
    /// `[R, vocab]`, or of any width where vectors are made of it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<(), GraphError> {
        self.verify_names()?;
        for (i, rope) in self.ropes.iter().enumerate() {
            verify_rope(rope).map_err(|message| GraphError::new(format!("rope {i}"), message))?;
        }
        for tensor in &self.tensors {
            check_tensor(tensor).map_err(|message| GraphError::new(format!("@{}", tensor.name), message))?;
        }
        self.verify_nodes()?;
        self.verify_lora_targets()?;
        self.verify_attention()?;
        self.verify_output()
    }

    fn verify_names(&self) -> Result<(), GraphError> {
        let ok = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        };
        let values = self.values.iter().map(|value| ('%', &value.name));
        let tensors = self.tensors.iter().map(|tensor| ('@', &tensor.name));
        let mut seen = HashSet::new();
        for (sigil, name) in values.chain(tensors) {
            let at = format!("{sigil}{name}");
            if !ok(name) {
                return Err(GraphError::new(at, "a name is made of letters, digits, `_`, `.` and `-`"));
            }
            if !seen.insert(at.clone()) {
                return Err(GraphError::new(at, "the name is used twice"));
            }
        }
        Ok(())
    }

    fn verify_nodes(&self) -> Result<(), GraphError> {
        let error = |message: String| Err(GraphError::new(format!("graph {}", self.name), message));
        if self.values.len() != self.nodes.len() + 1 {
            return error(format!(
                "{} values for {} nodes and the input",
                self.values.len(),
                self.nodes.len()
            ));
        }
        if self.values[0].ty != Type::TokenIds {
            return error("value 0 is not the token ids".into());
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let at = format!("%{} ({})", self.values[i + 1].name, node.kind());
            let error = |message: String| Err(GraphError::new(at.clone(), message));
            if node.output != ValueId(i as u32 + 1) {
                return error(format!("node {i} writes value {}, expected {}", node.output.0, i + 1));
            }
            if let Some(late) = node.inputs.iter().find(|value| value.0 as usize > i) {
                let name = self.values.get(late.0 as usize).map_or("?", |value| &value.name);
                return error(format!("reads %{name}, which is not defined before it"));
            }
            if let Some(tensor) = node.tensors.iter().find(|tensor| tensor.0 as usize >= self.tensors.len()) {
                return error(format!("tensor {} of {}", tensor.0, self.tensors.len()));
            }
            let inputs: Vec<Type> = node.inputs.iter().map(|&value| self.value(value).ty).collect();
            let tensors: Vec<_> = node.tensors.iter().map(|&tensor| self.tensor(tensor)).collect();
            let ty = infer(&node.op, &inputs, &tensors, &self.ropes)
                .map_err(|message| GraphError::new(at.clone(), message))?;
            let stated = self.value(node.output).ty;
            if ty != stated {
                return error(format!("its output is {}, stated as {}", ty.text(), stated.text()));
            }
            if let (true, [table]) = (node.op.is_embed(), tensors.as_slice())
                && (table.role != Role::Table || table.shape[0] != self.vocab)
            {
                return error(format!(
                    "@{} has {} rows, the vocabulary {}",
                    table.name, table.shape[0], self.vocab
                ));
            }
            if let (true, [table]) = (node.op.is_embed_of_positions(), tensors.as_slice())
                && (table.role != Role::Table || table.shape[0] < self.max_context)
            {
                return error(format!(
                    "@{} has {} rows, the context {} positions",
                    table.name, table.shape[0], self.max_context
                ));
            }
        }
        Ok(())
    }

    fn verify_attention(&self) -> Result<(), GraphError> {
        // By kind of layer: those of a kind share a block table, and with it the shape of the blocks.
        let mut first: [Option<&Attention>; 2] = [None; 2];
        let mut layers = 0;
        for node in &self.nodes {
            let Some(attention) = node.op.attention() else { continue };
            let error =
                |message: String| Err(GraphError::new(format!("%{}", self.value(node.output).name), message));
            if attention.shared {
                if let Err(message) = self.verify_shared(node, attention) {
                    return error(message);
                }
                continue;
            }
            if attention.layer != layers {
                return error(format!("attention layer {}, expected {layers}", attention.layer));
            }
            layers += 1;
            let own = first[attention.layer_kind().index()].get_or_insert(attention);
            let (a, b) = (attention.kv, own.kv);
            if a != b {
                return error(format!("keys and values are {a}, but {b} in a layer of the same kind before"));
            }
            let heads = |a: &Attention| (a.kv_heads, a.head_dim);
            let (a, b) = (heads(attention), heads(own));
            if a != b {
                return error(format!(
                    "kv_heads, head_dim = {a:?}, but {b:?} in a layer of the same kind before"
                ));
            }
        }
        Ok(())
    }

    /// An attention that shares a cache reads what is in it, as the one that it belongs to does, and comes
    /// after it.
    fn verify_shared(&self, node: &Node, attention: &Attention) -> Result<(), String> {
        let layer = attention.layer;
        let has = |other: &Node| other.op.attention().is_some_and(|a| a.layer == layer && !a.shared);
        let Some((id, own)) = self.nodes().find(|(_, other)| has(other)) else {
            return Err(format!("no attention has cache {layer}"));
        };
        let view = |a: &Attention| (a.window, a.causal, a.geometry());
        if node.inputs[1..] != own.inputs[1..] || own.op.attention().map(view) != Some(view(attention)) {
            return Err(format!("it reads cache {layer} as another than %{}", self.value(own.output).name));
        }
        match self.follows(node.inputs[0], id) {
            true => Ok(()),
            false => Err(format!("its queries do not follow from %{}", self.value(own.output).name)),
        }
    }

    fn verify_output(&self) -> Result<(), GraphError> {
        if self.whole_texts() && self.vectors.is_none() {
            let message = "logits behind attention that is not causal, expected vectors";
            return Err(GraphError::new("output", message));
        }
        let found = self.values.get(self.output.0 as usize);
        let cols = match (self.vectors, found.map(|value| value.ty)) {
            (Some(_), Some(ty)) => ty.cols(),
            _ => self.vocab,
        };
        let wanted = Type::F32(Rows::LogitRows, cols);
        match found {
            Some(value) if value.ty == wanted => Ok(()),
            Some(value) => {
                let message = format!("the output is {}, expected {}", value.ty.text(), wanted.text());
                Err(GraphError::new(format!("%{}", value.name), message))
            }
            None => Err(GraphError::new("output", format!("value {} does not exist", self.output.0))),
        }
    }
}

fn verify_rope(rope: &RopeParameters) -> Result<(), String> {
    let positive = |what: &str, x: f64| {
        if x.is_finite() && x > 0.0 { Ok(()) } else { Err(format!("{what} = {x}, expected a number > 0")) }
    };
    let HeadRotation { head_dim, rotary_dim, .. } = rope.head;
    if head_dim == 0 || !head_dim.is_multiple_of(2) {
        return Err(format!("head_dim = {head_dim}, expected an even number"));
    }
    if !(2..=head_dim).contains(&rotary_dim) || !rotary_dim.is_multiple_of(2) {
        return Err(format!("rotary_dim = {rotary_dim}, expected an even number up to {head_dim}"));
    }
    if !rope.factors.is_empty() && rope.factors.len() != rotary_dim / 2 {
        return Err(format!("{} factors of {} frequencies", rope.factors.len(), rotary_dim / 2));
    }
    rope.factors.iter().try_for_each(|factor| positive("a factor", *factor))?;
    positive("attention_factor", rope.attention_factor.unwrap_or(1.0))?;
    positive("theta", rope.theta)?;
    match rope.scaling {
        RopeScaling::Plain => Ok(()),
        RopeScaling::Linear { factor } => positive("factor", factor),
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, truncate: _ } => {
            positive("factor", factor)?;
            positive("beta_fast", beta_fast)?;
            positive("beta_slow", beta_slow)?;
            positive("original_context", original_context)?;
            match rope.theta == 1.0 {
                true => Err("theta = 1, expected another number: YaRN divides by its logarithm".to_owned()),
                false => Ok(()),
            }
        }
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
            positive("factor", factor)?;
            positive("low_freq_factor", low_freq_factor)?;
            positive("high_freq_factor", high_freq_factor)?;
            positive("original_context", original_context)
        }
    }
}
