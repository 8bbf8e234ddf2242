//! Packed tiles against an independent formula for each element.

use super::*;
use half::f16;
use proptest::prelude::*;

/// Largest magnitude of a scaled format's integers.
fn levels(format: WeightFormat) -> f64 {
    if format == WeightFormat::Int8 { 127.0 } else { 8.0 }
}

/// The smallest f16 not below x >= 0, by search over all of them.
fn f16_not_below(x: f32) -> f16 {
    let finite = 0..f16::INFINITY.to_bits();
    let bits = finite.collect::<Vec<_>>();
    let at = bits.partition_point(|&bits| f16::from_bits(bits).to_f32() < x);
    f16::from_bits(bits[at])
}

/// The integer and the scale of element `[row, index]` by the formula.
fn expected(format: WeightFormat, k: usize, rows: &[f32], row: usize, index: usize) -> BlockElement {
    let scaled = |q: f64, scale: f16| BlockElement { q: q as i32, scale: scale.to_f32(), minimum: 0.0 };
    let Some(weights) = rows.get(row * k..(row + 1) * k) else { return scaled(0.0, f16::ZERO) };
    let block = &weights[index / BLOCK * BLOCK..][..BLOCK];
    if format == WeightFormat::Int4 {
        let scale = fitted_scale(block);
        return scaled(f64::from(nearest_int4(block[index % BLOCK], scale)), scale);
    }
    let amax = block.iter().fold(0.0f32, |amax, w| amax.max(w.abs()));
    let scale = f16_not_below(amax / levels(format) as f32);
    if scale == f16::ZERO {
        return scaled(0.0, scale);
    }
    let ratio = weights[index] / scale.to_f32();
    scaled(f64::from(ratio).round_ties_even().clamp(-levels(format), levels(format)), scale)
}

/// The integer of an int4 element.
fn nearest_int4(w: f32, scale: f16) -> f32 {
    if scale == f16::ZERO { 0.0 } else { (w * (1.0 / scale.to_f32())).round_ties_even().clamp(-8.0, 7.0) }
}

/// The scale of an int4 block: of the eight that are tried the first with the smallest squared error.
fn fitted_scale(block: &[f32]) -> f16 {
    let mut farthest = block[0];
    for &w in block {
        if w.abs() > farthest.abs() || w == farthest.abs() {
            farthest = w;
        }
    }
    let tried = (0..8).map(|i| f16::from_f32(-farthest / (7.0 + 0.25 * i as f32)) + f16::ZERO);
    let error = |scale: f16| {
        block.iter().fold(0.0f32, |sum, &w| {
            let difference = (-nearest_int4(w, scale)).mul_add(scale.to_f32(), w);
            difference.mul_add(difference, sum)
        })
    };
    let finite = tried.filter(|scale| scale.is_finite());
    finite.min_by(|a, b| error(*a).total_cmp(&error(*b))).expect("one is finite")
}

fn check_scaled(format: WeightFormat, k: usize, rows: &[f32]) {
    // Garbage in the output shows bytes that packing leaves alone.
    let mut tile = vec![0xaa; format.tile(k).bytes()];
    pack_f32_tile(format, k, rows, &mut tile).unwrap();
    for row in 0..TILE_ROWS {
        for index in 0..k {
            let want = expected(format, k, rows, row, index);
            assert_eq!(element(format, k, &tile, row, index), want, "{format:?} k {k} [{row}, {index}]");
            assert_eq!(value(format, k, &tile, row, index), want.q as f32 * want.scale);
        }
    }
    let padding = k / BLOCK * 32..format.tile(k).scale_bytes;
    assert!(tile[padding].iter().all(|&byte| byte == 0), "the scale plane's padding is zero");
}

/// Numbers from a seed, fast enough for whole tiles.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// A weight of magnitude about `2^-exponents..1`, a power of two or zero now and then.
fn weight(bits: u64, exponents: u32) -> f32 {
    let magnitude = 0.5f32.powi((bits >> 40) as i32 % exponents.max(1) as i32);
    let mantissa = (bits & 0xff_ffff) as f32 / (1 << 23) as f32 - 1.0;
    match bits >> 60 {
        0 => 0.0,
        1 => magnitude,
        _ => magnitude * mantissa,
    }
}

fn dims() -> impl Strategy<Value = (usize, usize, u64)> {
    (1..=TILE_ROWS, prop_oneof![8 => Just(32usize), 8 => Just(64), 1 => Just(2880)], any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scaled_elements_follow_the_formula((rows, k, seed) in dims(), exponents in 1u32..30) {
        let mut next = noise(seed);
        let rows: Vec<f32> = (0..rows * k).map(|_| weight(next(), exponents)).collect();
        check_scaled(WeightFormat::Int8, k, &rows);
        check_scaled(WeightFormat::Int4, k, &rows);
    }

    #[test]
    fn unscaled_elements_are_themselves((count, k, seed) in dims(), odd in 0usize..2) {
        // Formats without blocks take any k.
        let k = k - odd;
        let mut next = noise(seed);
        let rows: Vec<f32> = (0..count * k).map(|_| half::bf16::from_f32(weight(next(), 100)).to_f32()).collect();
        for format in [WeightFormat::Bf16, WeightFormat::F32] {
            let mut tile = vec![0xaa; format.tile(k).bytes()];
            pack_f32_tile(format, k, &rows, &mut tile).unwrap();
            for row in 0..TILE_ROWS {
                for index in 0..k {
                    let want = rows.get(row * k..).and_then(|row| row.get(index)).copied().unwrap_or(0.0);
                    prop_assert_eq!(value(format, k, &tile, row, index).to_bits(), want.to_bits());
                }
            }
            if format == WeightFormat::Bf16 && odd == 1 {
                let last = tile.as_chunks::<64>().0.last().unwrap();
                prop_assert!(last.as_chunks::<4>().0.iter().all(|pair| pair[2..] == [0, 0]), "k is padded with zeros");
            }
        }
    }

    #[test]
    fn mxfp4_keeps_every_bit((count, k, seed) in dims()) {
        let mut next = noise(seed);
        let blocks: Vec<u8> = (0..count * k / 2).map(|_| (next() >> 32) as u8).collect();
        let scales: Vec<u8> = (0..count * k / 32).map(|_| ((next() >> 32) % 233) as u8).collect();
        let mut tile = vec![0xaa; WeightFormat::Mxfp4.tile(k).bytes()];
        mxfp4::pack_tile(k, &blocks, &scales, &mut tile).unwrap();
        for row in 0..TILE_ROWS {
            for index in 0..k {
                let byte = blocks.get(row * k / 2..).and_then(|row| row.get(index / 2)).copied().unwrap_or(0);
                let code = if index % 2 == 0 { byte & 15 } else { byte >> 4 };
                let scale = scales.get(row * k / 32..).and_then(|row| row.get(index / 32)).copied().unwrap_or(0);
                let found = element(WeightFormat::Mxfp4, k, &tile, row, index);
                let want = mxfp4::E2M1[usize::from(code)] * mxfp4::scale_value(scale);
                prop_assert_eq!((found.q, found.value()), (i32::from(mxfp4::E2M1_TWICE[usize::from(code)]), want));
            }
        }
        let padding = k / 2..WeightFormat::Mxfp4.tile(k).scale_bytes;
        prop_assert!(tile[padding].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn scales_round_up(bits in 0u32..0x7f80_0000) {
        let x = f32::from_bits(bits) / 127.0;
        prop_assume!(x <= f16::MAX.to_f32());
        prop_assert_eq!(quantise::round_up(x), f16_not_below(x));
    }
}

#[test]
fn extremes_of_int8_and_int4() {
    for (format, levels) in [(WeightFormat::Int8, 127.0f32), (WeightFormat::Int4, 7.0)] {
        let rows: Vec<f32> = (0..16 * 64).map(|i| if i % 3 == 0 { -levels } else { levels }).collect();
        check_scaled(format, 64, &rows);
        let mut tile = vec![0; format.tile(64).bytes()];
        pack_f32_tile(format, 64, &rows, &mut tile).unwrap();
        assert_eq!(value(format, 64, &tile, 15, 63), rows[16 * 64 - 1]);
        // A scale just above amax/levels, and ties to even.
        let mut row = vec![0.5; 32];
        row[..5].copy_from_slice(&[levels, 1.5, 2.5, -0.5, -1.5]);
        check_scaled(format, 32, &row);
    }
}

#[test]
fn tiny_and_zero_blocks() {
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        for size in [0.0, -0.0, f32::from_bits(1), f32::MIN_POSITIVE, 2f32.powi(-26), 2f32.powi(-17), 1e-5] {
            let mut row = vec![0.0; 64];
            row[1] = size;
            row[33] = -size;
            check_scaled(format, 64, &row);
        }
    }
    let mut tile = vec![0; WeightFormat::Int8.tile(32).bytes()];
    int8::pack_tile(32, &[1e-5; 32], &mut tile).unwrap();
    let scale = element(WeightFormat::Int8, 32, &tile, 0, 0).scale;
    assert!(scale > 0.0 && scale < f16::MIN_POSITIVE.to_f32(), "a subnormal scale: {scale:e}");
}

#[test]
fn the_largest_representable_block() {
    for format in [WeightFormat::Int8, WeightFormat::Int4] {
        let limit = f16::MAX.to_f32() * levels(format) as f32;
        let mut rows = vec![1.0; 3 * 64];
        rows[2 * 64 + 40] = -limit;
        check_scaled(format, 64, &rows);
        rows[2 * 64 + 40] = -2.0 * limit;
        let error = pack_f32_tile(format, 64, &rows, &mut vec![0; format.tile(64).bytes()]).unwrap_err();
        let problem = Problem::ScaleOverflow { amax: 2.0 * limit, limit, format: format.name() };
        assert_eq!(error, PackError { row: 2, k: 40, problem });
        let text = error.to_string();
        assert!(text.starts_with("row 2, k 40: the weight ") && text.contains(format.name()), "{text}");
    }
}

#[test]
fn bad_values_are_named() {
    let formats = [WeightFormat::Int8, WeightFormat::Int4, WeightFormat::Bf16, WeightFormat::F32];
    for format in formats {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut rows = vec![0.25; 5 * 64];
            rows[4 * 64 + 63] = bad;
            let error = pack_f32_tile(format, 64, &rows, &mut vec![0; format.tile(64).bytes()]).unwrap_err();
            assert_eq!((error.row, error.k), (4, 63), "{format:?} {bad}");
            assert!(matches!(error.problem, Problem::NotFinite(_)), "{error}");
        }
    }
    let error = bf16::pack_tile(2, &[1.0, 2.0, 1.0, 1.001], &mut [0; 64]).unwrap_err();
    assert_eq!(error, PackError { row: 1, k: 1, problem: Problem::NotBf16(1.001) });
    let mut scales = [127; 2 * 3];
    scales[5] = 255;
    let tile = &mut vec![0; WeightFormat::Mxfp4.tile(96).bytes()];
    let error = mxfp4::pack_tile(96, &[0; 2 * 48], &scales, tile).unwrap_err();
    assert_eq!(error, PackError { row: 1, k: 64, problem: Problem::ScaleByte(255) });
}

#[test]
fn values_of_mxfp4() {
    let of = |code: u8, scale: u8| {
        let mut tile = vec![0; WeightFormat::Mxfp4.tile(32).bytes()];
        mxfp4::pack_tile(32, &[code; 16], &[scale], &mut tile).unwrap();
        value(WeightFormat::Mxfp4, 32, &tile, 0, 0)
    };
    assert_eq!([of(7, 127), of(9, 128), of(2, 0)], [6.0, -1.0, 2f32.powi(-126) / 2.0]);
    assert_eq!(mxfp4::scale_value(254), 2f32.powi(127));
    for scale in 1..255 {
        assert_eq!(mxfp4::scale_value(scale), 2f32.powi(i32::from(scale) - 127));
    }
}

#[test]
fn whole_tiles_are_their_elements() {
    for format in WeightFormat::ALL {
        let k = if format.is_blocked() { 512 } else { 27 };
        let mut tile = vec![0; format.tile(k).bytes()];
        if format.is_stored() {
            tile.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 121) as u8);
        } else {
            let rows: Vec<f32> = (0..13 * k).map(|i| (i * 7919 % 255) as f32 - 127.0).collect();
            pack_f32_tile(format, k, &rows, &mut tile).unwrap();
        }
        let mut out = vec![[f32::NAN; TILE_ROWS]; k];
        unpack_tile(format, &tile, &mut out);
        for (index, column) in out.iter().enumerate() {
            for (row, x) in column.iter().enumerate() {
                assert_eq!(*x, value(format, k, &tile, row, index), "{format:?} [{row}, {index}]");
            }
        }
    }
}

#[test]
fn tiles_are_as_long_as_the_formats_say() {
    // Bytes of scales, rounded up to a line, and of data for a tile of 16 rows by 96 columns.
    let sizes = [
        (WeightFormat::Mxfp4, 64, 768),
        (WeightFormat::Int8, 128, 1536),
        (WeightFormat::Int4, 128, 768),
        (WeightFormat::Bf16, 0, 3072),
        (WeightFormat::F32, 0, 6144),
    ];
    for (format, scale_bytes, data_bytes) in sizes {
        assert_eq!(format.tile(96), TileLayout { unit_bytes: 0, scale_bytes, data_bytes }, "{format:?}");
    }
    // Units, all of the scale plane, and data for 512 columns; bits of a weight in a long row.
    let sizes = [
        (WeightFormat::Q4K, 128, 128 + 512, 4096, 4.625),
        (WeightFormat::Q6K, 64, 64 + 512, 6144, 6.5625),
        (WeightFormat::Q2K, 128, 128 + 512, 2048, 2.625),
        (WeightFormat::Q3K, 64, 64 + 512, 3072, 3.5625),
        (WeightFormat::Iq4Xs, 64, 64 + 256, 4096, 4.3125),
        (WeightFormat::Q5_1, 0, 1024, 5120, 6.0),
        (WeightFormat::Int4Zero, 0, 768, 4096, 4.75),
        (WeightFormat::Nvfp4, 0, 512, 4096, 4.5),
    ];
    for (format, unit_bytes, scale_bytes, data_bytes, bits) in sizes {
        assert_eq!(format.tile(512), TileLayout { unit_bytes, scale_bytes, data_bytes }, "{format:?}");
        assert_eq!(format.tile(8192).bytes() as f64 * 8.0 / (16.0 * 8192.0), bits, "{format:?}");
    }
    for format in WeightFormat::ALL {
        assert_eq!(WeightFormat::from_name(format.name()), Some(format));
    }
    assert_eq!(WeightFormat::Bf16.tile(27).data_bytes, 14 * 64, "an odd k takes half a line more");
}

/// Blocks of a file that a tile can hold: any codes and integers, units and scales that are finite.
pub(crate) fn file_blocks(format: WeightFormat, count: usize, seed: u64) -> Vec<u8> {
    let (file, mut next) = (format.descriptor().file.expect("a file has it"), noise(seed));
    let mut bytes: Vec<u8> = (0..count * file.bytes).map(|_| (next() >> 32) as u8).collect();
    for block in bytes.chunks_mut(file.bytes) {
        let mut half = |at: usize| {
            let unit = f16::from_f32(((next() >> 40) as f32 / 16777216.0 - 0.5) * 0.01);
            block[at..at + 2].copy_from_slice(&unit.to_le_bytes());
        };
        match format {
            WeightFormat::Mxfp4 => block[0] = 100 + block[0] % 30,
            WeightFormat::Nvfp4 => block[..4].iter_mut().for_each(|scale| *scale %= 127),
            WeightFormat::Q2K => [80, 82].into_iter().for_each(&mut half),
            WeightFormat::Q3K => half(108),
            WeightFormat::Q6K => half(208),
            WeightFormat::Tq1_0 => half(52),
            WeightFormat::Tq2_0 => half(64),
            WeightFormat::Q4_1 | WeightFormat::Q5_1 | WeightFormat::Q4K | WeightFormat::Q5K => {
                [0, 2].into_iter().for_each(&mut half);
            }
            _ => half(0),
        }
        if format == WeightFormat::Int8 {
            block[2..].iter_mut().filter(|q| **q == 128).for_each(|q| *q = 129);
        }
    }
    bytes
}

#[test]
fn stored_blocks_come_back_out_of_tiles() {
    for (format, file) in
        WeightFormat::blocked().filter_map(|format| Some((format, format.descriptor().file?)))
    {
        for (rows, k) in [(1, 256), (5, 512), (16, 768)] {
            let bytes = file_blocks(format, rows * k / file.elements, (rows * k) as u64);
            let mut tile = vec![0xaa; format.tile(k).bytes()];
            pack_stored_tile(format, k, &bytes, &mut tile).unwrap();
            let (mut elements, mut columns) = (Vec::new(), vec![[f32::NAN; TILE_ROWS]; k]);
            read_stored(format, &bytes, &mut elements);
            unpack_tile(format, &tile, &mut columns);
            for row in 0..TILE_ROWS {
                for (index, column) in columns.iter().enumerate() {
                    let want = if row < rows { elements[row * k + index] } else { 0.0 };
                    assert_eq!(
                        value(format, k, &tile, row, index),
                        want,
                        "{format:?} [{row}, {index}] of {k}"
                    );
                    assert_eq!(column[row], want, "{format:?} [{row}, {index}] of {k}, unpacked");
                }
            }
        }
    }
}

/// Codes less a zero, times the scale: exact, since an f16 times an integer of few bits is an f32.
#[test]
fn elements_of_int4_zero_are_scaled_differences() {
    let (bytes, mut numbers) = (file_blocks(WeightFormat::Int4Zero, 64, 9), Vec::new());
    read_stored(WeightFormat::Int4Zero, &bytes, &mut numbers);
    for (block, numbers) in bytes.chunks(19).zip(numbers.chunks(BLOCK)) {
        let scale = f16::from_le_bytes([block[0], block[1]]).to_f64();
        for (i, number) in numbers.iter().enumerate() {
            let code = block[3 + i % 16] >> (i / 16 * 4) & 15;
            assert_eq!(f64::from(*number), scale * (f64::from(code) - f64::from(block[2])));
        }
    }
}

#[test]
fn zeros_keep_the_sign_that_their_scale_gives_them() {
    let block = [&f16::from_f32(-1.0).to_le_bytes()[..], &[0x88; 16]].concat();
    let (mut elements, mut tile) = (Vec::new(), vec![0; WeightFormat::Int4.tile(32).bytes()]);
    read_stored(WeightFormat::Int4, &block, &mut elements);
    pack_stored_tile(WeightFormat::Int4, 32, &block, &mut tile).unwrap();
    for element in [elements[0], elements[31], value(WeightFormat::Int4, 32, &tile, 0, 31)] {
        assert_eq!(element.to_bits(), (-0.0f32).to_bits());
    }
}

#[test]
fn stored_blocks_that_are_no_numbers_are_named() {
    for (format, at, bytes) in [
        (WeightFormat::Q4K, 0, f16::NAN.to_le_bytes()),
        (WeightFormat::Q4K, 2, f16::INFINITY.to_le_bytes()),
        (WeightFormat::Q6K, 208, f16::NEG_INFINITY.to_le_bytes()),
        (WeightFormat::Q4_1, 2, f16::NAN.to_le_bytes()),
        (WeightFormat::Nvfp4, 2, [127, 0]),
        (WeightFormat::Mxfp4, 0, [233, 0]),
        (WeightFormat::Int8, 2, [0x80, 0]),
    ] {
        let file = format.descriptor().file.unwrap();
        let mut blocks = file_blocks(format, 2 * 512 / file.elements, 5);
        let second = blocks.len() / 2 + 256 / file.elements * file.bytes;
        blocks[second + at..][..2].copy_from_slice(&bytes);
        let error =
            pack_stored_tile(format, 512, &blocks, &mut vec![0; format.tile(512).bytes()]).unwrap_err();
        assert_eq!((error.row, error.k), (1, 256), "{format:?}: {error}");
    }
}
