//! Matrix products: a matrix, or the matrices of chosen experts, times a row in f32, q8 or bf16, plus a bias
//! and the branch of the token's adapter. Router and unembedding too.

use super::def::{OpDef, OpKind, Outline, Packed, SpecOp};
use super::form::{ANY, BLOCKED, Input, MXFP4, OpForm, Operands, TensorOperand, ensure};
use super::keys::{Activations, LINEAR, OpInfo};
use super::places::{KernelPosition, KernelTemplate};
use super::product;
use super::spec_node::SpecNode;
use crate::ir::cursor::unknown;
use crate::ir::eval::num::{dot4, tiledot};
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{GraphRowOp, Node, Role, RowKind, Rows, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::row_op::LinearRow;

/// `x, [routing], [shrunk]; matrix, [bias] -> f32`: products of a row with every row of a matrix. With a
/// routing, rows are slots, and each has its expert's matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatMul {
    /// Which matrix a row meets.
    pub rows: MatrixRows,
    /// The form of x.
    pub x: Factor,
}

/// Which matrix a row is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixRows {
    /// The one that there is.
    All,
    /// The matrix of the expert that the routing chose for the slot.
    Expert,
}

/// The form of the rows that a matrix is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factor {
    /// f32, and what a preset may do with it.
    F32(Activations),
    /// Rounded to q8, which a matrix in blocks needs. Of rows of two terms only the first is read.
    Q8,
    /// Rounded to q8 in two terms. The product is the sum of the products with both.
    Q8x2,
    /// Rounded to bf16, for experts in MXFP4 alone.
    Bf16,
}

pub static KINDS: [Outline; 5] = [
    Outline {
        spec: &[
            SpecOp {
                info: OpInfo { name: "linear", params: LINEAR, pattern: &["linear", "quant_linear"] },
                lower: |at| lower(at, |at, n| at.check_width("weight", n)),
            },
            SpecOp { info: OpInfo { name: "logits", params: LINEAR, pattern: &[] }, lower: lower_logits },
        ],
        // In a prologue all of a small matrix, such as a router's, is multiplied by one worker.
        places: &[KernelPosition::Prologue, KernelPosition::Root(KernelTemplate::Matmul)],
        facts: |known, inputs, out| known.same_rows(inputs[0], out),
        ..Outline::new("linear", OpForm::branched(&[Input::F32, Input::F32], PLAIN_MATRIX), |at, written| {
            if !written {
                return Ok(MatMul::LINEAR.into());
            }
            at.expect("activations")?;
            at.expect("=")?;
            let word = at.word()?;
            let activations = Activations::of(word).ok_or_else(|| unknown("activations", word))?;
            Ok(MatMul { x: Factor::F32(activations), ..MatMul::LINEAR }.into())
        })
    },
    Outline {
        places: &[KernelPosition::Root(KernelTemplate::Matmul)],
        ..Outline::new(
            "quant_linear",
            OpForm::branched(&[Input::Q8, Input::F32], BLOCK_MATRIX),
            |at, written| {
                if !written {
                    return Ok(MatMul::QUANT_LINEAR.into());
                }
                at.expect("terms=2")?;
                Ok(MatMul { x: Factor::Q8x2, ..MatMul::QUANT_LINEAR }.into())
            },
        )
    },
    of_experts(Outline::new(
        "expert_linear",
        OpForm::branched(&[Input::F32, Input::Routing, Input::F32], PLAIN_EXPERTS),
        |_, _| Ok(MatMul::EXPERT_LINEAR.into()),
    )),
    of_experts(Outline::new(
        "quant_expert_linear",
        OpForm::branched(&[Input::Q8, Input::Routing, Input::F32], BLOCK_EXPERTS),
        |_, _| Ok(MatMul::QUANT_EXPERT_LINEAR.into()),
    )),
    of_experts(Outline::new(
        "bf16_expert_linear",
        OpForm::branched(&[Input::Bf16, Input::Routing, Input::F32], MXFP4_EXPERTS),
        |_, _| Ok(MatMul::BF16_EXPERT_LINEAR.into()),
    )),
];

const BIAS: TensorOperand = TensorOperand::optional("bias", Role::Vector);
const BIASES: TensorOperand = TensorOperand::optional("bias", Role::ExpertVector);
const PLAIN_MATRIX: &[TensorOperand] = &[TensorOperand::new("matrix", Role::Matrix, ANY), BIAS];
const BLOCK_MATRIX: &[TensorOperand] = &[TensorOperand::new("matrix", Role::Matrix, BLOCKED), BIAS];
const PLAIN_EXPERTS: &[TensorOperand] = &[TensorOperand::new("matrix", Role::ExpertMatrix, ANY), BIASES];
const BLOCK_EXPERTS: &[TensorOperand] = &[TensorOperand::new("matrix", Role::ExpertMatrix, BLOCKED), BIASES];
const MXFP4_EXPERTS: &[TensorOperand] = &[TensorOperand::new("matrix", Role::ExpertMatrix, MXFP4), BIASES];

const fn of_experts(outline: Outline) -> Outline {
    Outline {
        places: &[
            KernelPosition::Root(KernelTemplate::Experts),
            KernelPosition::Root(KernelTemplate::ExpertDown),
        ],
        facts: |known, inputs, out| {
            known.routing.push(inputs[1].to_owned());
            known.rows_are(out, RowKind::Slots);
        },
        ..outline
    }
}

impl MatMul {
    /// A matrix times f32 rows, which presets round as they round all.
    pub const LINEAR: MatMul = MatMul { rows: MatrixRows::All, x: Factor::F32(Activations::AsPreset) };
    /// A matrix in blocks times q8 rows.
    pub const QUANT_LINEAR: MatMul = MatMul { rows: MatrixRows::All, x: Factor::Q8 };
    /// Experts' matrices times f32 rows.
    pub const EXPERT_LINEAR: MatMul = MatMul { rows: MatrixRows::Expert, ..MatMul::LINEAR };
    /// Experts' matrices in blocks times q8 rows.
    pub const QUANT_EXPERT_LINEAR: MatMul = MatMul { rows: MatrixRows::Expert, ..MatMul::QUANT_LINEAR };
    /// Experts' matrices in MXFP4 times bf16 rows.
    pub const BF16_EXPERT_LINEAR: MatMul = MatMul { rows: MatrixRows::Expert, x: Factor::Bf16 };

    /// Rows of q8 of each input row that the matrix is multiplied with; 1 for other inputs.
    pub fn terms(self) -> usize {
        if self.x == Factor::Q8x2 { 2 } else { 1 }
    }

    /// Inputs without that of an adapter branch.
    pub fn plain_inputs(self) -> usize {
        match self.rows {
            MatrixRows::All => 1,
            MatrixRows::Expert => 2,
        }
    }
}

impl OpDef for MatMul {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(match (self.rows, self.x) {
            (MatrixRows::All, Factor::F32(_)) => &KINDS[0],
            (MatrixRows::All, Factor::Q8 | Factor::Q8x2) => &KINDS[1],
            (MatrixRows::Expert, Factor::F32(_)) => &KINDS[2],
            (MatrixRows::Expert, Factor::Q8 | Factor::Q8x2) => &KINDS[3],
            // A plain matrix times bf16 rows fits the form of no kind, and is refused by that.
            (_, Factor::Bf16) => &KINDS[4],
        })
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let terms = on.x().q8_terms();
        let fits = terms < 2 || self.rows == MatrixRows::All;
        ensure(fits && (terms >= 2 || self.x != Factor::Q8x2), || {
            format!("a product of {} terms with input 0, {}", self.terms(), on.x().text())
        })?;
        match self.rows {
            MatrixRows::All => {
                let (x, n) = (on.x(), on.tensors[0].shape[0]);
                on.shape(0, &[n, x.cols()])?;
                on.shape(1, &[n])?;
                on.shrunk(1, x.rows())?;
                Ok(Type::F32(x.rows(), n))
            }
            MatrixRows::Expert => {
                let k = on.rows_of_routing()?;
                let (experts, n) = (on.tensors[0].shape[0], on.tensors[0].shape[1]);
                on.shape(0, &[experts, n, on.x().cols()])?;
                on.shape(1, &[experts, n])?;
                on.shrunk(2, Rows::Slots(k))?;
                Ok(Type::F32(Rows::Slots(k), n))
            }
        }
    }

    fn attributes(&self, _: usize) -> String {
        match self.x {
            Factor::F32(Activations::AsPreset) | Factor::Q8 | Factor::Bf16 => String::new(),
            Factor::F32(activations) => format!("(activations={})", activations.name()),
            Factor::Q8x2 => "(terms=2)".to_owned(),
        }
    }

    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        match self.rows {
            MatrixRows::All => product::dense(state, node),
            MatrixRows::Expert if self.x == Factor::Bf16 => product::of_experts(tiledot, state, node),
            MatrixRows::Expert => product::of_experts(dot4, state, node),
        }
    }

    fn row_op(&self, node: &Node, kernels: &dyn Packed) -> Option<GraphRowOp> {
        Some(LinearRow { x: node.inputs[0], mat: kernels.mat(node), out: node.output }.into())
    }
}

/// Adds a product whose `n` results per row pass `check`.
fn lower(
    at: &mut dyn SpecNode,
    check: impl FnOnce(&dyn SpecNode, usize) -> SpecResult<()>,
) -> SpecResult<ValueId> {
    let (x, rows, cols) = at.input("input")?;
    let weight = at.tensor("weight", Role::Matrix)?;
    let n = at.check_k("weight", weight, cols)?;
    check(at, n)?;
    let mut tensors = vec![weight];
    if at.has("bias") {
        tensors.push(at.vector("bias", n)?);
    }
    let op = MatMul { x: Factor::F32(at.activations()?), ..MatMul::LINEAR };
    Ok(at.push(Type::F32(rows, n), op, vec![x], tensors))
}

/// Logits are a product of the wanted rows alone, as wide as the vocabulary.
fn lower_logits(at: &mut dyn SpecNode) -> SpecResult<ValueId> {
    let (_, rows, _) = at.input("input")?;
    if rows != Rows::LogitRows {
        let message = "logits of every row of the batch";
        return Err(at.at("input", message, "expected a value behind `select_rows`").help(
            "put a `select_rows` node before the final norm: only the rows whose logits are wanted go on",
        ));
    }
    if at.graph().whole_texts() {
        let message = "logits behind attention that is not causal";
        return Err(at
            .at("input", message, "expected causal attention before it")
            .help("a model whose tokens see those that follow ends in an `embedding` node"));
    }
    let value = lower(at, |_, _| Ok(()))?;
    let vocab = at.graph().vocab;
    if at.ty(value) != Type::F32(Rows::LogitRows, vocab) {
        let message = format!("logits with {}, the vocabulary has {vocab} tokens", at.ty(value).in_words());
        return Err(at.at("weight", &message, format!("expected a tensor [{vocab}, ...]")));
    }
    at.set_output(value, None)?;
    Ok(value)
}
