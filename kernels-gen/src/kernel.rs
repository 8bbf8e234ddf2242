//! The description of a kernel, as data. The compiler's selection makes these; equal kernels are one, so that
//! layers of equal shapes share code.
//!
//! A kernel reads and writes *values*: row-major buffers whose home is an arena buffer (an operand) or the
//! worker's scratch. Operands are numbered in the order in which the step lists their addresses.

use crate::expr::Expr;
use crate::panel_kind::PanelKind;
use crate::ukernel::gemm_q8::DotStep;
use crate::ukernel::gemm_tiles::TileElement;
use kernmill_plan::format::{LINE, Q8Row, TILE_ROWS, WeightFormat, f32_row_stride};
use kernmill_plan::kv::{KvFormat, KvGeometry, KvRow, LayerKind};

pub use kernmill_plan::kv::KvPlane;

use std::fmt;

/// Index of an operand address.
pub type OperandId = usize;
/// Index into a kernel's values.
pub type ValId = usize;

/// Largest batch for which every worker can recompute a prologue: its scratch has room for so many rows. (The
/// wanted rows of a slab of logits are always recomputed.)
pub const PROLOGUE_TOKENS: usize = 8;

/// Tokens that attention takes through the keys together in batches of more than [`PROLOGUE_TOKENS`]: enough
/// that the keys' way to L1 hardly counts. The scratch of a long context grows with it.
pub const ATTENTION_TILE: usize = 4;

/// An f32 of a kernel's description: two are equal when their bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatBits(u32);

impl FloatBits {
    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl From<f32> for FloatBits {
    fn from(value: f32) -> FloatBits {
        FloatBits(value.to_bits())
    }
}

/// The number, with as many digits as tell it from others.
impl fmt::Debug for FloatBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&f32::from_bits(self.0), f)
    }
}

/// A buffer of rows that a kernel works on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Val {
    /// Row contents.
    pub row: RowType,
    /// Where the rows are.
    pub home: Home,
}

/// Contents of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowType {
    /// f32 `[n]`.
    F32(usize),
    /// `q8` blocks `[n]`.
    Q8(usize),
    /// f16 `[n]`.
    F16(usize),
    /// bf16 `[n]`, n a multiple of 32.
    Bf16(usize),
    /// Keys or values `[n]` of another format of the cache ([`KvRow::bytes`]).
    Kv(KvRow, usize),
    /// [`kernmill_plan::abi::ChosenExpert`] `[top_k]`.
    Routing(usize),
}

impl RowType {
    /// A row of keys or values before it enters the cache, `n` elements of the cache's format.
    pub fn kv(row: KvRow, n: usize) -> RowType {
        match row.format {
            KvFormat::F16 => RowType::F16(n),
            KvFormat::F32 => RowType::F32(n),
            _ => RowType::Kv(row, n),
        }
    }

    /// Bytes from one row to the next. f32 rows have room for whole tiles, so that a tile's padding rows can
    /// be stored.
    pub fn stride(self) -> usize {
        match self {
            RowType::F32(n) => f32_row_stride(n.next_multiple_of(TILE_ROWS)),
            RowType::Q8(n) => Q8Row { k: n }.stride(),
            RowType::F16(n) | RowType::Bf16(n) => (n * 2).next_multiple_of(64),
            RowType::Kv(row, n) => row.bytes(n).next_multiple_of(LINE),
            RowType::Routing(k) => k * 8,
        }
    }

    /// Elements of a row.
    pub fn len(self) -> usize {
        match self {
            RowType::F32(n)
            | RowType::Q8(n)
            | RowType::F16(n)
            | RowType::Bf16(n)
            | RowType::Kv(_, n)
            | RowType::Routing(n) => n,
        }
    }

    /// Whether a row has no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Where a value's rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// The buffer whose address is that operand.
    Operand(OperandId),
    /// The worker's scratch: each worker has its own copy (prologues of at most [`PROLOGUE_TOKENS`] rows).
    Scratch,
    /// The worker's scratch, except that worker 0 uses the operand's buffer, for later steps to read.
    ScratchExceptWorker0(OperandId),
}

/// Which rows a kernel walks over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Tokens of the batch.
    Tokens,
    /// `top_k` rows per token.
    Slots(usize),
    /// The wanted rows of the slab.
    LogitRows,
}

/// A packed matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mat<V = ValId, O = OperandId> {
    /// Address of the matrix.
    pub operand: O,
    /// Packed format.
    pub format: WeightFormat,
    /// Output rows.
    pub n: usize,
    /// Inner dimension.
    pub k: usize,
    /// Bytes from one tile of 16 rows to this matrix's next (more than a tile when interleaved with another
    /// matrix).
    pub tile_stride: usize,
    /// Bytes from one expert to the next; 0 for dense matrices.
    pub expert_stride: usize,
    /// Address of the f32 bias, padded to whole tiles; experts are `f32_row_stride(n)` apart.
    pub bias: Option<O>,
    /// Adapter branch of the matrix, if it has one.
    pub adapter: Option<MatAdapter<V, O>>,
}

/// Something done to one row. `x`, `out` and the like are values `V`; weights and pools are operands `O`;
/// numbers are shapes. The compiler names values and operands by its graph until it makes a kernel
/// ([`crate::names`]).
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowOp<V = ValId, O = OperandId> {
    /// A row of the embedding table.
    Embed { table: O, format: WeightFormat, row_bytes: usize, out: V },
    /// See docs/dev/numerics.md.
    RmsNorm { x: V, weight: O, eps: FloatBits, out: V },
    /// f32 to q8.
    Quantize { x: V, out: V },
    /// f32 to bf16.
    Bf16Cast { x: V, out: V },
    /// An expression of f32 rows.
    Elementwise { expr: Expr, inputs: Vec<V>, out: V },
    /// Rotates each head.
    Rope { x: V, table: O, head_dim: usize, out: V },
    /// Each head through a Hadamard transform.
    Hadamard { x: V, head_dim: usize, out: V },
    /// f32 to a format of the KV cache.
    KvCast { x: V, to: KvRow, out: V },
    /// Writes a row of keys or values into the cache.
    KvStore { x: V, pool: O, plane: KvPlane, kind: LayerKind, geometry: KvGeometry },
    /// A small matrix, all of it by one worker (the router).
    Linear { x: V, mat: Mat<V, O>, out: V },
    /// The k largest logits and their weights.
    TopK { x: V, experts: usize, k: usize, out: V },
    /// The row that a wanted row stands for.
    SelectRow { x: V, out: V },
    /// Weighted sum of a token's expert rows in ascending expert id.
    ExpertSum { y: V, routing: V, top_k: usize, out: V },
}

/// The adapter branch of a matrix: what is added to the products of rows whose token has an adapter there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatAdapter<V = ValId, O = OperandId> {
    /// The LoRA target: [`kernmill_plan::program::Operand::LoraTarget`].
    pub lora_target: O,
    /// The shrunk input, a row of `MAX_RANK` f32 for each output row.
    pub shrunk: V,
    /// Elements of A and B.
    pub format: WeightFormat,
    /// Tiles of an expert's B (of the only one's) that come before the matrix's.
    pub first_tile: usize,
}

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

/// Rows that are kept for a later shrink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoraInput<V = ValId, O = OperandId> {
    /// f32, of which rows are written whose token has an adapter at one of the LoRA targets.
    pub out: V,
    /// The LoRA targets; none when every row is written.
    pub lora_targets: Vec<O>,
}

#[allow(missing_docs)]
/// A step over a work item's results for one row of a matmul, held as f32 in scratch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Epilogue<V = ValId, O = OperandId> {
    /// An expression of the results and the same columns of f32 values: variables are the results at hand (of
    /// a part's first step those of each matrix, of later ones those that there are), then `inputs`. Its
    /// values take the results' place.
    Map { expr: Expr, inputs: Vec<V> },
    /// Rotates the results, which are one head.
    Rope { table: O },
    /// The unit, which is one head, through a Hadamard transform.
    Hadamard { head_dim: usize },
    /// Stores f32.
    Store { out: V },
    /// Stores f32 for a shrink.
    SaveLoraInput(LoraInput<V, O>),
    /// Stores q8.
    Quantize { out: V },
    /// Stores bf16.
    Bf16Cast { out: V },
    /// Stores in a format of the KV cache.
    KvCast { to: KvRow, out: V },
    /// Stores into the KV cache, rounded to its format; the results are one head.
    KvWrite { pool: O, plane: KvPlane, kind: LayerKind, geometry: KvGeometry },
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
    /// In order.
    pub epilogue: Vec<Epilogue>,
}

impl MatrixPart {
    /// The matrix of [`Body::ExpertDown`] as a part; its epilogue is the weighted sum.
    pub fn down(mat: &Mat, rows_per_item: usize) -> MatrixPart {
        MatrixPart { mats: vec![mat.clone()], interleaved: false, rows_per_item, epilogue: Vec::new() }
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
        /// Each with its buffer.
        panels: Vec<(OperandId, PanelKind)>,
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
        let row_ops = self.prologue.iter().chain(self.body.row_ops()).filter_map(|row_op| match row_op {
            RowOp::Linear { mat, .. } => Some(mat),
            _ => None,
        });
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
    let [mat] = part.mats.as_slice() else { return None };
    let by_columns = |step: &Epilogue| matches!(step, Epilogue::Map { .. } | Epilogue::Store { .. });
    let has_list =
        domain == Domain::LogitRows && mat.adapter.is_none() && part.epilogue.iter().all(by_columns);
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
    /// Keys in view.
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
    /// Output, f32 or q8 `[heads * head_dim]`.
    pub out: ValId,
    /// Where the output is q8: its rows in f32 too.
    pub lora_input: Option<LoraInput>,
}
