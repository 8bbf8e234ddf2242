//! `kv_cast`: rows rounded to a format of the KV cache.

use super::def::{InEpilogue, OpDef, Outline, Packed};
use super::form::{Input, OpForm, Operands, ensure};
use super::places::KernelPosition;
use crate::ir::cursor::{LineCursor, unknown};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphEpilogue, GraphRowOp, Node, Op, Rows, Type};
use kernmill_kernels_gen::kernel::RowOp;
use kernmill_plan::kv::{KvElements, KvFormat, KvRow};

pub struct KvCast;

/// The type of rows of keys or values, `cols` for each token, that enter the cache.
pub fn kv_type(row: KvRow, cols: usize) -> Type {
    match row.format {
        KvFormat::F16 => Type::F16(Rows::Tokens, cols),
        KvFormat::F32 => Type::F32(Rows::Tokens, cols),
        _ => Type::Kv(row, cols),
    }
}

fn row(op: &Op) -> KvRow {
    match op {
        Op::KvCast(row) => *row,
        other => unreachable!("{:?} is no kv_cast", other.kind()),
    }
}

const OUTLINE: Outline = Outline {
    name: "kv_cast",
    form: OpForm::new(&[Input::F32], &[]),
    spec: &[],
    places: &[KernelPosition::Rows, KernelPosition::Epilogue],
};

impl OpDef for KvCast {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Tokens)?;
        let (row, cols) = (row(op), on.x().cols());
        ensure(row.divides(cols), || format!("{cols} columns are not heads of head_dim = {}", row.head_dim))?;
        Ok(kv_type(row, cols))
    }

    fn attributes(&self, op: &Op) -> String {
        match row(op) {
            KvRow { format: KvFormat::F16, .. } => String::new(),
            KvRow { format, .. } if !format.is_scaled() => format!("(to={})", format.name()),
            KvRow { format, head_dim } => format!("(to={}, head_dim={head_dim})", format.name()),
        }
    }

    fn parse(&self, at: &mut LineCursor<'_>, attributes: bool) -> Result<Op, String> {
        if !attributes {
            return Ok(Op::KvCast(KvRow::new(KvFormat::F16, 0)));
        }
        at.expect("to")?;
        at.expect("=")?;
        let name = at.word()?;
        let format = KvFormat::from_name(name).ok_or_else(|| unknown("KV format", name))?;
        let mut head_dim = 0;
        if format.is_scaled() {
            at.expect(",")?;
            head_dim = at.attribute("head_dim")?;
        }
        Ok(Op::KvCast(KvRow::new(format, head_dim)))
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (row, x) = (row(&node.op), node.inputs[0]);
        let head_dim = if row.format.is_scaled() { row.head_dim } else { state.cols(x) };
        let heads: Vec<KvElements> =
            state.f32s(x).chunks_exact(head_dim).map(|head| row.format.round(head)).collect();
        let scales = heads.iter().map(|head| head.scale).collect();
        let values = heads.into_iter().flat_map(|head| head.values).collect();
        if row.format.is_scaled() { Data::Scaled { values, scales } } else { Data::F32(values) }
    }

    fn row_op(&self, node: &Node, _: &dyn Packed) -> Option<GraphRowOp> {
        Some(RowOp::KvCast { x: node.inputs[0], to: row(&node.op), out: node.output })
    }

    fn in_epilogue(&self, node: &Node) -> Option<InEpilogue> {
        Some(InEpilogue::Ends(GraphEpilogue::KvCast { to: row(&node.op), out: node.output }))
    }
}
