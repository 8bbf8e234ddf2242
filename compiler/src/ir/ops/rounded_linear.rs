//! Products of rounded rows: `quant_linear`, a matrix in blocks times a row in q8; `quant_expert_linear`, the
//! same of chosen experts; `bf16_expert_linear`, MXFP4 matrices of chosen experts times a row in bf16.

use super::def::{OpDef, Outline};
use super::form::{BLOCKED, Input, MXFP4, OpForm, Operands, TensorOperand};
use super::places::{KernelPosition, KernelTemplate};
use super::product;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Op, Role, Type};

/// A product whose factors the graph rounds before.
pub struct RoundedLinear {
    outline: Outline,
    op: Op,
    infer: fn(&Operands<'_>) -> Result<Type, String>,
    eval: fn(&OpState, &Node) -> Data,
}

pub static QUANT_LINEAR: RoundedLinear = RoundedLinear {
    outline: Outline {
        name: "quant_linear",
        form: OpForm::branched(
            &[Input::Q8, Input::F32],
            &[
                TensorOperand::new("matrix", Role::Matrix, BLOCKED),
                TensorOperand::optional("bias", Role::Vector),
            ],
        ),
        spec: &[],
        places: &[KernelPosition::Root(KernelTemplate::Matmul)],
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
    MXFP4_MATRIX,
    Op::Bf16ExpertLinear,
);

const BLOCK_MATRIX: &[TensorOperand] = &[
    TensorOperand::new("matrix", Role::ExpertMatrix, BLOCKED),
    TensorOperand::optional("bias", Role::ExpertVector),
];
const MXFP4_MATRIX: &[TensorOperand] = &[
    TensorOperand::new("matrix", Role::ExpertMatrix, MXFP4),
    TensorOperand::optional("bias", Role::ExpertVector),
];

const fn of_experts(
    name: &'static str,
    inputs: &'static [Input],
    tensors: &'static [TensorOperand],
    op: Op,
) -> RoundedLinear {
    RoundedLinear {
        outline: Outline {
            name,
            form: OpForm::branched(inputs, tensors),
            spec: &[],
            places: &[
                KernelPosition::Root(KernelTemplate::Experts),
                KernelPosition::Root(KernelTemplate::ExpertDown),
            ],
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

    fn parse(&self, _: &mut LineCursor<'_>, _: bool) -> Result<Op, String> {
        Ok(self.op.clone())
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        (self.eval)(state, node)
    }
}
