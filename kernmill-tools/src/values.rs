//! Values of options as users write them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A number of bytes, with K, M, G or T for powers of 1000.
///
/// # Errors
/// When the text is no such number.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        Some((at, 'T' | 't')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number * factor) as u64),
        _ => Err("expected a number of bytes, such as 800M or 15G".to_owned()),
    }
}

/// A finite number from `least` to `most`, which `range` says.
pub fn number(
    least: f32,
    most: f32,
    range: &'static str,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f32>() {
        Ok(number) if number.is_finite() && (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a number, {range}")),
    }
}

/// A seed as users write it.
#[derive(Clone, Copy, Debug)]
pub enum Seed {
    /// This one.
    Fixed(u64),
    /// Another one every time.
    Any,
}

impl Seed {
    /// The seed, drawn if it is any: short enough to be typed again.
    pub fn value(self) -> u64 {
        match self {
            Seed::Fixed(seed) => seed,
            Seed::Any => RandomState::new().build_hasher().finish() & u64::from(u32::MAX),
        }
    }
}

/// Reads a seed; -1 is any.
///
/// # Errors
/// When the text is no seed.
pub fn seed(text: &str) -> Result<Seed, String> {
    match text.parse() {
        Ok(seed) => Ok(Seed::Fixed(seed)),
        Err(_) if text == "-1" => Ok(Seed::Any),
        Err(_) => Err(format!("expected a whole number from 0 to {}, or -1 for any", u64::MAX)),
    }
}

/// Reads how many of the likeliest tokens are chosen among; 0 is all.
///
/// # Errors
/// When the text is no such number.
pub fn top_k(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number from 1, or 0 for all tokens".to_owned())
}

/// Reads what is added to the logit of a token, `ID=BIAS`.
///
/// # Errors
/// When the text is no such pair.
pub fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = text.split_once('=').and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "expected ID=BIAS, such as 42=-1.5".to_owned())
}
