//! GGUF's Q5_0: `(q - 16) * scale`, 5 bits.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q5_0",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 1 },
        map: CodeMap::Linear { bias: 16 },
        scale: Scale::F16,
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q5_0", number: Some(6), elements: 32, bytes: 22, read }),
};

/// An f16 scale, 32 fifth bits, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    read::nibbles(&bytes[6..], &mut block.codes);
    read::fifth_bits(&bytes[2..6], &mut block.codes);
}
