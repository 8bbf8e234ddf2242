//! The types of GGUF tensors: one table, whose entries say how large a block is and how its elements are
//! read.
//!
//! Decoding keeps the format's own order of arithmetic, in f32 without fused multiply-add, so that every
//! reader gets the same bits.

mod iq4;
mod k;
mod mxfp4;
mod refused;
mod simple;

use half::f16;
pub(crate) use refused::refused;
use safetensors::Dtype;
use std::fmt;

/// How a tensor of a GGUF file is stored: an entry of [`TYPES`].
pub struct TensorType {
    /// Name by which tools call it, such as `Q4_K`.
    pub name: &'static str,
    /// Number of the type in files.
    pub number: u32,
    /// Elements of a block, neighbours in a row; 1 where elements stand by themselves.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    pub(crate) stored: ElementDecoding,
}

/// How the elements of a block become f32.
#[derive(Clone, Copy)]
pub(crate) enum ElementDecoding {
    /// Elements stand by themselves and have this type.
    Plain(Dtype),
    /// Elements stand in blocks.
    Blocks(BlockDecoding),
}

/// How blocks are read.
#[derive(Clone, Copy)]
pub(crate) struct BlockDecoding {
    /// Appends the elements of whole blocks.
    pub(crate) decode: fn(&[u8], &mut Vec<f32>),
    /// Appends the steps of whole blocks, one for every 16 elements: what the distances between these are
    /// multiples of.
    pub(crate) steps: fn(&[u8], &mut Vec<f32>),
}

/// Every type that is read.
#[rustfmt::skip]
pub static TYPES: [TensorType; 16] = [
    plain("F32", 0, 4, Dtype::F32),
    plain("F16", 1, 2, Dtype::F16),
    blocks("Q4_0", 2, 32, 18, |bytes, out| each(bytes, out, simple::q4_0), |bytes,
        out| each(bytes, out, simple::step::<18>)),
    blocks("Q4_1", 3, 32, 20, |bytes, out| each(bytes, out, simple::q4_1), |bytes,
        out| each(bytes, out, simple::step::<20>)),
    blocks("Q5_0", 6, 32, 22, |bytes, out| each(bytes, out, simple::q5_0), |bytes,
        out| each(bytes, out, simple::step::<22>)),
    blocks("Q5_1", 7, 32, 24, |bytes, out| each(bytes, out, simple::q5_1), |bytes,
        out| each(bytes, out, simple::step::<24>)),
    blocks("Q8_0", 8, 32, 34, |bytes, out| each(bytes, out, simple::q8_0), |bytes,
        out| each(bytes, out, simple::step::<34>)),
    blocks("Q2_K", 10, 256, 84, |bytes, out| each(bytes, out, k::q2_k), |bytes, out| each(bytes, out, k::q2_k_steps)),
    blocks("Q3_K", 11, 256, 110, |bytes, out| each(bytes, out, k::q3_k), |bytes, out| each(bytes, out, k::q3_k_steps)),
    blocks("Q4_K", 12, 256, 144, |bytes, out| each(bytes, out, k::q4_k), |bytes,
        out| each(bytes, out, k::q45_k_steps::<144>)),
    blocks("Q5_K", 13, 256, 176, |bytes, out| each(bytes, out, k::q5_k), |bytes,
        out| each(bytes, out, k::q45_k_steps::<176>)),
    blocks("Q6_K", 14, 256, 210, |bytes, out| each(bytes, out, k::q6_k), |bytes, out| each(bytes, out, k::q6_k_steps)),
    blocks("IQ4_NL", 20, 32, 18, |bytes, out| each(bytes, out, iq4::iq4_nl), |bytes,
        out| each(bytes, out, simple::step::<18>)),
    blocks("IQ4_XS", 23, 256, 136, |bytes, out| each(bytes, out, iq4::iq4_xs), |bytes,
        out| each(bytes, out, iq4::iq4_xs_steps)),
    plain("BF16", 30, 2, Dtype::BF16),
    blocks(MXFP4, 39, 32, 17, |bytes, out| each(bytes, out, mxfp4::mxfp4), |bytes, out| each(bytes, out, mxfp4::step)),
];

const MXFP4: &str = "MXFP4";

const fn plain(name: &'static str, number: u32, bytes: usize, dtype: Dtype) -> TensorType {
    TensorType { name, number, elements: 1, bytes, stored: ElementDecoding::Plain(dtype) }
}

const fn blocks(
    name: &'static str,
    number: u32,
    elements: usize,
    bytes: usize,
    decode: fn(&[u8], &mut Vec<f32>),
    steps: fn(&[u8], &mut Vec<f32>),
) -> TensorType {
    TensorType {
        name,
        number,
        elements,
        bytes,
        stored: ElementDecoding::Blocks(BlockDecoding { decode, steps }),
    }
}

impl TensorType {
    /// The type that has `number` in files.
    pub fn from_number(number: u32) -> Option<&'static TensorType> {
        TYPES.iter().find(|kind| kind.number == number)
    }

    /// Names of all types, for errors.
    pub(crate) fn names() -> String {
        TYPES.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
    }

    /// Whether blocks have E2M1 codes and an E8M0 scale, which are packed as they are.
    pub fn is_mxfp4(&self) -> bool {
        self.name == MXFP4
    }

    /// Bytes of a row of `cols` elements; `None` if it is not whole blocks or does not fit into memory.
    pub fn row_bytes(&self, cols: usize) -> Option<usize> {
        (cols / self.elements).checked_mul(self.bytes).filter(|_| cols.is_multiple_of(self.elements))
    }

    /// The type that the elements are read as.
    pub(crate) fn dtype(&self) -> Dtype {
        match self.stored {
            ElementDecoding::Plain(dtype) => dtype,
            ElementDecoding::Blocks(_) => Dtype::F32,
        }
    }
}

impl PartialEq for TensorType {
    fn eq(&self, other: &TensorType) -> bool {
        self.number == other.number
    }
}

impl Eq for TensorType {}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Appends what `decode` makes of each whole block in `bytes`: its elements, or its steps.
fn each<const BYTES: usize, const NUMBERS: usize>(
    bytes: &[u8],
    out: &mut Vec<f32>,
    decode: impl Fn(&[u8; BYTES], &mut [f32; NUMBERS]),
) {
    let mut numbers = [0.0; NUMBERS];
    for block in bytes.as_chunks().0 {
        decode(block, &mut numbers);
        out.extend_from_slice(&numbers);
    }
}

/// The f16 in two bytes.
fn half(low: u8, high: u8) -> f32 {
    f16::from_le_bytes([low, high]).to_f32()
}

/// Nibble of element `i` of 32: bytes hold elements 0 to 15 in their low nibbles, 16 to 31 in their high
/// ones.
fn nibble(codes: &[u8], i: usize) -> u8 {
    codes[i % 16] >> (i / 16 * 4) & 15
}
