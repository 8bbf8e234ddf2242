//! NVFP4 as GGUF has it: E2M1 elements with a scale in E4M3 per 16.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::mxfp4::E2M1_TWICE;
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "nvfp4",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Table { values: &E2M1_TWICE, bias: 12 },
        scale: Scale::E4M3,
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "NVFP4", number: Some(40), elements: 64, bytes: 36, read }),
};

/// 4 scales, and for each 8 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scales[..4].copy_from_slice(&bytes[..4]);
    for (codes, bytes) in block.codes.as_chunks_mut::<16>().0.iter_mut().zip(bytes[4..].chunks(8)) {
        for (i, byte) in bytes.iter().enumerate() {
            (codes[i], codes[8 + i]) = (byte & 15, byte >> 4);
        }
    }
}
