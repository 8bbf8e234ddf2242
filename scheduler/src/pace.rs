//! How many tokens an answer has had lately.

use std::collections::VecDeque;

/// Marks that a window is kept with.
const MARKS: f64 = 64.0;

/// The tokens of an answer within a window of time that moves on.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// When the first token came.
    since: Option<f64>,
    /// Times and tokens. Tokens that came close together have the time of the first of them, so that they
    /// count for no longer than they should.
    marks: VecDeque<(f64, u32)>,
}

impl Pace {
    /// Counts tokens that came at `now`.
    pub fn add(&mut self, now: f64, tokens: u32, window: f64) {
        if self.since.is_none() {
            self.since = Some(now);
            return;
        }
        while self.marks.front().is_some_and(|(time, _)| *time <= now - window) {
            self.marks.pop_front();
        }
        match self.marks.back_mut() {
            Some((time, count)) if now - *time < window / MARKS => *count = count.saturating_add(tokens),
            _ => self.marks.push_back((now, tokens)),
        }
    }

    /// Whether the answer has kept to a rate if it gets no token until `end`: over the window before that
    /// time, or since its first token if this is shorter.
    pub fn keeps(&self, rate: f64, end: f64, window: f64) -> bool {
        let Some(since) = self.since else { return true };
        let start = since.max(end - window);
        let tokens: u64 =
            self.marks.iter().filter(|(time, _)| *time > start).map(|(_, count)| u64::from(*count)).sum();
        tokens as f64 >= rate * (end - start)
    }

    /// Forgets everything: the next token is the first one.
    pub fn reset(&mut self) {
        *self = Pace::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_on() {
        let mut pace = Pace::default();
        assert!(pace.keeps(100.0, 5.0, 4.0), "there is no answer yet");
        for tenth in 0..=20 {
            pace.add(f64::from(tenth) / 10.0, 1, 4.0);
        }
        // 20 tokens after the first one, in 2 s.
        assert!(pace.keeps(9.99, 2.0, 4.0) && !pace.keeps(10.1, 2.0, 4.0));
        assert!(pace.keeps(4.99, 4.0, 4.0) && !pace.keeps(5.1, 4.0, 4.0));
        // At 5 s the window begins at 1 s: 10 tokens are left.
        assert!(pace.keeps(2.49, 5.0, 4.0) && !pace.keeps(2.6, 5.0, 4.0));
        pace.reset();
        assert!(pace.keeps(100.0, 5.0, 4.0));
    }

    #[test]
    fn fast_answers_take_no_more_memory() {
        let mut pace = Pace::default();
        for step in 0..100_000 {
            pace.add(f64::from(step) * 1e-3, 1, 4.0);
        }
        assert!(pace.marks.len() <= 66, "{}", pace.marks.len());
        assert!(pace.keeps(970.0, 99.999, 4.0) && !pace.keeps(1010.0, 99.999, 4.0));
    }
}
