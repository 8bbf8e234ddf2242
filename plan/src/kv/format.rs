//! What a format of cached keys and values is, as data.

use super::{BLOCK_TOKENS, KvPlane, f16, f32, fp8, int4, int8};
use serde::{Deserialize, Serialize};

/// Format of cached keys or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// int8 with a scale for every token and head.
    Int8,
    /// E4M3, floats of 8 bits.
    Fp8,
    /// int4 with a scale for every token and head.
    Int4,
}

/// A head's elements as the cache has them: each is `value * scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// Numbers that the format has, before the scale: integers, of formats with scales.
    pub values: Vec<f32>,
    /// The scale of the token's head; 1 of formats without scales.
    pub scale: f32,
}

impl Elements {
    /// Elements of a format without scales.
    pub fn plain(values: Vec<f32>) -> Elements {
        Elements { values, scale: 1.0 }
    }
}

/// How the keys of a block lie in memory.
#[derive(Clone, Copy, Debug)]
pub enum KeyLayout {
    /// `[head_dim][16 tokens]` elements, so that a vector lane is a token.
    Elements,
    /// `[head_dim / elements][16 tokens]` words: the operand of integer dot products.
    Words(Words),
}

/// Words of 4 bytes that hold a token's consecutive integers as unsigned ones.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Integers in a word, 4 or 8.
    pub elements: usize,
    /// What is added to every integer, so that none is negative.
    pub zero: i32,
    /// The word of so many integers.
    pub pack: fn(&[f32]) -> [u8; 4],
    /// The integers of a word.
    pub unpack: fn([u8; 4]) -> Vec<f32>,
}

/// All that there is to know about a format. Its file says what the numbers mean; docs/dev/numerics.md
/// defines its roundings to the bit.
pub struct Descriptor {
    /// Name on the command line and in texts of graphs.
    pub name: &'static str,
    /// Bits of an element, without its share of a scale.
    pub bits: usize,
    /// Whether every token and head has an f32 scale. Keys are then integers, and so are the scores of
    /// queries, which are rounded to int8.
    pub scaled: bool,
    /// Whether keys, and queries with them, go through a Hadamard transform before they are rounded.
    pub rotated: bool,
    /// What `head_dim` is a multiple of, besides what kernels ask for.
    pub head_multiple: usize,
    /// Layout of keys; values always lie `[16 tokens][head_dim]`.
    pub keys: KeyLayout,
    /// Rounds one head of f32.
    pub round: fn(&[f32]) -> Elements,
    /// Appends the bytes of rounded values of one head, beside each other.
    pub encode: fn(&[f32], &mut Vec<u8>),
    /// The rounded values of elements that lie beside each other.
    pub decode: fn(&[u8]) -> Vec<f32>,
}

impl KvFormat {
    /// Every format.
    pub const ALL: [KvFormat; 5] =
        [KvFormat::F16, KvFormat::F32, KvFormat::Int8, KvFormat::Fp8, KvFormat::Int4];

    /// What the format is.
    pub fn descriptor(self) -> &'static Descriptor {
        match self {
            KvFormat::F16 => &f16::FORMAT,
            KvFormat::F32 => &f32::FORMAT,
            KvFormat::Int8 => &int8::FORMAT,
            KvFormat::Fp8 => &fp8::FORMAT,
            KvFormat::Int4 => &int4::FORMAT,
        }
    }

    /// The name on the command line and in texts of graphs.
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<KvFormat> {
        KvFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether every token and head has a scale, and scores are sums of integers.
    pub fn is_scaled(self) -> bool {
        self.descriptor().scaled
    }

    /// The words that keys lie in, of formats that have integer scores.
    pub fn words(self) -> Option<Words> {
        match self.descriptor().keys {
            KeyLayout::Words(words) => Some(words),
            KeyLayout::Elements => None,
        }
    }

    /// Rounds one head of f32 to the format.
    pub fn round(self, head: &[f32]) -> Elements {
        (self.descriptor().round)(head)
    }

    /// Bytes of `n` elements that lie beside each other, without scales.
    pub fn elements_bytes(self, n: usize) -> usize {
        n * self.descriptor().bits / 8
    }

    /// Bytes of the scales of a head in a block, f32 `[16]`, which come before its elements; 0 if it has
    /// none.
    pub fn scales_bytes(self) -> usize {
        if self.is_scaled() { BLOCK_TOKENS * 4 } else { 0 }
    }

    /// Bytes of one head's keys, or values, in a block.
    pub fn plane_bytes(self, head_dim: usize) -> usize {
        self.scales_bytes() + self.elements_bytes(BLOCK_TOKENS * head_dim)
    }

    /// Whether the elements of a plane lie in words.
    pub fn has_words(self, plane: KvPlane) -> bool {
        plane == KvPlane::K && self.words().is_some()
    }
}
