//! Contracts between a kernel and the steps that call it: the operands that it takes, and how far it reads
//! and writes in each.
//!
//! The generator derives a contract from the kernel's description and refuses a kernel whose body would leave
//! it. The program checker holds every step to the contract of its kernel, so that a step cannot hand a
//! kernel less memory than it touches.

use crate::abi::LOGIT_SLAB;
use crate::bounded;
use crate::format::WeightFormat;
use crate::kv::{KvGeometry, LayerKind};
use crate::limit::OPERANDS;
use serde::{Deserialize, Serialize};

/// The demands that a kernel makes on a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The demand on each operand, in the order in which a step lists them.
    #[serde(deserialize_with = "bounded::list::<_, _, OPERANDS>")]
    pub operands: Vec<Need>,
    /// Bytes of scratch that each worker uses at most.
    pub scratch_bytes: u64,
    /// Tokens of the largest batch that the kernel's lists in scratch have room for.
    pub max_tokens: u32,
    /// Tokens of the longest context that the kernel has room for: every position is below.
    pub max_context: u32,
    /// Tiles of 16 rows of its matrix, where the kernel computes only those that
    /// [`crate::abi::Args::logit_tiles`] lists; 0 where it knows of no list.
    pub listed_tiles: u32,
    /// Whether the kernel reads what follows a token, so that a text is in one batch whole.
    pub whole_texts: bool,
}

/// The demand on an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Need {
    /// Weights that are read.
    Weights {
        /// Bytes from the start of the weights on.
        bytes: u64,
        /// Another operand, and at how many bytes behind its start these weights start: their tiles alternate
        /// with that operand's, and both are read from there.
        behind: Option<(u32, u64)>,
    },
    /// Weights of which a row is read for each token id.
    Table {
        /// Bytes from one row to the next, or from one tile of rows to the next.
        row_bytes: u64,
        /// Rows that lie in one tile.
        rows: u32,
    },
    /// An arena buffer.
    Buffer {
        /// Rows for each token of the batch; 0 for a buffer that has none.
        slots: u32,
        /// Whether the buffer has a row for each wanted row of a slab of logits.
        wanted: bool,
        /// Bytes from one row to the next.
        row_bytes: u64,
        /// Whether the kernel reads the buffer.
        read: bool,
        /// Whether the kernel writes the buffer.
        written: bool,
    },
    /// An arena buffer of panels: rows laid out for products of many at once, which are no token's.
    Panels {
        /// Bytes of the largest batch's.
        bytes: u64,
        /// Whether the kernel reads the buffer.
        read: bool,
        /// Whether the kernel writes the buffer.
        written: bool,
    },
    /// The KV pool of a layer.
    Kv {
        /// Shape of the pool's blocks.
        geometry: KvGeometry,
        /// The layer's kind, whose block table is used; `None` when its weights say which.
        kind: Option<LayerKind>,
        /// Positions that a token reads, its own included: `u32::MAX` for all before it, 0 when none is read.
        view: u32,
    },
    /// A rotary table.
    Rope {
        /// Elements of a row: those of a head that it rotates.
        rotary_dim: u32,
    },
    /// A LoRA target.
    LoraTarget {
        /// Columns of A, when it is read.
        columns: Option<u32>,
        /// Tiles of 16 rows of B (of an expert's B) that are read.
        tiles: u32,
        /// Experts whose A or B are read; 0 for the only ones of a dense matrix.
        experts: u32,
        /// Elements of A and B, when one of them is read.
        format: Option<WeightFormat>,
    },
}

impl Need {
    /// Bytes that a buffer must have in a class of that many tokens; 0 for what is no buffer.
    pub fn buffer_bytes(&self, max_tokens: u32) -> u64 {
        let (slots, wanted, row_bytes) = match *self {
            Need::Buffer { slots, wanted, row_bytes, .. } => (slots, wanted, row_bytes),
            Need::Panels { bytes, .. } => return bytes,
            _ => return 0,
        };
        let of_tokens = u64::from(max_tokens).saturating_mul(slots.into());
        let of_logits = if wanted { u64::from(max_tokens).min(LOGIT_SLAB as u64) } else { 0 };
        of_tokens.max(of_logits).saturating_mul(row_bytes)
    }

    /// The kind of operand, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Need::Weights { .. } => "weights",
            Need::Table { .. } => "a table",
            Need::Buffer { .. } => "a buffer",
            Need::Panels { .. } => "a buffer of panels",
            Need::Kv { .. } => "a KV pool",
            Need::Rope { .. } => "a rotary table",
            Need::LoraTarget { .. } => "a LoRA target",
        }
    }
}
