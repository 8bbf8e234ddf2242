//! Constants of the one order of arithmetic; `docs/dev/numerics.md` defines how they are used.

/// 1.5 * 2^23: adding it to |x| < 2^22 leaves `rne(x)` in the low mantissa bits.
pub const ROUND_MAGIC: f32 = 12_582_912.0;
/// Upper clamp of `exp`'s argument.
pub const EXP_MAX: f32 = 88.0;
/// Below this `exp` is +0.
pub const EXP_MIN: f32 = -87.0;
/// log2(e).
pub const LOG2E: f32 = std::f32::consts::LOG2_E;
/// High part of ln 2: 0x3f317200, few mantissa bits, so that `n * LN2_HI` is exact for |n| < 2^8.
pub const LN2_HI: f32 = f32::from_bits(0x3f31_7200);
/// ln 2 - [`LN2_HI`].
pub const LN2_LO: f32 = 1.428_606_8e-6;
/// Coefficients of exp on [-ln2/2, ln2/2], highest degree first (Cephes `expf`, as published by S. L.
/// Moshier: the last two are 1, 1).
pub const EXP_POLY: [f32; 8] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0];
/// The bits of sqrt(1/2): `log` takes a power of two out of its argument so that the rest lies from there up
/// to sqrt(2).
pub const LOG_LOW: u32 = 0x3f35_04f3;
/// Coefficients of P in `log(1 + f) = f - f*f/2 + f*f*f * P(f)`, f from sqrt(1/2)-1 to sqrt(2)-1, highest
/// degree first: minimax to 2^-27 of the logarithm.
pub const LOG_POLY: [f32; 8] = [
    -0.078_653_18,
    0.128_792_66,
    -0.131_253_76,
    0.141_814_13,
    -0.166_249_6,
    0.200_022_83,
    -0.250_007_96,
    0.333_333_16,
];
/// Where the normal distribution's tail counts as 0.
pub const TAIL_END: f32 = 14.0;
/// Constant of [`TAIL_POLY`]'s variable, which is `(a - TAIL_MIDDLE) / (a + TAIL_MIDDLE)`.
pub const TAIL_MIDDLE: f32 = 4.0;
/// Coefficients of the normal distribution's tail beyond a, from 0 to [`TAIL_END`], divided by `exp(-a*a/2)`;
/// highest degree first: minimax to 2^-23.6 of it.
pub const TAIL_POLY: [f32; 10] = [
    -6.630_208e-5,
    -1.695_976_8e-4,
    6.577_138e-4,
    5.036_732e-4,
    -8.497_682e-3,
    3.086_526e-2,
    -7.170_679e-2,
    0.124_379_22,
    -0.170_397_74,
    9.441_064e-2,
];
/// Keys per attention segment, by absolute position.
pub const ATTENTION_SEGMENT: usize = 1024;
/// Added to the sum that experts' weights are divided by, as published: so that no weights at all are no
/// division by zero.
pub const LEAST_ROUTE_SUM: f32 = 1e-20;
/// Largest integer that the weight of a value in a segment becomes, where values are integers: sums of a
/// segment's products with integers of 8 bits fit in 32 bits.
pub const WEIGHT_MAX: f32 = 16383.0;
/// Below this largest weight of a segment, where values are integers, all its weights are 0: 2^-100.
pub const LEAST_WEIGHT: f32 = f32::from_bits(0x0d80_0000);
/// sqrt(2/pi), of gelu's tanh form.
pub const GELU_SCALE: f32 = 0.797_884_6;
/// Cubic coefficient of gelu's tanh form.
pub const GELU_CUBIC: f32 = 0.044_715;
/// Least integer of int4.
pub const INT4_MIN: f32 = -8.0;
/// Largest integer of int4.
pub const INT4_MAX: f32 = 7.0;
/// Divisors of a block's farthest element, negated, for the scales that fitting an int4 block tries. The
/// first is plain symmetric scaling to [-7, 7].
pub const INT4_DIVISORS: [f32; 8] = [7.0, 7.25, 7.5, 7.75, 8.0, 8.25, 8.5, 8.75];
