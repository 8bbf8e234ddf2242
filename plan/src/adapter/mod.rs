//! Adapters (LoRA, DoRA): where a program takes them, how one lies in memory, and the table that kernels
//! read.
//!
//! A *LoRA target* is a matrix of the checkpoint that may have an adapter: `y = W x + b` becomes `y = (W x +
//! B (scale * (A x))) * factor + b`, with `A [rank, k]`, `B [rows, rank]`, a scale per rank, and for DoRA a
//! factor per row. docs/dev/numerics.md has the order of arithmetic.
//!
//! Requests choose adapters by *slot*. Slot 0 has no adapter. The runtime keeps a table `[slot][lora_target]`
//! of [`LoraTargetEntry`]; an adapter's packed form ([`LoraTargetLayout`]) depends on the program's LoRA
//! targets and its own ranks only, so that it is packed once and then only pointed to.
//!
//! LoRA targets have the names of matrices in published checkpoints, which are those of PEFT, whatever kind
//! of file the tensors come from.

mod layout;
#[cfg(test)]
mod tests;

use crate::format::WeightFormat;
pub use layout::{LoraTargetLayout, LoraTargetShape};
use serde::{Deserialize, Serialize};

/// Largest rank, all adapters that are combined in a slot together.
pub const MAX_RANK: usize = 256;
/// Ranks are padded with zeros to a multiple of this: the accumulators of a dot product of f32 activations.
pub const RANK_STEP: usize = 4;

/// The adapters that a program takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adapters {
    /// Elements of A and B in memory: `f32` in preset `exact`, else `bf16`.
    pub format: WeightFormat,
    /// The LoRA targets, in the order of the model's layers; a slot's row of the table has one entry for
    /// each.
    #[serde(deserialize_with = "crate::bounded::list::<_, _, 65536>")]
    pub lora_targets: Vec<LoraTarget>,
}

/// A matrix of the checkpoint that may have an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraTarget {
    /// Name for messages and listings, such as `layers.3.q`.
    pub name: String,
    /// The checkpoint's tensor, such as `model.layers.3.self_attn.q_proj.weight`; of MXFP4 the one of the
    /// blocks.
    pub tensor: String,
    /// Columns of the matrix, and of A; a multiple of [`RANK_STEP`].
    pub k: u32,
    /// Experts, each of which has an A and a B; 0 for a dense matrix.
    pub experts: u32,
    /// The matrices that the program made of the tensor's rows: one, or two when gate and up rows alternate
    /// in it.
    #[serde(deserialize_with = "crate::bounded::list::<_, _, 8>")]
    pub outs: Vec<LoraTargetSlice>,
}

/// Rows of a LoRA target that the program multiplies as one matrix. Row i is row `first + i * step` of the
/// checkpoint's tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraTargetSlice {
    /// The program's tensor.
    pub name: String,
    /// Rows of the matrix (of each expert's).
    pub rows: u32,
    /// Place in the checkpoint's tensor of the first row.
    pub first: u32,
    /// Rows of the checkpoint's tensor from one row of the matrix to the next.
    pub step: u32,
    /// Where the base weights are.
    pub weights: PackedAt,
}

/// A packed matrix in the weight region: tiles as [`WeightFormat::tile`] has them, which may lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedAt {
    /// Format.
    pub format: WeightFormat,
    /// Byte offset of the first tile.
    pub offset: u64,
    /// Bytes from one tile of 16 rows to the next.
    pub tile_stride: u64,
    /// Bytes from one expert to the next; 0 for a dense matrix.
    pub expert_stride: u64,
}

/// The record that a kernel reads of one slot and LoRA target: all zeros where the slot has nothing.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoraTargetEntry {
    /// Packed A: by expert, tiles of 16 ranks by k.
    pub a: *const u8,
    /// Packed B: by expert and out, tiles of 16 rows by [`LoraTargetEntry::ranks`].
    pub b: *const u8,
    /// `[ranks, up to whole tiles]` factor of every rank.
    pub scale: *const f32,
    /// By out, `[rows, up to whole tiles]` factor of every row; null for plain LoRA.
    pub factor: *const f32,
    /// Bytes from one expert's A to the next.
    pub a_expert: u64,
    /// Bytes from one expert's B to the next.
    pub b_expert: u64,
    /// Ranks, padded to a multiple of [`RANK_STEP`], at most [`MAX_RANK`]; 0 when there is no adapter.
    pub ranks: u64,
}

impl LoraTargetEntry {
    /// No adapter.
    pub const NONE: LoraTargetEntry = LoraTargetEntry {
        a: std::ptr::null(),
        b: std::ptr::null(),
        scale: std::ptr::null(),
        factor: std::ptr::null(),
        a_expert: 0,
        b_expert: 0,
        ranks: 0,
    };
}

impl Adapters {
    /// Layouts of an adapter's LoRA targets in one piece of memory, LoRA target by LoRA target (`None`: it
    /// has nothing there), and the bytes in all.
    ///
    /// # Panics
    /// When there are not as many shapes as LoRA targets, or a rank is not 1 to [`MAX_RANK`].
    pub fn layout(&self, shapes: &[Option<LoraTargetShape>]) -> (Vec<Option<LoraTargetLayout>>, usize) {
        assert_eq!(shapes.len(), self.lora_targets.len(), "one shape for each LoRA target");
        let mut bytes = 0;
        let mut place = |(lora_target, shape): (&LoraTarget, &Option<LoraTargetShape>)| {
            shape.map(|shape| {
                let layout = LoraTargetLayout::new(lora_target, self.format, shape, bytes);
                bytes = layout.end();
                layout
            })
        };
        let layouts = self.lora_targets.iter().zip(shapes).map(&mut place).collect();
        (layouts, bytes)
    }
}

impl LoraTarget {
    /// Rows of the checkpoint's tensor (of each expert).
    pub fn rows(&self) -> usize {
        self.outs.iter().map(|out| out.rows as usize).sum()
    }
}

/// A parameter of a published model, and which of its rows a tensor has: row i of the tensor is row `first +
/// i * step` of the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Name, such as `model.layers.3.mlp.router.weight` or `model.layers.3.mlp.experts.down_proj`.
    pub parameter: String,
    /// Row of the parameter that is the tensor's first.
    pub first: usize,
    /// Rows of the parameter from one row of the tensor to the next; as many tensors share the parameter.
    pub step: usize,
}

/// The published name of each tensor of GGUF files, with the first of its rows there and the step between
/// them.
const GGUF: [(&str, &str, usize, usize); 11] = [
    ("attn_q.weight", "self_attn.q_proj.weight", 0, 1),
    ("attn_k.weight", "self_attn.k_proj.weight", 0, 1),
    ("attn_v.weight", "self_attn.v_proj.weight", 0, 1),
    ("attn_output.weight", "self_attn.o_proj.weight", 0, 1),
    ("ffn_gate.weight", "mlp.gate_proj.weight", 0, 1),
    ("ffn_up.weight", "mlp.up_proj.weight", 0, 1),
    ("ffn_down.weight", "mlp.down_proj.weight", 0, 1),
    ("ffn_gate_inp.weight", "mlp.router.weight", 0, 1),
    ("ffn_gate_exps.weight", "mlp.experts.gate_up_proj", 0, 2),
    ("ffn_up_exps.weight", "mlp.experts.gate_up_proj", 1, 2),
    ("ffn_down_exps.weight", "mlp.experts.down_proj", 0, 1),
];

/// The published parameter of a checkpoint's tensor. A GGUF file has gate and up of experts apart, PEFT has
/// them in one; blocks in MXFP4 are those of the matrix.
///
/// ```
/// # use kernmill_plan::adapter::published;
/// let up = published("blk.3.ffn_up_exps.weight");
/// assert_eq!((&*up.parameter, up.first, up.step), ("model.layers.3.mlp.experts.gate_up_proj", 1, 2));
/// ```
pub fn published(tensor: &str) -> Published {
    let gguf = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    if let Some((layer, rest)) = gguf
        && let Some((_, name, first, step)) = GGUF.iter().find(|(gguf, ..)| *gguf == rest)
    {
        return Published { parameter: format!("model.layers.{layer}.{name}"), first: *first, step: *step };
    }
    Published { parameter: tensor.strip_suffix("_blocks").unwrap_or(tensor).to_owned(), first: 0, step: 1 }
}
