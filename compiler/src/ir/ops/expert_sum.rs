//! `expert_sum`: the rows of a token's experts, weighted and summed in ascending order of the experts.

use super::def::{OpDef, Outline, Packed, RowCosts};
use super::form::{Input, OpForm, Operands};
use super::places::{KernelPosition, KernelTemplate};
use super::sample::KnownValues;
use crate::ir::RowKind;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::accumulate;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, Rows, Type};
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::kernel::{RowOp, ValId};

pub struct ExpertSum;

const OUTLINE: Outline = Outline {
    name: "expert_sum",
    form: OpForm::new(&[Input::F32, Input::Routing], &[]),
    spec: &[],
    places: &[KernelPosition::Rows, KernelPosition::EpilogueOf(KernelTemplate::ExpertDown)],
};

impl OpDef for ExpertSum {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Slots(on.top_k()?))?;
        Ok(Type::F32(Rows::Tokens, on.x().cols()))
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::ExpertSum)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (y, routing) = (node.inputs[0], node.inputs[1]);
        let (cols, k) = (state.cols(y), state.cols(routing));
        let tokens = state.f32s(y).chunks_exact(cols * k).zip(state.routing(routing).chunks_exact(k));
        let sums = tokens.flat_map(|(y, routes)| {
            let mut slots: Vec<usize> = (0..k).collect();
            slots.sort_by_key(|&slot| routes[slot].expert);
            let mut acc = vec![0.0f32; cols];
            for slot in slots {
                accumulate(routes[slot].weight, &y[slot * cols..][..cols], &mut acc);
            }
            acc
        });
        Data::F32(sums.collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let (y, routing) = (node.inputs[0], node.inputs[1]);
        let top_k = kernels.graph().value(routing).ty.cols();
        Some(RowOp::ExpertSum { y, routing, top_k, out: node.output })
    }

    fn row_cost(&self, row_op: &RowOp, len: &dyn Fn(ValId) -> usize, of: &RowCosts) -> f64 {
        let RowOp::ExpertSum { out, top_k, .. } = row_op else { unreachable!("{row_op:?}") };
        of.element * len(*out) as f64 * *top_k as f64
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.routing.push(inputs[1].to_owned());
        known.same_cols(inputs[0], out);
        known.rows_are(inputs[0], RowKind::Slots);
        known.rows_are(out, RowKind::Tokens);
    }

    fn sample(&self, _: Option<&Expr>, _: usize) -> Option<Op> {
        Some(Op::ExpertSum)
    }
}
