//! Products of rounded rows: `quant_linear`, a matrix in blocks times a row in q8; `quant_expert_linear`, the
//! same of chosen experts; `bf16_expert_linear`, MXFP4 matrices of chosen experts times a row in bf16.

use super::def::{OpDef, Outline, Place};
use super::form::{BLOCKED, Form, Input, Operand, Operands, STORED};
use super::product;
use crate::fuse::rule::Template;
use crate::graph::cursor::Cursor;
use crate::graph::{Node, Op, Role, Type};
use crate::interp::state::{Data, State};

/// A product whose factors the graph rounds before.
pub struct RoundedLinear {
    outline: Outline,
    op: Op,
    infer: fn(&Operands<'_>) -> Result<Type, String>,
    eval: fn(&State, &Node) -> Data,
}

pub static QUANT_LINEAR: RoundedLinear = RoundedLinear {
    outline: Outline {
        name: "quant_linear",
        form: Form::branched(
            &[Input::Q8, Input::F32],
            &[Operand::new("matrix", Role::Matrix, BLOCKED), Operand::optional("bias", Role::Vector)],
        ),
        spec: &[],
        places: &[Place::Root(Template::Matmul)],
    },
    op: Op::QuantLinear,
    infer: product::infer_dense,
    eval: product::eval_dense,
};

pub static QUANT_EXPERT_LINEAR: RoundedLinear = of_experts(
    "quant_expert_linear",
    &[Input::Q8, Input::Routing, Input::F32],
    BLOCK_MATRIX,
    Op::QuantExpertLinear,
);

pub static BF16_EXPERT_LINEAR: RoundedLinear = of_experts(
    "bf16_expert_linear",
    &[Input::Bf16, Input::Routing, Input::F32],
    STORED_MATRIX,
    Op::Bf16ExpertLinear,
);

const BLOCK_MATRIX: &[Operand] =
    &[Operand::new("matrix", Role::ExpertMatrix, BLOCKED), Operand::optional("bias", Role::ExpertVector)];
const STORED_MATRIX: &[Operand] =
    &[Operand::new("matrix", Role::ExpertMatrix, STORED), Operand::optional("bias", Role::ExpertVector)];

const fn of_experts(
    name: &'static str,
    inputs: &'static [Input],
    tensors: &'static [Operand],
    op: Op,
) -> RoundedLinear {
    RoundedLinear {
        outline: Outline {
            name,
            form: Form::branched(inputs, tensors),
            spec: &[],
            places: &[Place::Root(Template::Experts), Place::Root(Template::ExpertDown)],
        },
        op,
        infer: product::infer_experts,
        eval: product::eval_experts,
    }
}

impl OpDef for RoundedLinear {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn infer(&self, _: &Op, on: &Operands<'_>) -> Result<Type, String> {
        (self.infer)(on)
    }

    fn parse(&self, _: &mut Cursor<'_>, _: bool) -> Result<Op, String> {
        Ok(self.op.clone())
    }

    fn eval(&self, state: &mut State, node: &Node) -> Data {
        (self.eval)(state, node)
    }
}
