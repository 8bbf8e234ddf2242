//! int8: symmetric integers q in [-127, 127], stored as `q + 128`, with an f16 scale per 32. Tiles are laid
//! out as `blocks.rs` says.

use super::blocks;
use super::descriptor::{Decode, Descriptor, FileType, Quantise};
use super::error::PackError;
use super::layout::BLOCK;
use super::parts::{BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale};
use super::quantise::quantise;

/// The largest integer.
const LEVELS: f32 = 127.0;

/// The format. Blocks of GGUF's type Q8_0 are its own.
pub static FORMAT: Descriptor = Descriptor {
    name: "int8",
    decode: Decode::Block(BlockParts {
        codes: Codes { low: 8, high: 0 },
        map: CodeMap::Linear { bias: 128 },
        scale: Scale::F16,
        minimum: Minimum::None,
    }),
    quantise: Quantise::Symmetric { levels: LEVELS },
    pack: Some(pack_tile),
    file: Some(FileType { name: "Q8_0", number: Some(8), elements: 32, bytes: 34, read }),
};

/// An f16 scale, 32 signed bytes.
fn read(bytes: &[u8], block: &mut FileBlock) {
    block.scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    block.codes.iter_mut().zip(&bytes[2..]).for_each(|(code, q)| *code = q ^ 0x80);
}

/// Quantises and packs `rows [1..=16][k]`.
///
/// # Panics
/// If `rows` or `tile` have the wrong length, or k is not a multiple of 32.
pub fn pack_tile(k: usize, rows: &[f32], tile: &mut [u8]) -> Result<(), PackError> {
    let count = FORMAT.count_rows(k, rows.len(), tile);
    blocks::pack(&FORMAT, (k, count, BLOCK), tile, |row, place, block| {
        let weights = &rows[row * k + place..].as_chunks::<BLOCK>().0[0];
        let quantised = quantise(FORMAT.name, LEVELS, weights, row, place)?;
        block.scale = quantised.scale.to_bits();
        block.codes.iter_mut().zip(quantised.q).for_each(|(code, q)| *code = (q + 128) as u8);
        Ok(())
    })
}
