//! Formats of cached keys and values by name.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements, Words};
use super::{BLOCK_TOKENS, f16, f32, fp8, int4, int8};
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

impl KvFormat {
    /// Every format.
    pub const ALL: [KvFormat; 5] =
        [KvFormat::F16, KvFormat::F32, KvFormat::Int8, KvFormat::Fp8, KvFormat::Int4];

    /// The description of the format.
    pub fn descriptor(self) -> &'static KvDescriptor {
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
    pub fn round(self, head: &[f32]) -> KvElements {
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
}
