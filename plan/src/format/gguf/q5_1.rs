//! GGUF's Q5_1: `q * scale + minimum`, 5 bits.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q5_1",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 1 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::F16,
        minimum: Minimum::F16,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q5_1", number: Some(7), elements: 32, bytes: 24, read }),
};

/// An f16 scale, an f16 minimum, 32 fifth bits, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.minimum = u16::from_le_bytes([bytes[2], bytes[3]]);
    read::nibbles(&bytes[8..], &mut block.codes);
    read::fifth_bits(&bytes[4..8], &mut block.codes);
}
