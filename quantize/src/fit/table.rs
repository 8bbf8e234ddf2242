//! Codes that stand for numbers of a table.

use super::part::FitPart;

/// Times that a scale is solved for and the codes are chosen anew.
const ROUNDS: usize = 4;
/// The ends of the table that the farthest weight is tried at, by place from either end, and parts of them.
const ENDS: [usize; 3] = [0, 1, 2];
const STARTS: [f32; 4] = [1.0, 0.97, 0.94, 1.05];

/// A table in ascending order.
pub(super) struct NearestCodes {
    numbers: [f32; 16],
    codes: [u8; 16],
    /// The middle between each number and the next.
    middles: [f32; 15],
}

impl NearestCodes {
    pub(super) fn new(table: &[i8; 16]) -> NearestCodes {
        let mut order: [u8; 16] = std::array::from_fn(|code| code as u8);
        order.sort_by_key(|code| table[usize::from(*code)]);
        let numbers = order.map(|code| f32::from(table[usize::from(code)]));
        let middles = std::array::from_fn(|at| (numbers[at] + numbers[at + 1]) / 2.0);
        NearestCodes { numbers, codes: order, middles }
    }

    /// The place of the number nearest to `x`.
    fn nearest(&self, x: f32) -> usize {
        self.middles.iter().map(|middle| usize::from(x > *middle)).sum()
    }

    fn inverse(scale: f32) -> f32 {
        if scale == 0.0 { 0.0 } else { 1.0 / scale }
    }

    /// The weighted error of a part in this scale.
    pub(super) fn error(&self, part: FitPart<'_>, scale: f32) -> f32 {
        let inverse = NearestCodes::inverse(scale);
        let error = |(x, counts): (&f32, &f32)| {
            let difference = x - scale * self.numbers[self.nearest(x * inverse)];
            counts * difference * difference
        };
        part.x.iter().zip(part.counts).map(error).sum()
    }

    /// The code nearest to `x` in a scale, whose inverse is given too, and the number that it stands for.
    pub(super) fn nearest_to(&self, x: f32, scale: f32, inverse: f32) -> (u8, f32) {
        let at = self.nearest(x * inverse);
        (self.codes[at], scale * self.numbers[at])
    }

    /// The code of each weight in this scale.
    pub(super) fn codes(&self, x: &[f32], scale: f32) -> impl Iterator<Item = u8> {
        let inverse = NearestCodes::inverse(scale);
        x.iter().map(move |x| self.codes[self.nearest(x * inverse)])
    }

    /// The scale with the smallest error, of those that begin with the farthest weight near an end of the
    /// table.
    pub(super) fn best_scale(&self, part: FitPart<'_>) -> f32 {
        let farthest = part.x.iter().fold(0.0f32, |far, &x| if x.abs() > far.abs() { x } else { far });
        let mut best = (self.error(part, 0.0), 0.0);
        let ends = ENDS.into_iter().flat_map(|end| [self.numbers[end], self.numbers[15 - end]]);
        for start in ends.flat_map(|end| STARTS.map(|part| farthest / (end * part))) {
            let mut scale = start;
            for _ in 0..ROUNDS {
                let error = self.error(part, scale);
                if error >= best.0 {
                    break;
                }
                best = (error, scale);
                let inverse = NearestCodes::inverse(scale);
                let (mut xq, mut qq) = (0.0, 0.0);
                for (x, counts) in part.x.iter().zip(part.counts) {
                    let q = self.numbers[self.nearest(x * inverse)];
                    xq += counts * x * q;
                    qq += counts * q * q;
                }
                scale = xq / qq;
            }
        }
        best.1
    }
}
