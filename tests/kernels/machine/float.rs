//! binary32 arithmetic as the vector instructions do it with MXCSR as it starts: round to nearest even,
//! denormals kept, a quiet NaN for an invalid operation.

/// The result of an invalid operation.
const DEFAULT_NAN: u32 = 0xffc0_0000;
const QUIET: u32 = 0x0040_0000;

/// The first NaN among the operands, made quiet; otherwise what `compute` gives.
fn nan_first(operands: &[u32], compute: impl FnOnce() -> f32) -> u32 {
    if let Some(nan) = operands.iter().find(|x| f32::from_bits(**x).is_nan()) {
        return nan | QUIET;
    }
    let result = compute();
    if result.is_nan() { DEFAULT_NAN } else { result.to_bits() }
}

pub fn add(a: u32, b: u32) -> u32 {
    nan_first(&[a, b], || f32::from_bits(a) + f32::from_bits(b))
}

pub fn mul(a: u32, b: u32) -> u32 {
    nan_first(&[a, b], || f32::from_bits(a) * f32::from_bits(b))
}

pub fn sub(a: u32, b: u32) -> u32 {
    nan_first(&[a, b], || f32::from_bits(a) - f32::from_bits(b))
}

pub fn div(a: u32, b: u32) -> u32 {
    nan_first(&[a, b], || f32::from_bits(a) / f32::from_bits(b))
}

/// The second where they are not ordered, and of two zeros.
pub fn min(a: u32, b: u32) -> u32 {
    if less(a, b) { a } else { b }
}

/// The second where they are not ordered, and of two zeros.
pub fn max(a: u32, b: u32) -> u32 {
    if less(b, a) { a } else { b }
}

pub fn less(a: u32, b: u32) -> bool {
    f32::from_bits(a) < f32::from_bits(b)
}

/// `a * b + c`, rounded once.
pub fn fma(a: u32, b: u32, c: u32) -> u32 {
    nan_first(&[a, b, c], || f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
}

/// Rounded to nearest even; the least integer of what does not fit.
pub fn to_i32(a: u32) -> u32 {
    let rounded = f64::from(f32::from_bits(a)).round_ties_even();
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&rounded);
    if fits { (rounded as i32).cast_unsigned() } else { i32::MIN.cast_unsigned() }
}

/// Exact; a NaN keeps its upper payload and becomes quiet.
pub fn from_f16(bits: u16) -> u32 {
    let half = half::f16::from_bits(bits);
    if half.is_nan() {
        let (sign, payload) = (u32::from(bits >> 15), u32::from(bits & 0x3ff));
        return sign << 31 | 0x7f80_0000 | payload << 13 | QUIET;
    }
    half.to_f32().to_bits()
}

pub fn from_i32(bits: u32) -> u32 {
    (bits.cast_signed() as f32).to_bits()
}

/// Denormals as zeros of their sign.
fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// [`fma`] of the bf16 instructions: denormal operands and results are zeros. (A result is flushed here when
/// it is denormal after rounding; within the last half unit below the smallest normal number hardware may
/// round up instead.)
pub fn flushed_fma(a: u32, b: u32, c: u32) -> u32 {
    flushed(fma(flushed(a), flushed(b), flushed(c)))
}

/// [`add`], as [`flushed_fma`].
pub fn flushed_add(a: u32, b: u32) -> u32 {
    flushed(add(flushed(a), flushed(b)))
}
