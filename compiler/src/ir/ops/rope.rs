//! `rope`: each head of a row rotated by its token's position.

use super::def::{InEpilogue, OpDef, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::ANYWHERE;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphEpilogue, GraphRowOp, Node, Op, OperandRef, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::kernel::RowOp;

pub struct Rope;

const OUTLINE: Outline = Outline {
    name: "rope",
    form: OpForm::new(&[Input::F32], &[]),
    spec: &[SpecOp {
        info: OpInfo { name: "rope", params: &[INPUT, required("rope", ParamKind::Rope)], pattern: &[] },
        lower,
    }],
    places: ANYWHERE,
};

/// Index of the parameters, and elements per head.
fn attributes(op: &Op) -> (u32, usize) {
    let Op::Rope { rope, head_dim } = op else { unreachable!("{op:?}") };
    (*rope, *head_dim)
}

impl OpDef for Rope {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let (rope, d) = attributes(op);
        on.rows_are(Rows::Tokens)?;
        let known = on.ropes.get(rope as usize);
        let known =
            known.ok_or_else(|| format!("rope {rope} is not defined, there are {}", on.ropes.len()))?;
        ensure(known.head_dim == d, || {
            format!("head_dim = {d}, but rope {rope} is of head_dim {}", known.head_dim)
        })?;
        let cols = on.x().cols();
        ensure(d > 0 && d.is_multiple_of(2) && cols.is_multiple_of(d), || {
            format!("{cols} columns are not heads of an even head_dim = {d}")
        })?;
        Ok(on.x())
    }

    fn attributes(&self, op: &Op) -> String {
        let (rope, head_dim) = attributes(op);
        format!("(rope={rope}, head_dim={head_dim})")
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        let rope = at.attribute("rope")?;
        at.expect(",")?;
        Ok(Op::Rope { rope, head_dim: at.attribute("head_dim")? })
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let ((rope, head_dim), x) = (attributes(&node.op), node.inputs[0]);
        let (inv_freq, factor) = &state.rope_tables[rope as usize];
        let half = head_dim / 2;
        let mut y = state.f32s(x).to_vec();
        for (row, token) in y.chunks_exact_mut(state.cols(x)).zip(&state.batch) {
            let angles = inv_freq.iter().map(|freq| f64::from(token.position as f32 * freq));
            let table: Vec<(f32, f32)> =
                angles.map(|a| ((libm::cos(a) * factor) as f32, (libm::sin(a) * factor) as f32)).collect();
            for head in row.chunks_exact_mut(head_dim) {
                let (lo, hi) = head.split_at_mut(half);
                for ((lo, hi), (cos, sin)) in lo.iter_mut().zip(hi).zip(&table) {
                    let (l, h) = (*lo, *hi);
                    *lo = l * cos - h * sin;
                    *hi = h * cos + l * sin;
                }
            }
        }
        Data::F32(y)
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let (rope, head_dim) = attributes(&node.op);
        let table = OperandRef::Rope(rope);
        Some(RowOp::Rope { x: node.inputs[0], table, head_dim, out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        let (rope, _) = attributes(&node.op);
        Some(InEpilogue::Changes(GraphEpilogue::Rope { table: OperandRef::Rope(rope) }))
    }

    fn multiples(&self, op: &Op, _: usize) -> Vec<(&'static str, usize, usize)> {
        vec![("head_dim", attributes(op).1, 16)]
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.rows_are(out, RowKind::Tokens);
        known.same_cols(inputs[0], out);
        known.same_rows(inputs[0], out);
        known.has_heads(out);
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, cols) = at.token_input("input")?;
    let rope = at.rope("rope")?;
    let head_dim = at.graph().ropes[rope as usize].head_dim;
    if !cols.is_multiple_of(head_dim) {
        let message = format!("{cols} columns do not divide into heads of {head_dim}");
        return Err(at.at("input", &message, format!("expected a multiple of {head_dim}")));
    }
    let op = Op::Rope { rope, head_dim };
    Ok(at.push(Type::F32(Rows::Tokens, cols), op, vec![x], vec![]))
}
