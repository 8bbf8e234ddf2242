//! `rope`: each head of a row rotated by its token's position.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::ANYWHERE;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OperandRef, RowKind, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::{HeadRotation, RopePairs, RopeRow, RowPlace};

/// `x f32 [rows, heads * head_dim] -> f32`: rotates each head by its token's position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Index into [`Graph::ropes`](crate::ir::Graph::ropes).
    pub rope: u32,
    /// The elements of heads that rotate.
    pub head: HeadRotation,
}

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo { name: "rope", params: &[INPUT, required("rope", ParamKind::Rope)], pattern: &[] },
        lower,
    }],
    places: ANYWHERE,
    passes: true,
    facts: |known, inputs, out| {
        known.rows_are(out, RowKind::Tokens);
        known.same_cols(inputs[0], out);
        known.same_rows(inputs[0], out);
        known.has_heads(out);
    },
    ..Outline::new("rope", OpForm::new(&[Input::F32], &[]), parse)
}];

fn parse(at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
    let rope = at.attribute("rope")?;
    at.expect(",")?;
    let mut head = HeadRotation::whole(at.attribute("head_dim")?);
    while at.eat(",") {
        if at.eat("neighbours") {
            head.pairs = RopePairs::Neighbours;
        } else {
            head.rotary_dim = at.attribute("rotary_dim")?;
        }
    }
    Ok(Rope { rope, head }.into())
}

impl OpDef for Rope {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let Rope { rope, head } = *self;
        let d = head.head_dim;
        on.rows_are(Rows::Tokens)?;
        let known = on.ropes.get(rope as usize);
        let known =
            known.ok_or_else(|| format!("rope {rope} is not defined, there are {}", on.ropes.len()))?;
        ensure(known.head.head_dim == d, || {
            format!("head_dim = {d}, but rope {rope} is of head_dim {}", known.head.head_dim)
        })?;
        ensure(known.head == head, || format!("{head:?}, but rope {rope} is of {:?}", known.head))?;
        let cols = on.x().cols();
        ensure(d > 0 && d.is_multiple_of(2) && cols.is_multiple_of(d), || {
            format!("{cols} columns are not heads of an even head_dim = {d}")
        })?;
        Ok(on.x())
    }

    fn attributes(&self, _: usize) -> String {
        let Rope { rope, head: HeadRotation { head_dim, rotary_dim, pairs } } = self;
        let part = match rotary_dim < head_dim {
            true => format!(", rotary_dim={rotary_dim}"),
            false => String::new(),
        };
        let pairs = if *pairs == RopePairs::Neighbours { ", neighbours" } else { "" };
        format!("(rope={rope}, head_dim={head_dim}{part}{pairs})")
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (Rope { rope, head: rotation }, x) = (*self, node.inputs[0]);
        let (inv_freq, factor) = &state.rope_tables[rope as usize];
        let mut y = state.f32s(x).to_vec();
        for (row, token) in y.chunks_exact_mut(state.cols(x)).zip(&state.batch) {
            let angles = inv_freq.iter().map(|freq| f64::from(token.position as f32 * freq));
            let table: Vec<(f32, f32)> =
                angles.map(|a| ((libm::cos(a) * factor) as f32, (libm::sin(a) * factor) as f32)).collect();
            for head in row.chunks_exact_mut(rotation.head_dim) {
                for (i, (cos, sin)) in table.iter().enumerate() {
                    let (lo, hi) = rotation.pair(i);
                    let (l, h) = (head[lo], head[hi]);
                    head[lo] = l * cos - h * sin;
                    head[hi] = h * cos + l * sin;
                }
            }
        }
        Data::F32(y)
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        let table = OperandRef::Rope(self.rope);
        let (x, out) = (RowPlace::Row(node.inputs[0]), RowPlace::Row(node.output));
        Some(RopeRow { x, table, head: self.head, out }.into())
    }

    fn in_epilogue(&self, _: &Node) -> Option<GraphRowOp> {
        let (at_hand, table) = (RowPlace::Results, OperandRef::Rope(self.rope));
        Some(RopeRow { x: at_hand, table, head: self.head, out: at_hand }.into())
    }

    fn multiples(&self, _: usize) -> Vec<(&'static str, usize, usize)> {
        vec![("head_dim", self.head.head_dim, 16), ("rotary_dim", self.head.rotary_dim, 8)]
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, cols) = at.token_input("input")?;
    let rope = at.rope("rope")?;
    let head = at.graph().ropes[rope as usize].head;
    let head_dim = head.head_dim;
    if !cols.is_multiple_of(head_dim) {
        let message = format!("{cols} columns do not divide into heads of {head_dim}");
        return Err(at.at("input", &message, format!("expected a multiple of {head_dim}")));
    }
    Ok(at.push(Type::F32(Rows::Tokens, cols), Rope { rope, head }, vec![x], vec![]))
}
