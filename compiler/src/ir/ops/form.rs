//! The legal form of an op as data: types of its inputs, roles and formats of its tensors; and the checks of
//! single operands.

use crate::ir::{EXPERT, Role, RopeParameters, Rows, Tensor, Type, whole_columns};
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::ops::RangeInclusive;

/// Inputs of a variadic op at most.
pub const MAX_INPUTS: usize = 16;

/// Vectors of a variadic op at most.
pub const MAX_VECTORS: usize = 4;

/// Expressions of nodes nest at most this deep, so that their text parses back.
const MAX_EXPR_DEPTH: usize = 60;

/// The inputs that an op may have.
pub struct OpForm {
    /// Per input; the last entry also serves for further inputs when `variadic`.
    inputs: &'static [Input],
    variadic: bool,
    /// Whether the last input, which is a shrunk one of an adapter or a routing, may be absent.
    optional: bool,
    tensors: &'static [TensorOperand],
}

/// Types that an input may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// Token ids.
    Ids,
    /// f32.
    F32,
    /// q8.
    Q8,
    /// bf16.
    Bf16,
    /// f32, f16 or another format of the KV cache.
    Cached,
    /// A routing.
    Routing,
}

/// A tensor operand.
pub struct TensorOperand {
    what: &'static str,
    role: Role,
    formats: fn(WeightFormat) -> bool,
    optional: bool,
}

/// Any format.
pub const ANY: fn(WeightFormat) -> bool = |_| true;

/// Formats that have no blocks.
pub const PLAIN: fn(WeightFormat) -> bool = |format| !format.is_blocked();

/// Formats that have blocks.
pub const BLOCKED: fn(WeightFormat) -> bool = |format| format.is_blocked();

/// The format that is multiplied with bf16 rows.
pub const MXFP4: fn(WeightFormat) -> bool = |format| format == WeightFormat::Mxfp4;

impl TensorOperand {
    /// A tensor that must be there.
    pub const fn new(what: &'static str, role: Role, formats: fn(WeightFormat) -> bool) -> TensorOperand {
        TensorOperand { what, role, formats, optional: false }
    }

    /// A tensor without blocks that may be absent.
    pub const fn optional(what: &'static str, role: Role) -> TensorOperand {
        TensorOperand { what, role, formats: PLAIN, optional: true }
    }
}

impl OpForm {
    /// A form of these inputs and tensors.
    pub const fn new(inputs: &'static [Input], tensors: &'static [TensorOperand]) -> OpForm {
        OpForm { inputs, variadic: false, optional: false, tensors }
    }

    /// A form whose last input may be absent.
    pub const fn branched(inputs: &'static [Input], tensors: &'static [TensorOperand]) -> OpForm {
        OpForm { inputs, variadic: false, optional: true, tensors }
    }

    /// A form of one or more inputs of a type.
    pub const fn variadic(inputs: &'static [Input], tensors: &'static [TensorOperand]) -> OpForm {
        OpForm { inputs, variadic: true, optional: false, tensors }
    }

    /// How many inputs there may be.
    pub fn arity(&self) -> RangeInclusive<usize> {
        let all = self.inputs.len();
        all - usize::from(self.optional)..=if self.variadic { MAX_INPUTS } else { all }
    }

    /// Checks inputs and tensors one by one; what they must have to do with each other is the op's own.
    ///
    /// # Errors
    /// What is not legal and what was expected.
    pub fn check(&self, inputs: &[Type], tensors: &[&Tensor]) -> Result<(), String> {
        let arity = self.arity();
        ensure(arity.contains(&inputs.len()), || {
            format!("{} inputs, expected {}", inputs.len(), arity.start())
        })?;
        for (i, found) in inputs.iter().enumerate() {
            let wanted = self.inputs[i.min(self.inputs.len() - 1)];
            ensure(wanted.takes(*found), || {
                format!("input {i} is {}, expected {}", found.text(), wanted.name())
            })?;
        }
        let least = self.tensors.iter().filter(|operand| !operand.optional).count();
        let most = self.tensors.len();
        ensure((least..=most).contains(&tensors.len()), || {
            format!("{} tensors, expected {least} to {most}", tensors.len())
        })?;
        self.tensors.iter().zip(tensors).try_for_each(|(operand, tensor)| operand.check(tensor))
    }
}

impl TensorOperand {
    fn check(&self, tensor: &Tensor) -> Result<(), String> {
        let (what, name) = (self.what, &tensor.name);
        ensure(self.role == tensor.role, || {
            format!("{what} @{name} is a {}, expected a {}", tensor.role.name(), self.role.name())
        })?;
        ensure((self.formats)(tensor.format), || {
            let formats = WeightFormat::ALL.into_iter().filter(|format| (self.formats)(*format));
            let formats: Vec<&str> = formats.map(WeightFormat::name).collect();
            format!("{what} @{name} is {}, expected {}", tensor.format.name(), formats.join(", "))
        })?;
        check_tensor(tensor)
    }
}

impl Input {
    fn takes(self, found: Type) -> bool {
        match found {
            Type::TokenIds => self == Input::Ids,
            Type::F32(..) => matches!(self, Input::F32 | Input::Cached),
            Type::Q8(..) | Type::Q8x2(..) => self == Input::Q8,
            Type::F16(..) | Type::Kv(..) => self == Input::Cached,
            Type::Bf16(..) => self == Input::Bf16,
            Type::Routing(_) => self == Input::Routing,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Input::Ids => "token ids",
            Input::F32 => "f32",
            Input::Q8 => "q8",
            Input::Bf16 => "bf16",
            Input::Cached => "keys or values",
            Input::Routing => "a routing",
        }
    }
}

/// The inputs of an op, after [`OpForm::check`].
pub struct Operands<'a> {
    /// Types of the inputs.
    pub inputs: &'a [Type],
    /// Tensors.
    pub tensors: &'a [&'a Tensor],
    /// RoPE parameter sets of the graph.
    pub ropes: &'a [RopeParameters],
}

impl Operands<'_> {
    /// Type of input 0.
    pub fn x(&self) -> Type {
        self.inputs[0]
    }

    /// Type of input 0, which all inputs must have.
    pub fn alike(&self) -> Result<Type, String> {
        let x = self.x();
        for (i, other) in self.inputs.iter().enumerate() {
            ensure(x == *other, || format!("inputs 0 and {i} differ: {} and {}", x.text(), other.text()))?;
        }
        Ok(x)
    }

    /// Input 0 must have such rows.
    pub fn rows_are(&self, rows: Rows) -> Result<(), String> {
        let x = self.x();
        ensure(x.rows() == rows, || format!("input 0 is {}, expected rows {}", x.text(), rows.text()))
    }

    /// Experts per token of input 1, a routing, and whether input 0 has a row per token or per slot.
    pub fn rows_of_routing(&self) -> Result<u32, String> {
        let k = self.top_k()?;
        let x = self.x();
        ensure(x.rows() == Rows::Tokens || x.rows() == Rows::Slots(k), || {
            format!("input 0 is {}, expected rows T or T*{k}", x.text())
        })?;
        Ok(k)
    }

    /// Experts per token of input 1.
    pub fn top_k(&self) -> Result<u32, String> {
        match self.inputs[1] {
            Type::Routing(k) => Ok(k),
            _ => Err("input 1 is not a routing".into()),
        }
    }

    /// The shrunk input of an adapter, if there is one behind `plain` others.
    pub fn shrunk(&self, plain: usize, rows: Rows) -> Result<(), String> {
        let Some(found) = self.inputs.get(plain) else { return Ok(()) };
        let wanted = Type::F32(rows, MAX_RANK);
        ensure(*found == wanted, || {
            format!("the shrunk input is {}, expected {}", found.text(), wanted.text())
        })
    }

    /// Tensor `i`, if it is there, must have this shape.
    pub fn shape(&self, i: usize, shape: &[usize]) -> Result<(), String> {
        let Some(tensor) = self.tensors.get(i) else { return Ok(()) };
        ensure(tensor.shape == shape, || {
            format!("@{} has shape {:?}, expected {shape:?}", tensor.name, tensor.shape)
        })
    }

    /// Columns of input 0, which must be whole blocks.
    pub fn blocks(&self) -> Result<usize, String> {
        let cols = self.x().cols();
        ensure(cols.is_multiple_of(BLOCK), || format!("{cols} columns are not a multiple of {BLOCK}"))?;
        Ok(cols)
    }
}

/// Checks a tensor by itself: dimensions of its role, none of them zero, whole blocks.
///
/// # Errors
/// What is wrong with it.
pub fn check_tensor(tensor: &Tensor) -> Result<(), String> {
    let (name, shape) = (&tensor.name, &tensor.shape);
    let dims = tensor.role.dims();
    ensure(shape.len() == dims, || {
        format!("@{name} has shape {shape:?}, a {} has {dims} dimensions", tensor.role.name())
    })?;
    ensure(!shape.contains(&0), || format!("@{name} has shape {shape:?} with a zero"))?;
    let k = *shape.last().unwrap_or(&0);
    for format in [tensor.stored, tensor.format] {
        let whole = whole_columns(format);
        ensure(k.is_multiple_of(whole), || {
            format!("@{name}: {} needs a multiple of {whole} columns, there are {k}", format.name())
        })?;
    }
    let (rows, n) = (tensor.source.rows, shape[tensor.row_dim()]);
    ensure(rows.stored(n).is_some(), || {
        format!("@{name} takes {} rows of every {}, which {n} rows are not", rows.width(), rows.of())
    })?;
    let names = || tensor.source.scales.iter().chain([&tensor.source.name]);
    let grouped = matches!(tensor.role, Role::ExpertMatrix | Role::ExpertVector);
    let gathered = tensor.source.is_gathered();
    ensure(names().all(|name| name.contains(EXPERT) == gathered) && (grouped || !gathered), || {
        format!("@{name}: {EXPERT} stands in all names of what a grouped tensor has, or in none")
    })?;
    ensure(tensor.plus == 0.0 || tensor.role == Role::Vector && tensor.plus.is_finite(), || {
        format!("@{name}: {} is added to a {}", tensor.plus, tensor.role.name())
    })?;
    ensure(tensor.source.scales.is_none() || tensor.stored == WeightFormat::Mxfp4, || {
        format!("@{name} is stored as {}: a scales tensor goes with mxfp4 only", tensor.stored.name())
    })
}

/// Whether an expression of that many inputs can be a node's.
///
/// # Errors
/// What is wrong with it.
pub fn check_expr(expr: &Expr, inputs: usize) -> Result<(), String> {
    let (depth, vars) = measure(expr);
    ensure(depth <= MAX_EXPR_DEPTH, || format!("the expression nests deeper than {MAX_EXPR_DEPTH}"))?;
    ensure(vars <= inputs, || format!("the expression uses variable {} of {inputs}", vars.saturating_sub(1)))
}

/// Depth of the tree and one more than the highest variable.
fn measure(expr: &Expr) -> (usize, usize) {
    let own = if let Expr::Var(i) = expr { i + 1 } else { 0 };
    let inner = expr.children().into_iter().map(measure);
    let (depth, vars) = inner.fold((0, own), |(depth, vars), (d, v)| (depth.max(d), vars.max(v)));
    (depth + 1, vars)
}

/// `message` unless the condition holds.
///
/// # Errors
/// The message.
pub fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}
