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
/// A step is a prompt's chunk if it has logits of at most one token in so many.
const CHUNK_TOKENS: u32 = 8;
/// The time of a row of logits before any was measured, as a part of what a token takes in a chunk.
const ROW: f64 = 0.25;

/// Seconds that steps with logits of all their tokens take, by their tokens, as they are measured.
///
/// Chunks of prompts count too, with the time of the logits that they lack, where no step with all logits of
/// about the same width is known. So a prompt tells what a wide draft costs before one was tried.
#[derive(Clone, Debug, Default)]
pub struct StepCosts {
    /// Steps with all logits.
    whole: [WidthCost; WIDTHS.len()],
    /// Prompts' chunks, which are not forgotten: no draft can find out about them anew.
    chunks: [WidthCost; WIDTHS.len()],
    /// Seconds of a row of logits, once a step and a chunk of the same width were seen.
    row: Option<f64>,
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

impl WidthCost {
    fn note(&mut self, tokens: f64, seconds: f64, step: u64) {
        let latest = if self.is_fresh(step) { LATEST } else { 1.0 };
        self.tokens += (tokens - self.tokens) * latest;
        self.seconds += (seconds - self.seconds) * latest;
        self.seen = step;
    }

    fn is_fresh(&self, step: u64) -> bool {
        self.seen > 0 && step - self.seen < FORGOTTEN
    }

    /// The cost as far as it still counts in a step.
    fn aged(&self, step: u64) -> Option<WidthCost> {
        let seconds = || self.seconds * AGEING.powi((step - self.seen) as i32);
        self.is_fresh(step).then(|| WidthCost { seconds: seconds(), ..*self })
    }

    /// Seconds of a wider step, as far as this one tells.
    fn grown(&self, tokens: f64) -> f64 {
        self.seconds * (tokens / self.tokens).powf(GROWTH)
    }
}

impl StepCosts {
    /// Notes that a step of `tokens` tokens, with the logits of `rows` of them, took `seconds`. Steps with
    /// the logits of some of their tokens, which are neither chunks nor texts, tell nothing.
    pub fn note(&mut self, tokens: u32, rows: u32, seconds: f64) {
        let is_chunk = rows.saturating_mul(CHUNK_TOKENS) <= tokens;
        if !is_chunk && rows < tokens {
            return;
        }
        let distance = |width: &u32| (f64::from(*width) / f64::from(tokens.max(1))).ln().abs();
        let nearest =
            (0..WIDTHS.len()).min_by(|a, b| distance(&WIDTHS[*a]).total_cmp(&distance(&WIDTHS[*b])));
        let Some(at) = nearest else { return };
        self.steps += 1;
        let known = if is_chunk { &mut self.chunks } else { &mut self.whole };
        known[at].note(f64::from(tokens), seconds, self.steps);
        let [whole, chunk] = [self.whole[at], self.chunks[at]];
        if whole.is_fresh(self.steps) && chunk.is_fresh(self.steps) {
            let row = whole.seconds / whole.tokens - chunk.seconds / chunk.tokens;
            self.row = Some(self.row.map_or(row, |before| before + (row - before) * LATEST).max(0.0));
        }
    }

    /// Tells the seconds that a step takes by its tokens, all with their logits, as far as it can be told;
    /// `None` before any was measured.
    pub fn curve(&self) -> impl Fn(u32) -> Option<f64> {
        let mut known: Vec<WidthCost> = Vec::with_capacity(WIDTHS.len());
        for (whole, chunk) in self.whole.iter().zip(&self.chunks) {
            let chunk = || Some(self.with_rows(chunk, known.first().filter(|_| chunk.seen > 0)?));
            known.extend(whole.aged(self.steps).or_else(chunk));
        }
        move |tokens| {
            let tokens = f64::from(tokens.max(1));
            let (below, above) = known.split_at(known.partition_point(|known| known.tokens <= tokens));
            Some(match (below.last(), above.first()) {
                // Arithmetic takes a line to the wider step. Reading experts takes a line in logarithms, as
                // few tokens have most of them. The truth is between the two.
                (Some(below), Some(above)) => {
                    let [wider, slower] = [above.tokens / below.tokens, above.seconds / below.seconds];
                    let line = 1.0 + (slower - 1.0) * (tokens / below.tokens - 1.0) / (wider - 1.0);
                    below.seconds * (line * slower.powf((tokens / below.tokens).ln() / wider.ln())).sqrt()
                }
                (Some(near), None) | (None, Some(near)) => near.grown(tokens),
                (None, None) => return None,
            })
        }
    }

    /// A chunk as a step with all logits. It is not believed to be slower than the narrowest step leads to
    /// expect: the first prompt may have waited for weights from the disk.
    fn with_rows(&self, chunk: &WidthCost, narrowest: &WidthCost) -> WidthCost {
        let row = self.row.unwrap_or(chunk.seconds / chunk.tokens * ROW);
        let seconds = (chunk.seconds + row * chunk.tokens).min(narrowest.grown(chunk.tokens));
        WidthCost { seconds, ..*chunk }
    }
}
