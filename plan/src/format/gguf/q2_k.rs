//! GGUF's Q2_K: `q * (unit * scale) - unit * minimum`, 2 bits, by 16.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q2_k",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 2, high: 0 },
        map: CodeMap::Linear { bias: 0 },
        scale: Scale::Super { parts: 2, signed: false },
        minimum: Minimum::SuperNibbles,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q2_K", number: Some(10), elements: 256, bytes: 84, read }),
};

/// 16 bytes with a scale in the low nibble and a minimum in the high one, 64 bytes of codes, the two units.
fn read(bytes: &[u8], block: &mut FileBlock) {
    for (i, byte) in bytes[..16].iter().enumerate() {
        (block.scales[i], block.minima[i]) = (byte & 15, byte >> 4);
    }
    read::pairs(&bytes[16..80], &mut block.codes);
    block.scale = u16::from_le_bytes([bytes[80], bytes[81]]);
    block.minimum = u16::from_le_bytes([bytes[82], bytes[83]]);
}
