//! `router_topk`: the k largest logits of a row, and the softmax of these as weights.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{Input, OpForm, Operands, ensure};
use super::keys::{INPUT, OpInfo, ParamKind, required};
use super::places::KernelPosition;
use super::sample::TOP_K;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::eval::num::exp;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::TopKRow;
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::limit;

/// `logits f32 [T, experts] -> routing`: the k largest logits and their softmax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterTopk {
    /// Experts per token.
    pub k: u32,
}

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp {
        info: OpInfo {
            name: "router_topk",
            params: &[INPUT, required("k", ParamKind::Number)],
            pattern: &["router_topk"],
        },
        lower,
    }],
    places: &[KernelPosition::Rows, KernelPosition::Prologue],
    facts: |known, inputs, out| {
        known.cols_are(inputs[0], known.sizes.experts);
        known.rows_are(inputs[0], RowKind::Tokens);
        known.routing.push(out.to_owned());
    },
    sample: |_, _| Some(RouterTopk { k: TOP_K }.into()),
    ..Outline::new("router_topk", OpForm::new(&[Input::F32], &[]), |at, _| {
        Ok(RouterTopk { k: at.attribute("k")? }.into())
    })
}];

impl OpDef for RouterTopk {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let (k, cols) = (self.k, on.x().cols());
        on.rows_are(Rows::Tokens)?;
        ensure(k > 0 && k as usize <= cols, || format!("k = {k} of {cols} experts"))?;
        Ok(Type::Routing(k))
    }

    fn attributes(&self, _: usize) -> String {
        format!("(k={})", self.k)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, k) = (node.inputs[0], self.k as usize);
        let rows = state.f32s(x).chunks_exact(state.cols(x));
        Data::Routing(rows.flat_map(|logits| routes(logits, k)).collect())
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        let experts = kernels.graph().value(node.inputs[0]).ty.cols();
        let k = self.k as usize;
        Some(TopKRow { x: node.inputs[0], experts, k, out: node.output }.into())
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
    Ok(at.push(Type::Routing(k as u32), RouterTopk { k: k as u32 }, vec![x], vec![]))
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
