//! GGUF's Q4_1: `q * scale + minimum`, 4 bits.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q4_1",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::F16,
        minimum: Minimum::F16,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q4_1", number: Some(3), elements: 32, bytes: 20, read }),
};

/// An f16 scale, an f16 minimum, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.minimum = u16::from_le_bytes([bytes[2], bytes[3]]);
    read::nibbles(&bytes[4..], &mut block.codes);
}
