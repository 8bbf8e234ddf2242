//! `f32`: elements as they are computed.

use super::descriptor::{KeyLayout, KvDescriptor, KvElements};

pub const FORMAT: KvDescriptor = KvDescriptor {
    name: "f32",
    bits: 32,
    scaled: false,
    rotated: false,
    head_multiple: 1,
    keys: KeyLayout::Elements,
    round: |head| KvElements::plain(head.to_vec()),
    encode: |values, out| values.iter().for_each(|value| out.extend(value.to_le_bytes())),
    decode: |bytes| {
        bytes.chunks_exact(4).map(|e| f32::from_le_bytes(e.try_into().expect("four bytes"))).collect()
    },
};
