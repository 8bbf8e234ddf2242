//! `f16`: IEEE binary16, rounded to nearest even, overflow to infinity.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements};
use half::f16;

pub const FORMAT: KvDescriptor = KvDescriptor {
    name: "f16",
    bits: 16,
    scaled: false,
    rotated: false,
    head_multiple: 1,
    keys: KeyLayout::Elements,
    round: |head| KvElements::plain(head.iter().map(|x| f16::from_f32(*x).to_f32()).collect()),
    encode: |values, out| values.iter().for_each(|x| out.extend(f16::from_f32(*x).to_le_bytes())),
    decode: |bytes| bytes.chunks_exact(2).map(|e| f16::from_le_bytes([e[0], e[1]]).to_f32()).collect(),
};
