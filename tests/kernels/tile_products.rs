//! Products of q8 rows on tiles, of bf16 for MXFP4 and of int8 for other formats: every version of the host,
//! and those for tiles and of 512 bits in the interpreter of machine code and, if the host has any, on tiles,
//! against "blockdot" of docs/dev/numerics.md.

use super::packed::FIRST;
use super::strip_product::{Product, levels};
use fastrand::Rng;
use half::f16;
use kernmill_kernels_gen::ukernel::gemm_tiles::{CHUNK_BLOCKS, TileElement};
use kernmill_plan::format::{TILE_ROWS, WeightFormat};

/// The formats that tiles of bytes serve.
fn of_integers() -> impl Iterator<Item = WeightFormat> {
    let served = WeightFormat::blocked().filter(|format| TileElement::serves(*format));
    served.filter(|format| TileElement::of(*format) == TileElement::I8)
}

#[test]
fn products_of_integers_are_blockdots() {
    for format in of_integers() {
        let (tokens, blocks) = match FIRST.contains(&format) {
            true => (&[1, 2, 9, 16][..], 1..=CHUNK_BLOCKS),
            false => (&[2, 16][..], CHUNK_BLOCKS - 1..=CHUNK_BLOCKS),
        };
        for tokens in tokens {
            blocks.clone().for_each(|blocks| Product::random_integers(format, *tokens, blocks).check());
        }
    }
}

/// The largest sums there are, of either sign, and sums that cancel out; the least and the largest scales,
/// and zeros of either sign.
#[test]
fn extreme_integers_and_scales_on_tiles_of_bytes_keep_their_bits() {
    let scales = [f16::MAX, f16::MIN, f16::from_bits(1), f16::from_f32(-0.5), f16::ZERO, f16::NEG_ZERO];
    for format in of_integers() {
        let levels = levels(format);
        let [least, largest] = [levels[0], levels[levels.len() - 1]];
        let zero = *levels.iter().min_by_key(|q| q.unsigned_abs()).unwrap();
        let every = if FIRST.contains(&format) { 1 } else { 3 };
        for (weight, q) in [(largest, 127), (largest, -128), (least, -128), (zero, -5)] {
            for scale in scales.into_iter().step_by(every) {
                for float in [0.75, -0.0, 1e-45, 3e38].into_iter().step_by(every) {
                    let of = Product::of_integers;
                    of(format, (5, CHUNK_BLOCKS), || weight, || scale, || q, || float).alone().check();
                }
            }
        }
        // Products of a block that cancel out.
        let (mut signs, mut rng) = ([true, false].into_iter().cycle(), Rng::with_seed(9));
        let weight = || if signs.next().unwrap() { largest } else { least };
        let scale = || f16::from_f32(rng.f32() - 0.5);
        Product::of_integers(format, (16, CHUNK_BLOCKS), weight, scale, || 77, || -1e-44).check();
    }
}

#[test]
fn infinite_and_undefined_scales_of_activations_go_where_they_should_on_tiles_of_bytes() {
    for float in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE] {
        let (mut rng, mut weights) = (Rng::with_seed(5), Rng::with_seed(6));
        let product = Product::of_integers(
            WeightFormat::Int8,
            (16, CHUNK_BLOCKS),
            || weights.i8(-127..=127),
            || f16::from_f32(0.01),
            || rng.i8(..),
            || float,
        );
        product.alone().check();
    }
    // The numbers of a row stay in its sums.
    let mut product = Product::random_integers(WeightFormat::Int8, 16, CHUNK_BLOCKS);
    product.rows[7].1[2] = f32::NAN;
    product.rows[15].1[0] = f32::INFINITY;
    product.check();
}

#[test]
fn products_are_blockdots() {
    for tokens in [1, 2, 7, 16] {
        for blocks in 1..CHUNK_BLOCKS {
            Product::random(tokens, blocks, 110..=130).check();
        }
    }
}

/// Whole and half panels, first, last or alone, of chunks as long as they get, of few blocks, and of one.
#[test]
fn panels_of_any_number_of_rows_are_multiplied() {
    for tokens in [1, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 40, 48, 70] {
        for blocks in [1, 2, 3, CHUNK_BLOCKS] {
            Product::random(tokens, blocks, 100..=140).check();
            Product::random_integers(WeightFormat::Int8, tokens, blocks).check();
        }
    }
}

/// Whole chunks beside which no block, or fewer than theirs, or as many are decoded.
#[test]
fn any_number_of_blocks_is_decoded_beside_whole_chunks() {
    for tokens in [1, 16, 17, 64, 80] {
        for next in [0, 1, 4] {
            Product::random(tokens, CHUNK_BLOCKS, 100..=140).decoding(next).check();
            let integers = Product::random_integers(WeightFormat::Int8, tokens, CHUNK_BLOCKS);
            integers.decoding(next).check();
        }
    }
}

/// Every scale that can be packed; and only those whose products tiles would take for zeros.
#[test]
fn small_and_large_scales_keep_their_bits() {
    Product::random(24, CHUNK_BLOCKS, 0..=232).check();
    for scales in [0..=0, 1..=1, 2..=2, 0..=3, 232..=232] {
        for blocks in [1, CHUNK_BLOCKS] {
            Product::random(9, blocks, scales.clone()).alone().check();
        }
    }
    // One such block among others, wherever it is; its products are of the size of theirs, or denormal.
    for at in (0..2 * CHUNK_BLOCKS * TILE_ROWS).step_by(7) {
        let mut scales = (0..).map(|place: usize| if place == at { at as u8 % 2 } else { 3 });
        let mut rng = Rng::with_seed(at as u64);
        let float = if at % 3 == 0 { 1.0 } else { 2f32.powi(100) };
        let product =
            Product::of((3, CHUNK_BLOCKS), || rng.u8(..), || scales.next().unwrap(), || -3, || float);
        product.alone().check();
    }
}

/// The largest sums there are, of either sign; zeros of either sign; and sums that cancel out.
#[test]
fn extreme_integers_keep_their_bits() {
    let operands = [(0x77, 127), (0x77, -128), (0xff, -128), (0x08, -5), (0x80, 5), (0x00, -1), (0x7f, 127)];
    for (codes, q) in operands {
        for scale in [0, 1, 2, 127, 232] {
            for float in [0.75, -0.0] {
                Product::of((5, CHUNK_BLOCKS), || codes, || scale, || q, || float).alone().check();
            }
        }
    }
}

#[test]
fn infinite_and_undefined_scales_of_activations_go_where_they_should() {
    for float in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45] {
        let (mut rng, mut codes) = (Rng::with_seed(5), Rng::with_seed(6));
        Product::of((16, CHUNK_BLOCKS), || codes.u8(..), || 127, || rng.i8(..), || float).alone().check();
    }
    // The numbers of a row stay in its sums.
    let mut product = Product::random(16, CHUNK_BLOCKS, 120..=130);
    product.rows[7].1[2] = f32::NAN;
    product.rows[15].1[0] = f32::INFINITY;
    product.check();
}
