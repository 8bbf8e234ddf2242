//! `expert_sum`: the rows of a token's experts, weighted and summed in ascending order of the experts; and
//! the spec op `moe`, which is gate, up, activation, down and this sum.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::elementwise::Elementwise;
use super::form::{Input, OpForm, Operands};
use super::keys::{INPUT, OpInfo, ParamKind, optional, required};
use super::matmul::MatMul;
use super::places::{KernelPosition, KernelTemplate};
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::eval::num::accumulate;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::ExpertSumRow;

/// `y f32 [Slots, n], routing -> f32 [T, n]`: sums the rows of a token's experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertSum;

pub static KINDS: [Outline; 1] = [Outline {
    spec: &[SpecOp { info: MOE, lower: lower_moe }],
    places: &[KernelPosition::Rows, KernelPosition::EpilogueOf(KernelTemplate::ExpertDown)],
    facts: |known, inputs, out| {
        known.routing.push(inputs[1].to_owned());
        known.same_cols(inputs[0], out);
        known.rows_are(inputs[0], RowKind::Slots);
        known.rows_are(out, RowKind::Tokens);
    },
    sample: |_, _| Some(ExpertSum.into()),
    ..Outline::new("expert_sum", OpForm::new(&[Input::F32, Input::Routing], &[]), |_, _| Ok(ExpertSum.into()))
}];

const MOE: OpInfo = OpInfo {
    name: "moe",
    params: &[
        INPUT,
        required("routing", ParamKind::Value),
        required("gate", ParamKind::Tensor),
        required("up", ParamKind::Tensor),
        required("down", ParamKind::Tensor),
        optional("gate_bias", ParamKind::Tensor),
        optional("up_bias", ParamKind::Tensor),
        optional("down_bias", ParamKind::Tensor),
        required("activation", ParamKind::Expr),
    ],
    pattern: &[],
};

impl OpDef for ExpertSum {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        on.rows_are(Rows::Slots(on.top_k()?))?;
        Ok(Type::F32(Rows::Tokens, on.x().cols()))
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
        Some(ExpertSumRow { y, routing, top_k, out: node.output }.into())
    }
}

/// Gate, up, activation, down, and the sum over the chosen experts.
fn lower_moe(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (x, cols) = at.token_input("input")?;
    let name = at.text("routing");
    let routing = at.value(&name)?;
    let Type::Routing(k) = at.ty(routing) else {
        let message = format!("`{}` is {}", name.value, at.ty(routing).in_words());
        return Err(at.at("routing", &message, "expected the output of a `router_topk`"));
    };
    let router = at.graph().nodes.iter().find(|node| node.output == routing).expect("a node routes");
    let experts = at.ty(router.inputs[0]).cols();
    let expr = at.expr("activation", &["gate", "up"])?;
    let gate = expert_linear(at, "gate", x, routing, (k, experts), (cols, None))?;
    let Type::F32(rows, hidden) = at.ty(gate) else { unreachable!("expert_linear makes f32") };
    let up = expert_linear(at, "up", x, routing, (k, experts), (cols, Some(hidden)))?;
    let act = at.push_as(
        Some("act"),
        Type::F32(rows, hidden),
        Elementwise::of(expr).into(),
        vec![gate, up],
        vec![],
    );
    let down = expert_linear(at, "down", act, routing, (k, experts), (hidden, None))?;
    let Type::F32(_, out) = at.ty(down) else { unreachable!("expert_linear makes f32") };
    Ok(at.push(Type::F32(Rows::Tokens, out), ExpertSum, vec![down, routing], vec![]))
}

fn expert_linear(
    at: &mut dyn SpecNode,
    key: &'static str,
    x: ValueId,
    routing: ValueId,
    (k, experts): (u32, usize),
    (cols, rows): (usize, Option<usize>),
) -> SpecResult<ValueId> {
    let weight = at.tensor(key, Role::ExpertMatrix)?;
    let shape = at.shape(weight).to_vec();
    let want = [experts, rows.unwrap_or(shape[1]), cols];
    if shape != want {
        let message = format!("tensor `{}` has shape {shape:?}", at.text(key).value);
        let label = match rows {
            Some(rows) => {
                format!("expected [{experts}, {rows}, {cols}] (experts, rows of gate, columns of the input)")
            }
            None => {
                format!("expected [{experts}, ..., {cols}] (experts of the router, columns of the input)")
            }
        };
        return Err(at.at(key, &message, label));
    }
    at.check_width(key, shape[1])?;
    let mut tensors = vec![weight];
    let bias_key = match key {
        "gate" => "gate_bias",
        "up" => "up_bias",
        _ => "down_bias",
    };
    if at.has(bias_key) {
        let bias = at.tensor(bias_key, Role::ExpertVector)?;
        at.check_shape(bias_key, bias, &[experts, shape[1]])?;
        tensors.push(bias);
    }
    let ty = Type::F32(Rows::Slots(k), shape[1]);
    Ok(at.push_as(Some(key), ty, MatMul::EXPERT_LINEAR.into(), vec![x, routing], tensors))
}
