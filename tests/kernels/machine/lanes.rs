//! Operations on vectors element by element.

use super::VECTOR;
use iced_x86::Mnemonic;

pub type Vector = [u8; VECTOR];

/// Element by element.
pub fn map4(a: &Vector, f: impl Fn(u32) -> u32) -> Vector {
    zip4(a, a, |a, _| f(a))
}

pub fn zip4(a: &Vector, b: &Vector, f: impl Fn(u32, u32) -> u32) -> Vector {
    zip(a, b, |a: [u8; 4], b| f(u32::from_le_bytes(a), u32::from_le_bytes(b)).to_le_bytes())
}

pub fn zip2(a: &Vector, b: &Vector, f: impl Fn(u16, u16) -> u16) -> Vector {
    zip(a, b, |a: [u8; 2], b| f(u16::from_le_bytes(a), u16::from_le_bytes(b)).to_le_bytes())
}

pub fn zip1(a: &Vector, b: &Vector, f: impl Fn(u8, u8) -> u8) -> Vector {
    zip(a, b, |[a], [b]: [u8; 1]| [f(a, b)])
}

pub fn zip<const N: usize>(a: &Vector, b: &Vector, f: impl Fn([u8; N], [u8; N]) -> [u8; N]) -> Vector {
    let mut out = [0; VECTOR];
    for ((out, a), b) in out.chunks_exact_mut(N).zip(a.chunks_exact(N)).zip(b.chunks_exact(N)) {
        out.copy_from_slice(&f(a.try_into().expect("N bytes"), b.try_into().expect("N bytes")));
    }
    out
}

pub fn zip3(a: &Vector, b: &Vector, c: &Vector, f: impl Fn(u32, u32, u32) -> u32) -> Vector {
    let mut out = [0; VECTOR];
    for (lane, out) in out.chunks_exact_mut(4).enumerate() {
        out.copy_from_slice(&f(element(a, lane), element(b, lane), element(c, lane)).to_le_bytes());
    }
    out
}

pub fn element(a: &Vector, lane: usize) -> u32 {
    u32::from_le_bytes(a[4 * lane..][..4].try_into().expect("4 bytes"))
}

/// Sum of four products of an unsigned and a signed byte.
pub fn dot_bytes(unsigned: u32, signed: u32) -> i32 {
    unsigned
        .to_le_bytes()
        .iter()
        .zip(signed.to_le_bytes())
        .map(|(u, s)| i32::from(*u) * i32::from(s as i8))
        .sum()
}

pub fn dot_words(a: u32, b: u32) -> i32 {
    let words = |x: u32| [x as i16, (x >> 16) as i16].map(i32::from);
    words(a).iter().zip(words(b)).map(|(a, b)| a.wrapping_mul(b)).fold(0, i32::wrapping_add)
}

/// An operation on two vectors, and the size of its elements.
pub fn two_sources(mnemonic: Mnemonic, a: &Vector, b: &Vector) -> (Vector, usize) {
    match mnemonic {
        Mnemonic::Vpxord | Mnemonic::Vpxor => (zip4(a, b, |a, b| a ^ b), 4),
        Mnemonic::Vpandd | Mnemonic::Vpand => (zip4(a, b, |a, b| a & b), 4),
        Mnemonic::Vpmulld => (zip4(a, b, u32::wrapping_mul), 4),
        Mnemonic::Vpsignb => {
            let sign =
                |a: u8, b: u8| (a.cast_signed().wrapping_mul(b.cast_signed().signum())).cast_unsigned();
            (zip1(a, b, sign), 1)
        }
        Mnemonic::Vpord | Mnemonic::Vpor => (zip4(a, b, |a, b| a | b), 4),
        Mnemonic::Vpaddd => (zip4(a, b, u32::wrapping_add), 4),
        Mnemonic::Vpaddw => (zip2(a, b, u16::wrapping_add), 2),
        Mnemonic::Vpsubd => (zip4(a, b, u32::wrapping_sub), 4),
        Mnemonic::Vpsubb => (zip1(a, b, u8::wrapping_sub), 1),
        Mnemonic::Vpsubw => (zip2(a, b, u16::wrapping_sub), 2),
        Mnemonic::Vpsubusw => (zip2(a, b, u16::saturating_sub), 2),
        Mnemonic::Vpmaxsd => (zip4(a, b, |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned()), 4),
        Mnemonic::Vpmaxud => (zip4(a, b, u32::max), 4),
        Mnemonic::Vpminuw => (zip2(a, b, u16::min), 2),
        Mnemonic::Vpshufb => {
            // Within each 16 bytes; a set top bit gives zero.
            let shuffled =
                std::array::from_fn(
                    |n| if b[n] >= 0x80 { 0 } else { a[n / 16 * 16 + usize::from(b[n] & 15)] },
                );
            (shuffled, 1)
        }
        // Bytes of the second by indices in the first, of which six bits count.
        Mnemonic::Vpermb => (std::array::from_fn(|n| b[usize::from(a[n] & 63)]), 1),
        // Words likewise, five bits.
        Mnemonic::Vpermw => {
            let pick = |n: usize| b[usize::from(a[n / 2 * 2] & 31) * 2 + n % 2];
            (std::array::from_fn(pick), 2)
        }
        Mnemonic::Vpsrlvd => (zip4(a, b, |a, b| a.checked_shr(b).unwrap_or(0)), 4),
        // Words of each 16 bytes, first of the one.
        Mnemonic::Vpackuswb => {
            let word = |n: usize| {
                let (from, at) = ([a, b][n / 8 % 2], n / 16 * 16 + n % 8 * 2);
                i16::from_le_bytes([from[at], from[at + 1]])
            };
            (std::array::from_fn(|n| word(n).clamp(0, 255) as u8), 1)
        }
        // Elements of the lower or the upper halves of each 16 bytes, in turn.
        Mnemonic::Vpunpcklbw | Mnemonic::Vpunpckhbw | Mnemonic::Vpunpcklwd | Mnemonic::Vpunpckhwd => {
            let words = matches!(mnemonic, Mnemonic::Vpunpcklwd | Mnemonic::Vpunpckhwd);
            let upper = matches!(mnemonic, Mnemonic::Vpunpckhbw | Mnemonic::Vpunpckhwd);
            let (size, half) = (1 + usize::from(words), 8 * usize::from(upper));
            let from = |n: usize| n / 16 * 16 + half + n % 16 / (2 * size) * size + n % size;
            (std::array::from_fn(|n| [a, b][n / size % 2][from(n)]), size)
        }
        Mnemonic::Vpmaddubsw => {
            let pair = |a: u16, b: u16| {
                let ([a0, a1], [b0, b1]) = (a.to_le_bytes(), b.to_le_bytes());
                let sum = i32::from(a0) * i32::from(b0 as i8) + i32::from(a1) * i32::from(b1 as i8);
                (sum.clamp(-0x8000, 0x7fff) as i16).cast_unsigned()
            };
            (zip2(a, b, pair), 2)
        }
        _ => {
            let pair = |a: u32, b: u32| {
                let word = |x: u32, n: u32| i32::from((x >> (16 * n)) as i16);
                word(a, 0)
                    .wrapping_mul(word(b, 0))
                    .wrapping_add(word(a, 1).wrapping_mul(word(b, 1)))
                    .cast_unsigned()
            };
            (zip4(a, b, pair), 4)
        }
    }
}
