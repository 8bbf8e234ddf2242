//! Formats with blocks: integers of a few bits along k, with a scale and for some a minimum. A format is put
//! together of four independent parts ([`super::BlockParts`]), and all of them have one packed layout.
//!
//! Scale plane: where scales have a unit of their own per 256 k, first those units (per 256 k 16 f16, one
//! per row, then 16 more for the unit of the minima); this part is padded to a line. Then per block of 32 k
//! the scales, 16 (one per row) for each part of the block that has one, and after them the minima, likewise.
//!
//! Data plane: per block one line for each bit of a code. First the lower bits ([`Codes::low`]), then the
//! upper ones. Of a plane of `p` bits, bits `p * g` and above of byte `4 * row + j` in line `l` are those of
//! k `4 * (l * 8 / p + g) + j`.

use super::descriptor::{Descriptor, FileType};
use super::error::{MAX_E8M0, PackError, Problem};
use super::layout::{BLOCK, Column, LINE, SUPERBLOCK, TILE_ROWS};
use super::parts::{
    BlockElement, BlockParts, CodeMap, Codes, FileBlock, Minimum, Scale, half_e4m3, scale_value,
};
use half::f16;

/// Packs rows of `k` columns: `read(row, place, block)` fills in the block of the row from element `place`
/// on, of `elements`.
///
/// # Panics
/// If there are more than 16 rows, `k` is not whole blocks, or `tile` has the wrong length.
pub(super) fn pack(
    format: &Descriptor,
    (k, rows, elements): (usize, usize, usize),
    tile: &mut [u8],
    mut read: impl FnMut(usize, usize, &mut FileBlock) -> Result<(), PackError>,
) -> Result<(), PackError> {
    let parts = format.parts();
    format.check_tile(k, rows, tile);
    assert!(k.is_multiple_of(elements), "{} blocks of {elements} in rows of {k}", format.name);
    let layout = format.tile(k);
    let (scales, data) = tile.split_at_mut(layout.scale_bytes);
    scales.fill(0);
    let (units, scales) = scales.split_at_mut(layout.unit_bytes);
    let mut block = FileBlock::of(parts.padding());
    // Block by block, so that the lines of the tile that all rows write stay close by.
    for (place, row) in (0..k).step_by(elements).flat_map(|place| (0..TILE_ROWS).map(move |row| (place, row)))
    {
        if row == rows {
            block.codes = [parts.padding(); SUPERBLOCK];
        }
        if row < rows {
            read(row, place, &mut block)?;
            check(parts, &block, elements).map_err(|problem| PackError { row, k: place, problem })?;
            if parts.is_super() {
                let at = place / SUPERBLOCK * parts.unit_bytes();
                store_u16(units, at, row, block.scale);
                if parts.unit_bytes() > 2 * TILE_ROWS {
                    store_u16(units, at + 2 * TILE_ROWS, row, block.minimum);
                }
            }
        }
        for inner in 0..elements / BLOCK {
            let number = place / BLOCK + inner;
            if row < rows {
                let out = &mut scales[number * parts.scale_bytes()..][..parts.scale_bytes()];
                store_scales(parts, &block, inner, row, out);
            }
            let codes = &block.codes.as_chunks::<BLOCK>().0[inner];
            let lines = &mut data[number * parts.codes.bits() * LINE..][..parts.codes.bits() * LINE];
            store_codes(parts.codes, codes, row, lines);
        }
    }
    Ok(())
}

/// An error where a tile cannot hold the block.
fn check(parts: &BlockParts, block: &FileBlock, elements: usize) -> Result<(), Problem> {
    let finite = |bits: u16| {
        let number = f16::from_bits(bits);
        if number.is_finite() { Ok(()) } else { Err(Problem::ScaleNotFinite(number.to_f32())) }
    };
    match parts.scale {
        Scale::E8M0 if block.scale > u16::from(MAX_E8M0) => {
            return Err(Problem::ScaleByte(block.scale as u8));
        }
        Scale::E8M0 => {}
        Scale::F16 | Scale::Super { .. } => finite(block.scale)?,
        Scale::E4M3 => {
            if block.scales[..elements / 16].iter().any(|byte| byte & 127 == 127) {
                return Err(Problem::ScaleNotFinite(f32::NAN));
            }
        }
    }
    if parts.has_minimum() {
        finite(block.minimum)?;
    }
    // Products without `vpdpbusd` need the negative of an integer of 8 bits.
    let least = matches!(parts.map, CodeMap::Linear { bias: 128 }) && block.codes[..elements].contains(&0);
    if least { Err(Problem::LeastInteger) } else { Ok(()) }
}

fn store_u16(plane: &mut [u8], at: usize, row: usize, bits: u16) {
    plane[at + 2 * row..][..2].copy_from_slice(&bits.to_le_bytes());
}

/// Stores a row's scales and minima of block number `inner` of a file's block.
fn store_scales(parts: &BlockParts, block: &FileBlock, inner: usize, row: usize, out: &mut [u8]) {
    let count = parts.parts();
    for part in 0..count {
        let (from, at) = (inner * count + part, part * TILE_ROWS + row);
        match parts.scale {
            Scale::E8M0 => out[row] = block.scale as u8,
            Scale::F16 => store_u16(out, 0, row, block.scale),
            Scale::E4M3 => out[at] = block.scales[from] & 127,
            Scale::Super { .. } => out[at] = block.scales[from],
        }
        match parts.minimum {
            Minimum::None => {}
            Minimum::F16 => store_u16(out, parts.minima(), row, block.minimum),
            Minimum::Zero | Minimum::Super => out[parts.minima() + at] = block.minima[from],
            Minimum::SuperNibbles => out[at] |= block.minima[from] << 4,
        }
    }
}

/// Stores a row's codes of a block.
fn store_codes(codes: Codes, block: &[u8; BLOCK], row: usize, lines: &mut [u8]) {
    let fours: [u32; BLOCK / 4] = std::array::from_fn(|i| u32::from_le_bytes(block.as_chunks::<4>().0[i]));
    let mut store = |first: usize, bits: usize, shift: usize| {
        let (groups, mask) = (8 / bits, u32::from_le_bytes([(0xff >> (8 - bits)) as u8; 4]));
        for line in 0..bits {
            let group = |sum: u32, g: usize| sum | (fours[line * groups + g] >> shift & mask) << (bits * g);
            let word = (0..groups).fold(0, group);
            lines[(first + line) * LINE + 4 * row..][..4].copy_from_slice(&word.to_le_bytes());
        }
    };
    store(0, codes.low, 0);
    if codes.high > 0 {
        store(codes.low, codes.high, codes.low);
    }
}

/// The elements of whole blocks of a file.
pub(super) fn each_element(
    format: &Descriptor,
    file: &FileType,
    bytes: &[u8],
    mut take: impl FnMut(BlockElement),
) {
    let (parts, mut block) = (format.parts(), FileBlock::of(0));
    for bytes in bytes.chunks_exact(file.bytes) {
        (file.read)(bytes, &mut block);
        for part in 0..file.elements * parts.parts() / BLOCK {
            let (scale, minimum) = block.factors(parts, part);
            let codes = &block.codes[part * BLOCK / parts.parts()..][..BLOCK / parts.parts()];
            codes.iter().for_each(|&code| take(BlockElement { q: parts.integer(code), scale, minimum }));
        }
    }
}

/// Element `[row, index]`.
pub fn element(format: &Descriptor, k: usize, tile: &[u8], row: usize, index: usize) -> BlockElement {
    assert!(row < TILE_ROWS && index < k, "[{row}, {index}] of a tile of k = {k}");
    let (parts, layout) = (format.parts(), format.tile(k));
    let (block, within) = (index / 32, index % 32);
    let data = layout.scale_bytes + block * parts.codes.bits() * 64;
    let plane = |first: usize, bits: usize| {
        let per_byte = 8 / bits;
        let byte = tile[data + 64 * (first + within / 4 / per_byte) + 4 * row + within % 4];
        u32::from(byte) >> (bits * (within / 4 % per_byte)) & ((1 << bits) - 1)
    };
    let mut code = plane(0, parts.codes.low);
    if parts.codes.high > 0 {
        code |= plane(parts.codes.low, parts.codes.high) << parts.codes.low;
    }
    let part = within / (32 / parts.parts());
    let number = |at: usize| f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32();
    let unit = |which: usize| number(index / 256 * parts.unit_bytes() + 32 * which + 2 * row);
    let scales = layout.unit_bytes + block * parts.scale_bytes();
    let byte = || tile[scales + 16 * part + row];
    let scale = match (parts.scale, parts.minimum) {
        (Scale::E8M0, _) => scale_value(tile[scales + row]) * 0.5,
        (Scale::F16, _) => number(scales + 2 * row),
        (Scale::E4M3, _) => half_e4m3(byte()),
        (Scale::Super { .. }, Minimum::SuperNibbles) => f32::from(byte() % 16) * unit(0),
        (Scale::Super { signed: true, .. }, _) => f32::from(byte() as i8) * unit(0),
        (Scale::Super { signed: false, .. }, _) => f32::from(byte()) * unit(0),
    };
    let minimum_byte = || f32::from(tile[scales + parts.minima() + 16 * part + row]);
    let minimum = match parts.minimum {
        Minimum::None => -0.0,
        Minimum::F16 => number(scales + parts.minima() + 2 * row),
        Minimum::Zero => -(minimum_byte() * scale),
        Minimum::Super => -(minimum_byte() * unit(1)),
        Minimum::SuperNibbles => -(f32::from(byte() / 16) * unit(1)),
    };
    BlockElement { q: parts.integer(code as u8), scale, minimum }
}

/// Unpacks a tile.
pub(super) fn unpack(format: &Descriptor, tile: &[u8], out: &mut [Column]) {
    let (parts, k) = (format.parts(), out.len());
    let data = &tile[format.tile(k).scale_bytes..];
    for (number, (columns, data)) in
        out.chunks_mut(BLOCK).zip(data.chunks(parts.codes.bits() * LINE)).enumerate()
    {
        let first = number * BLOCK;
        let factors: Vec<[BlockElement; TILE_ROWS]> = (0..parts.parts())
            .map(|part| first + part * BLOCK / parts.parts())
            .map(|place| std::array::from_fn(|row| element(format, k, tile, row, place)))
            .collect();
        let lines = data.as_chunks::<LINE>().0;
        for (index, column) in columns.iter_mut().enumerate() {
            let code = |row: usize| {
                let of = |first: usize, bits: usize| {
                    let line = &lines[first + index * bits / 32];
                    line[4 * row + index % 4] >> (index / 4 * bits % 8) & (0xff >> (8 - bits)) as u8
                };
                let upper = if parts.codes.high == 0 { 0 } else { of(parts.codes.low, parts.codes.high) };
                of(0, parts.codes.low) | upper.wrapping_shl(parts.codes.low as u32)
            };
            let factors = &factors[index * parts.parts() / BLOCK];
            *column = std::array::from_fn(|row| {
                BlockElement { q: parts.integer(code(row)), ..factors[row] }.value()
            });
        }
    }
}
