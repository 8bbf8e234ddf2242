//! The legal forms of every op, as data, and the type of its output.

use super::{Op, OpKind, Role, Rope, Rows, Tensor, Type};
use kernmill_kernels_gen::expr::Expr;
use kernmill_plan::adapter::{MAX_RANK, RANK_STEP};
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::ops::RangeInclusive;

/// What an op may be given.
struct Form {
    op: OpKind,
    /// Per input; the last entry also serves for further inputs when `variadic`.
    inputs: &'static [Input],
    variadic: bool,
    /// Whether the last input, which is a shrunk one of an adapter or a routing, may be absent.
    optional: bool,
    tensors: &'static [Operand],
}

/// Types that an input may have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    Ids,
    F32,
    Q8,
    Bf16,
    /// f32 or f16.
    Cached,
    Routing,
}

/// A tensor operand.
struct Operand {
    what: &'static str,
    role: Role,
    formats: fn(WeightFormat) -> bool,
    optional: bool,
}

/// Formats of an operand.
const ANY: fn(WeightFormat) -> bool = |_| true;
const BLOCKED: fn(WeightFormat) -> bool = |format| format.is_blocked();
const PLAIN: fn(WeightFormat) -> bool = |format| !format.is_blocked();
/// Those that are multiplied with bf16 rows.
const STORED: fn(WeightFormat) -> bool = |format| format.is_stored();

const fn operand(
    what: &'static str,
    role: Role,
    formats: fn(WeightFormat) -> bool,
    optional: bool,
) -> Operand {
    Operand { what, role, formats, optional }
}

const fn form(op: OpKind, inputs: &'static [Input], tensors: &'static [Operand]) -> Form {
    Form { op, inputs, variadic: false, optional: false, tensors }
}

/// A form whose last input may be absent.
const fn branched(op: OpKind, inputs: &'static [Input], tensors: &'static [Operand]) -> Form {
    Form { op, inputs, variadic: false, optional: true, tensors }
}

const BIAS: Operand = operand("bias", Role::Vector, PLAIN, true);
const EXPERT_BIAS: Operand = operand("bias", Role::ExpertVector, PLAIN, true);

/// Every op's legal form; [`infer`] adds the shapes.
const FORMS: &[Form] = &[
    form(OpKind::Embed, &[Input::Ids], &[operand("table", Role::Table, PLAIN, false)]),
    form(OpKind::RmsNorm, &[Input::F32], &[operand("weight", Role::Vector, PLAIN, false)]),
    branched(OpKind::Linear, &[Input::F32, Input::F32], &[operand("matrix", Role::Matrix, ANY, false), BIAS]),
    branched(
        OpKind::QuantLinear,
        &[Input::Q8, Input::F32],
        &[operand("matrix", Role::Matrix, BLOCKED, false), BIAS],
    ),
    form(OpKind::QuantizeQ8, &[Input::F32], &[]),
    form(OpKind::Bf16Cast, &[Input::F32], &[]),
    form(OpKind::Rope, &[Input::F32], &[]),
    form(OpKind::KvCast, &[Input::F32], &[]),
    form(
        OpKind::Attention,
        &[Input::F32, Input::Cached, Input::Cached],
        &[operand("sinks", Role::Vector, PLAIN, true)],
    ),
    form(OpKind::RouterTopk, &[Input::F32], &[]),
    branched(
        OpKind::ExpertLinear,
        &[Input::F32, Input::Routing, Input::F32],
        &[operand("matrix", Role::ExpertMatrix, ANY, false), EXPERT_BIAS],
    ),
    branched(
        OpKind::QuantExpertLinear,
        &[Input::Q8, Input::Routing, Input::F32],
        &[operand("matrix", Role::ExpertMatrix, BLOCKED, false), EXPERT_BIAS],
    ),
    branched(
        OpKind::Bf16ExpertLinear,
        &[Input::Bf16, Input::Routing, Input::F32],
        &[operand("matrix", Role::ExpertMatrix, STORED, false), EXPERT_BIAS],
    ),
    form(OpKind::ExpertSum, &[Input::F32, Input::Routing], &[]),
    form(OpKind::Glu, &[Input::F32, Input::F32], &[]),
    Form { op: OpKind::Elementwise, inputs: &[Input::F32], variadic: true, optional: false, tensors: &[] },
    form(OpKind::Add, &[Input::F32, Input::F32], &[]),
    form(OpKind::Mul, &[Input::F32, Input::F32], &[]),
    form(OpKind::SelectRows, &[Input::F32], &[]),
    branched(OpKind::LoraShrink, &[Input::F32, Input::Routing], &[]),
];

/// How many inputs an op takes, that of an adapter branch not counted.
pub fn arity(op: OpKind) -> RangeInclusive<usize> {
    if let Some(plain) = op.plain_inputs() {
        return plain..=plain;
    }
    let form = FORMS.iter().find(|form| form.op == op);
    form.map_or(0..=0, |form| {
        let all = form.inputs.len();
        all - usize::from(form.optional)..=if form.variadic { MAX_INPUTS } else { all }
    })
}

/// Inputs of a variadic op at most.
pub const MAX_INPUTS: usize = 16;

/// Expressions of nodes nest at most this deep, so that their text parses back.
const MAX_EXPR_DEPTH: usize = 60;

/// The output type of an op on these inputs and tensors.
///
/// # Errors
/// What is not legal and what was expected.
pub fn infer(op: &Op, inputs: &[Type], tensors: &[&Tensor], ropes: &[Rope]) -> Result<Type, String> {
    check_form(op.kind(), inputs, tensors)?;
    let x = inputs[0];
    let same_as_x = |i: usize| {
        let (a, b) = (x, inputs[i]);
        ensure(a == b, || format!("inputs 0 and {i} differ: {} and {}", a.text(), b.text()))
    };
    let rows = x.rows();
    match op {
        Op::Embed => Ok(Type::F32(Rows::Tokens, tensors[0].shape[1])),
        Op::RmsNorm { eps } => {
            ensure(eps.is_finite() && *eps >= 0.0, || format!("eps = {eps} is not a number >= 0"))?;
            expect_shape(tensors[0], &[x.cols()])?;
            Ok(x)
        }
        Op::Linear(_) | Op::QuantLinear => {
            let n = tensors[0].shape[0];
            expect_shape(tensors[0], &[n, x.cols()])?;
            tensors.get(1).map_or(Ok(()), |bias| expect_shape(bias, &[n]))?;
            inputs.get(1).map_or(Ok(()), |shrunk| expect_shrunk(*shrunk, rows))?;
            Ok(Type::F32(rows, n))
        }
        Op::QuantizeQ8 | Op::Bf16Cast => {
            let cols = x.cols();
            ensure(cols.is_multiple_of(BLOCK), || format!("{cols} columns are not a multiple of {BLOCK}"))?;
            Ok(if *op == Op::Bf16Cast { Type::Bf16(rows, cols) } else { Type::Q8(rows, cols) })
        }
        Op::Rope { rope, head_dim } => {
            expect_rows(x, Rows::Tokens)?;
            let known = ropes.get(*rope as usize);
            let known =
                known.ok_or_else(|| format!("rope {rope} is not defined, there are {}", ropes.len()))?;
            ensure(known.head_dim == *head_dim, || {
                format!("head_dim = {head_dim}, but rope {rope} is of head_dim {}", known.head_dim)
            })?;
            let (cols, d) = (x.cols(), *head_dim);
            ensure(d > 0 && d % 2 == 0 && cols % d == 0, || {
                format!("{cols} columns are not heads of an even head_dim = {d}")
            })?;
            Ok(x)
        }
        Op::KvCast => {
            expect_rows(x, Rows::Tokens)?;
            Ok(Type::F16(rows, x.cols()))
        }
        Op::Attention(a) => {
            ensure(a.kv_heads > 0 && a.head_dim > 0 && a.heads > 0 && a.heads % a.kv_heads == 0, || {
                format!(
                    "heads = {} are not a multiple of kv_heads = {} (head_dim {})",
                    a.heads, a.kv_heads, a.head_dim
                )
            })?;
            let columns = |heads: usize| {
                let columns = heads.checked_mul(a.head_dim);
                columns.ok_or_else(|| format!("{heads} heads of head_dim = {} overflow", a.head_dim))
            };
            let (q, kv) = (columns(a.heads)?, columns(a.kv_heads)?);
            ensure(a.scale.is_finite(), || format!("scale = {} is not finite", a.scale))?;
            ensure(a.window != Some(0), || "window = 0 sees no key, not even the token's own".into())?;
            let elem = match a.kv {
                kernmill_plan::kv::KvElem::F16 => Type::F16(Rows::Tokens, kv),
                kernmill_plan::kv::KvElem::F32 => Type::F32(Rows::Tokens, kv),
            };
            for (name, found, wanted) in
                [("q", x, Type::F32(Rows::Tokens, q)), ("k", inputs[1], elem), ("v", inputs[2], elem)]
            {
                ensure(found == wanted, || {
                    format!("{name} is {}, expected {}", found.text(), wanted.text())
                })?;
            }
            tensors.first().map_or(Ok(()), |sinks| expect_shape(sinks, &[a.heads]))?;
            Ok(x)
        }
        Op::RouterTopk { k } => {
            expect_rows(x, Rows::Tokens)?;
            ensure(*k > 0 && *k as usize <= x.cols(), || format!("k = {k} of {} experts", x.cols()))?;
            Ok(Type::Routing(*k))
        }
        Op::ExpertLinear | Op::QuantExpertLinear | Op::Bf16ExpertLinear => {
            let Type::Routing(k) = inputs[1] else { return Err("input 1 is not a routing".into()) };
            ensure(matches!(rows, Rows::Tokens) || rows == Rows::Slots(k), || {
                format!("input 0 is {}, expected rows T or T*{k}", x.text())
            })?;
            let (experts, n) = (tensors[0].shape[0], tensors[0].shape[1]);
            expect_shape(tensors[0], &[experts, n, x.cols()])?;
            tensors.get(1).map_or(Ok(()), |bias| expect_shape(bias, &[experts, n]))?;
            inputs.get(2).map_or(Ok(()), |shrunk| expect_shrunk(*shrunk, Rows::Slots(k)))?;
            Ok(Type::F32(Rows::Slots(k), n))
        }
        Op::ExpertSum => {
            let Type::Routing(k) = inputs[1] else { return Err("input 1 is not a routing".into()) };
            expect_rows(x, Rows::Slots(k))?;
            Ok(Type::F32(Rows::Tokens, x.cols()))
        }
        Op::Glu { expr } => {
            same_as_x(1)?;
            check_expr(expr, 2)?;
            Ok(x)
        }
        Op::Elementwise { expr } => {
            (1..inputs.len()).try_for_each(same_as_x)?;
            check_expr(expr, inputs.len())?;
            Ok(x)
        }
        Op::Add | Op::Mul => same_as_x(1).map(|()| x),
        Op::SelectRows => {
            expect_rows(x, Rows::Tokens)?;
            Ok(Type::F32(Rows::LogitRows, x.cols()))
        }
        Op::LoraShrink { format, .. } => {
            let cols = x.cols();
            ensure(PLAIN(*format), || format!("format = {}, expected bf16, f32", format.name()))?;
            ensure(cols.is_multiple_of(RANK_STEP), || {
                format!("{cols} columns are not a multiple of {RANK_STEP}")
            })?;
            ensure(rows != Rows::LogitRows, || "wanted rows have no adapters".into())?;
            let rows = match inputs.get(1) {
                Some(Type::Routing(k)) => {
                    ensure(rows == Rows::Tokens || rows == Rows::Slots(*k), || {
                        format!("input 0 is {}, expected rows T or T*{k}", x.text())
                    })?;
                    Rows::Slots(*k)
                }
                _ => rows,
            };
            Ok(Type::F32(rows, MAX_RANK))
        }
    }
}

fn expect_shrunk(found: Type, rows: Rows) -> Result<(), String> {
    let wanted = Type::F32(rows, MAX_RANK);
    ensure(found == wanted, || format!("the shrunk input is {}, expected {}", found.text(), wanted.text()))
}

fn check_form(op: OpKind, inputs: &[Type], tensors: &[&Tensor]) -> Result<(), String> {
    let form = FORMS.iter().find(|form| form.op == op).ok_or("op without a legal form")?;
    let all = form.inputs.len();
    let (least, most) = (all - usize::from(form.optional), if form.variadic { MAX_INPUTS } else { all });
    ensure((least..=most).contains(&inputs.len()), || format!("{} inputs, expected {least}", inputs.len()))?;
    for (i, found) in inputs.iter().enumerate() {
        let wanted = form.inputs[i.min(all - 1)];
        let fits = match found {
            Type::TokenIds => wanted == Input::Ids,
            Type::F32(..) => matches!(wanted, Input::F32 | Input::Cached),
            Type::Q8(..) => wanted == Input::Q8,
            Type::F16(..) => wanted == Input::Cached,
            Type::Bf16(..) => wanted == Input::Bf16,
            Type::Routing(_) => wanted == Input::Routing,
        };
        ensure(fits, || format!("input {i} is {}, expected {}", found.text(), wanted.name()))?;
    }
    let least = form.tensors.iter().filter(|operand| !operand.optional).count();
    let most = form.tensors.len();
    ensure((least..=most).contains(&tensors.len()), || {
        format!("{} tensors, expected {least} to {most}", tensors.len())
    })?;
    for (operand, tensor) in form.tensors.iter().zip(tensors) {
        let (what, name) = (operand.what, &tensor.name);
        ensure(operand.role == tensor.role, || {
            format!("{what} @{name} is a {}, expected a {}", tensor.role.name(), operand.role.name())
        })?;
        ensure((operand.formats)(tensor.format), || {
            let formats = WeightFormat::ALL.into_iter().filter(|format| (operand.formats)(*format));
            let formats: Vec<&str> = formats.map(WeightFormat::name).collect();
            format!("{what} @{name} is {}, expected {}", tensor.format.name(), formats.join(", "))
        })?;
        check_tensor(tensor)?;
    }
    Ok(())
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
        ensure(!format.is_blocked() || k % BLOCK == 0, || {
            format!("@{name}: {} needs a multiple of {BLOCK} columns, there are {k}", format.name())
        })?;
    }
    ensure(tensor.stored.is_stored() == tensor.source.scales.is_some(), || {
        format!("@{name} is stored as {}: a scales tensor goes with mxfp4 only", tensor.stored.name())
    })
}

/// Whether an expression of that many inputs can be a node's.
pub(crate) fn check_expr(expr: &Expr, inputs: usize) -> Result<(), String> {
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

fn expect_rows(found: Type, rows: Rows) -> Result<(), String> {
    ensure(found.rows() == rows, || format!("input 0 is {}, expected rows {}", found.text(), rows.text()))
}

fn expect_shape(tensor: &Tensor, shape: &[usize]) -> Result<(), String> {
    ensure(tensor.shape == shape, || {
        format!("@{} has shape {:?}, expected {shape:?}", tensor.name, tensor.shape)
    })
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

impl Input {
    fn name(self) -> &'static str {
        match self {
            Input::Ids => "token ids",
            Input::F32 => "f32",
            Input::Q8 => "q8",
            Input::Bf16 => "bf16",
            Input::Cached => "f32 or f16",
            Input::Routing => "a routing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_one_form() {
        for kind in OpKind::ALL {
            assert_eq!(FORMS.iter().filter(|form| form.op == kind).count(), 1, "{kind}");
        }
    }
}
