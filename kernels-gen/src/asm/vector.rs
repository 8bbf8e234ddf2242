//! Vector instructions by width: what 256-bit (AVX2, FMA) and 512-bit (AVX-512 F) code have in common, so
//! that a micro-kernel whose lanes are independent is written once.

pub use crate::expr::lower::{Condition, Lanes};
use iced_x86::code_asm::{AsmRegister64, AsmRegisterXmm, CodeAssembler, get_xmm};
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};
use std::ops::Add;

/// Bits of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 256: AVX2 and FMA, sixteen registers.
    Half,
    /// 512: AVX-512 F, 32 registers.
    Full,
}

impl Width {
    /// f32 lanes.
    pub fn lanes(self) -> usize {
        if self == Width::Half { 8 } else { 16 }
    }

    /// Bytes.
    pub fn bytes(self) -> usize {
        4 * self.lanes()
    }

    /// Registers.
    pub fn registers(self) -> usize {
        if self == Width::Half { 16 } else { 32 }
    }

    /// Bytes of a constant in memory: 512-bit instructions repeat four bytes themselves.
    pub fn constant_bytes(self) -> usize {
        if self == Width::Half { 32 } else { 4 }
    }
}

/// Number of a vector register.
pub type Vector = usize;

/// The instructions' number of a comparison: true if less, and ordered.
pub const LESS: u32 = 1;
/// True if not less, or unordered.
pub const NOT_LESS: u32 = 5;

/// The second source of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum VectorOperand {
    /// A register.
    Register(Vector),
    /// A vector in memory.
    Memory(Address),
    /// A constant in memory, as [`Width::constant_bytes`] has it.
    Constant(Address),
}

impl From<Vector> for VectorOperand {
    fn from(vector: Vector) -> VectorOperand {
        VectorOperand::Register(vector)
    }
}

impl From<Address> for VectorOperand {
    fn from(place: Address) -> VectorOperand {
        VectorOperand::Memory(place)
    }
}

/// `base + index + offset`.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// A pointer.
    pub base: AsmRegister64,
    /// A number of bytes.
    pub index: Option<AsmRegister64>,
    /// Bytes.
    pub offset: usize,
}

impl Address {
    /// Where a pointer points.
    pub fn at(base: AsmRegister64) -> Address {
        Address { base, index: None, offset: 0 }
    }
}

impl Add<AsmRegister64> for Address {
    type Output = Address;

    fn add(self, index: AsmRegister64) -> Address {
        debug_assert!(self.index.is_none());
        Address { index: Some(index), ..self }
    }
}

impl Add<usize> for Address {
    type Output = Address;

    fn add(self, bytes: usize) -> Address {
        Address { offset: self.offset + bytes, ..self }
    }
}

/// The instructions' number of a condition.
fn immediate(condition: Condition) -> u32 {
    match condition {
        Condition::Less => 1,
        Condition::LessEqual => 2,
        Condition::Equal => 0,
    }
}

/// `to = to * y + x`, `to = x * to + y` or `to = x * y + to`, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fma {
    /// `to * y + x`.
    F132,
    /// `x * to + y`.
    F213,
    /// `x * y + to`.
    F231,
}

/// An instruction whose second source is a [`VectorOperand`].
macro_rules! with_source {
    ($v:ident, $y:ident => $made:expr) => {
        match $y {
            VectorOperand::Register($y) => {
                let $y = $v.register($y);
                $made
            }
            VectorOperand::Memory($y) => {
                let $y = $v.memory($y, false);
                $made
            }
            VectorOperand::Constant($y) => {
                let $y = $v.memory($y, $v.width == Width::Full);
                $made
            }
        }
    };
}

pub(super) use with_source;

/// Writes instructions of one width.
pub struct Vectors<'a> {
    /// Where to.
    pub a: &'a mut CodeAssembler,
    /// Which.
    pub width: Width,
}

impl Vectors<'_> {
    /// Name of a register.
    pub fn register(&self, vector: Vector) -> Register {
        let first = if self.width == Width::Half { Register::YMM0 } else { Register::ZMM0 };
        debug_assert!(vector < self.width.registers());
        first + vector as u32
    }

    /// The lowest 128 bits.
    pub fn low(&self, vector: Vector) -> AsmRegisterXmm {
        get_xmm(Register::XMM0 + vector as u32).expect("every vector register has a low part")
    }

    /// A place, or four bytes of it for every lane.
    pub fn memory(&self, place: Address, broadcast: bool) -> MemoryOperand {
        let index = place.index.map_or(Register::None, Register::from);
        let size = u32::from(place.offset != 0);
        MemoryOperand::new(place.base.into(), index, 1, place.offset as i64, size, broadcast, Register::None)
    }

    /// One of two, by width.
    pub fn pick<T>(&self, half: T, full: T) -> T {
        if self.width == Width::Half { half } else { full }
    }

    /// `code to, y`.
    pub fn two(&mut self, code: Code, to: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let to = self.register(to);
        let instruction = with_source!(self, y => Instruction::with2(code, to, y))?;
        self.a.add_instruction(instruction)
    }

    /// `code to, x, y`.
    pub fn three(&mut self, code: Code, to: Vector, x: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let (to, x) = (self.register(to), self.register(x));
        let instruction = with_source!(self, y => Instruction::with3(code, to, x, y))?;
        self.a.add_instruction(instruction)
    }

    /// In the lanes of mask register 1, the others +0.
    fn masked(&mut self, mut instruction: Instruction) -> Result<(), IcedError> {
        instruction.set_op_mask(Register::K1);
        instruction.set_zeroing_masking(true);
        self.a.add_instruction(instruction)
    }

    /// Lane by lane.
    pub fn lanes(
        &mut self,
        op: Lanes,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        let code = self.code(op);
        self.three(code, to, x, y.into())
    }

    /// `to = kept ? x op y : +0`, after a [`Vectors::compare`] that gave `kept`.
    pub fn lanes_where(
        &mut self,
        kept: Vector,
        op: Lanes,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        if self.width == Width::Half {
            self.lanes(op, to, x, y)?;
            return self.lanes(Lanes::And, to, to, kept);
        }
        let (code, y) = (self.code(op), y.into());
        let (to, x) = (self.register(to), self.register(x));
        let instruction = with_source!(self, y => Instruction::with3(code, to, x, y))?;
        self.masked(instruction)
    }

    fn code(&self, op: Lanes) -> Code {
        use Code as C;
        match op {
            Lanes::Add => self.pick(C::VEX_Vaddps_ymm_ymm_ymmm256, C::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er),
            Lanes::Sub => self.pick(C::VEX_Vsubps_ymm_ymm_ymmm256, C::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er),
            Lanes::Mul => self.pick(C::VEX_Vmulps_ymm_ymm_ymmm256, C::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er),
            Lanes::Div => self.pick(C::VEX_Vdivps_ymm_ymm_ymmm256, C::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er),
            Lanes::Min => self.pick(C::VEX_Vminps_ymm_ymm_ymmm256, C::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae),
            Lanes::Max => self.pick(C::VEX_Vmaxps_ymm_ymm_ymmm256, C::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae),
            Lanes::Xor => self.pick(C::VEX_Vpxor_ymm_ymm_ymmm256, C::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
            Lanes::And => self.pick(C::VEX_Vpand_ymm_ymm_ymmm256, C::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32),
            Lanes::Or => self.pick(C::VEX_Vpor_ymm_ymm_ymmm256, C::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32),
            Lanes::AddInt => self.pick(C::VEX_Vpaddd_ymm_ymm_ymmm256, C::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32),
        }
    }

    /// The larger i32.
    pub fn max_int(&mut self, to: Vector, x: Vector, y: impl Into<VectorOperand>) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32);
        self.three(code, to, x, y.into())
    }

    /// Fused multiply-add.
    pub fn fma(
        &mut self,
        form: Fma,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        let code = match form {
            Fma::F132 => self.pick(
                Code::VEX_Vfmadd132ps_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            ),
            Fma::F213 => self.pick(
                Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
            ),
            Fma::F231 => self.pick(
                Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256,
                Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
            ),
        };
        self.three(code, to, x, y.into())
    }

    /// `to = 0`.
    pub fn zero(&mut self, to: Vector) -> Result<(), IcedError> {
        self.lanes(Lanes::Xor, to, to, to)
    }

    /// `to = y`.
    pub fn load(&mut self, to: Vector, y: impl Into<VectorOperand>) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vmovups_ymm_ymmm256, Code::EVEX_Vmovups_zmm_k1z_zmmm512);
        match y.into() {
            VectorOperand::Constant(place) => self.broadcast(to, place),
            y => self.two(code, to, y),
        }
    }

    /// Every lane the four bytes at `place`.
    pub fn broadcast(&mut self, to: Vector, place: Address) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vbroadcastss_ymm_m32, Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32);
        let instruction = Instruction::with2(code, self.register(to), self.memory(place, false))?;
        self.a.add_instruction(instruction)
    }

    /// The four bytes at `place` in every lane, as one instruction's operand: 256 bits go through a register,
    /// 512-bit instructions repeat them themselves.
    pub fn repeated(&mut self, place: Address, register: Vector) -> Result<VectorOperand, IcedError> {
        if self.width == Width::Full {
            return Ok(VectorOperand::Constant(place));
        }
        self.broadcast(register, place)?;
        Ok(VectorOperand::Register(register))
    }

    /// Every lane the lower 32 bits of a number.
    pub fn spread(&mut self, to: Vector, number: AsmRegister64) -> Result<(), IcedError> {
        let (register, number) = (self.register(to), Register::from(number).full_register32());
        if self.width == Width::Full {
            let instruction = Instruction::with2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, register, number)?;
            return self.a.add_instruction(instruction);
        }
        let low = Register::from(self.low(to));
        self.a.add_instruction(Instruction::with2(Code::VEX_Vmovd_xmm_rm32, low, number)?)?;
        self.a.add_instruction(Instruction::with2(Code::VEX_Vpbroadcastd_ymm_xmmm32, register, low)?)
    }

    /// To memory.
    pub fn store(&mut self, place: Address, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vmovups_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm);
        let instruction = Instruction::with2(code, self.memory(place, false), self.register(from))?;
        self.a.add_instruction(instruction)
    }

    /// Square root.
    pub fn sqrt(&mut self, to: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vsqrtps_ymm_ymmm256, Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er);
        self.two(code, to, y)
    }

    /// i32 as f32.
    pub fn convert_to_f32(&mut self, to: Vector, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vcvtdq2ps_ymm_ymmm256, Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er);
        self.two(code, to, VectorOperand::Register(from))
    }

    /// f32 as i32, to the nearest even.
    pub fn convert_to_int(&mut self, to: Vector, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vcvtps2dq_ymm_ymmm256, Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er);
        self.two(code, to, VectorOperand::Register(from))
    }

    /// i32 lanes shifted up.
    pub fn shift_left(&mut self, to: Vector, x: Vector, bits: u32) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpslld_ymm_ymm_imm8, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8);
        let instruction = Instruction::with3(code, self.register(to), self.register(x), bits)?;
        self.a.add_instruction(instruction)
    }

    /// i32 lanes shifted down, zeros following.
    pub fn shift_right(&mut self, to: Vector, x: Vector, bits: u32) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpsrld_ymm_ymm_imm8, Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8);
        let instruction = Instruction::with3(code, self.register(to), self.register(x), bits)?;
        self.a.add_instruction(instruction)
    }

    /// `to = x condition y`: 256-bit vectors have a mask in `to`, 512-bit ones in mask register 1.
    pub fn compare(
        &mut self,
        condition: u32,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        let (mask, code) = match self.width {
            Width::Half => (self.register(to), Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8),
            Width::Full => (Register::K1, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae),
        };
        let (x, y) = (self.register(x), y.into());
        let instruction = with_source!(self, y => Instruction::with4(code, mask, x, y, condition))?;
        self.a.add_instruction(instruction)
    }

    /// `to = mask ? from : to`, after a [`Vectors::compare`] that gave the mask.
    pub fn replace(&mut self, mask: Vector, to: Vector, from: Vector) -> Result<(), IcedError> {
        let [mask, to, from] = [mask, to, from].map(|vector| self.register(vector));
        if self.width == Width::Half {
            let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
            return self.a.add_instruction(Instruction::with4(code, to, to, from, mask)?);
        }
        let mut instruction = Instruction::with2(Code::EVEX_Vmovaps_zmm_k1z_zmmm512, to, from)?;
        instruction.set_op_mask(Register::K1);
        self.a.add_instruction(instruction)
    }

    /// Lane `i` of `to` is lane `i ^ distance` of `from`.
    fn exchange(&mut self, distance: usize, to: Vector, from: Vector) -> Result<(), IcedError> {
        // Of four places, two by two or next to each other.
        const PAIRS: u32 = 0b01_00_11_10;
        const NEIGHBORS: u32 = 0b10_11_00_01;
        let (to, from) = (self.register(to), self.register(from));
        let instruction = if distance >= 4 {
            let (code, order) = match (self.width, distance) {
                (Width::Half, _) => (Code::VEX_Vperm2f128_ymm_ymm_ymmm256_imm8, 1),
                (Width::Full, 8) => (Code::EVEX_Vshuff32x4_zmm_k1z_zmm_zmmm512b32_imm8, PAIRS),
                (Width::Full, _) => (Code::EVEX_Vshuff32x4_zmm_k1z_zmm_zmmm512b32_imm8, NEIGHBORS),
            };
            Instruction::with4(code, to, from, from, order)
        } else {
            let code =
                self.pick(Code::VEX_Vpshufd_ymm_ymmm256_imm8, Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8);
            Instruction::with3(code, to, from, if distance == 2 { PAIRS } else { NEIGHBORS })
        };
        self.a.add_instruction(instruction?)
    }

    /// Every lane of `to` comes to hold what `fold`, which brings `other` into `to`, makes of all of them: a
    /// tree, each step of which has half the distance between lanes of the one before.
    pub fn across(
        &mut self,
        to: Vector,
        other: Vector,
        fold: impl Fn(&mut Self) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let lanes = self.width.lanes();
        [8, 4, 2, 1].into_iter().filter(|distance| *distance < lanes).try_for_each(|distance| {
            self.exchange(distance, other, to)?;
            fold(self)
        })
    }

    /// `to = x < limit ? +0 : value`. `to` is neither `value` nor, unless it is `x` itself, in `limit`; mask
    /// register 1 is overwritten.
    pub fn zero_below(
        &mut self,
        to: Vector,
        x: Vector,
        limit: VectorOperand,
        value: Vector,
    ) -> Result<(), IcedError> {
        self.compare(NOT_LESS, to, x, limit)?;
        if self.width == Width::Half {
            return self.lanes(Lanes::And, to, to, value);
        }
        let code = Code::EVEX_Vmovaps_zmm_k1z_zmmm512;
        let keep = Instruction::with2(code, self.register(to), self.register(value))?;
        self.masked(keep)
    }

    /// `to = x condition y ? yes : no`. `to` is neither in `yes` nor `no`; mask register 1 is overwritten.
    pub fn select(
        &mut self,
        condition: Condition,
        to: Vector,
        (x, y): (Vector, VectorOperand),
        (yes, no): (VectorOperand, Vector),
    ) -> Result<(), IcedError> {
        self.compare(immediate(condition), to, x, y)?;
        let (to, no) = (self.register(to), self.register(no));
        let blend = match self.width {
            Width::Half => {
                let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
                with_source!(self, yes => Instruction::with4(code, to, no, yes, to))?
            }
            Width::Full => {
                let code = Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32;
                let mut blend = with_source!(self, yes => Instruction::with3(code, to, no, yes))?;
                blend.set_op_mask(Register::K1);
                blend
            }
        };
        self.a.add_instruction(blend)
    }
}
