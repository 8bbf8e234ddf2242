//! How a file stores the elements of a tensor, and how they are read as f32.

use half::f16;
use kernmill_plan::format::{BLOCK, FileType, WeightFormat, read_stored};
use safetensors::Dtype;
use std::fmt;

/// Bytes of one block of 32 E2M1 codes.
pub const FP4_BLOCK_BYTES: usize = BLOCK / 2;

/// Elements by themselves, or in blocks along the rows; a block's elements are read as f32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Elements of the tensor's dtype.
    Plain,
    /// Blocks that this format keeps, as its descriptor says that files have them.
    Blocks(WeightFormat),
}

impl Encoding {
    /// The format that keeps the blocks as they are.
    pub fn format(self) -> Option<WeightFormat> {
        match self {
            Encoding::Plain => None,
            Encoding::Blocks(format) => Some(format),
        }
    }

    /// Bytes of a row of `cols` elements; `None` if it is not whole blocks or does not fit into memory.
    pub fn row_bytes(self, dtype: Dtype, cols: usize) -> Option<usize> {
        match self {
            Encoding::Plain => cols.checked_mul(dtype.bitsize() / 8),
            Encoding::Blocks(format) => {
                let FileType { elements, bytes, .. } = *file_type(format);
                (cols / elements).checked_mul(bytes).filter(|_| cols.is_multiple_of(elements))
            }
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
            Encoding::Blocks(format) => read_stored(format, bytes, out),
        }
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Plain => f.write_str("plain"),
            Encoding::Blocks(format) => f.write_str(file_type(*format).name),
        }
    }
}

/// The blocks in files that `format` keeps.
fn file_type(format: WeightFormat) -> &'static FileType {
    let file = format.descriptor().file.as_ref();
    file.unwrap_or_else(|| unreachable!("no file has blocks of {}", format.name()))
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
