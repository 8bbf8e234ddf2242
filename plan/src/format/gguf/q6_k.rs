//! GGUF's Q6_K: `(q - 32) * (unit * scale)`, 6 bits, by 16.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "q6_k",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 2 },
        map: CodeMap::Linear { bias: 32 },
        scale: Scale::Super { parts: 2, signed: true },
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "Q6_K", number: Some(14), elements: 256, bytes: 210, read }),
};

/// 128 bytes of the codes' lower four bits, 64 of their upper two, 16 scales as signed bytes, the unit.
fn read(bytes: &[u8], block: &mut FileBlock) {
    for (half, codes) in block.codes.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let (low, high) = (&bytes[64 * half..][..64], &bytes[128 + 32 * half..][..32]);
        for (part, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (nibble, pair) = (part / 2 * 4, part * 2);
            for ((code, low), high) in codes.iter_mut().zip(&low[part % 2 * 32..]).zip(high) {
                *code = low >> nibble & 15 | (high >> pair & 3) << 4;
            }
        }
    }
    block.scales.copy_from_slice(&bytes[192..208]);
    block.scale = u16::from_le_bytes([bytes[208], bytes[209]]);
}
