//! GGUF's IQ4_XS: one of 16 integers times `unit * scale`, by 32.

use super::iq4_nl::VALUES;
use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "iq4_xs",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Table { values: &VALUES, bias: 128 },
        scale: Scale::Super { parts: 1, signed: true },
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "IQ4_XS", number: Some(23), elements: 256, bytes: 136, read }),
};

/// The unit, the upper two bits of 8 scales of 6 bits biased by 32, their lower four, and per 32 elements 16
/// bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    let upper = u16::from_le_bytes([bytes[2], bytes[3]]);
    for i in 0..8 {
        let low = bytes[4 + i / 2] >> (i % 2 * 4) & 15;
        block.scales[i] = (low | ((upper >> (2 * i) & 3) as u8) << 4).wrapping_sub(32);
    }
    for (codes, bytes) in block.codes.as_chunks_mut::<32>().0.iter_mut().zip(bytes[8..].chunks(16)) {
        read::nibbles(bytes, codes);
    }
}
