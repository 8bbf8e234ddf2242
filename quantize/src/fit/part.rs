//! Neighbouring weights that share a scale: the weighted error of a scale and a minimum, and the pair that
//! makes it least.
//!
//! Sums have eight lanes and a fixed order, and nothing is fused, so that every CPU makes the same blocks.

use kernmill_plan::numeric::ROUND_MAGIC;

/// Sums that are made side by side.
const LANES: usize = 8;
/// Times that a scale is solved for and the integers are chosen anew.
const ROUNDS: usize = 3;
/// Smaller scales have no inverse; what they could tell apart is far below every format's smallest scale.
const LEAST_SCALE: f32 = 1e-30;

/// The lowest and the highest integer.
pub(super) type IntegerRange = [f32; 2];

/// Neighbours that share a scale.
#[derive(Clone, Copy)]
pub(super) struct FitPart<'a> {
    /// The weights, a multiple of eight.
    pub(super) x: &'a [f32],
    /// How much the square of each one's error counts.
    pub(super) counts: &'a [f32],
}

/// A scale and a minimum, and the error that they leave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FittedLine {
    pub(super) scale: f32,
    pub(super) minimum: f32,
    pub(super) error: f32,
}

/// Weighted sums over a part, with the integers that a line gives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartSums {
    /// Squares of the errors.
    pub(super) error: f32,
    /// The weights of errors.
    pub(super) counts: f32,
    /// The integers, and their squares.
    pub(super) q: f32,
    pub(super) qq: f32,
    /// The weights, and their products with the integers.
    pub(super) x: f32,
    pub(super) xq: f32,
}

/// The factor that turns weights into integers.
fn inverse(scale: f32) -> f32 {
    if scale.abs() < LEAST_SCALE { 0.0 } else { 1.0 / scale }
}

/// The integer nearest to `x`, in the range.
#[inline(always)]
fn integer(x: f32, [low, high]: IntegerRange) -> f32 {
    let x = if x > low { x } else { low };
    let x = if x < high { x } else { high };
    (x + ROUND_MAGIC) - ROUND_MAGIC
}

fn total(lanes: [f32; LANES]) -> f32 {
    lanes.into_iter().sum()
}

impl<'a> FitPart<'a> {
    fn chunks(self) -> impl Iterator<Item = (&'a [f32; LANES], &'a [f32; LANES])> {
        self.x.as_chunks().0.iter().zip(self.counts.as_chunks().0)
    }

    /// The error alone.
    pub(super) fn error(self, scale: f32, minimum: f32, range: IntegerRange) -> f32 {
        let inverse = inverse(scale);
        let mut error = [0.0; LANES];
        for (x, counts) in self.chunks() {
            for lane in 0..LANES {
                let q = integer((x[lane] - minimum) * inverse, range);
                let difference = (x[lane] - minimum) - q * scale;
                error[lane] += counts[lane] * difference * difference;
            }
        }
        total(error)
    }

    /// All sums.
    pub(super) fn sums(self, scale: f32, minimum: f32, range: IntegerRange) -> PartSums {
        let inverse = inverse(scale);
        let [mut error, mut all, mut q_sum, mut qq, mut x_sum, mut xq] = [[0.0; LANES]; 6];
        for (x, counts) in self.chunks() {
            for lane in 0..LANES {
                let (x, counts) = (x[lane], counts[lane]);
                let q = integer((x - minimum) * inverse, range);
                let difference = (x - minimum) - q * scale;
                error[lane] += counts * difference * difference;
                all[lane] += counts;
                q_sum[lane] += counts * q;
                qq[lane] += counts * q * q;
                x_sum[lane] += counts * x;
                xq[lane] += counts * q * x;
            }
        }
        let [error, counts, q, qq, x, xq] = [error, all, q_sum, qq, x_sum, xq].map(total);
        PartSums { error, counts, q, qq, x, xq }
    }

    /// The integers.
    pub(super) fn integers(self, scale: f32, minimum: f32, range: IntegerRange) -> impl Iterator<Item = i32> {
        let inverse = inverse(scale);
        self.x.iter().map(move |x| integer((x - minimum) * inverse, range) as i32)
    }

    /// Solves for scale and, if there is one, minimum in turn with the integers, as long as the error falls.
    fn settled(self, mut scale: f32, mut minimum: f32, range: IntegerRange, solve: SolveLine) -> FittedLine {
        let mut best = FittedLine { scale: 0.0, minimum: 0.0, error: f32::INFINITY };
        for _ in 0..ROUNDS {
            let sums = self.sums(scale, minimum, range);
            if sums.error < best.error {
                best = FittedLine { scale, minimum, error: sums.error };
            } else {
                break;
            }
            let Some(next) = solve(&sums) else { break };
            if next == (scale, minimum) {
                break;
            }
            (scale, minimum) = next;
        }
        best
    }

    /// The best line without a minimum, of those that begin with the farthest weight at one end of the range.
    pub(super) fn linear(self, range: IntegerRange) -> FittedLine {
        let farthest = self.x.iter().fold(0.0f32, |far, &x| if x.abs() > far.abs() { x } else { far });
        let mut best = FittedLine { error: self.error(0.0, 0.0, range), ..FittedLine::default() };
        if farthest == 0.0 {
            return best;
        }
        for end in range {
            for part in LINEAR_STARTS {
                let line = self.settled(farthest / (end * part), 0.0, range, PartSums::linear);
                if line.error < best.error {
                    best = line;
                }
            }
        }
        best
    }

    /// The best line with a minimum, which may not be above 0 where `below` says so.
    pub(super) fn affine(self, range: IntegerRange, below: bool) -> FittedLine {
        let limits = |(low, high): (f32, f32), &x: &f32| {
            (if x < low { x } else { low }, if x > high { x } else { high })
        };
        let (low, high) = self.x.iter().fold((f32::INFINITY, f32::NEG_INFINITY), limits);
        let low = if below && low > 0.0 { 0.0 } else { low };
        let mut best = FittedLine { scale: 0.0, minimum: low, error: self.error(0.0, low, range) };
        if high <= low {
            return best;
        }
        let solve = if below { PartSums::affine_below } else { PartSums::affine };
        for part in AFFINE_STARTS {
            let line = self.settled((high - low) / (range[1] * part), low, range, solve);
            if line.error < best.error {
                best = line;
            }
        }
        best
    }
}

/// Where searches begin: this part of the range is used.
const LINEAR_STARTS: [f32; 12] = [1.0, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82, 0.79, 0.75, 1.04, 1.1, 1.2];
const AFFINE_STARTS: [f32; 16] =
    [1.0, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82, 0.78, 0.74, 0.7, 0.65, 0.6, 1.03, 1.07, 1.12, 1.2];

/// The line that is best for the integers of some sums.
type SolveLine = fn(&PartSums) -> Option<(f32, f32)>;

impl PartSums {
    /// Without a minimum.
    pub(super) fn linear(&self) -> Option<(f32, f32)> {
        (self.qq > 0.0).then(|| (self.xq / self.qq, 0.0))
    }

    /// With a minimum.
    fn affine(&self) -> Option<(f32, f32)> {
        let [counts, q, qq, x, xq] = [self.counts, self.q, self.qq, self.x, self.xq].map(f64::from);
        let determinant = counts * qq - q * q;
        // All integers are the same, as far as rounding tells.
        if determinant <= 1e-6 * counts * qq {
            return None;
        }
        let scale = (counts * xq - x * q) / determinant;
        let minimum = (x * qq - q * xq) / determinant;
        (scale > 0.0).then_some((scale as f32, minimum as f32))
    }

    /// With a minimum that is not above 0.
    fn affine_below(&self) -> Option<(f32, f32)> {
        match self.affine() {
            Some((_, minimum)) if minimum > 0.0 => self.linear().filter(|(scale, _)| *scale > 0.0),
            line => line,
        }
    }
}
