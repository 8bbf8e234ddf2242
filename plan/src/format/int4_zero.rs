//! int4_zero: `scale * (q - zero)` with q in 0..=15, and for each row and block of 32 an f16 scale and a byte
//! that is the zero. Checkpoints quantised with a zero for each group have it (GPTQ, AWQ, and others). Tiles
//! are laid out as `blocks.rs` says.

use super::descriptor::{Decode, Descriptor, FileType, Quantise};
use super::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use super::read;

/// The format. No type of GGUF tensors has zeros, so that readers of checkpoints make its blocks.
pub static FORMAT: Descriptor = Descriptor {
    name: "int4_zero",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::F16,
        minimum: Minimum::Zero,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "INT4_ZERO", number: None, elements: 32, bytes: 19, read }),
};

/// An f16 scale, a zero, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.minima[0] = bytes[2];
    read::nibbles(&bytes[3..], &mut block.codes);
}
