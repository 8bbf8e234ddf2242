//! GGUF's Q3_K: `(q - 4) * (unit * scale)`, 3 bits, by 16.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q3_k",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 2, high: 1 },
        map: CodeMap::Linear { bias: 4 },
        scale: Scale::Super { parts: 2, signed: true },
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q3_K", number: Some(11), elements: 256, bytes: 110, read }),
};

/// 32 bytes of the codes' third bits, 64 of their lower two, 12 with 16 scales of 6 bits biased by 32, the
/// unit.
fn read(bytes: &[u8], block: &mut FileBlock) {
    read::pairs(&bytes[32..96], &mut block.codes);
    for (i, code) in block.codes.iter_mut().enumerate() {
        *code |= (bytes[i % 32] >> (i / 32) & 1) << 2;
    }
    let scales = &bytes[96..108];
    for (i, scale) in block.scales.iter_mut().enumerate() {
        let low = scales[i % 8] >> (i / 8 * 4) & 15;
        let high = scales[8 + i % 4] >> (i / 4 * 2) & 3;
        *scale = (low | high << 4).wrapping_sub(32);
    }
    block.scale = u16::from_le_bytes([bytes[108], bytes[109]]);
}
