//! Blocks of 256 weights whose scales and minima are integers times a unit: Q4_K, Q5_K, Q6_K.

use super::part::{FitPart, FittedLine, IntegerRange};
use half::f16;
use kernmill_plan::format::{FileBlock, SUPERBLOCK};

/// How the blocks of a type are put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuperShape {
    /// Weights that share a scale.
    pub(super) width: usize,
    /// Integers of weights.
    pub(super) range: IntegerRange,
    /// Integers of scales.
    pub(super) scales: [i32; 2],
    /// The largest integer of minima; 0 for a type without them.
    pub(super) minima: i32,
}

pub(super) const Q4_K: SuperShape = SuperShape { width: 32, range: [0.0, 15.0], scales: [0, 63], minima: 63 };
pub(super) const Q5_K: SuperShape = SuperShape { range: [0.0, 31.0], ..Q4_K };
pub(super) const Q6_K: SuperShape =
    SuperShape { width: 16, range: [-32.0, 31.0], scales: [-128, 127], minima: 0 };

/// Parts of a block at most.
const PARTS: usize = 16;
/// SuperUnits that the search begins with.
const STARTS: usize = 3;
/// Times that integers and units are chosen in turn.
const SWEEPS: usize = 4;

/// The numbers of a block but for its weights' integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SuperUnits {
    pub(super) scale: f16,
    pub(super) minimum: f16,
    pub(super) scales: [i32; PARTS],
    pub(super) minima: [i32; PARTS],
}

impl SuperShape {
    pub(super) fn parts<'a>(
        self,
        x: &'a [f32; SUPERBLOCK],
        counts: &'a [f32; SUPERBLOCK],
    ) -> impl Iterator<Item = FitPart<'a>> {
        let pairs = x.chunks_exact(self.width).zip(counts.chunks_exact(self.width));
        pairs.map(|(x, counts)| FitPart { x, counts })
    }

    /// Fits a block.
    pub(super) fn fit(self, x: &[f32; SUPERBLOCK], counts: &[f32; SUPERBLOCK]) -> FileBlock {
        let parts: Vec<FitPart<'_>> = self.parts(x, counts).collect();
        let lines: Vec<FittedLine> = parts.iter().map(|part| self.line(*part)).collect();
        let sums =
            parts.iter().zip(&lines).map(|(part, line)| part.sums(line.scale, line.minimum, self.range));
        let (of_scales, of_minima): (Vec<f32>, Vec<f32>) = sums.map(|sums| (sums.qq, sums.counts)).unzip();
        let scales: Vec<f32> = lines.iter().map(|line| line.scale).collect();
        let minima: Vec<f32> = lines.iter().map(|line| -line.minimum).collect();
        let units = best_units(&scales, &of_scales, self.scales[1]);
        let minimum_units = match self.minima {
            0 => [f16::ZERO; STARTS],
            most => best_units(&minima, &of_minima, most),
        };
        let mut best: Option<(f64, SuperUnits)> = None;
        for (scale, minimum) in units.into_iter().zip(minimum_units) {
            let found = self.polish(&parts, &lines, scale, minimum);
            if best.is_none_or(|(error, _)| found.0 < error) {
                best = Some(found);
            }
        }
        let (_, units) = best.expect("there are several starts");
        self.block(x, counts, &units)
    }

    fn line(self, part: FitPart<'_>) -> FittedLine {
        if self.minima == 0 { part.linear(self.range) } else { part.affine(self.range, true) }
    }

    /// Chooses integers of scales and minima near those of the lines, and units for these, in turn.
    fn polish(
        self,
        parts: &[FitPart<'_>],
        lines: &[FittedLine],
        scale: f16,
        minimum: f16,
    ) -> (f64, SuperUnits) {
        let mut units = SuperUnits { scale, minimum, scales: [0; PARTS], minima: [0; PARTS] };
        for (at, line) in lines.iter().enumerate() {
            units.scales[at] = nearest(line.scale, scale, self.scales);
            units.minima[at] = nearest(-line.minimum, minimum, [0, self.minima]);
        }
        let mut best = (f64::INFINITY, units);
        for _ in 0..SWEEPS {
            let mut error = 0.0;
            // Sums that the units are solved from: products of a weight's two factors.
            let [mut ss, mut sm, mut mm, mut xs, mut xm] = [0.0f64; 5];
            for (at, part) in parts.iter().enumerate() {
                self.choose(*part, &mut units, at);
                let (line_scale, line_minimum) = units.line(at);
                let sums = part.sums(line_scale, line_minimum, self.range);
                error += f64::from(sums.error);
                let (s, m) = (f64::from(units.scales[at]), -f64::from(units.minima[at]));
                ss += s * s * f64::from(sums.qq);
                sm += s * m * f64::from(sums.q);
                mm += m * m * f64::from(sums.counts);
                xs += s * f64::from(sums.xq);
                xm += m * f64::from(sums.x);
            }
            if error >= best.0 {
                break;
            }
            best = (error, units);
            let determinant = ss * mm - sm * sm;
            let (scale, minimum) = if determinant > 1e-9 * ss * mm {
                ((xs * mm - xm * sm) / determinant, (xm * ss - xs * sm) / determinant)
            } else if ss > 0.0 {
                ((xs - sm * f64::from(units.minimum.to_f32())) / ss, f64::from(units.minimum.to_f32()))
            } else {
                break;
            };
            let next = [scale, minimum].map(|unit| f16::from_f32(unit as f32));
            if next == [units.scale, units.minimum] || !next.iter().all(|unit| unit.is_finite()) {
                break;
            }
            [units.scale, units.minimum] = next;
        }
        best
    }

    /// Moves a part's integers to the best of their neighbours.
    fn choose(self, part: FitPart<'_>, units: &mut SuperUnits, at: usize) {
        let (scale, minimum) = (units.scales[at], units.minima[at]);
        let mut best = f32::INFINITY;
        let [low, high] = self.scales;
        for s in (scale - 1).max(low)..=(scale + 1).min(high) {
            for m in (minimum - 1).max(0)..=(minimum + 1).min(self.minima) {
                let candidate = SuperUnits::product(units.scale, s);
                let error = part.error(candidate, -SuperUnits::product(units.minimum, m), self.range);
                if error < best {
                    best = error;
                    (units.scales[at], units.minima[at]) = (s, m);
                }
            }
        }
    }

    /// The block of these units.
    pub(super) fn block(
        self,
        x: &[f32; SUPERBLOCK],
        counts: &[f32; SUPERBLOCK],
        units: &SuperUnits,
    ) -> FileBlock {
        let mut block = FileBlock {
            codes: [0; SUPERBLOCK],
            scale: units.scale.to_bits(),
            minimum: units.minimum.to_bits(),
            scales: units.scales.map(|scale| scale as u8),
            minima: units.minima.map(|minimum| minimum as u8),
        };
        let parts = self.parts(x, counts).zip(block.codes.chunks_exact_mut(self.width));
        for (at, (part, codes)) in parts.enumerate() {
            let (scale, minimum) = units.line(at);
            let integers = part.integers(scale, minimum, self.range);
            codes.iter_mut().zip(integers).for_each(|(code, q)| *code = (q - self.range[0] as i32) as u8);
        }
        block
    }
}

impl SuperUnits {
    fn product(unit: f16, integer: i32) -> f32 {
        unit.to_f32() * integer as f32
    }

    /// Scale and minimum of a part.
    pub(super) fn line(&self, at: usize) -> (f32, f32) {
        (
            SuperUnits::product(self.scale, self.scales[at]),
            -SuperUnits::product(self.minimum, self.minima[at]),
        )
    }
}

/// The integer that makes a number of a unit.
fn nearest(number: f32, unit: f16, [low, high]: [i32; 2]) -> i32 {
    let unit = unit.to_f32();
    if unit == 0.0 { 0 } else { (number / unit).round_ties_even().clamp(low as f32, high as f32) as i32 }
}

/// The units that numbers are best made of, best first: of those that give the largest one an integer from
/// the upper half of the range.
fn best_units(numbers: &[f32], counts: &[f32], most: i32) -> [f16; STARTS] {
    let largest =
        numbers.iter().fold(0.0f32, |far, number| if number.abs() > far { number.abs() } else { far });
    let mut best = [(f32::INFINITY, f16::ZERO); STARTS];
    if largest == 0.0 {
        return [f16::ZERO; STARTS];
    }
    for integer in (most / 2..=most).rev() {
        let unit = f16::from_f32(largest / integer as f32);
        let error = |(number, counts): (&f32, &f32)| {
            let back = nearest(*number, unit, [-most, most]) as f32 * unit.to_f32();
            counts * (number - back) * (number - back)
        };
        let error: f32 = numbers.iter().zip(counts).map(error).sum();
        let at = best.iter().position(|(other, _)| error < *other);
        if let Some(at) = at {
            best[at..].rotate_right(1);
            best[at] = (error, unit);
        }
    }
    best.map(|(_, unit)| unit)
}
