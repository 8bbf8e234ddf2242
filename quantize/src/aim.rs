//! How large, or how good, a file is to be.

use crate::allocate::{SizedCost, allocate, allocate_within};
use kernmill::{Error, Result};

/// The aim of types that are chosen one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SizeAim {
    /// Bits for each weight of the whole file at most.
    Bits(f64),
    /// Bytes of the file at most.
    Bytes(u64),
    /// Divergence from the model as it is at most, in nats a token.
    Divergence(f64),
}

/// A number of bits.
pub(crate) fn bits(text: &str) -> std::result::Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|bits| (1.0..=32.0).contains(bits)).ok_or("expected a number from 1 to 32".to_owned())
}

/// A number of bytes, with M or G for powers of 1000.
pub(crate) fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let number: Option<f64> = digits.parse().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.map(|number| (number * factor) as u64).ok_or("expected a number of bytes, such as 5.2G".to_owned())
}

/// A divergence.
pub(crate) fn nats(text: &str) -> std::result::Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|nats| *nats > 0.0 && nats.is_finite()).ok_or("expected a number above 0".to_owned())
}

impl SizeAim {
    /// The place of the type of each tensor. `weights` are those of the file, `beside` its bytes that are no
    /// tensors'. Costs are divergences where these are aimed at.
    ///
    /// # Errors
    /// If no types reach the aim.
    pub(crate) fn choose(self, costs: &[Vec<SizedCost>], weights: u64, beside: u64) -> Result<Vec<usize>> {
        match self {
            SizeAim::Bits(bits) => allocate(costs, (bits * weights as f64 / 8.0) as u64).map_err(|least| {
                let least = 8.0 * least as f64 / weights as f64;
                // Rounded up: with what is said, it goes.
                let least = (least * 1000.0).ceil() / 1000.0;
                let what = format!("--bits {bits}: the smallest types make {least:.3} bits a weight");
                Error::bad_input(what)
            }),
            SizeAim::Bytes(bytes) => allocate(costs, bytes.saturating_sub(beside)).map_err(|least| {
                let least = least + beside;
                Error::bad_input(format!("--bytes {bytes}: the smallest types make a file of {least} bytes"))
            }),
            SizeAim::Divergence(nats) => allocate_within(costs, nats).map_err(|least| {
                let what = format!("--max-kl {nats}: the largest types make about {least:.2e} nats a token");
                Error::bad_input(what)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_read_and_missed_ones_say_what_is_possible() {
        assert_eq!(bytes("5.2G"), Ok(5_200_000_000));
        assert_eq!(bytes("80M"), Ok(80_000_000));
        assert_eq!(bytes("1234"), Ok(1234));
        assert!(["", "G", "-1", "nan", "1T"].into_iter().all(|text| bytes(text).is_err()));
        assert!(nats("0").is_err() && nats("0.01") == Ok(0.01));
        let costs = vec![vec![SizedCost { bytes: 4, cost: 0.5 }, SizedCost { bytes: 8, cost: 0.125 }]; 2];
        let choose = |aim: SizeAim| aim.choose(&costs, 16, 100).map_err(|error| error.to_string());
        assert_eq!(choose(SizeAim::Bits(6.0)), Ok(vec![1, 0]));
        assert_eq!(choose(SizeAim::Bytes(112)), Ok(vec![1, 0]));
        assert_eq!(choose(SizeAim::Divergence(0.7)), Ok(vec![1, 0]));
        assert_eq!(choose(SizeAim::Divergence(0.25)), Ok(vec![1, 1]));
        assert_eq!(choose(SizeAim::Divergence(2.0)), Ok(vec![0, 0]));
        let expected = [
            (SizeAim::Bits(3.9), "--bits 3.9: the smallest types make 4.000 bits a weight"),
            (SizeAim::Bytes(107), "--bytes 107: the smallest types make a file of 108 bytes"),
            (SizeAim::Divergence(0.2), "--max-kl 0.2: the largest types make about 2.50e-1 nats a token"),
        ];
        for (aim, message) in expected {
            assert_eq!(choose(aim), Err(message.to_owned()));
        }
    }
}
