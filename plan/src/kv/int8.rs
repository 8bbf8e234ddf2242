//! `int8`: integers from -127 to 127, and an f32 scale for every token and head.
//!
//! Keys lie in words of four, the operand of `vpdpbusd`: its first operand is unsigned, so that 128 is added
//! to each. Values are signed bytes, as `vpmovsxbd` takes them.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements, Words};
use super::rounding::to_int8;

pub const FORMAT: KvDescriptor = KvDescriptor {
    name: "int8",
    bits: 8,
    scaled: true,
    rotated: false,
    head_multiple: 4,
    keys: KeyLayout::Words(Words {
        elements: 4,
        zero: 128,
        pack: |integers| std::array::from_fn(|i| (integers[i] as i32 + 128) as u8),
        unpack: |word| word.iter().map(|code| f32::from(*code) - 128.0).collect(),
    }),
    round: |head| {
        let (integers, scale) = to_int8(head);
        KvElements { values: integers.iter().map(|q| f32::from(*q)).collect(), scale }
    },
    encode: |values, out| out.extend(values.iter().map(|q| *q as i8 as u8)),
    decode: |bytes| bytes.iter().map(|code| f32::from(*code as i8)).collect(),
};
