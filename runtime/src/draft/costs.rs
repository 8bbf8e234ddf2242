//! The times of steps, by the number of their tokens.

/// Widths that are told apart: each measurement counts for the nearest.
const WIDTHS: [u32; 20] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// The weight of the latest measurement.
const LATEST: f64 = 0.25;
/// Steps after which a width that was not seen again is not known any more: the memory's speed, the depth of
/// the texts and the neighbours have changed.
const FORGOTTEN: u64 = 256;
/// The weight that a measurement keeps with every step after it. A width that looked slow is thus tried
/// again: it may have met with a page fault or a busy neighbour.
const AGEING: f64 = 0.995;
/// How the time of a step grows beyond the widest that was measured, as a power of its tokens. Steps of a
/// mixture of experts grow by less, so that a wider step is tried where a draft is likely to be right.
const GROWTH: f64 = 0.7;

/// Seconds that steps take, by their tokens, as they are measured.
#[derive(Clone, Debug, Default)]
pub struct StepCosts {
    known: [WidthCost; WIDTHS.len()],
    /// Steps so far.
    steps: u64,
}

/// The measured cost of steps of about one width.
#[derive(Clone, Copy, Debug, Default)]
struct WidthCost {
    tokens: f64,
    seconds: f64,
    /// The step in which it was last measured; 0 if in none.
    seen: u64,
}

impl StepCosts {
    /// Notes that a step of `tokens` tokens took `seconds`.
    pub fn note(&mut self, tokens: u32, seconds: f64) {
        let distance = |width: &u32| (f64::from(*width) / f64::from(tokens.max(1))).ln().abs();
        let nearest =
            (0..WIDTHS.len()).min_by(|a, b| distance(&WIDTHS[*a]).total_cmp(&distance(&WIDTHS[*b])));
        self.steps += 1;
        let is_fresh = |known: &WidthCost| known.seen > 0 && self.steps - known.seen < FORGOTTEN;
        let Some(known) = nearest.map(|at| &mut self.known[at]) else { return };
        let latest = if is_fresh(known) { LATEST } else { 1.0 };
        known.tokens += (f64::from(tokens) - known.tokens) * latest;
        known.seconds += (seconds - known.seconds) * latest;
        known.seen = self.steps;
    }

    /// Seconds that a step of `tokens` tokens takes, as far as it can be told; `None` before any was
    /// measured.
    pub fn seconds(&self, tokens: u32) -> Option<f64> {
        let tokens = f64::from(tokens.max(1));
        let fresh = self.known.iter().filter_map(|known| {
            let age = self.steps.checked_sub(known.seen).filter(|age| known.seen > 0 && *age < FORGOTTEN)?;
            Some(WidthCost { seconds: known.seconds * AGEING.powi(age as i32), ..*known })
        });
        let below = fresh.clone().rfind(|known| known.tokens <= tokens);
        let above = fresh.clone().find(|known| known.tokens >= tokens);
        Some(match (below, above) {
            (Some(below), Some(above)) if above.tokens > below.tokens => {
                let part = (tokens - below.tokens) / (above.tokens - below.tokens);
                below.seconds + (above.seconds - below.seconds) * part
            }
            (Some(near), _) | (None, Some(near)) => near.seconds * (tokens / near.tokens).powf(GROWTH),
            (None, None) => return None,
        })
    }
}
