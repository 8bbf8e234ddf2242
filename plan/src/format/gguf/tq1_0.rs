//! GGUF's TQ1_0: -1, 0 or 1 times a scale, five to a byte, by 256.

use super::tq2_0;
use crate::format::descriptor::{Decode, Descriptor, FileType, Quantise};
use crate::format::parts::FileBlock;

/// The format. Tiles have two bits for an element, which take fewer instructions than digits.
pub static FORMAT: Descriptor = Descriptor {
    name: "tq1_0",
    decode: Decode::Block(tq2_0::PARTS),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "TQ1_0", number: Some(34), elements: 256, bytes: 54, read }),
};

/// Runs of bytes: how many, and how many elements each byte has.
const RUNS: [(usize, usize); 3] = [(32, 5), (16, 5), (4, 4)];

/// 52 bytes of digits, an f16 scale. A byte is a fraction in base 3, in 256ths: its first digit is that of
/// the run's first elements.
fn read(bytes: &[u8], block: &mut FileBlock) {
    let (mut bytes, mut codes) = (bytes, &mut block.codes[..]);
    for (run, digits) in RUNS {
        let (digits_of, other_bytes) = bytes.split_at(run);
        let (of_run, other_codes) = codes.split_at_mut(run * digits);
        for (digit, codes) in of_run.chunks_exact_mut(run).enumerate() {
            for (code, byte) in codes.iter_mut().zip(digits_of) {
                let fraction = byte.wrapping_mul(3u8.pow(digit as u32));
                *code = ((u16::from(fraction) * 3) >> 8) as u8;
            }
        }
        (bytes, codes) = (other_bytes, other_codes);
    }
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
}
