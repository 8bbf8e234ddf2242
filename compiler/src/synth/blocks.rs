//! Random blocks as GGUF files have them: any codes, and scales of the size that trained models have.

use half::f16;
use kernmill_plan::format::{WeightFormat, half_e4m3, read_stored};

/// Blocks from whose elements a format's scatter is measured.
const MEASURED: usize = 256;
/// The largest scale in E4M3 that has a greater one.
const MAX_E4M3: u8 = 125;

/// Magnitude codes that the eight upper sixteenths of a normal distribution of standard deviation 2 round to.
const FP4_SIXTEENTHS: [u8; 8] = [0, 1, 2, 2, 3, 4, 5, 6];
/// Standard deviation of elements with these codes: sqrt((0 + .25 + 1 + 1 + 2.25 + 4 + 9 + 16) / 8).
const FP4_STD: f32 = 2.046_338;
/// A random byte to two E2M1 codes.
pub(super) const FP4_PAIRS: [u8; 256] = fp4_pairs();

const fn fp4_pairs() -> [u8; 256] {
    let (mut pairs, mut byte) = ([0; 256], 0);
    while byte < pairs.len() {
        pairs[byte] = fp4_code(byte % 16) | fp4_code(byte / 16) << 4;
        byte += 1;
    }
    pairs
}

const fn fp4_code(sixteenth: usize) -> u8 {
    match FP4_SIXTEENTHS[sixteenth % 8] {
        0 => 0,
        magnitude if sixteenth < 8 => magnitude,
        magnitude => magnitude | 8,
    }
}

/// Random blocks of a format, whose elements have a given standard deviation.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomBlocks {
    scales: BlockScales,
    /// Bytes of a block.
    bytes: usize,
}

/// The scales of random blocks.
#[derive(Clone, Copy, Debug)]
enum BlockScales {
    /// An f16, about `unit`, at byte `at`. Elements are around zero: by the scale's sign, or by a minimum
    /// behind it, which is `middle` times as large.
    F16 { format: WeightFormat, at: usize, unit: f32, middle: f32 },
    /// Bytes in front of codes in E2M1: `low`, or in `threshold` of 256 blocks the one above.
    Bytes { count: usize, low: u8, threshold: u8 },
}

impl RandomBlocks {
    /// Blocks of `format` whose elements have standard deviation `std`.
    ///
    /// # Panics
    /// If no file has such blocks.
    pub(super) fn new(format: WeightFormat, std: f32) -> RandomBlocks {
        let file = format.descriptor().file.as_ref();
        let bytes = file.unwrap_or_else(|| panic!("no blocks of {}", format.name())).bytes;
        let scales = |scales| RandomBlocks { scales, bytes };
        // Where the scale is, and the code that is in the middle where a minimum follows it.
        let (at, middle) = match format {
            WeightFormat::Mxfp4 => {
                let (low, threshold) = fp4_scale(std);
                return scales(BlockScales::Bytes { count: 1, low, threshold });
            }
            WeightFormat::Nvfp4 => {
                let (low, threshold) = e4m3_scale(std);
                return scales(BlockScales::Bytes { count: 4, low, threshold });
            }
            WeightFormat::Q3K => (108, 0.0),
            WeightFormat::Q6K => (208, 0.0),
            WeightFormat::Tq1_0 => (52, 0.0),
            WeightFormat::Tq2_0 => (64, 0.0),
            WeightFormat::Q2K => (80, 1.5),
            WeightFormat::Q4_1 | WeightFormat::Q4K => (0, 7.5),
            WeightFormat::Q5_1 | WeightFormat::Q5K => (0, 15.5),
            _ => (0, 0.0),
        };
        let with = |unit| scales(BlockScales::F16 { format, at, unit, middle });
        with(std / with(1.0).scatter(format))
    }

    /// Bytes of a block.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes blocks of random bytes.
    pub(super) fn make(&self, blocks: &mut [u8]) {
        for block in blocks.chunks_exact_mut(self.bytes) {
            match self.scales {
                BlockScales::F16 { format, at, unit, middle } => with_f16(block, format, at, unit, middle),
                BlockScales::Bytes { count, low, threshold } => {
                    let (scales, codes) = block.split_at_mut(count);
                    scales.iter_mut().for_each(|byte| *byte = low + u8::from(*byte < threshold));
                    codes.iter_mut().for_each(|byte| *byte = FP4_PAIRS[usize::from(*byte)]);
                }
            }
        }
    }

    /// Root of the mean square of elements.
    fn scatter(&self, format: WeightFormat) -> f32 {
        let mut blocks = vec![0; MEASURED * self.bytes];
        fastrand::Rng::with_seed(0).fill(&mut blocks);
        self.make(&mut blocks);
        let mut elements = Vec::new();
        read_stored(format, &blocks, &mut elements);
        let sum: f64 = elements.iter().map(|x| f64::from(x * x)).sum();
        (sum / elements.len() as f64).sqrt() as f32
    }
}

/// Puts a scale and perhaps a minimum into a block of random bytes.
fn with_f16(block: &mut [u8], format: WeightFormat, at: usize, unit: f32, middle: f32) {
    let random = u16::from_le_bytes([block[at], block[at + 1]]);
    // Scales differ by a quarter either way, which also makes up for the rounding of small ones.
    let scale = unit * (0.75 + f32::from(random & 0x7fff) / 65536.0);
    // Codes reach further below zero than above it. Quantisers turn that to where the largest weight is.
    let turns = middle == 0.0 && format != WeightFormat::Int8 && random >> 15 != 0;
    let scale = f16::from_f32(if turns { -scale } else { scale });
    block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
    match format {
        WeightFormat::Int8 => block[2..].iter_mut().filter(|q| **q == 0x80).for_each(|q| *q = 0x81),
        // The greatest code of two bits is that of no element: it becomes that of 0.
        WeightFormat::Tq2_0 => {
            block[..64].iter_mut().for_each(|byte| *byte &= !((*byte & *byte >> 1 & 0x55) << 1))
        }
        WeightFormat::Int4Zero => block[2] = 7 + (block[2] & 1),
        // Each minimum has the number of its scale.
        WeightFormat::Q2K => block[..16].iter_mut().for_each(|byte| *byte = *byte & 15 | *byte << 4),
        WeightFormat::Q4K | WeightFormat::Q5K => {
            block.copy_within(4..8, 8);
            block[12..16].iter_mut().for_each(|byte| *byte = *byte & 15 | *byte << 4);
        }
        _ => {}
    }
    if middle != 0.0 {
        // Super-blocks take minima away, the others add them.
        let sign = if format.parts().is_super() { 1.0 } else { -1.0 };
        let minimum = f16::from_f32(sign * middle * scale.to_f32());
        block[at + 2..at + 4].copy_from_slice(&minimum.to_le_bytes());
    }
}

/// The smaller of two neighbouring scales, and how many of 256 blocks take the larger, so that elements have
/// standard deviation `std`.
pub(super) fn fp4_scale(std: f32) -> (u8, u8) {
    let scale = std / FP4_STD;
    let exponent = (libm::log2(f64::from(scale)).floor() as i32).clamp(-120, 120);
    let ratio = f64::from(scale) / libm::exp2(f64::from(exponent));
    // Mean square of the scales: (1 - p) + 4 p = ratio^2.
    let larger = ((ratio * ratio - 1.0) / 3.0).clamp(0.0, 1.0);
    ((exponent + 127) as u8, (larger * 255.0) as u8)
}

/// The smaller of two neighbouring scales in E4M3, and how many of 256 blocks take the larger, as
/// [`fp4_scale`] has them.
fn e4m3_scale(std: f32) -> (u8, u8) {
    let scale = std / FP4_STD;
    let value = |code: u8| 2.0 * half_e4m3(code);
    let low = (0..=MAX_E4M3).rev().find(|&code| value(code) <= scale).unwrap_or(0);
    let [a, b] = [value(low), value(low + 1)].map(|x| x * x);
    let larger = ((scale * scale - a) / (b - a)).clamp(0.0, 1.0);
    (low, (larger * 255.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_type_have_the_scatter_that_is_asked_for() {
        for format in WeightFormat::blocked().filter(|format| format.descriptor().file.is_some()) {
            for std in [0.3, 0.02, 0.002] {
                let random = RandomBlocks::new(format, std);
                let mut blocks = vec![0; 4096 * random.bytes()];
                fastrand::Rng::with_seed(7).fill(&mut blocks);
                random.make(&mut blocks);
                let mut elements = Vec::new();
                read_stored(format, &blocks, &mut elements);
                let count = elements.len() as f32;
                let [mean, square] = [elements.iter().sum::<f32>(), elements.iter().map(|x| x * x).sum()]
                    .map(|sum| sum / count);
                let name = format.name();
                assert!((square.sqrt() / std - 1.0).abs() < 0.04, "{name}: {} for {std}", square.sqrt());
                assert!(mean.abs() < 0.05 * std, "{name}: mean {mean} for {std}");
            }
        }
    }
}
