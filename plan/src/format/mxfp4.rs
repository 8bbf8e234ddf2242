//! OCP MXFP4: E2M1 elements and an E8M0 scale per 32, bit for bit from the checkpoint. Tiles are laid out as
//! `blocks.rs` says.

use super::blocks;
use super::descriptor::{Decode, Descriptor, FileType, Quantise};
use super::error::{MAX_E8M0, PackError};
use super::layout::BLOCK;
pub use super::parts::scale_value;
use super::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use super::read;

/// The format.
pub static FORMAT: Descriptor = Descriptor {
    name: "mxfp4",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 4, high: 0 },
        map: CodeMap::Table { values: &E2M1_TWICE, bias: 12 },
        scale: Scale::E8M0,
        minimum: Minimum::None,
    }),
    quantise: Quantise::Stored,
    pack: None,
    file: Some(FileType { name: "MXFP4", number: Some(39), elements: 32, bytes: 17, read }),
};

/// A scale, 16 bytes of nibbles.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from(bytes[0]);
    read::nibbles(&bytes[1..], &mut block.codes);
}

/// Value of each E2M1 code (OCP Microscaling Formats, section 5.3.3).
pub const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Twice the value of each E2M1 code, an integer.
pub const E2M1_TWICE: [i8; 16] = {
    let mut twice = [0; 16];
    let mut code = 0;
    while code < 16 {
        twice[code] = (2.0 * E2M1[code]) as i8;
        code += 1;
    }
    twice
};

/// Bytes of a block of the checkpoint: byte `j` holds k `2*j` in the low nibble and k `2*j + 1` in the high
/// one.
const BLOCK_BYTES: usize = BLOCK / 2;

/// Largest E8M0 byte that is accepted.
pub const MAX_SCALE: u8 = MAX_E8M0;

/// Packs `blocks [1..=16][k/32][16]` and `scales [1..=16][k/32]`, each by itself as safetensors have them.
///
/// # Panics
/// If `blocks`, `scales` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, blocks: &[u8], scales: &[u8], tile: &mut [u8]) -> Result<(), PackError> {
    let rows = FORMAT.count_rows(k, 2 * blocks.len(), tile);
    assert_eq!(scales.len(), rows * (k / BLOCK), "scales of {rows} rows of {k}");
    let (blocks, _) = blocks.as_chunks::<BLOCK_BYTES>();
    blocks::pack(&FORMAT, (k, rows, BLOCK), tile, |row, place, block| {
        let at = (row * k + place) / BLOCK;
        block.scale = u16::from(scales[at]);
        for (two, byte) in block.codes.as_chunks_mut::<2>().0.iter_mut().zip(blocks[at]) {
            *two = [byte & 15, byte >> 4];
        }
        Ok(())
    })
}
