//! Values of kernels, the contents of their rows, and packed matrices.

use kernmill_plan::format::{LINE, Q8Row, TILE_ROWS, WeightFormat, f32_row_stride};
use kernmill_plan::kv::{KvFormat, KvRow};
use std::fmt;

/// Index of an operand address.
pub type OperandId = usize;
/// Index into a kernel's values.
pub type ValId = usize;

/// Largest batch for which every worker can recompute a prologue: its scratch has room for so many rows. (The
/// wanted rows of a slab of logits are always recomputed.)
pub const PROLOGUE_TOKENS: usize = 8;

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
    /// Two rows of `q8` blocks `[n]`, one behind the other: the second one is what the first leaves, rounded.
    Q8x2(usize),
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
            RowType::Q8x2(n) => 2 * Q8Row { k: n }.stride(),
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
            | RowType::Q8x2(n)
            | RowType::F16(n)
            | RowType::Bf16(n)
            | RowType::Kv(_, n)
            | RowType::Routing(n) => n,
        }
    }

    /// Rows of q8 that a row consists of; 0 of other types.
    pub fn q8_terms(self) -> usize {
        match self {
            RowType::Q8(_) => 1,
            RowType::Q8x2(_) => 2,
            _ => 0,
        }
    }

    /// Whether a row is one of q8, or two.
    pub fn is_q8(self) -> bool {
        self.q8_terms() > 0
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
    /// The row of q8, of those that the input's rows consist of, that it is multiplied with; 0 for other
    /// inputs.
    pub term: usize,
    /// Adapter branch of the matrix, if it has one.
    pub adapter: Option<MatAdapter<V, O>>,
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
