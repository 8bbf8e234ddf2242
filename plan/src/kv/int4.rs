//! `int4`: integers from -8 to 7, and an f32 scale for every token and head, which is fitted.
//!
//! Keys go through a Hadamard transform before they are rounded, and so do queries, which changes no score
//! and spreads a key's few large elements over all. Values go through it too, and attention takes it back in
//! their weighted sum.
//!
//! Keys lie in words of eight, 8 added to each: four elements in the low halves of the bytes, the next four
//! in the high ones. Of 32 neighbours of a value, the low halves of 16 bytes have the first 16.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements, Words};
use super::rounding::to_int4;

/// Elements of a value whose bytes lie together.
const NEIGHBOURS: usize = 32;

pub const FORMAT: KvDescriptor = KvDescriptor {
    name: "int4",
    bits: 4,
    scaled: true,
    rotated: true,
    head_multiple: NEIGHBOURS,
    keys: KeyLayout::Words(Words {
        elements: 8,
        zero: 8,
        pack: |integers| std::array::from_fn(|i| pair(integers[i], integers[i + 4])),
        unpack: |word| word.iter().map(|b| low(*b)).chain(word.iter().map(|b| high(*b))).collect(),
    }),
    round: |head| {
        let (integers, scale) = to_int4(head);
        KvElements { values: integers.iter().map(|q| f32::from(*q)).collect(), scale }
    },
    encode: |values, out| {
        for group in values.chunks(NEIGHBOURS) {
            let (first, second) = group.split_at(NEIGHBOURS / 2);
            out.extend(first.iter().zip(second).map(|(low, high)| pair(*low, *high)));
        }
    },
    decode: |bytes| {
        let group = |bytes: &[u8]| -> Vec<f32> {
            bytes.iter().map(|b| low(*b)).chain(bytes.iter().map(|b| high(*b))).collect()
        };
        bytes.chunks(NEIGHBOURS / 2).flat_map(group).collect()
    },
};

fn pair(low: f32, high: f32) -> u8 {
    (low as i32 + 8) as u8 | ((high as i32 + 8) as u8) << 4
}

fn low(byte: u8) -> f32 {
    f32::from(byte & 15) - 8.0
}

fn high(byte: u8) -> f32 {
    f32::from(byte >> 4) - 8.0
}
