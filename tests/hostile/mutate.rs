//! Deterministic mutations: the same seed, the same inputs.

use fastrand::Rng;

/// Inputs are cut to this length.
const MAX_LEN: usize = 16 << 10;

/// Numbers at edges of types and of limits.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "16",
    "31",
    "33",
    "64",
    "100",
    "1024",
    "4097",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "0.5",
    "nan",
];

/// Words to which the formats give a meaning.
const SYNTAX: [&str; 24] = [
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "\"",
    "'",
    "\\",
    ",",
    ":",
    "=",
    "#",
    "%",
    "@",
    "-",
    "\n",
    "null",
    "true",
    "[]",
    "{}",
    "\u{e9}",
    "\u{1f600}",
    "\\u0000",
];

/// A mutation of one of `seeds`, which are not empty.
pub fn mutate(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut data = rng.choice(seeds).cloned().unwrap_or_default();
    for _ in 0..rng.usize(1..=4) {
        step(&mut data, seeds, rng);
    }
    data.truncate(MAX_LEN);
    data
}

fn step(data: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=data.len());
    let longest = 1 << rng.usize(..8);
    let end = (at + 1 + rng.usize(..longest)).min(data.len()).max(at);
    match rng.u8(..10) {
        0 => {
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << rng.u8(..8);
            }
        }
        1 => {
            if let Some(byte) = data.get_mut(at) {
                *byte = rng.u8(..);
            }
        }
        2 => drop(data.drain(at..end)),
        3 => {
            let copy = data[at..end].to_vec();
            splice(data, at..at, &copy);
        }
        4 => data.truncate(at),
        5 => {
            let token = rng.choice(SYNTAX).unwrap_or_default();
            splice(data, at..at, token.as_bytes());
        }
        6 => {
            let other = rng.choice(seeds).map_or(&[][..], Vec::as_slice);
            let from = rng.usize(..=other.len());
            let part = &other[from..(from + rng.usize(..64)).min(other.len())];
            splice(data, at..at, part);
        }
        7 => swap_words(data, rng),
        _ => replace_number(data, at, rng),
    }
}

/// Puts an edge number in place of the first number behind `at`, or there if no number follows.
fn replace_number(data: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let number = rng.choice(NUMBERS).unwrap_or_default();
    let start = data[at..].iter().position(u8::is_ascii_digit).map_or(at, |n| at + n);
    let digits = data[start..].iter().take_while(|b| b.is_ascii_digit()).count();
    splice(data, start..start + digits, number.as_bytes());
}

/// Copies one word over another: names that are right elsewhere.
fn swap_words(data: &mut Vec<u8>, rng: &mut Rng) {
    let (Some(from), Some(to)) = (word(data, rng), word(data, rng)) else { return };
    let copy = data[from].to_vec();
    splice(data, to, &copy);
}

fn word(data: &[u8], rng: &mut Rng) -> Option<std::ops::Range<usize>> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let at = rng.usize(..=data.len());
    let start = at + data[at..].iter().position(is_word)?;
    Some(start..start + data[start..].iter().take_while(|b| is_word(b)).count())
}

fn splice(data: &mut Vec<u8>, range: std::ops::Range<usize>, with: &[u8]) {
    data.splice(range, with.iter().copied());
}
