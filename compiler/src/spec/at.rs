//! A node of a spec while it is lowered: what ops read its arguments with, and add graph nodes with.

use super::lower::{GraphLowering, MAX_EXTENT, show};
use super::scope::{NameScope, inner_span};
use super::{NodeArg, NodeDef, Result, ScalarText, Spanned, SpecError};
use crate::expr;
use crate::graph::{Activations, Op, Role, Rows, TensorId, Type, ValueId};
use crate::ops::form::check_expr;
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::limit;

/// A node being lowered.
pub(crate) struct LoweredNode<'l, 'a> {
    /// The graph so far.
    pub(crate) l: &'l mut GraphLowering<'a>,
    /// Names in reach.
    pub(crate) scope: &'l NameScope<'a>,
    /// The node.
    pub node: &'a NodeDef,
    /// The nodes of its section.
    pub nodes: &'a [NodeDef],
}

impl LoweredNode<'_, '_> {
    /// Two values of one type, and `op` of them.
    pub fn pair(&mut self, op: Op) -> Result<ValueId> {
        let (values, ty) = self.same_inputs(2)?;
        if values.len() != 2 {
            let message = format!("{} inputs", values.len());
            return Err(self.at("inputs", &message, "expected two values"));
        }
        Ok(self.push(ty, op, values, vec![]))
    }

    /// Whether the node has that key.
    pub fn has(&self, key: &str) -> bool {
        self.node.args.contains_key(key)
    }

    /// The roundings that presets may apply to the input of a product.
    pub fn activations(&self) -> Result<Activations> {
        if !self.has("activations") {
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

    /// `None` for absent or `"full"`.
    pub fn window(&mut self) -> Result<Option<u32>> {
        if !self.has("window") {
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

    /// At least `min` f32 values of one type.
    pub fn same_inputs(&mut self, min: usize) -> Result<(Vec<ValueId>, Type)> {
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
    pub fn input(&mut self, key: &str) -> Result<(ValueId, Rows, usize)> {
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
    pub fn token_input(&mut self, key: &str) -> Result<(ValueId, usize)> {
        match self.input(key)? {
            (value, Rows::Tokens, cols) => Ok((value, cols)),
            _ => {
                let message = format!("`{}` takes one row per token", self.node.op.name);
                Err(self.at(key, &message, "expected a value that `select_rows` has not passed"))
            }
        }
    }

    /// The tensor that `key` names, as one of that role.
    pub fn tensor(&mut self, key: &str, role: Role) -> Result<TensorId> {
        let name = self.text(key);
        self.l.tensor(self.scope, &name, role)
    }

    /// The vector of `n` that `key` names.
    pub fn vector(&mut self, key: &str, n: usize) -> Result<TensorId> {
        let id = self.tensor(key, Role::Vector)?;
        self.check_shape(key, id, &[n])?;
        Ok(id)
    }

    /// A tensor must have this shape.
    pub fn check_shape(&self, key: &str, id: TensorId, want: &[usize]) -> Result<()> {
        let shape = self.shape(id);
        if shape == want {
            return Ok(());
        }
        let message = format!("tensor `{}` has shape {shape:?}", self.text(key).value);
        Err(self.at(key, &message, format!("expected {want:?}")))
    }

    /// A matrix must have a column per column of the input; returns its rows.
    pub fn check_k(&self, key: &str, id: TensorId, cols: usize) -> Result<usize> {
        let shape = self.shape(id);
        if shape[1] == cols {
            return Ok(shape[0]);
        }
        let message =
            format!("tensor `{}` has shape {shape:?}, the input {cols} columns", self.text(key).value);
        Err(self.at(key, &message, format!("expected [..., {cols}]")))
    }

    /// The columns of what the node makes of the tensor that `key` names.
    pub fn check_width(&self, key: &str, cols: usize) -> Result<()> {
        if cols <= limit::WIDTH {
            return Ok(());
        }
        let message = format!("tensor `{}` makes {cols} columns", self.text(key).value);
        Err(self.at(key, &message, format!("expected at most {}", limit::WIDTH)))
    }

    /// Shape of a tensor.
    pub fn shape(&self, id: TensorId) -> &[usize] {
        &self.l.graph.tensors[id.0 as usize].shape
    }

    /// The expression over `vars` that `key` holds.
    pub fn expr(&self, key: &str, vars: &[&str]) -> Result<Expr> {
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
    pub fn whole(&self, key: &str, most: usize) -> Result<usize> {
        Ok(self.scope.whole(&self.scalar(key), &format!("`{key}`"), 1, most as u64)? as usize)
    }

    /// A number as it is written.
    pub fn scalar(&self, key: &str) -> Spanned<ScalarText> {
        match &self.node.args[key] {
            Spanned { value: NodeArg::Scalar(value), span } => {
                Spanned { value: value.clone(), span: span.clone() }
            }
            _ => unreachable!("the reader made `{key}` a scalar"),
        }
    }

    /// A name or text.
    pub fn text(&self, key: &str) -> Spanned<String> {
        GraphLowering::text(self.node, key).expect("the reader made it text")
    }

    /// An array of names.
    pub fn texts(&self, key: &str) -> Vec<Spanned<String>> {
        match &self.node.args[key].value {
            NodeArg::Texts(texts) => texts.clone(),
            _ => unreachable!("the reader made `{key}` an array of names"),
        }
    }

    /// An error at a key.
    pub fn at(&self, key: &str, message: &str, label: impl Into<String>) -> SpecError {
        self.scope.error(self.node.args[key].span.clone(), message, label)
    }

    /// Adds a node that computes the value of that type.
    pub fn push(&mut self, ty: Type, op: Op, inputs: Vec<ValueId>, tensors: Vec<TensorId>) -> ValueId {
        self.l.push(self.value_name(), self.node.out.span.clone(), ty, op, inputs, tensors)
    }

    /// A value inside the node, called after it.
    pub fn push_part(
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

    pub fn value_name(&self) -> String {
        match self.scope.layer {
            Some(layer) => format!("layers.{layer}.{}", self.node.out.value),
            None => self.node.out.value.clone(),
        }
    }
}
