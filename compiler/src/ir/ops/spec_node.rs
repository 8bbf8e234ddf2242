//! A node of a spec while it becomes graph nodes: what an op reads its arguments with, and adds them with.

use super::form::check_expr;
use crate::ir::{Activations, Graph, NodeId, Op, Role, Rows, TensorId, Type, ValueId};
use crate::spec_text::{Result, Spanned, SpecError};
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::limit;
use kernmill_plan::vectors::VectorForm;

/// A node of a spec, at a place where names have a meaning. Keys are those of the op's
/// [`OpInfo`](super::keys::OpInfo); the reader has checked that each holds what it says there.
pub trait SpecNode {
    /// Name of the node's op in specs.
    fn op_name(&self) -> &str;
    /// The graph so far.
    fn graph(&self) -> &Graph;
    /// Whether the node has that key.
    fn has(&self, key: &str) -> bool;
    /// A name or text.
    fn text(&self, key: &str) -> Spanned<String>;
    /// An array of names.
    fn texts(&self, key: &str) -> Vec<Spanned<String>>;
    /// The value of that name.
    ///
    /// # Errors
    /// When no node above computes it.
    fn value(&mut self, name: &Spanned<String>) -> Result<ValueId>;
    /// The tensor that `key` names, as one of that role.
    ///
    /// # Errors
    /// When it is not there, or has another role already.
    fn tensor(&mut self, key: &str, role: Role) -> Result<TensorId>;
    /// The tensor of that name, as one of that role.
    ///
    /// # Errors
    /// When it is not there, or has another role already.
    fn named_tensor(&mut self, name: &Spanned<String>, role: Role) -> Result<TensorId>;
    /// The rope that `key` names, as its place in the graph's list.
    ///
    /// # Errors
    /// When it is not there.
    fn rope(&self, key: &str) -> Result<u32>;
    /// The expression over `vars` that `key` holds, before any check of its size.
    ///
    /// # Errors
    /// Where it does not parse.
    fn parsed_expr(&self, key: &str, vars: &[&str]) -> Result<Expr>;
    /// A whole number from 1 to `most`; `what` is its name in errors.
    ///
    /// # Errors
    /// When the key holds another value.
    fn whole_of(&self, key: &str, what: &str, most: u64) -> Result<u64>;
    /// A number above 0 that f32 can hold; `what` is its name in errors.
    ///
    /// # Errors
    /// When the key holds another value.
    fn positive(&self, key: &str, what: &str) -> Result<f32>;
    /// A window in tokens; `None` for absent or `"full"`.
    ///
    /// # Errors
    /// When it is no whole number above 0.
    fn window(&self) -> Result<Option<u32>>;
    /// The roundings that presets may apply to the input of a product.
    ///
    /// # Errors
    /// When they depend on the last layer and the node is outside of the layers.
    fn activations(&self) -> Result<Activations>;
    /// The number of the attention that the node is, of `[kv_heads, head_dim, v_head_dim]`. One that is not
    /// causal keeps all keys, whatever its window.
    ///
    /// # Errors
    /// When an attention before has other ones.
    fn next_attention(&mut self, shape: [usize; 3], causal: bool) -> Result<u32>;
    /// The attention with a cache of its own in the layer whose number `key` holds, counted from 0.
    ///
    /// # Errors
    /// When the layer has none, or several.
    fn attention_of_layer(&self, key: &str) -> Result<NodeId>;
    /// Makes the value the model's output: its logits, or the rows from which vectors are made.
    ///
    /// # Errors
    /// When another node's is.
    fn set_output(&mut self, value: ValueId, vectors: Option<VectorForm>) -> Result<()>;
    /// Adds a graph node that computes a value of that type: the node's own, or a part called `part` inside
    /// of it.
    fn push_as(
        &mut self,
        part: Option<&str>,
        ty: Type,
        op: Op,
        inputs: Vec<ValueId>,
        tensors: Vec<TensorId>,
    ) -> ValueId;
    /// An error at those bytes of the file.
    fn error(&self, span: std::ops::Range<usize>, message: &str, label: String) -> SpecError;
    /// An error at a key.
    fn error_at(&self, key: &str, message: &str, label: String) -> SpecError;
}

impl<'n> dyn SpecNode + 'n {
    /// An error at a key: what was found, and what was expected there.
    pub fn at(&self, key: &str, message: &str, label: impl Into<String>) -> SpecError {
        self.error_at(key, message, label.into())
    }

    /// Type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.graph().value(value).ty
    }

    /// Shape of a tensor.
    pub fn shape(&self, id: TensorId) -> &[usize] {
        &self.graph().tensor(id).shape
    }

    /// Whether the key is there and true.
    pub fn flag(&self, key: &str) -> bool {
        self.has(key) && self.text(key).value == "true"
    }

    /// Two values of one type, and `op` of them.
    pub fn pair(&mut self, op: Op) -> Result<ValueId> {
        let (values, ty) = self.same_inputs(2)?;
        if values.len() != 2 {
            let message = format!("{} inputs", values.len());
            return Err(self.at("inputs", &message, "expected two values"));
        }
        Ok(self.push(ty, op, values, vec![]))
    }

    /// At least `min` f32 values of one type.
    pub fn same_inputs(&mut self, min: usize) -> Result<(Vec<ValueId>, Type)> {
        let names = self.texts("inputs");
        let mut values = Vec::new();
        for name in &names {
            let value = self.value(name)?;
            let ty = self.ty(value);
            let first = values.first().map_or(ty, |&v| self.ty(v));
            if !matches!(ty, Type::F32(..)) || ty != first {
                let message = format!("`{}` has {}", name.value, ty.in_words());
                let label = match first {
                    Type::F32(..) => {
                        format!("expected {} and the same rows, as the first input", first.in_words())
                    }
                    _ => "expected a value of f32 columns".to_owned(),
                };
                return Err(self.error(name.span.clone(), &message, label));
            }
            values.push(value);
        }
        if values.len() < min {
            let message = format!("{} inputs", values.len());
            return Err(self.at("inputs", &message, format!("expected at least {min}")));
        }
        let ty = self.ty(values[0]);
        Ok((values, ty))
    }

    /// An f32 value: itself, its rows, its columns.
    pub fn input(&mut self, key: &str) -> Result<(ValueId, Rows, usize)> {
        let name = self.text(key);
        let value = self.value(&name)?;
        match self.ty(value) {
            Type::F32(rows, cols) => Ok((value, rows, cols)),
            other => {
                let message = format!("`{}` is {}", name.value, other.in_words());
                Err(self.at(key, &message, "expected a value of f32 columns"))
            }
        }
    }

    /// An f32 value with one row per token.
    pub fn token_input(&mut self, key: &str) -> Result<(ValueId, usize)> {
        match self.input(key)? {
            (value, Rows::Tokens, cols) => Ok((value, cols)),
            _ => {
                let message = format!("`{}` takes one row per token", self.op_name());
                Err(self.at(key, &message, "expected a value that `select_rows` has not passed"))
            }
        }
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

    /// The expression over `vars` that `key` holds.
    pub fn expr(&self, key: &str, vars: &[&str]) -> Result<Expr> {
        let expr = self.parsed_expr(key, vars)?;
        match check_expr(&expr, vars.len()) {
            Ok(()) => Ok(expr),
            Err(message) => Err(self.at(key, &message, "expected a simpler expression")),
        }
    }

    /// A whole number from 1 to `most`.
    pub fn whole(&self, key: &str, most: usize) -> Result<usize> {
        Ok(self.whole_of(key, &format!("`{key}`"), most as u64)? as usize)
    }

    /// Adds a node that computes the node's value.
    pub fn push(
        &mut self,
        ty: Type,
        op: impl Into<Op>,
        inputs: Vec<ValueId>,
        tensors: Vec<TensorId>,
    ) -> ValueId {
        self.push_as(None, ty, op.into(), inputs, tensors)
    }
}
