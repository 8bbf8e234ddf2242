//! GGUF's TQ2_0: -1, 0 or 1 times a scale, 2 bits, by 256.

use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use crate::format::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "tq2_0",
    decode: Decode::Block(PARTS),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "TQ2_0", number: Some(35), elements: 256, bytes: 66, read }),
};

/// Two bits whose code of 0 is 1.
pub(super) const PARTS: BlockParts = BlockParts {
    codes: Codes { low: 2, high: 0 },
    map: CodeMap::Linear { bias: 1 },
    scale: Scale::F16,
    minimum: Minimum::None,
};

/// 64 bytes of codes, an f16 scale.
fn read(bytes: &[u8], block: &mut FileBlock) {
    read::pairs(bytes, &mut block.codes);
    block.scale = u16::from_le_bytes([bytes[64], bytes[65]]);
}
