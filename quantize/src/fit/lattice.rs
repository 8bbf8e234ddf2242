//! Weights that are on a grid already, because they were quantised before: the grid, if a type has it.
//!
//! What is found is a guess that the caller holds to the weights, bit for bit.

use super::part::IntegerRange;
use super::single::block;
use super::superblocks::{SuperShape, SuperUnits};
use half::f16;
use kernmill_plan::format::{FileBlock, SUPERBLOCK};

/// How far a number may be from an integer that it stands for.
const NEAR: f32 = 1e-3;

/// Asks whether a block has exactly the weights.
pub(super) type IsExact<'a> = &'a dyn Fn(&FileBlock) -> bool;

/// The integer that a number is near to.
fn near(number: f32) -> Option<i32> {
    let integer = number.round_ties_even();
    ((number - integer).abs() < NEAR).then_some(integer as i32)
}

/// The largest step from `from` on that all weights are multiples of, when the farthest is at most `most`
/// steps away; and how many.
fn step(x: &[f32], from: f32, most: i32) -> Option<(f32, i32)> {
    let far = x.iter().fold(0.0f32, |far, x| if (x - from).abs() > far { (x - from).abs() } else { far });
    let steps = (1..=most).map(|count| (far / count as f32, count));
    let mut steps = steps.filter(|(step, _)| x.iter().all(|x| near((x - from) / step).is_some()));
    if far == 0.0 { Some((0.0, 0)) } else { steps.next() }
}

fn least(x: &[f32]) -> f32 {
    x.iter().fold(f32::INFINITY, |low, &x| if x < low { x } else { low })
}

/// A grid through 0, whose codes are integers and `bias`.
pub(super) fn linear(
    x: &[f32],
    [low, high]: IntegerRange,
    bias: i32,
    is_exact: IsExact<'_>,
) -> Option<FileBlock> {
    let most = -low as i32;
    let (step, count) = step(x, 0.0, most)?;
    let divisors = 1..=most.checked_div(count).unwrap_or(1);
    let scales = divisors.flat_map(|divisor| [step, -step].map(|step| step / divisor as f32));
    let mut blocks = scales.map(|scale| {
        let scale = f16::from_f32(scale);
        let integer = |x: &f32| if count == 0 { 0.0 } else { (x / scale.to_f32()).round().clamp(low, high) };
        block(scale.to_bits(), 0, x.iter().map(|x| (integer(x) as i32 + bias) as u8))
    });
    blocks.find(|block| is_exact(block))
}

/// A grid with a minimum.
pub(super) fn affine(x: &[f32], most: i32, is_exact: IsExact<'_>) -> Option<FileBlock> {
    let from = least(x);
    let (step, count) = step(x, from, most)?;
    let divisors = 1..=most.checked_div(count).unwrap_or(1);
    let mut blocks = divisors.flat_map(|divisor| {
        let scale = f16::from_f32(step / divisor as f32);
        (0..=most - count * divisor).map(move |offset| {
            let minimum = f16::from_f32(from - offset as f32 * scale.to_f32());
            let integer = |x: &f32| match scale.to_f32() {
                0.0 => 0,
                scale => ((x - minimum.to_f32()) / scale).round().clamp(0.0, most as f32) as u8,
            };
            block(scale.to_bits(), minimum.to_bits(), x.iter().map(integer))
        })
    });
    blocks.find(|block| is_exact(block))
}

/// A grid in each part of a block of 256.
pub(super) fn of_super(shape: SuperShape, x: &[f32; SUPERBLOCK], is_exact: IsExact<'_>) -> Option<FileBlock> {
    let grid = SuperGrid::of(shape, x)?;
    // The part with the most steps has the fewest common divisors of its integers.
    let surest = grid.parts.iter().max_by_key(|part| part.count)?;
    for integer in 1..=grid.divisors(*surest) * grid.most_scale() {
        let scale = f16::from_f32(surest.step / integer as f32);
        let minima = if shape.minima > 0 { grid.minimum_units(scale) } else { vec![f16::ZERO] };
        let found = minima.into_iter().find_map(|minimum| {
            let units = grid.units(x, scale, minimum)?;
            Some(shape.block(x, &[1.0; SUPERBLOCK], &units)).filter(|block| is_exact(block))
        });
        if found.is_some() || surest.count == 0 {
            return found;
        }
    }
    None
}

/// A part of a block of 256: its step, how many steps it has, and its least weight.
#[derive(Clone, Copy)]
struct GridPart {
    step: f32,
    count: i32,
    from: f32,
}

struct SuperGrid {
    shape: SuperShape,
    /// The most steps that a part can have.
    most: i32,
    parts: Vec<GridPart>,
}

impl SuperGrid {
    /// The grids of all parts, if they have some. A part of equal weights has no step, and its minimum may be
    /// anything: then nothing is found, unless they are 0.
    fn of(shape: SuperShape, x: &[f32; SUPERBLOCK]) -> Option<SuperGrid> {
        let has_minima = shape.minima > 0;
        let most = if has_minima { shape.range[1] } else { -shape.range[0] } as i32;
        let part = |x: &[f32]| {
            let from = if has_minima { least(x) } else { 0.0 };
            let (step, count) = step(x, from, most)?;
            (count > 0 || from == 0.0).then_some(GridPart { step, count, from })
        };
        let parts = x.chunks_exact(shape.width).map(part).collect::<Option<_>>()?;
        Some(SuperGrid { shape, most, parts })
    }

    /// Common divisors that a part's integers may have.
    fn divisors(&self, part: GridPart) -> i32 {
        self.most.checked_div(part.count).unwrap_or(1)
    }

    /// The largest integer of scales, whatever its sign.
    fn most_scale(&self) -> i32 {
        self.shape.scales[1].max(-self.shape.scales[0])
    }

    /// Pairs that a part may be made of with this unit of scales: the integer of its scale, and its
    /// minimum. The integers of its weights may have a common divisor, and need not begin at 0.
    fn options(&self, part: GridPart, scale: f16) -> impl Iterator<Item = (i32, f32)> {
        let of_step = near(part.step / scale.to_f32()).filter(|_| part.count > 0);
        let whole = of_step.filter(|integer| *integer > 0);
        let divisors = 1..=if part.count > 0 { self.divisors(part) } else { 0 };
        let most = self.most_scale();
        let scales = divisors.filter_map(move |divisor| {
            let of_step = whole.filter(|of_step| of_step % divisor == 0)?;
            Some((of_step / divisor, self.most - divisor * part.count))
        });
        let scales = scales.filter(move |(integer, _)| *integer <= most);
        let empty = (part.count == 0).then_some((0, 0));
        scales.chain(empty).flat_map(move |(integer, more)| {
            let step = integer as f32 * scale.to_f32();
            let more = if self.shape.minima > 0 { more } else { 0 };
            (0..=more).map(move |offset| (integer, offset as f32 * step - part.from))
        })
    }

    /// SuperUnits of minima to try: those that make a minimum of the part that has the fewest options.
    fn minimum_units(&self, scale: f16) -> Vec<f16> {
        let stepped = self.parts.iter().filter(|part| part.count > 0);
        let Some(fewest) = stepped.min_by_key(|part| self.options(**part, scale).count()) else {
            return vec![f16::ZERO];
        };
        let of = |minimum: f32| (1..=self.shape.minima).rev().map(move |integer| minimum / integer as f32);
        let units = self.options(*fewest, scale).flat_map(|(_, minimum)| of(minimum));
        [f16::ZERO].into_iter().chain(units.map(f16::from_f32)).collect()
    }

    /// The integers of all parts with these units.
    fn units(&self, x: &[f32; SUPERBLOCK], scale: f16, minimum: f16) -> Option<SuperUnits> {
        let mut units = SuperUnits { scale, minimum, scales: [0; 16], minima: [0; 16] };
        let unit = minimum.to_f32();
        for (at, part) in self.parts.iter().enumerate() {
            let integer = |minimum: f32| match unit {
                0.0 => (minimum.abs() <= NEAR * part.step).then_some(0),
                unit => near(minimum / unit).filter(|integer| (0..=self.shape.minima).contains(integer)),
            };
            let found = |(scale, minimum)| Some((scale, integer(minimum)?));
            (units.scales[at], units.minima[at]) = self.options(*part, scale).find_map(found)?;
        }
        if self.shape.minima == 0 {
            // Where a weight is 32 steps above 0, the scale is negative.
            for (at, x) in x.chunks_exact(self.shape.width).enumerate() {
                let step = units.line(at).0;
                let is_over = x.iter().any(|x| *x > (self.shape.range[1] + 0.5) * step);
                units.scales[at] *= if is_over { -1 } else { 1 };
            }
            if units.scales.iter().any(|integer| *integer > self.shape.scales[1]) {
                units.scale = -units.scale;
                units.scales = units.scales.map(|integer| -integer);
            }
        }
        units.scales.iter().all(|integer| *integer <= self.shape.scales[1]).then_some(units)
    }
}
