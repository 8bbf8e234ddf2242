//! GGUF's Q5_K: `q * (unit * scale) - unit * minimum`, 5 bits, by 32.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q5_k",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 1 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::Super { parts: 1, signed: false },
        minimum: Minimum::Super,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q5_K", number: Some(13), elements: 256, bytes: 176, read }),
};

/// The two units, 12 bytes with 8 scales and minima of 6 bits, 32 of fifth bits, 128 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.minimum = u16::from_le_bytes([bytes[2], bytes[3]]);
    read::six_bits(&bytes[4..16], block);
    read::nibbles_of_pairs(&bytes[48..], &mut block.codes);
    for (i, code) in block.codes.iter_mut().enumerate() {
        *code |= (bytes[16 + i % 32] >> (i / 32) & 1) << 4;
    }
}
