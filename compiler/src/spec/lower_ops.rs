//! What each op of the spec language demands of its inputs and tensors, and the graph nodes that it becomes.

use super::lower::{Lowering, MAX_EXTENT, show};
use super::ops::SpecOp;
use super::scope::{Scope, inner_span};
use super::{Arg, NodeDef, Result, ScalarText, Spanned, SpecError};
use crate::expr;
use crate::graph::infer::{MAX_INPUTS, check_expr};
use crate::graph::{Activations, Attention, Op, Role, Rows, TensorId, Type, ValueId};
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::kv::KvElem;
use kernmill_plan::limit;

impl<'a> Lowering<'a> {
    /// Lowers `node`, one of `nodes`; returns the value that it computes.
    pub(super) fn node(
        &mut self,
        scope: &Scope<'a>,
        node: &'a NodeDef,
        nodes: &'a [NodeDef],
    ) -> Result<ValueId> {
        let mut at = At { l: self, scope, node, nodes };
        match node.op.op {
            SpecOp::Embed => at.embed(),
            SpecOp::RmsNorm => at.rms_norm(),
            SpecOp::Linear => at.linear(),
            SpecOp::Logits => at.logits(),
            SpecOp::Rope => at.rope(),
            SpecOp::Attention => at.attention(),
            SpecOp::RouterTopk => at.router_topk(),
            SpecOp::Moe => at.moe(),
            SpecOp::Glu => at.glu(),
            SpecOp::Elementwise => at.elementwise(),
            SpecOp::Add => at.pair(Op::Add),
            SpecOp::Mul => at.pair(Op::Mul),
            SpecOp::SelectRows => at.select_rows(),
        }
    }
}

/// A node being lowered.
struct At<'l, 'a> {
    l: &'l mut Lowering<'a>,
    scope: &'l Scope<'a>,
    node: &'a NodeDef,
    nodes: &'a [NodeDef],
}

impl At<'_, '_> {
    fn embed(&mut self) -> Result<ValueId> {
        let table = self.tensor("table", Role::Table)?;
        let (vocab, rows, cols) = (self.l.graph.vocab, self.shape(table)[0], self.shape(table)[1]);
        if rows != vocab {
            return Err(self.at(
                "table",
                &format!("the table has {rows} rows, the vocabulary {vocab} tokens"),
                format!("expected a tensor [{vocab}, ...]"),
            ));
        }
        self.check_width("table", cols)?;
        let tokens = ValueId(0);
        Ok(self.push(Type::F32(Rows::Tokens, cols), Op::Embed, vec![tokens], vec![table]))
    }

    fn rms_norm(&mut self) -> Result<ValueId> {
        let (x, rows, cols) = self.input("input")?;
        let weight = self.vector("weight", cols)?;
        let eps = self.scope.positive(&self.scalar("eps"), "eps")? as f32;
        Ok(self.push(Type::F32(rows, cols), Op::RmsNorm { eps }, vec![x], vec![weight]))
    }

    fn linear(&mut self) -> Result<ValueId> {
        let (x, rows, cols) = self.input("input")?;
        let weight = self.tensor("weight", Role::Matrix)?;
        let n = self.check_k("weight", weight, cols)?;
        // Logits alone may be wider.
        if self.node.op.op != SpecOp::Logits {
            self.check_width("weight", n)?;
        }
        let mut tensors = vec![weight];
        if self.node.args.contains_key("bias") {
            tensors.push(self.vector("bias", n)?);
        }
        let op = Op::Linear(self.activations()?);
        Ok(self.push(Type::F32(rows, n), op, vec![x], tensors))
    }

    fn activations(&self) -> Result<Activations> {
        if !self.node.args.contains_key("activations") {
            return Ok(Activations::AsPreset);
        }
        let word = self.text("activations").value;
        if word == "f32_in_last_layer" && self.scope.layer.is_none() {
            let message = "a node outside of the layers is in none of them";
            return Err(self.at("activations", message, "expected \"preset\" or \"f32\""));
        }
        Ok(match word == "f32" || word == "f32_in_last_layer" && self.scope.in_last_layer {
            true => Activations::F32,
            false => Activations::AsPreset,
        })
    }

    fn logits(&mut self) -> Result<ValueId> {
        let (_, rows, _) = self.input("input")?;
        if rows != Rows::LogitRows {
            let message = "logits of every row of the batch";
            return Err(self.at("input", message, "expected a value behind `select_rows`").help(
                "put a `select_rows` node before the final norm: only the rows whose logits are wanted go on",
            ));
        }
        if self.l.logits.is_some() {
            let message = "a second `logits` node";
            return Err(self.scope.error(self.node.op_span.clone(), message, "expected one in the model"));
        }
        let value = self.linear()?;
        let vocab = self.l.graph.vocab;
        if self.l.ty(value) != Type::F32(Rows::LogitRows, vocab) {
            let message =
                format!("logits with {}, the vocabulary has {vocab} tokens", show(self.l.ty(value)));
            return Err(self.at("weight", &message, format!("expected a tensor [{vocab}, ...]")));
        }
        self.l.logits = Some(value);
        Ok(value)
    }

    fn rope(&mut self) -> Result<ValueId> {
        let (x, cols) = self.token_input("input")?;
        let name = self.text("rope");
        let Some(rope) = self.l.spec.ropes.iter().position(|r| r.name.value == name.value) else {
            let message = format!("there is no [rope.{}]", name.value);
            let error = self.at("rope", &message, "expected the NAME of a [rope.NAME] section");
            return Err(error.near(&name.value, self.l.spec.ropes.iter().map(|r| r.name.value.as_str())));
        };
        let head_dim = self.l.graph.ropes[rope].head_dim;
        if !cols.is_multiple_of(head_dim) {
            let message = format!("{cols} columns do not divide into heads of {head_dim}");
            return Err(self.at("input", &message, format!("expected a multiple of {head_dim}")));
        }
        let op = Op::Rope { rope: rope as u32, head_dim };
        Ok(self.push(Type::F32(Rows::Tokens, cols), op, vec![x], vec![]))
    }

    fn attention(&mut self) -> Result<ValueId> {
        let (q, q_cols) = self.token_input("q")?;
        let (k, k_cols) = self.token_input("k")?;
        let (v, v_cols) = self.token_input("v")?;
        let kv_heads = self.whole("kv_heads", limit::KV_HEADS)?;
        let heads = self.whole("heads", limit::KV_HEADS * limit::QUERIES_PER_KV_HEAD)?;
        if !q_cols.is_multiple_of(heads) {
            let message = format!("q has {q_cols} columns, which {heads} heads do not divide");
            return Err(self.at("heads", &message, format!("expected a divisor of {q_cols}")));
        }
        if !heads.is_multiple_of(kv_heads) {
            let message = format!("{heads} heads do not divide among {kv_heads} KV heads");
            return Err(self.at("kv_heads", &message, format!("expected a divisor of {heads}")));
        }
        if heads / kv_heads > limit::QUERIES_PER_KV_HEAD {
            let message = format!("{} heads share a KV head", heads / kv_heads);
            let label = format!("expected at most {}", limit::QUERIES_PER_KV_HEAD);
            return Err(self.at("heads", &message, label));
        }
        let head_dim = q_cols / heads;
        if !head_dim.is_multiple_of(2) || head_dim > limit::HEAD_DIM {
            let message = format!("heads of {head_dim} elements");
            let label = format!("expected an even number up to {}", limit::HEAD_DIM);
            return Err(self.at("heads", &message, label));
        }
        for (key, cols) in [("k", k_cols), ("v", v_cols)] {
            if cols != kv_heads * head_dim {
                let message = format!("{key} has {cols} columns");
                let label = format!("expected {} ({kv_heads} KV heads of {head_dim})", kv_heads * head_dim);
                return Err(self.at(key, &message, label));
            }
        }
        if *self.l.attention.get_or_insert((kv_heads, head_dim)) != (kv_heads, head_dim) {
            let message = "attention layers with different KV heads are not supported";
            return Err(self.at("kv_heads", message, "expected the KV heads and head size of the first one"));
        }
        let scale = match self.node.args.contains_key("scale") {
            true => self.scope.positive(&self.scalar("scale"), "the scale")? as f32,
            false => (1.0 / (head_dim as f64).sqrt()) as f32,
        };
        let window = self.window()?;
        let tensors = match self.node.args.contains_key("sinks") {
            true => vec![self.vector("sinks", heads)?],
            false => vec![],
        };
        let layer = self.l.attention_layers;
        self.l.attention_layers += 1;
        let attention = Attention { layer, heads, kv_heads, head_dim, scale, window, kv: KvElem::F32 };
        let ty = Type::F32(Rows::Tokens, heads * head_dim);
        Ok(self.push(ty, Op::Attention(attention), vec![q, k, v], tensors))
    }

    /// `None` for absent or `"full"`.
    fn window(&mut self) -> Result<Option<u32>> {
        if !self.node.args.contains_key("window") {
            return Ok(None);
        }
        let scalar = self.scalar("window");
        if let ScalarText::Expr(text) = &scalar.value
            && (text == "full" || self.scope.values.get(text.as_str()) == Some(&None))
        {
            return Ok(None);
        }
        Ok(Some(self.scope.whole(&scalar, "the window", 1, MAX_EXTENT)? as u32))
    }

    fn router_topk(&mut self) -> Result<ValueId> {
        let (x, experts) = self.token_input("input")?;
        let k = self.whole("k", limit::TOP_K)?;
        if experts > limit::EXPERTS {
            let message = format!("a router of {experts} experts");
            return Err(self.at("input", &message, format!("expected at most {}", limit::EXPERTS)));
        }
        if k > experts {
            let message = format!("top-{k} of {experts} experts");
            return Err(self.at("k", &message, format!("expected at most {experts}")));
        }
        let value = self.push(Type::Routing(k as u32), Op::RouterTopk { k: k as u32 }, vec![x], vec![]);
        self.l.experts.insert(value, experts);
        Ok(value)
    }

    /// Grouped experts: gate and up, their activation, down, and the weighted sum.
    fn moe(&mut self) -> Result<ValueId> {
        let (x, cols) = self.token_input("input")?;
        let name = self.text("routing");
        let routing = self.l.lookup(self.scope, &name, self.nodes)?;
        let Type::Routing(k) = self.l.ty(routing) else {
            let message = format!("`{}` is {}", name.value, show(self.l.ty(routing)));
            return Err(self.at("routing", &message, "expected the output of a `router_topk`"));
        };
        let experts = self.l.experts[&routing];
        let expr = self.expr("activation", &["gate", "up"])?;
        let gate = self.expert_linear("gate", x, routing, (k, experts), (cols, None))?;
        let Type::F32(rows, hidden) = self.l.ty(gate) else { unreachable!("expert_linear makes f32") };
        let up = self.expert_linear("up", x, routing, (k, experts), (cols, Some(hidden)))?;
        let act = self.push_part("act", Type::F32(rows, hidden), Op::Glu { expr }, vec![gate, up], vec![]);
        let down = self.expert_linear("down", act, routing, (k, experts), (hidden, None))?;
        let Type::F32(_, out) = self.l.ty(down) else { unreachable!("expert_linear makes f32") };
        Ok(self.push(Type::F32(Rows::Tokens, out), Op::ExpertSum, vec![down, routing], vec![]))
    }

    fn expert_linear(
        &mut self,
        key: &'static str,
        x: ValueId,
        routing: ValueId,
        (k, experts): (u32, usize),
        (cols, rows): (usize, Option<usize>),
    ) -> Result<ValueId> {
        let weight = self.tensor(key, Role::ExpertMatrix)?;
        let shape = self.shape(weight).to_vec();
        let want = [experts, rows.unwrap_or(shape[1]), cols];
        if shape != want {
            let message = format!("tensor `{}` has shape {shape:?}", self.text(key).value);
            let label = match rows {
                Some(rows) => format!(
                    "expected [{experts}, {rows}, {cols}] (experts, rows of gate, columns of the input)"
                ),
                None => {
                    format!("expected [{experts}, ..., {cols}] (experts of the router, columns of the input)")
                }
            };
            return Err(self.at(key, &message, label));
        }
        self.check_width(key, shape[1])?;
        let mut tensors = vec![weight];
        let bias_key = match key {
            "gate" => "gate_bias",
            "up" => "up_bias",
            _ => "down_bias",
        };
        if self.node.args.contains_key(bias_key) {
            let bias = self.tensor(bias_key, Role::ExpertVector)?;
            self.check_shape(bias_key, bias, &[experts, shape[1]])?;
            tensors.push(bias);
        }
        let ty = Type::F32(Rows::Slots(k), shape[1]);
        Ok(self.push_part(key, ty, Op::ExpertLinear, vec![x, routing], tensors))
    }

    fn glu(&mut self) -> Result<ValueId> {
        let expr = self.expr("expr", &["gate", "up"])?;
        let (gate, rows, cols) = self.input("gate")?;
        let (up, up_rows, up_cols) = self.input("up")?;
        if (rows, cols) != (up_rows, up_cols) {
            let message = format!("gate has {cols} columns, up {up_cols}");
            return Err(self.at("up", &message, "expected the same rows and columns as gate"));
        }
        Ok(self.push(Type::F32(rows, cols), Op::Glu { expr }, vec![gate, up], vec![]))
    }

    fn elementwise(&mut self) -> Result<ValueId> {
        let names = self.texts("inputs");
        let vars: Vec<&str> = names.iter().map(|n| n.value.as_str()).collect();
        if vars.len() > MAX_INPUTS {
            let message = format!("{} inputs", vars.len());
            return Err(self.at("inputs", &message, format!("expected at most {MAX_INPUTS}")));
        }
        let expr = self.expr("expr", &vars)?;
        let (values, ty) = self.same_inputs(1)?;
        Ok(self.push(ty, Op::Elementwise { expr }, values, vec![]))
    }

    fn pair(&mut self, op: Op) -> Result<ValueId> {
        let (values, ty) = self.same_inputs(2)?;
        if values.len() != 2 {
            let message = format!("{} inputs", values.len());
            return Err(self.at("inputs", &message, "expected two values"));
        }
        Ok(self.push(ty, op, values, vec![]))
    }

    fn select_rows(&mut self) -> Result<ValueId> {
        let (x, cols) = self.token_input("input")?;
        Ok(self.push(Type::F32(Rows::LogitRows, cols), Op::SelectRows, vec![x], vec![]))
    }

    // Arguments.

    /// At least `min` f32 values of one type.
    fn same_inputs(&mut self, min: usize) -> Result<(Vec<ValueId>, Type)> {
        let names = self.texts("inputs");
        let mut values = Vec::new();
        for name in &names {
            let value = self.l.lookup(self.scope, name, self.nodes)?;
            let ty = self.l.ty(value);
            let first = values.first().map_or(ty, |&v| self.l.ty(v));
            if !matches!(ty, Type::F32(..)) || ty != first {
                let message = format!("`{}` has {}", name.value, show(ty));
                let label = match first {
                    Type::F32(..) => {
                        format!("expected {} and the same rows, as the first input", show(first))
                    }
                    _ => "expected a value of f32 columns".to_owned(),
                };
                return Err(self.scope.error(name.span.clone(), &message, label));
            }
            values.push(value);
        }
        if values.len() < min {
            let message = format!("{} inputs", values.len());
            return Err(self.at("inputs", &message, format!("expected at least {min}")));
        }
        let ty = self.l.ty(values[0]);
        Ok((values, ty))
    }

    /// An f32 value: itself, its rows, its columns.
    fn input(&mut self, key: &str) -> Result<(ValueId, Rows, usize)> {
        let name = self.text(key);
        let value = self.l.lookup(self.scope, &name, self.nodes)?;
        match self.l.ty(value) {
            Type::F32(rows, cols) => Ok((value, rows, cols)),
            other => {
                let message = format!("`{}` is {}", name.value, show(other));
                Err(self.at(key, &message, "expected a value of f32 columns"))
            }
        }
    }

    /// An f32 value with one row per token.
    fn token_input(&mut self, key: &str) -> Result<(ValueId, usize)> {
        match self.input(key)? {
            (value, Rows::Tokens, cols) => Ok((value, cols)),
            _ => {
                let message = format!("`{}` takes one row per token", self.node.op.name);
                Err(self.at(key, &message, "expected a value that `select_rows` has not passed"))
            }
        }
    }

    fn tensor(&mut self, key: &str, role: Role) -> Result<TensorId> {
        let name = self.text(key);
        self.l.tensor(self.scope, &name, role)
    }

    fn vector(&mut self, key: &str, n: usize) -> Result<TensorId> {
        let id = self.tensor(key, Role::Vector)?;
        self.check_shape(key, id, &[n])?;
        Ok(id)
    }

    fn check_shape(&self, key: &str, id: TensorId, want: &[usize]) -> Result<()> {
        let shape = self.shape(id);
        if shape == want {
            return Ok(());
        }
        let message = format!("tensor `{}` has shape {shape:?}", self.text(key).value);
        Err(self.at(key, &message, format!("expected {want:?}")))
    }

    /// A matrix must have a column per column of the input; returns its rows.
    fn check_k(&self, key: &str, id: TensorId, cols: usize) -> Result<usize> {
        let shape = self.shape(id);
        if shape[1] == cols {
            return Ok(shape[0]);
        }
        let message =
            format!("tensor `{}` has shape {shape:?}, the input {cols} columns", self.text(key).value);
        Err(self.at(key, &message, format!("expected [..., {cols}]")))
    }

    /// The columns of what the node makes of the tensor that `key` names.
    fn check_width(&self, key: &str, cols: usize) -> Result<()> {
        if cols <= limit::WIDTH {
            return Ok(());
        }
        let message = format!("tensor `{}` makes {cols} columns", self.text(key).value);
        Err(self.at(key, &message, format!("expected at most {}", limit::WIDTH)))
    }

    fn shape(&self, id: TensorId) -> &[usize] {
        &self.l.graph.tensors[id.0 as usize].shape
    }

    fn expr(&self, key: &str, vars: &[&str]) -> Result<Expr> {
        let text = self.text(key);
        let expr = expr::parse_with(&text.value, vars, &self.scope.spec.functions).map_err(|e| {
            let end = (e.offset + e.len.max(1)).min(text.value.len()).max(e.offset);
            let span = inner_span(self.scope.source(), &text.span, &text.value, &(e.offset..end));
            self.scope.error(span, "the expression does not parse", e.message)
        })?;
        match check_expr(&expr, vars.len()) {
            Ok(()) => Ok(expr),
            Err(message) => Err(self.at(key, &message, "expected a simpler expression")),
        }
    }

    /// A whole number from 1 to `most`.
    fn whole(&self, key: &str, most: usize) -> Result<usize> {
        Ok(self.scope.whole(&self.scalar(key), &format!("`{key}`"), 1, most as u64)? as usize)
    }

    fn scalar(&self, key: &str) -> Spanned<ScalarText> {
        match &self.node.args[key] {
            Spanned { value: Arg::Scalar(value), span } => {
                Spanned { value: value.clone(), span: span.clone() }
            }
            _ => unreachable!("the reader made `{key}` a scalar"),
        }
    }

    fn text(&self, key: &str) -> Spanned<String> {
        Lowering::text(self.node, key).expect("the reader made it text")
    }

    fn texts(&self, key: &str) -> Vec<Spanned<String>> {
        match &self.node.args[key].value {
            Arg::Texts(texts) => texts.clone(),
            _ => unreachable!("the reader made `{key}` an array of names"),
        }
    }

    fn at(&self, key: &str, message: &str, label: impl Into<String>) -> SpecError {
        self.scope.error(self.node.args[key].span.clone(), message, label)
    }

    fn push(&mut self, ty: Type, op: Op, inputs: Vec<ValueId>, tensors: Vec<TensorId>) -> ValueId {
        self.l.push(self.value_name(), self.node.out.span.clone(), ty, op, inputs, tensors)
    }

    /// A value inside the node, called after it.
    fn push_part(
        &mut self,
        part: &str,
        ty: Type,
        op: Op,
        inputs: Vec<ValueId>,
        tensors: Vec<TensorId>,
    ) -> ValueId {
        let name = format!("{}.{part}", self.value_name());
        self.l.push(name, self.node.out.span.clone(), ty, op, inputs, tensors)
    }

    fn value_name(&self) -> String {
        match self.scope.layer {
            Some(layer) => format!("layers.{layer}.{}", self.node.out.value),
            None => self.node.out.value.clone(),
        }
    }
}
