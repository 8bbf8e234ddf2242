//! Blocks on grids against a search in f64.

use crate::format::{BLOCK, Problem, TILE_ROWS, WeightFormat, int8};
use half::f16;

/// Numbers from a seed.
fn noise(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    }
}

/// An f16 from 2^-10 to 2^-2 or so, of either sign where asked.
fn f16_number(bits: u32, signed: bool) -> f32 {
    let magnitude = f16::from_bits((0x1400 + bits % 0x2000) as u16).to_f32();
    if signed && bits & 0x10_0000 != 0 { -magnitude } else { magnitude }
}

/// Packs one row, and returns its elements: integer and scale.
fn packed(weights: &[f32], steps: &[f32]) -> Vec<(i8, f16)> {
    let k = weights.len();
    let mut tile = vec![0xaa; WeightFormat::Int8.tile(k).bytes()];
    int8::pack_tile_on_grid(k, weights, steps, &mut tile).unwrap();
    (0..k).map(|i| int8::element(k, &tile, 0, i)).map(|element| (element.q, element.scale)).collect()
}

/// The smallest f16 not below amax / 127.
fn plain_scale(weights: &[f32]) -> f16 {
    let wanted = weights.iter().fold(0.0f32, |amax, w| amax.max(w.abs())) / 127.0;
    let below = f16::from_f32(wanted);
    if below.to_f32() < wanted { f16::from_bits(below.to_bits() + 1) } else { below }
}

/// Squared error of rounding to multiples of a scale, in f64.
fn error(weights: &[f32], scale: f16) -> f64 {
    let scale = scale.to_f64();
    let of = |w: f64| {
        if scale == 0.0 { w } else { w - (w / scale).round_ties_even().clamp(-127.0, 127.0) * scale }
    };
    weights.iter().map(|&w| of(f64::from(w)).powi(2)).sum()
}

/// Holds the packed block to the definition, and returns its error with that of plain scaling.
#[track_caller]
fn check(weights: &[f32; BLOCK], steps: [f32; 2]) -> (f64, f64) {
    let elements = packed(weights, &steps);
    let scale = elements[0].1;
    for ((q, other), &w) in elements.iter().zip(weights) {
        assert_eq!(*other, scale);
        let off = (f64::from(w) / scale.to_f64()).clamp(-127.0, 127.0) - f64::from(*q);
        assert!(scale == f16::ZERO || off.abs() <= 0.50001, "{w} is {q} times {scale}");
    }
    let found: f64 = elements
        .iter()
        .zip(weights)
        .map(|((q, s), w)| (f64::from(*w) - f64::from(*q) * s.to_f64()).powi(2))
        .sum();
    let amax = weights.iter().fold(0.0f32, |amax, w| amax.max(w.abs()));
    let tried = if steps[0].abs() == steps[1].abs() { 15 } else { 7 };
    let mut scales = vec![plain_scale(weights)];
    for step in steps.map(f32::abs) {
        let most = (127.5 * step / amax).floor();
        let divisors =
            (0..tried).map(|less| most - less as f32).filter(|divisor| (1.0..=127.0).contains(divisor));
        scales.extend(divisors.map(|divisor| f16::from_f32(step / divisor)));
    }
    for other in scales {
        let other_error = error(weights, other);
        // Sums in f32 decide: they may take equal errors for smaller ones.
        assert!(
            found <= other_error * 1.0001 + 1e-12,
            "{scale} has {found:e}, {other} {other_error:e}: {weights:?}"
        );
    }
    (found, error(weights, plain_scale(weights)))
}

#[test]
fn levels_around_zero_are_kept_bit_for_bit() {
    let iq4: [i32; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    let fp4: [i32; 15] = [-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12];
    let (four, five, six): (Vec<i32>, Vec<i32>, Vec<i32>) =
        ((-8..8).collect(), (-16..16).collect(), (-32..32).collect());
    let mut next = noise(1);
    for levels in [&iq4[..], &fp4, &four, &five, &six] {
        for _ in 0..200 {
            let step = f16_number(next(), true);
            let weights: [f32; BLOCK] =
                std::array::from_fn(|_| levels[next() as usize % levels.len()] as f32 * step);
            let elements = packed(&weights, &[step; 2]);
            for ((q, scale), w) in elements.iter().zip(weights) {
                assert_eq!(f32::from(*q) * scale.to_f32(), w, "{step}: {weights:?}");
            }
        }
    }
}

#[test]
fn levels_with_an_offset_lose_less_than_by_plain_scaling() {
    for (levels, at_most) in [(16, 0.5), (32, 0.75)] {
        let mut next = noise(levels);
        let (mut fitted, mut plain) = (0.0, 0.0);
        for _ in 0..2000 {
            let step = f16_number(next(), false);
            // The smallest level lies about as far below zero as the largest above it.
            let offset =
                f16::from_f32(-step * (levels as f32 / 2.0 + (next() % 4096) as f32 / 1024.0 - 2.0)).to_f32();
            let weights: [f32; BLOCK] = std::array::from_fn(|_| (next() % levels) as f32 * step + offset);
            let (found, other) = check(&weights, [step; 2]);
            let norm: f64 = weights.iter().map(|w| f64::from(*w).powi(2)).sum();
            fitted += found / norm;
            plain += other / norm;
        }
        let ratio = (fitted / plain).sqrt();
        assert!(ratio < at_most, "{levels} levels: {ratio} of plain scaling's error");
    }
}

#[test]
fn halves_with_steps_of_their_own_are_never_worse_than_plain() {
    let mut next = noise(3);
    for _ in 0..2000 {
        let steps = [f16_number(next(), true), f16_number(next(), true)];
        let weights: [f32; BLOCK] = std::array::from_fn(|i| ((next() % 64) as f32 - 32.0) * steps[i / 16]);
        let (found, plain) = check(&weights, steps);
        assert!(found <= plain * 1.0001);
    }
}

#[test]
fn steps_that_are_none_change_nothing() {
    let mut next = noise(4);
    for step in [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 1e-30, f32::MAX] {
        let weights: [f32; BLOCK] = std::array::from_fn(|_| next() as f32 / (1 << 23) as f32 - 1.0);
        let mut plain = vec![0xaa; WeightFormat::Int8.tile(BLOCK).bytes()];
        let mut found = plain.clone();
        int8::pack_tile(BLOCK, &weights, &mut plain).unwrap();
        int8::pack_tile_on_grid(BLOCK, &weights, &[step; 2], &mut found).unwrap();
        assert!(plain == found, "a step of {step}");
    }
    let zeros = packed(&[0.0; BLOCK], &[0.5; 2]);
    assert!(zeros.iter().all(|element| *element == (0, f16::ZERO)));
}

#[test]
fn every_row_and_block_has_its_own_steps() {
    let mut next = noise(5);
    let k = 3 * BLOCK;
    for rows in [1, 5, TILE_ROWS] {
        let steps: Vec<f32> = (0..rows * k / 16).map(|_| f16_number(next(), true)).collect();
        let weights: Vec<f32> = (0..rows * k).map(|i| ((next() % 16) as f32 - 7.5) * steps[i / 16]).collect();
        let mut tile = vec![0xaa; WeightFormat::Int8.tile(k).bytes()];
        int8::pack_tile_on_grid(k, &weights, &steps, &mut tile).unwrap();
        for row in 0..rows {
            let alone = packed(&weights[row * k..][..k], &steps[row * k / 16..][..k / 16]);
            for (at, alone) in alone.into_iter().enumerate() {
                let found = int8::element(k, &tile, row, at);
                assert_eq!((found.q, found.scale), alone, "[{row}, {at}] of {rows} rows");
            }
        }
    }
}

#[test]
fn weights_that_cannot_be_packed_are_named() {
    for bad in [f32::NAN, f32::INFINITY, -1e30] {
        let mut weights = [0.5; 2 * BLOCK];
        weights[40] = bad;
        let mut tile = vec![0; WeightFormat::Int8.tile(2 * BLOCK).bytes()];
        let error = int8::pack_tile_on_grid(2 * BLOCK, &weights, &[0.25; 4], &mut tile).unwrap_err();
        assert_eq!((error.row, error.k), (0, 40));
        assert_eq!(matches!(error.problem, Problem::NotFinite(_)), !bad.is_finite(), "{error}");
    }
}
