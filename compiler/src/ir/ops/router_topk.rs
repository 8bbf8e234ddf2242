//! `router_topk`: the k largest logits of a row, and the softmax of these as weights.

use super::def::{OpDef, Outline, Packed, RowCosts, SpecOp};
use super::form::{Input, OpForm, Operands, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::sample::{KnownValues, TOP_K};
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::num::exp;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Op, OpKind, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::kernel::{RowOp, ValId};
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::limit;

pub struct RouterTopk;

const OUTLINE: Outline = Outline {
    name: "router_topk",
    form: OpForm::new(&[Input::F32], &[]),
    spec: &[SpecOp {
        info: OpInfo {
            name: "router_topk",
            params: &[INPUT, required("k", ParamKind::Number)],
            pattern: &[OpKind::RouterTopk],
        },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
};

/// Experts per token.
fn top_k(op: &Op) -> u32 {
    let Op::RouterTopk { k } = op else { unreachable!("{op:?}") };
    *k
}

impl OpDef for RouterTopk {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String> {
        let (k, cols) = (top_k(op), on.x().cols());
        on.rows_are(Rows::Tokens)?;
        ensure(k > 0 && k as usize <= cols, || format!("k = {k} of {cols} experts"))?;
        Ok(Type::Routing(k))
    }

    fn attributes(&self, op: &Op) -> String {
        format!("(k={})", top_k(op))
    }

    fn parse(&self, at: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::RouterTopk { k: at.attribute("k")? })
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, k) = (node.inputs[0], top_k(&node.op) as usize);
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        Data::Routing(rows.flat_map(|logits| routes(logits, k)).collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let experts = kernels.graph().value(node.inputs[0]).ty.cols();
        Some(RowOp::TopK { x: node.inputs[0], experts, k: top_k(&node.op) as usize, out: node.output })
    }

    fn row_cost(&self, row_op: &RowOp, _: &dyn Fn(ValId) -> usize, of: &RowCosts) -> f64 {
        let RowOp::TopK { experts, k, .. } = row_op else { unreachable!("{row_op:?}") };
        of.element * (experts * k) as f64
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.cols_are(inputs[0], known.sizes.experts);
        known.rows_are(inputs[0], RowKind::Tokens);
        known.routing.push(out.to_owned());
    }

    fn sample(&self, _: Option<&Expr>, _: usize) -> Option<Op> {
        Some(Op::RouterTopk { k: TOP_K })
    }
}

fn lower(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, experts) = at.token_input("input")?;
    let k = at.whole("k", limit::TOP_K)?;
    if experts > limit::EXPERTS {
        let message = format!("a router of {experts} experts");
        return Err(at.at("input", &message, format!("expected at most {}", limit::EXPERTS)));
    }
    if k > experts {
        let message = format!("top-{k} of {experts} experts");
        return Err(at.at("k", &message, format!("expected at most {experts}")));
    }
    Ok(at.push(Type::Routing(k as u32), Op::RouterTopk { k: k as u32 }, vec![x], vec![]))
}

/// The experts of one row, in order of choice.
fn routes(logits: &[f32], k: usize) -> Vec<ChosenExpert> {
    let chosen = largest(logits, k);
    let e: Vec<f32> = chosen.iter().map(|&i| exp(logits[i] - logits[chosen[0]])).collect();
    let sum = e[1..].iter().fold(e[0], |sum, e| sum + e);
    chosen
        .into_iter()
        .zip(e)
        .map(|(expert, e)| ChosenExpert { expert: expert as u32, weight: e / sum })
        .collect()
}

/// Indices of the `k` largest, descending, ties to the lower index. A NaN is larger than nothing: it is
/// chosen only when nothing else is left, lower indices first.
fn largest(x: &[f32], k: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::with_capacity(k);
    for _ in 0..k {
        let mut best: Option<usize> = None;
        for i in (0..x.len()).filter(|i| !chosen.contains(i)) {
            if best.is_none_or(|b| x[i] > x[b] || (x[b].is_nan() && !x[i].is_nan())) {
                best = Some(i);
            }
        }
        chosen.extend(best);
    }
    chosen
}
