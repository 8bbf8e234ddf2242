//! How a file stores the elements of a tensor, and how they are read as f32.

use super::Dtype;
use super::rows::{FP4_VALUES, e8m0};
use half::f16;
use kernmill_plan::format::BLOCK;

/// Bytes of one block of 32 E2M1 codes.
pub(super) const FP4_BLOCK_BYTES: usize = BLOCK / 2;
/// Bytes of an f16.
const F16_BYTES: usize = 2;

/// Elements by themselves, or in blocks of 32 along the rows as GGUF files have them; a block's elements are read as f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Elements of the tensor's dtype.
    Plain,
    /// f16 scale, then 32 signed bytes.
    Q8_0,
    /// f16 scale, then 16 bytes: elements 0-15 in the low nibbles, 16-31 in the high ones, each biased by 8.
    Q4_0,
    /// E8M0 scale, then 16 bytes of E2M1 codes, nibbles as in `Q4_0`.
    Mxfp4,
}

impl Encoding {
    /// Bytes of a row of `cols` elements; `None` if it is not whole blocks or does not fit into memory.
    pub(crate) fn row_bytes(self, dtype: Dtype, cols: usize) -> Option<usize> {
        match self.block_bytes() {
            None => cols.checked_mul(dtype.bitsize() / 8),
            Some(bytes) => (cols / BLOCK).checked_mul(bytes).filter(|_| cols.is_multiple_of(BLOCK)),
        }
    }

    /// Bytes of a block.
    fn block_bytes(self) -> Option<usize> {
        match self {
            Encoding::Plain => None,
            Encoding::Q8_0 => Some(F16_BYTES + BLOCK),
            Encoding::Q4_0 => Some(F16_BYTES + BLOCK / 2),
            Encoding::Mxfp4 => Some(1 + FP4_BLOCK_BYTES),
        }
    }

    /// Appends the elements in `bytes` as f32, exactly.
    ///
    /// # Panics
    /// If `dtype` is none of bf16, f16 and f32.
    pub fn decode(self, dtype: Dtype, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Encoding::Plain => widen(dtype, bytes, out),
            Encoding::Q8_0 => blocks::<{ F16_BYTES + BLOCK }>(bytes, |[d0, d1, codes @ ..]| {
                let scale = f16::from_le_bytes([*d0, *d1]).to_f32();
                out.extend(codes.iter().map(|&q| f32::from(q.cast_signed()) * scale));
            }),
            Encoding::Q4_0 => blocks::<{ F16_BYTES + BLOCK / 2 }>(bytes, |[d0, d1, codes @ ..]| {
                let scale = f16::from_le_bytes([*d0, *d1]).to_f32();
                out.extend(nibbles(codes).map(|q| (f32::from(q) - 8.0) * scale));
            }),
            Encoding::Mxfp4 => blocks::<{ 1 + FP4_BLOCK_BYTES }>(bytes, |[scale, codes @ ..]| {
                let scale = e8m0(*scale);
                out.extend(nibbles(codes).map(|code| FP4_VALUES[usize::from(code)] * scale));
            }),
        }
    }
}

/// Calls `decode` with each whole block.
fn blocks<const BYTES: usize>(bytes: &[u8], mut decode: impl FnMut(&[u8; BYTES])) {
    bytes.as_chunks().0.iter().for_each(&mut decode);
}

/// The low nibbles, then the high ones.
fn nibbles(codes: &[u8]) -> impl Iterator<Item = u8> {
    codes.iter().map(|byte| byte & 15).chain(codes.iter().map(|byte| byte >> 4))
}

/// MXFP4 block `index` of a GGUF tensor's data as checkpoints have it: codes with neighbours in one byte, and scale.
pub(super) fn mxfp4_block(data: &[u8], index: usize) -> ([u8; FP4_BLOCK_BYTES], u8) {
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
