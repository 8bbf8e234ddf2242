//! `exp` of docs/dev/numerics.md in wide vectors, and the constants it needs: emitted into the micro-kernels
//! that use it.

use super::regs::Regs;
use super::vector::{Fma, Lanes, NOT_LESS, Vector, VectorOperand, Vectors, Width};
use iced_x86::IcedError;
use kernmill_plan::numeric::{EXP_MAX, EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};

/// In the order of their use; the polynomial's coefficients follow.
const FIRST: [f32; 6] = [EXP_MAX, LOG2E, ROUND_MAGIC, -LN2_HI, -LN2_LO, EXP_MIN];
/// Constants in all.
pub const CONSTANTS: usize = FIRST.len() + EXP_POLY.len();

/// The constants that [`Exp`] takes.
pub fn constants() -> impl Iterator<Item = u32> {
    FIRST.into_iter().chain(EXP_POLY).map(f32::to_bits)
}

/// Writes `exp`.
pub struct Exp<'c> {
    constants: &'c [VectorOperand],
    /// For intermediate values.
    temporary: [Vector; 3],
}

impl Exp<'_> {
    /// With [`constants`]; takes registers for intermediate values.
    pub fn new<'c>(regs: &mut Regs, width: Width, constants: &'c [VectorOperand]) -> Exp<'c> {
        Exp::with(constants, std::array::from_fn(|_| regs.numbered(width)))
    }

    /// With [`constants`], and registers for intermediate values.
    pub fn with(constants: &[VectorOperand], temporary: [Vector; 3]) -> Exp<'_> {
        Exp { constants: &constants[..CONSTANTS], temporary }
    }

    /// `x = exp(x)`. Leaves where it is not 0 as a [`Vectors::compare`] to the last temporary register does.
    pub fn emit(&self, v: &mut Vectors<'_>, x: Vector) -> Result<(), IcedError> {
        let &[max, log2e, magic, hi, lo, min, first, ref poly @ ..] = self.constants else {
            unreachable!("as many as FIRST, and more")
        };
        let [t, p, kept] = self.temporary;
        v.compare(NOT_LESS, kept, x, min)?;
        v.lanes(Lanes::Min, x, x, max)?;
        v.load(t, log2e)?;
        v.fma(Fma::F213, t, x, magic)?;
        v.lanes(Lanes::Sub, p, t, magic)?;
        v.fma(Fma::F231, x, p, hi)?;
        v.fma(Fma::F231, x, p, lo)?;
        v.load(p, first)?;
        for coefficient in poly {
            v.fma(Fma::F213, p, x, *coefficient)?;
        }
        v.shift_left(t, t, 23)?;
        v.lanes_where(kept, Lanes::AddInt, x, p, t)
    }
}
