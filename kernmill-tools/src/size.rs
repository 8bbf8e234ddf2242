//! Numbers of bytes as users write them.

/// A number of bytes, with K, M, G or T for powers of 1000.
///
/// # Errors
/// When the text is no such number.
pub fn size(text: &str) -> std::result::Result<u64, String> {
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
