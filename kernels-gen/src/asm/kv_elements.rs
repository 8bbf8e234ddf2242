//! Loading cached keys and values as f32, with the constants that it takes.

use super::vector::{Address, Lanes, Vector, VectorOperand, Vectors};
use iced_x86::IcedError;
use kernmill_plan::kv::KvFormat;

/// Mask for a sign-extended E4M3 that has been shifted by 7: the rest is an f16, but for its second bit.
const FP8_MASK: u32 = 0xbfff_bfff;
/// The factor of that f16.
const FP8_FACTOR: f32 = 256.0;

/// Bits of the constants of a format.
pub fn constants(elem: KvFormat) -> Vec<u32> {
    if elem == KvFormat::Fp8 { vec![FP8_MASK, FP8_FACTOR.to_bits()] } else { Vec::new() }
}

/// Loads a vector of elements that lie beside each other, with [`constants`].
pub fn load(
    v: &mut Vectors<'_>,
    elem: KvFormat,
    constants: &[VectorOperand],
    to: Vector,
    from: Address,
) -> Result<(), IcedError> {
    match elem {
        KvFormat::F16 => v.load_f16(to, from),
        KvFormat::F32 => v.load(to, from),
        KvFormat::Fp8 => {
            v.load_bytes_as_f16(to, from, 7, constants[0])?;
            v.lanes(Lanes::Mul, to, to, constants[1])
        }
        // Their scores and values are sums of integers.
        KvFormat::Int8 | KvFormat::Int4 => Ok(()),
    }
}
