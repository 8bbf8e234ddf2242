//! When an answer is good.

/// What an answer must keep to be good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Seconds to the first token.
    pub first: f64,
    /// Seconds between tokens, in the mean of an answer.
    pub pace: f64,
}

impl Limits {
    /// Limits in seconds, as options have them.
    pub fn new(first: f32, pace: f32) -> Limits {
        // What was typed, and not the nearest number of 32 bits.
        let typed = |seconds: f32| (f64::from(seconds) * 1e6).round() / 1e6;
        Limits { first: typed(first), pace: typed(pace) }
    }
}
