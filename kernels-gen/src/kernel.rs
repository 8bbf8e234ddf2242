//! The description of a kernel, as data. The compiler's selection makes these; equal kernels are one, so that
//! layers of equal shapes share code.
//!
//! A kernel reads and writes *values*: row-major buffers whose home is an arena buffer (an operand) or the
//! worker's scratch. Operands are numbered in the order in which the step lists their addresses.

use crate::panel_kind::PanelKind;
use crate::row_op::StoreRow;
use crate::ukernel::gemm_q8::DotStep;
use crate::ukernel::gemm_tiles::TileElement;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use kernmill_plan::kv::{KvGeometry, LayerKind};

pub use crate::row_op::RowOp;
pub use crate::values::{
    Domain, FloatBits, Home, Mat, MatAdapter, OperandId, PROLOGUE_TOKENS, RowType, Val, ValId,
};
pub use kernmill_plan::kv::KvPlane;

/// Tokens that attention takes through the keys together in batches of more than [`PROLOGUE_TOKENS`]: enough
/// that the keys' way to L1 hardly counts. The scratch of a long context grows with it.
pub const ATTENTION_TILE: usize = 4;

/// One LoRA target of [`Body::Shrink`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShrinkLoraTarget {
    /// The LoRA target: [`kernmill_plan::program::Operand::LoraTarget`].
    pub lora_target: OperandId,
    /// Elements of A.
    pub format: WeightFormat,
    /// Shrunk rows.
    pub out: ValId,
}

/// Matrices whose equal rows one work item computes, and what becomes of the results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixPart {
    /// One matrix, or several (gate and up), which the first step of the epilogue combines.
    pub mats: Vec<Mat>,
    /// Whether these are two matrices whose tiles alternate in memory, the first one's first.
    pub interleaved: bool,
    /// Output rows per work item: a multiple of 16 that divides the matrices' rows, rounded up to whole
    /// tiles.
    pub rows_per_item: usize,
    /// Operations on the results, in order.
    pub epilogue: Vec<RowOp>,
}

impl MatrixPart {
    /// The matrix of [`Body::ExpertDown`] as a part; its epilogue is the weighted sum.
    pub fn down(mat: &Mat, rows_per_item: usize) -> MatrixPart {
        MatrixPart { mats: vec![mat.clone()], interleaved: false, rows_per_item, epilogue: Vec::new() }
    }

    /// Rows of q8 of each input row that the matrices are multiplied with.
    pub fn terms(&self) -> usize {
        self.mats.iter().map(|mat| mat.term + 1).max().unwrap_or(1)
    }

    /// Bytes of one row's results of an item.
    pub fn result_bytes(&self) -> usize {
        self.mats.len() * self.rows_per_item * 4
    }

    /// Work items.
    pub fn items(&self) -> usize {
        self.mats[0].n.div_ceil(self.rows_per_item)
    }
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Values.
    pub vals: Vec<Val>,
    /// Stages that every worker runs over all rows before the body (batches of at most [`PROLOGUE_TOKENS`]).
    pub prologue: Vec<RowOp>,
    /// The work that is shared out.
    pub body: Body,
    /// Rows that pointer lists and routing lists must have room for.
    pub max_rows: usize,
    /// How the body's matrices are multiplied.
    pub tiling: Tiling,
    /// Buffers of the panels of the body's matrices, one for each of [`Kernel::panel_runs`], which a step
    /// before has filled. Without them every worker fills its own, in scratch.
    pub panels: Vec<OperandId>,
}

/// How matrices are multiplied. The results are the same bits. Products of bf16 rows are made of panels from
/// one row on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tiling {
    /// A tile of 16 rows by a few tokens at a time, weights decoded as they are read: as fast as memory while
    /// tokens are few.
    Dot,
    /// Weights decoded once into scratch, activations gathered into panels, two tiles by six tokens in
    /// registers; a body still turns to dot micro-kernels when it finds fewer rows than `least_rows` (an
    /// expert that few tokens chose).
    Gemm {
        /// Input rows from which on decoding into scratch pays; at least 1.
        least_rows: usize,
        /// How the level's micro-kernels add products up.
        products: DotStep,
    },
    /// Tiles of 16 tokens by 16 rows, of bf16 for MXFP4 and of int8 for other formats; otherwise like `Gemm`.
    Tiles {
        /// Input rows from which on it pays; at least 1.
        least_rows: usize,
    },
}

impl Tiling {
    /// The panels of `input` rows for weights of a format; `None` where a kernel has none.
    pub fn panels(self, input: RowType, format: WeightFormat) -> Option<PanelKind> {
        match (input, self) {
            (RowType::Bf16(_), _) => Some(PanelKind::Bf16),
            (_, Tiling::Gemm { products, .. }) => Some(PanelKind::Q8 { format, products }),
            (_, Tiling::Tiles { .. }) => Some(PanelKind::Tiles(TileElement::of(format))),
            (_, Tiling::Dot) => None,
        }
    }

    /// Input rows from which on panels are used, if ever.
    pub fn least_rows(self) -> Option<usize> {
        match self {
            Tiling::Dot => None,
            Tiling::Gemm { least_rows, .. } | Tiling::Tiles { least_rows } => Some(least_rows),
        }
    }
}

/// The shared-out part of a kernel. `input`, `routing`, `residual` and `out` are values.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Stages over rows; work items are rows.
    Rows { domain: Domain, row_ops: Vec<RowOp> },
    /// Dense matrices; work items are runs of their rows.
    Matmul { domain: Domain, input: ValId, parts: Vec<MatrixPart> },
    /// Grouped matrices; work items are (expert, run of its rows). Output rows are slots.
    Experts {
        input: ValId,
        input_slots: bool,
        routing: ValId,
        experts: usize,
        top_k: usize,
        part: MatrixPart,
        /// Rows up to which an item takes as long as with one: reading its weights takes longer than their
        /// products. Workers' shares are equal by it.
        even_rows: usize,
    },
    /// Grouped matrix, weighted sum over experts in ascending id, optional residual; work items are runs of
    /// output rows.
    ExpertDown {
        input: ValId,
        routing: ValId,
        experts: usize,
        top_k: usize,
        mat: Mat,
        /// Output rows per work item, which divide the matrix's rows rounded up to tiles.
        rows_per_item: usize,
        residual: Option<ValId>,
        out: ValId,
    },
    /// Rows copied into panels, for the kernel of the next step; work items are rows, sorted by expert where
    /// there is a routing. Experts with fewer rows than the tiling's least have none.
    Panels {
        /// Rows of `input`.
        domain: Domain,
        input: ValId,
        /// Routing, experts, slots per token.
        routed: Option<(ValId, usize, usize)>,
        /// Each with its buffer, and the rows of q8 of each input row that it holds, one row's panels behind
        /// the other's.
        panels: Vec<(OperandId, PanelKind, usize)>,
    },
    /// The scaled A of each token's adapter times a row of `input`, for one or several LoRA targets. Output
    /// rows are tokens, or slots where there is a routing.
    Shrink {
        input: ValId,
        /// Routing, experts, slots per token.
        routed: Option<(ValId, usize, usize)>,
        input_slots: bool,
        lora_targets: Vec<ShrinkLoraTarget>,
        /// Computed before, by each worker for the rows that it shrinks, or all of few; only with `by_rows`.
        row_ops: Vec<RowOp>,
        /// Work items are groups of tokens, if there are more than [`PROLOGUE_TOKENS`]; otherwise tiles of A.
        by_rows: bool,
    },
    /// Attention over the cache; work items are (tile of tokens, KV head).
    Attention(AttentionBody),
}

impl Kernel {
    /// Every matrix that the kernel multiplies with.
    pub fn mats(&self) -> Vec<&Mat> {
        let row_ops = self.prologue.iter().chain(self.body.row_ops()).filter_map(|op| op.code().mat());
        let parts: &[MatrixPart] = match &self.body {
            Body::Matmul { parts, .. } => parts,
            Body::Experts { part, .. } => std::slice::from_ref(part),
            _ => &[],
        };
        let down = match &self.body {
            Body::ExpertDown { mat, .. } => Some(mat),
            _ => None,
        };
        row_ops.chain(parts.iter().flat_map(|part| &part.mats)).chain(down).collect()
    }
}

/// A matrix of logits by single tiles of 16 rows, where a list says which of them are multiplied
/// ([`kernmill_plan::abi::Args::logit_tiles`]): a product that is all of its body, and whose epilogue knows
/// single columns.
pub fn listed_part(domain: Domain, parts: &[MatrixPart]) -> Option<MatrixPart> {
    let [part] = parts else { return None };
    let mat = part.mats.first()?;
    let is_one = part.mats.iter().all(|term| term.operand == mat.operand);
    let by_columns = part.epilogue.iter().all(|op| op.code().is_by_columns());
    let has_list = domain == Domain::LogitRows && is_one && mat.adapter.is_none() && by_columns;
    has_list.then(|| MatrixPart { rows_per_item: TILE_ROWS, ..part.clone() })
}

impl Body {
    /// See [`listed_part`].
    pub fn listed_part(&self) -> Option<MatrixPart> {
        match self {
            Body::Matmul { domain, parts, .. } => listed_part(*domain, parts),
            _ => None,
        }
    }

    /// Stages that work items of the body are made of, or begin with.
    pub fn row_ops(&self) -> &[RowOp] {
        match self {
            Body::Rows { row_ops, .. } | Body::Shrink { row_ops, .. } => row_ops,
            _ => &[],
        }
    }
}

/// Attention over the paged cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttentionBody {
    /// Queries, f32 `[heads * head_dim]`.
    pub q: ValId,
    /// The layer's pool.
    pub pool: OperandId,
    /// Kind: which block table.
    pub kind: LayerKind,
    /// Shape of the blocks.
    pub geometry: KvGeometry,
    /// Query heads.
    pub heads: usize,
    /// Factor on the scores.
    pub scale: FloatBits,
    /// Scores go through `cap * tanh(score / cap)`.
    pub softcap: Option<FloatBits>,
    /// Whether a token sees no token behind it; else it sees its whole sequence.
    pub causal: bool,
    /// Keys in view, the token's own included; on either side of it, where it is not causal.
    pub window: Option<u32>,
    /// Tokens of a sequence that a work item takes through the keys together.
    pub tile_tokens: usize,
    /// Whether items are runs of at most so many tokens, wherever they begin in the batch; else they are
    /// tiles of so many rows of it.
    pub by_runs: bool,
    /// Segments of [`kernmill_plan::numeric::ATTENTION_SEGMENT`] positions that a query may see at once.
    pub max_segments: usize,
    /// f32 `[heads]` sinks.
    pub sinks: Option<OperandId>,
    /// Output, f32 or q8 `[heads * v_head_dim]`.
    pub out: ValId,
    /// Where the output is q8: its rows in f32 too.
    pub lora_input: Option<StoreRow>,
}
