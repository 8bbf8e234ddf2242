//! GGUF's Q4_K: `q * (unit * scale) - unit * minimum`, 4 bits, by 32.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q4_k",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::Super { parts: 1, signed: false },
        minimum: Minimum::Super,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q4_K", number: Some(12), elements: 256, bytes: 144, read }),
};

/// The two units, 12 bytes with 8 scales and minima of 6 bits, 128 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.minimum = u16::from_le_bytes([bytes[2], bytes[3]]);
    read::six_bits(&bytes[4..16], block);
    read::nibbles_of_pairs(&bytes[16..], &mut block.codes);
}
