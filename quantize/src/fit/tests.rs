use super::*;
use fastrand::Rng;
use half::f16;
use kernmill_plan::format::{Minimum, Scale};

/// Normal numbers of this deviation.
fn normal(rng: &mut Rng, count: usize, deviation: f32) -> Vec<f32> {
    let sum = |rng: &mut Rng| (0..12).map(|_| rng.f32()).sum::<f32>() - 6.0;
    (0..count).map(|_| sum(rng) * deviation).collect()
}

/// Bytes and squared error of a row in a format.
fn fitted(format: WeightFormat, row: &[f32], importance: &[f32]) -> (Vec<u8>, f64) {
    let mut out = Vec::new();
    let error = BlockFitter::new(format).row(row, importance, &mut out).unwrap();
    (out, error)
}

/// The weights in bytes of a format.
fn back(format: WeightFormat, bytes: &[u8]) -> Vec<f32> {
    let mut back = Vec::new();
    read_stored(format, bytes, &mut back);
    back
}

/// A random block of a format, whose scales are not 0.
fn random_block(format: WeightFormat, rng: &mut Rng) -> FileBlock {
    let parts = format.parts();
    let half = |rng: &mut Rng| f16::from_f32(1e-4 + 0.01 * rng.f32()).to_bits();
    let least = u8::from(format == WeightFormat::Int8);
    let largest = ((1u32 << parts.codes.bits()) - 1) as u8;
    let mut block =
        FileBlock { codes: [0; 256], scale: half(rng), minimum: 0, scales: [0; 16], minima: [0; 16] };
    let elements = BlockFitter::new(format).elements;
    block.codes[..elements].fill_with(|| rng.u8(least..=largest));
    match parts.scale {
        Scale::E8M0 => block.scale = rng.u16(100..140),
        Scale::F16 => {}
        Scale::Super { signed: true, .. } => block.scales.fill_with(|| {
            let size = rng.u8(1..=128);
            if size == 128 || rng.bool() { size.wrapping_neg() } else { size }
        }),
        Scale::Super { .. } => block.scales[..8].fill_with(|| rng.u8(1..64)),
        Scale::E4M3 => unreachable!(),
    }
    match parts.minimum {
        Minimum::None => {}
        Minimum::F16 => block.minimum = half(rng) | if rng.bool() { 0x8000 } else { 0 },
        _ => {
            block.minimum = half(rng);
            block.minima[..8].fill_with(|| rng.u8(..64));
        }
    }
    block
}

#[test]
fn readers_take_apart_what_is_written() {
    let mut rng = Rng::with_seed(1);
    for format in FITTED {
        let file = format.descriptor().file.unwrap();
        for _ in 0..20 {
            let block = random_block(format, &mut rng);
            let mut bytes = Vec::new();
            bytes::write(format, &block, &mut bytes);
            assert_eq!(bytes.len(), file.bytes, "{}", format.name());
            let mut read =
                FileBlock { codes: [0; 256], scale: 0, minimum: 0, scales: [0; 16], minima: [0; 16] };
            (file.read)(&bytes, &mut read);
            assert_eq!(read, block, "{}", format.name());
        }
    }
}

#[test]
fn weights_on_a_grid_come_back_as_they_are() {
    let mut rng = Rng::with_seed(2);
    for format in FITTED {
        for _ in 0..30 {
            let block = random_block(format, &mut rng);
            let mut bytes = Vec::new();
            bytes::write(format, &block, &mut bytes);
            let row = back(format, &bytes);
            let (again, error) = fitted(format, &row, &vec![1.0; row.len()]);
            assert_eq!(back(format, &again), row, "{}: {block:?}", format.name());
            assert_eq!(error, 0.0);
        }
    }
}

/// `||W - Q|| / ||W||` of normal weights. That of a uniform quantiser of 4 bits for normal weights, with the
/// best scale for each block, is about 0.08.
#[test]
fn errors_of_normal_weights_are_small() {
    let mut rng = Rng::with_seed(3);
    let row = normal(&mut rng, 1 << 14, 0.02);
    let squares: f64 = row.iter().map(|x| f64::from(x * x)).sum();
    let most = [0.0815, 0.0700, 0.0405, 0.0340, 0.0050, 0.0705, 0.0345, 0.0168, 0.0745, 0.1130];
    for (format, most) in FITTED.into_iter().zip(most) {
        let (_, error) = fitted(format, &row, &vec![1.0; row.len()]);
        let relative = (error / squares).sqrt();
        assert!(relative < most && relative > 0.9 * most, "{}: {relative:.4}", format.name());
    }
}

#[test]
fn errors_move_to_where_they_count_less() {
    let mut rng = Rng::with_seed(4);
    let row = normal(&mut rng, 2048, 0.02);
    let importance: Vec<f32> = (0..2048).map(|_| (4.0 * rng.f32() - 2.0).exp()).collect();
    for format in FITTED {
        let (bytes, weighted) = fitted(format, &row, &importance);
        let (plain, _) = fitted(format, &row, &vec![1.0; row.len()]);
        let of = |bytes: &[u8]| -> f64 {
            let pairs = row.iter().zip(back(format, bytes)).zip(&importance);
            pairs.map(|((x, back), count)| f64::from(*count) * f64::from(x - back).powi(2)).sum()
        };
        assert!((of(&bytes) / weighted - 1.0).abs() < 1e-4, "{}", format.name());
        assert!(weighted < 0.99 * of(&plain), "{}: {weighted} {}", format.name(), of(&plain));
    }
}

#[test]
fn weights_at_the_edges_make_finite_blocks() {
    let ones = vec![1.0; 256];
    let rows = [
        vec![0.0; 256],
        vec![1e-30; 256],
        vec![-3.0; 256],
        vec![65504.0; 256],
        (0..256).map(|i| if i % 2 == 0 { 65504.0 } else { -65504.0 }).collect(),
        (0..256).map(|i| if i == 77 { -1.0 } else { 0.0 }).collect(),
        (0..256).map(|i| 10f32.powi(i % 40 - 36)).collect(),
    ];
    for format in FITTED {
        for row in &rows {
            for importance in [&ones, &vec![0.0; 256], &vec![f32::MAX; 256], &vec![1e-38; 256]] {
                let (bytes, _) = fitted(format, row, importance);
                let far = row.iter().fold(0.0f32, |far, x| far.max(x.abs()));
                for (x, back) in row.iter().zip(back(format, &bytes)) {
                    assert!((x - back).abs() <= 0.35 * far + 1e-7, "{}: {x} became {back}", format.name());
                }
            }
        }
        for value in [f32::NAN, f32::INFINITY, -70000.0] {
            let mut row = vec![0.0; 256];
            row[9] = value;
            let error = BlockFitter::new(format).row(&row, &ones, &mut Vec::new()).unwrap_err();
            assert_eq!((error.index, error.value.to_bits()), (9, value.to_bits()));
        }
    }
}
