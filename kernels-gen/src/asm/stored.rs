//! The formats that assembled micro-kernels decode. Those that they do not know are left to 128-bit code,
//! so that a new format works everywhere before it is fast.

use crate::ukernel::MicroKernel;
use kernmill_plan::format::{BlockDecode, Decode, PlainDecode, Scale, WeightFormat};

/// A format as assembled code tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredFormat {
    /// Nibbles, places in the table of E2M1 values; a power of two for a scale.
    Table,
    /// Nibbles with a bias; f16 scales.
    Nibbles,
    /// Bytes with a bias; f16 scales.
    Bytes,
    /// bf16 numbers.
    Bf16,
    /// f32 numbers.
    F32,
}

/// `None` for a format that no assembled micro-kernel decodes.
fn stored(format: WeightFormat) -> Option<StoredFormat> {
    match (format.decode(), format.descriptor().scale) {
        (Decode::Block(BlockDecode::NibbleTable), Scale::E8M0) => Some(StoredFormat::Table),
        (Decode::Block(BlockDecode::Nibbles), Scale::F16) => Some(StoredFormat::Nibbles),
        (Decode::Block(BlockDecode::Bytes), Scale::F16) => Some(StoredFormat::Bytes),
        (Decode::Plain(PlainDecode::Bf16), _) => Some(StoredFormat::Bf16),
        (Decode::Plain(PlainDecode::F32), _) => Some(StoredFormat::F32),
        (Decode::Block(BlockDecode::NibbleTable | BlockDecode::Nibbles | BlockDecode::Bytes), _) => None,
    }
}

fn known(format: WeightFormat) -> StoredFormat {
    stored(format).expect("a format that assembled versions serve")
}

/// Whether assembled versions can decode what a micro-kernel reads.
pub fn is_decoded(ukernel: &MicroKernel) -> bool {
    ukernel.format().is_none_or(|format| stored(format).is_some())
}

/// Whether a line has two columns in each byte.
pub fn has_nibbles(format: WeightFormat) -> bool {
    match known(format) {
        StoredFormat::Table | StoredFormat::Nibbles => true,
        StoredFormat::Bytes | StoredFormat::Bf16 | StoredFormat::F32 => false,
    }
}

/// Whether its nibbles are places in a table, and its scales powers of two in a byte.
pub fn has_table(format: WeightFormat) -> bool {
    match known(format) {
        StoredFormat::Table => true,
        StoredFormat::Nibbles | StoredFormat::Bytes | StoredFormat::Bf16 | StoredFormat::F32 => false,
    }
}

/// Whether its elements are bf16 numbers.
pub fn is_bf16(format: WeightFormat) -> bool {
    match known(format) {
        StoredFormat::Bf16 => true,
        StoredFormat::Table | StoredFormat::Nibbles | StoredFormat::Bytes | StoredFormat::F32 => false,
    }
}
