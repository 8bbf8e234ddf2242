//! `expert_linear`: matrices of the chosen experts times a row; and the spec op `moe`, which is gate, up,
//! activation, down and the weighted sum.

use super::def::{OpDef, Outline, SpecOp};
use super::form::{ANY, Input, OpForm, Operands, TensorOperand};
use super::keys::{INPUT, OpInfo, ParamKind, optional, required};
use super::places::{KernelPosition, KernelTemplate};
use super::product;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::RowKind;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Op, Role, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;

pub struct ExpertLinear;

const OUTLINE: Outline = Outline {
    name: "expert_linear",
    form: OpForm::branched(
        &[Input::F32, Input::Routing, Input::F32],
        &[
            TensorOperand::new("matrix", Role::ExpertMatrix, ANY),
            TensorOperand::optional("bias", Role::ExpertVector),
        ],
    ),
    spec: &[SpecOp {
        info: OpInfo {
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
        },
        lower: lower_moe,
    }],
    places: &[
        KernelPosition::Root(KernelTemplate::Experts),
        KernelPosition::Root(KernelTemplate::ExpertDown),
    ],
};

impl OpDef for ExpertLinear {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        product::infer_experts(on)
    }

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(Op::ExpertLinear)
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        product::eval_experts(state, node)
    }

    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        known.routing.push(inputs[1].to_owned());
        known.rows_are(out, RowKind::Slots);
    }
}

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
    let act = at.push_as(Some("act"), Type::F32(rows, hidden), Op::Glu { expr }, vec![gate, up], vec![]);
    let down = expert_linear(at, "down", act, routing, (k, experts), (hidden, None))?;
    let Type::F32(_, out) = at.ty(down) else { unreachable!("expert_linear makes f32") };
    Ok(at.push(Type::F32(Rows::Tokens, out), Op::ExpertSum, vec![down, routing], vec![]))
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
    Ok(at.push_as(Some(key), ty, Op::ExpertLinear, vec![x, routing], tensors))
}
