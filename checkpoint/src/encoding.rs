//! How a file stores the elements of a tensor, and how they are read as f32.

use crate::blocks::{ElementDecoding, TensorType};
use half::f16;
use kernmill_plan::format::BLOCK;
use safetensors::Dtype;
use std::fmt;

/// Bytes of one block of 32 E2M1 codes.
pub const FP4_BLOCK_BYTES: usize = BLOCK / 2;

/// Elements by themselves, or in blocks along the rows as GGUF files have them; a block's elements are read
/// as f32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Elements of the tensor's dtype.
    Plain,
    /// Blocks of this type.
    Blocks(&'static TensorType),
}

impl Encoding {
    /// Whether blocks are MXFP4's.
    pub fn is_mxfp4(self) -> bool {
        matches!(self, Encoding::Blocks(kind) if kind.is_mxfp4())
    }

    /// Bytes of a row of `cols` elements; `None` if it is not whole blocks or does not fit into memory.
    pub fn row_bytes(self, dtype: Dtype, cols: usize) -> Option<usize> {
        match self {
            Encoding::Plain => cols.checked_mul(dtype.bitsize() / 8),
            Encoding::Blocks(kind) => kind.row_bytes(cols),
        }
    }

    /// Appends the elements in `bytes` as f32: plain ones exactly, those of blocks by the format's
    /// arithmetic.
    ///
    /// # Panics
    /// If `dtype` is not bf16, f16 or f32.
    pub fn decode(self, dtype: Dtype, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Encoding::Plain => widen(dtype, bytes, out),
            Encoding::Blocks(kind) => match kind.stored {
                ElementDecoding::Plain(dtype) => widen(dtype, bytes, out),
                ElementDecoding::Blocks(blocks) => (blocks.decode)(bytes, out),
            },
        }
    }

    /// Bits that an element takes, where elements are in blocks.
    pub fn block_bits(self) -> Option<f64> {
        match self {
            Encoding::Plain => None,
            Encoding::Blocks(kind) => Some(8.0 * kind.bytes as f64 / kind.elements as f64),
        }
    }

    /// Appends what the distances between elements of blocks are multiples of, one number for 16 elements.
    /// Elements that stand by themselves have no such numbers: the answer is `false`.
    pub fn steps(self, bytes: &[u8], out: &mut Vec<f32>) -> bool {
        match self {
            Encoding::Blocks(TensorType { stored: ElementDecoding::Blocks(blocks), .. }) => {
                (blocks.steps)(bytes, out);
                true
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Plain => f.write_str("plain"),
            Encoding::Blocks(kind) => f.write_str(kind.name),
        }
    }
}

/// MXFP4 block `index` of a GGUF tensor's data as checkpoints have it: codes with neighbours in one byte, and
/// scale.
pub fn mxfp4_block(data: &[u8], index: usize) -> ([u8; FP4_BLOCK_BYTES], u8) {
    let [scale, codes @ ..] = &data.as_chunks::<{ 1 + FP4_BLOCK_BYTES }>().0[index];
    let mut paired = [0; FP4_BLOCK_BYTES];
    let (low, high) = paired.split_at_mut(FP4_BLOCK_BYTES / 2);
    for (i, [a, b]) in codes.as_chunks().0.iter().enumerate() {
        low[i] = a & 15 | b << 4;
        high[i] = a >> 4 | b & 0xf0;
    }
    (paired, *scale)
}

/// Appends `bytes`, elements of `dtype`, as f32. Binding has refused every dtype but these.
fn widen(dtype: Dtype, bytes: &[u8], out: &mut Vec<f32>) {
    match dtype {
        Dtype::BF16 => out.extend(bytes.as_chunks().0.iter().map(|&b| {
            let bits = u16::from_le_bytes(b);
            f32::from_bits(u32::from(bits) << 16)
        })),
        Dtype::F16 => {
            out.extend(bytes.as_chunks().0.iter().map(|&b| f16::from_bits(u16::from_le_bytes(b)).to_f32()));
        }
        Dtype::F32 => out.extend(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b))),
        other => unreachable!("{other:?} passed binding"),
    }
}
