//! The description of a format of cached keys and values, as data.

/// A head's elements as the cache has them: each is `value * scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct KvElements {
    /// Numbers that the format has, before the scale: integers, of formats with scales.
    pub values: Vec<f32>,
    /// The scale of the token's head; 1 of formats without scales.
    pub scale: f32,
}

impl KvElements {
    /// Elements of a format without scales.
    pub fn plain(values: Vec<f32>) -> KvElements {
        KvElements { values, scale: 1.0 }
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
    /// The bias of every integer, so that none is negative.
    pub zero: i32,
    /// The word of so many integers.
    pub pack: fn(&[f32]) -> [u8; 4],
    /// The integers of a word.
    pub unpack: fn([u8; 4]) -> Vec<f32>,
}

/// All that there is to know about a format. Its file says what the numbers mean; docs/dev/numerics.md
/// defines its roundings to the bit.
pub struct KvDescriptor {
    /// Name on the command line and in texts of graphs.
    pub name: &'static str,
    /// Bits of an element, without its share of a scale.
    pub bits: usize,
    /// Whether every token and head has an f32 scale. Keys are then integers, and so are the scores of
    /// queries, which are rounded to int8.
    pub scaled: bool,
    /// Whether keys, queries with them, and values go through a Hadamard transform before they are rounded.
    /// That of values is taken back in what attention makes of them.
    pub rotated: bool,
    /// A divisor of `head_dim`, besides those that kernels ask for.
    pub head_multiple: usize,
    /// Layout of keys; values always lie `[16 tokens][head_dim]`.
    pub keys: KeyLayout,
    /// Rounds one head of f32.
    pub round: fn(&[f32]) -> KvElements,
    /// Appends the bytes of rounded values of one head, beside each other.
    pub encode: fn(&[f32], &mut Vec<u8>),
    /// The rounded values of elements that lie beside each other.
    pub decode: fn(&[u8]) -> Vec<f32>,
}
