//! Packed tiles of random weights, and what they are by the definitions of docs/dev/numerics.md.

use fastrand::Rng;
use half::f16;
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, Scale, TILE_ROWS, WeightFormat};

/// Formats that every level has had assembled micro-kernels for from the start: they are tested in the most
/// shapes, and others in some of these.
pub const FIRST: [WeightFormat; 3] = [WeightFormat::Mxfp4, WeightFormat::Int8, WeightFormat::Int4];

/// Roughly normal, by a sum of uniforms.
pub fn normal(rng: &mut Rng) -> f32 {
    (0..4).map(|_| rng.f32() - 0.5).sum::<f32>() * 1.7
}

/// One of some.
fn pick<T: Copy>(rng: &mut Rng, some: &[T]) -> T {
    some[rng.usize(..some.len())]
}

/// Where a file's block has f16.
fn halves(format: WeightFormat) -> &'static [usize] {
    match format {
        WeightFormat::Mxfp4 | WeightFormat::Nvfp4 => &[],
        WeightFormat::Q2K => &[80, 82],
        WeightFormat::Q3K => &[108],
        WeightFormat::Q6K => &[208],
        WeightFormat::Tq1_0 => &[52],
        WeightFormat::Tq2_0 => &[64],
        WeightFormat::Q4_1 | WeightFormat::Q5_1 | WeightFormat::Q4K | WeightFormat::Q5K => &[0, 2],
        _ => &[0],
    }
}

/// Any f16 of the kind: everyday ones of either sign and zeros, or the largest, the smallest and zeros.
fn half(rng: &mut Rng, extreme: bool) -> [u8; 2] {
    let bits = match extreme {
        true => pick(rng, &[0x7bff, 0xfbff, 0x0001, 0x8001, 0x83ff, 0x3c00, 0x0000, 0x8000]),
        false if rng.u8(..16) == 0 => 0,
        false => f16::from_f32(normal(rng) * 0.01).to_bits(),
    };
    bits.to_le_bytes()
}

/// Blocks as a file has them that a tile can hold. `extreme` has codes, integer scales and minima at the ends
/// of their ranges, in half of the blocks the same in all, and scales at theirs.
fn file_blocks(rng: &mut Rng, format: WeightFormat, count: usize, extreme: bool) -> Vec<u8> {
    let bytes = format.descriptor().file.expect("every format with blocks is a file's").bytes;
    // Bytes whose codes are the largest and the smallest.
    let ends = match format {
        WeightFormat::Mxfp4 | WeightFormat::Nvfp4 => [0x77, 0xff],
        WeightFormat::Int8 => [0x7f, 0x81],
        _ => [0x00, 0xff],
    };
    let mut blocks = vec![0; count * bytes];
    rng.fill(&mut blocks);
    for block in blocks.chunks_mut(bytes) {
        if extreme {
            let all = rng.bool().then(|| pick(rng, &ends));
            block.iter_mut().for_each(|byte| *byte = all.unwrap_or_else(|| pick(rng, &ends)));
        }
        match format {
            WeightFormat::Mxfp4 if extreme => block[0] = pick(rng, &[0, 1, 2, 127, 230, 231, 232]),
            WeightFormat::Mxfp4 => block[0] = if rng.u8(..16) == 0 { 0 } else { rng.u8(110..130) },
            // Its sign bit counts for nothing, and 127 is no number.
            WeightFormat::Nvfp4 if extreme => {
                block[..4].fill_with(|| pick(rng, &[0, 1, 7, 8, 126, 0x80, 0xfe]));
            }
            WeightFormat::Nvfp4 => block[..4].fill_with(|| rng.u8(..127)),
            WeightFormat::Q6K if extreme => block[192..208].fill_with(|| pick(rng, &[0x7f, 0x80, 0xff])),
            WeightFormat::Int8 => block[2..].iter_mut().for_each(|q| *q |= u8::from(*q == 0x80)),
            _ => {}
        }
        for at in halves(format) {
            block[*at..at + 2].copy_from_slice(&half(rng, extreme));
        }
    }
    blocks
}

/// A tile of 16 random rows. `extreme` puts the largest magnitudes everywhere, and in formats with blocks
/// scales that are as large and as small as they get.
pub fn random_tile(rng: &mut Rng, format: WeightFormat, k: usize, extreme: bool) -> Vec<u8> {
    let mut tile = vec![0; format.tile(k).bytes()];
    if let Some(file) = format.descriptor().file {
        let whole = k.next_multiple_of(file.elements);
        let blocks = file_blocks(rng, format, TILE_ROWS * whole / file.elements, extreme);
        if whole == k {
            format::pack_stored_tile(format, k, &blocks, &mut tile).unwrap();
            return tile;
        }
        // Rows that end within a file's block: a longer tile's first blocks.
        let mut longer = vec![0; format.tile(whole).bytes()];
        format::pack_stored_tile(format, whole, &blocks, &mut longer).unwrap();
        let scales = k / BLOCK * format.parts().scale_bytes();
        tile[..scales].copy_from_slice(&longer[..scales]);
        let (short, long) = (format.tile(k), format.tile(whole));
        tile[short.scale_bytes..].copy_from_slice(&longer[long.scale_bytes..][..short.data_bytes]);
    } else {
        let rows: Vec<f32> = (0..TILE_ROWS * k)
            .map(|i| {
                let x = normal(rng);
                let x = if extreme { x.signum() } else { x };
                // bf16 takes only what it can hold.
                if i / BLOCK == 5 { 0.0 } else { half::bf16::from_f32(x).to_f32() }
            })
            .collect();
        format::pack_f32_tile(format, k, &rows, &mut tile).unwrap();
    }
    tile
}

/// The elements of a tile with blocks: integers by k, and scales and minima by block and part of it; each for
/// 16 rows.
#[derive(Clone)]
pub struct Elements {
    pub q: Vec<[i32; TILE_ROWS]>,
    pub scales: Vec<[f32; TILE_ROWS]>,
    /// Minima likewise; empty in a format without.
    pub minima: Vec<[f32; TILE_ROWS]>,
    /// Parts of a block.
    pub parts: usize,
    /// The difference of unsigned numbers to the integers.
    pub bias: i32,
}

impl Elements {
    /// By the reader of packed tiles.
    pub fn of(format: WeightFormat, k: usize, tile: &[u8]) -> Elements {
        let parts = format.parts();
        let element = |row: usize, i: usize| format::element(format, k, tile, row, i);
        let firsts = (0..k).step_by(BLOCK / parts.parts());
        let has_minimum = parts.has_minimum();
        Elements {
            q: (0..k).map(|i| std::array::from_fn(|row| element(row, i).q)).collect(),
            scales: firsts.clone().map(|i| std::array::from_fn(|row| element(row, i).scale)).collect(),
            minima: firsts
                .filter(|_| has_minimum)
                .map(|i| std::array::from_fn(|row| element(row, i).minimum))
                .collect(),
            parts: parts.parts(),
            bias: parts.bias(),
        }
    }

    /// "blockdot", or "affinedot" if there are minima, of `blocks` blocks of all rows and of q8 activations,
    /// continued from `acc`.
    pub fn dots(
        &self,
        acc: [f32; TILE_ROWS],
        (q, scales): (&[i8], &[f32]),
        blocks: usize,
    ) -> [f32; TILE_ROWS] {
        let width = BLOCK / self.parts;
        (0..blocks * self.parts).fold(acc, |mut acc, part| {
            let places = part * width..(part + 1) * width;
            let (mut products, mut sum) = ([0; TILE_ROWS], 0);
            for (weights, q) in self.q[places.clone()].iter().zip(&q[places]) {
                let q = i32::from(*q);
                products.iter_mut().zip(weights).for_each(|(product, w)| *product += w * q);
                sum += q;
            }
            let scale = scales[part / self.parts];
            for (row, acc) in acc.iter_mut().enumerate() {
                *acc = (products[row] as f32 * self.scales[part][row]).mul_add(scale, *acc);
                if let Some(minima) = self.minima.get(part) {
                    *acc = minima[row].mul_add(sum as f32 * scale, *acc);
                }
            }
            acc
        })
    }
}

/// Columns to test a format with: one block, an even and an odd number of them, and many; of formats whose
/// scales have units, as many of these.
pub fn columns(format: WeightFormat) -> [usize; 3] {
    let is_super = format.is_blocked() && format.parts().is_super();
    if is_super { [256, 512, 2816] } else { [32, 64, 2880] }
}

#[test]
fn random_tiles_have_what_is_hardest() {
    for format in WeightFormat::blocked() {
        let (k, parts) = (512, format.parts());
        let tile = random_tile(&mut Rng::with_seed(1), format, k, true);
        let elements = Elements::of(format, k, &tile);
        let all = || elements.q.iter().flatten().copied();
        // A ternary digit is at most 2.
        let code = if format == WeightFormat::Tq1_0 { 2 } else { parts.largest() };
        let largest = i32::from(code) - parts.bias();
        // Of int8 there is no -128.
        let least = (-parts.bias()).max(-127);
        assert_eq!((all().min(), all().max()), (Some(least), Some(largest)), "{format:?}");
        let scales = || elements.scales.iter().flatten();
        let signed = !matches!(parts.scale, Scale::E8M0 | Scale::E4M3);
        assert_eq!(scales().any(|scale| *scale < 0.0), signed, "{format:?}");
        assert!(scales().any(|scale| *scale > 8.0) && scales().any(|scale| scale.abs() < 1e-3), "{format:?}");
        assert_eq!(elements.minima.iter().flatten().any(|minimum| *minimum > 1e4), parts.has_minimum());
    }
}
