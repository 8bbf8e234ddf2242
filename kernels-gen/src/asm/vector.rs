//! Vector instructions by width: what 256-bit (AVX2, FMA) and 512-bit (AVX-512 F) code have in common, so
//! that a micro-kernel whose lanes are independent is written once.

pub use crate::expr::lower::{Condition, Lanes};
use iced_x86::code_asm::{AsmRegister64, CodeAssembler};
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

/// Writes instructions of one width.
pub struct Vectors<'a> {
    /// Where to.
    pub a: &'a mut CodeAssembler,
    /// Which.
    pub width: Width,
}

impl Vectors<'_> {
    fn register(&self, vector: Vector) -> Register {
        let first = if self.width == Width::Half { Register::YMM0 } else { Register::ZMM0 };
        debug_assert!(vector < self.width.registers());
        first + vector as u32
    }

    fn memory(&self, place: Address, broadcast: bool) -> MemoryOperand {
        let index = place.index.map_or(Register::None, Register::from);
        let size = u32::from(place.offset != 0);
        MemoryOperand::new(place.base.into(), index, 1, place.offset as i64, size, broadcast, Register::None)
    }

    fn pick(&self, half: Code, full: Code) -> Code {
        if self.width == Width::Half { half } else { full }
    }

    /// `code to, x, y`.
    fn three(&mut self, code: Code, to: Vector, x: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let (to, x) = (self.register(to), self.register(x));
        let instruction = match y {
            VectorOperand::Register(y) => Instruction::with3(code, to, x, self.register(y)),
            VectorOperand::Memory(place) => Instruction::with3(code, to, x, self.memory(place, false)),
            VectorOperand::Constant(place) => {
                Instruction::with3(code, to, x, self.memory(place, self.width == Width::Full))
            }
        };
        self.a.add_instruction(instruction?)
    }

    /// Lane by lane.
    pub fn lanes(
        &mut self,
        op: Lanes,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        use Code as C;
        let code = match op {
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
        };
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
        let register = self.register(to);
        let instruction = match y.into() {
            VectorOperand::Register(from) => Instruction::with2(code, register, self.register(from)),
            VectorOperand::Memory(place) => Instruction::with2(code, register, self.memory(place, false)),
            VectorOperand::Constant(place) => return self.broadcast(to, place),
        };
        self.a.add_instruction(instruction?)
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

    /// To memory.
    pub fn store(&mut self, place: Address, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vmovups_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm);
        let instruction = Instruction::with2(code, self.memory(place, false), self.register(from))?;
        self.a.add_instruction(instruction)
    }

    /// Square root.
    pub fn sqrt(&mut self, to: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vsqrtps_ymm_ymmm256, Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er);
        let to = self.register(to);
        let instruction = match y {
            VectorOperand::Register(y) => Instruction::with2(code, to, self.register(y)),
            VectorOperand::Memory(place) => Instruction::with2(code, to, self.memory(place, false)),
            VectorOperand::Constant(place) => {
                Instruction::with2(code, to, self.memory(place, self.width == Width::Full))
            }
        };
        self.a.add_instruction(instruction?)
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
    fn compare(&mut self, condition: u32, to: Vector, x: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let (mask, code) = match self.width {
            Width::Half => (self.register(to), Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8),
            Width::Full => (Register::K1, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae),
        };
        let x = self.register(x);
        let instruction = match y {
            VectorOperand::Register(y) => Instruction::with4(code, mask, x, self.register(y), condition),
            VectorOperand::Memory(place) => {
                Instruction::with4(code, mask, x, self.memory(place, false), condition)
            }
            VectorOperand::Constant(place) => {
                let place = self.memory(place, self.width == Width::Full);
                Instruction::with4(code, mask, x, place, condition)
            }
        };
        self.a.add_instruction(instruction?)
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
        // Not less than, true when unordered.
        const NLT: u32 = 5;
        self.compare(NLT, to, x, limit)?;
        if self.width == Width::Half {
            return self.lanes(Lanes::And, to, to, value);
        }
        let code = Code::EVEX_Vmovaps_zmm_k1z_zmmm512;
        let mut keep = Instruction::with2(code, self.register(to), self.register(value))?;
        keep.set_op_mask(Register::K1);
        keep.set_zeroing_masking(true);
        self.a.add_instruction(keep)
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
        if self.width == Width::Full {
            let code = Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32;
            let (to, no) = (self.register(to), self.register(no));
            let mut blend = match yes {
                VectorOperand::Register(yes) => Instruction::with3(code, to, no, self.register(yes)),
                VectorOperand::Memory(place) => Instruction::with3(code, to, no, self.memory(place, false)),
                VectorOperand::Constant(place) => Instruction::with3(code, to, no, self.memory(place, true)),
            }?;
            blend.set_op_mask(Register::K1);
            return self.a.add_instruction(blend);
        }
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        let (to, no) = (self.register(to), self.register(no));
        let blend = match yes {
            VectorOperand::Register(yes) => Instruction::with4(code, to, no, self.register(yes), to),
            VectorOperand::Memory(place) | VectorOperand::Constant(place) => {
                Instruction::with4(code, to, no, self.memory(place, false), to)
            }
        };
        self.a.add_instruction(blend?)
    }
}
