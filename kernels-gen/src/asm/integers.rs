//! Instructions of [`Vectors`] on integers in bytes and words, and from the packed numbers of scales.

use super::vector::{Address, Lanes, Vector, VectorOperand, Vectors, Width, with_source};
use iced_x86::{Code, IcedError, Instruction};

impl Vectors<'_> {
    /// Words shifted, down by so many bits if it is positive.
    pub fn shift_words(&mut self, to: Vector, x: VectorOperand, down: i32) -> Result<(), IcedError> {
        let bits = down.unsigned_abs();
        let ((VectorOperand::Register(_), Width::Half) | (_, Width::Full)) = (x, self.width) else {
            self.load(to, x)?;
            return self.shift_words(to, VectorOperand::Register(to), down);
        };
        let code = match down > 0 {
            true => self.pick(Code::VEX_Vpsrlw_ymm_ymm_imm8, Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8),
            false => self.pick(Code::VEX_Vpsllw_ymm_ymm_imm8, Code::EVEX_Vpsllw_zmm_k1z_zmmm512_imm8),
        };
        let to = self.register(to);
        let instruction = with_source!(self, x => Instruction::with3(code, to, x, bits))?;
        self.a.add_instruction(instruction)
    }

    /// `to = to | x & mask`. Clobbers `x`.
    pub fn merge(&mut self, to: Vector, x: Vector, mask: VectorOperand) -> Result<(), IcedError> {
        if self.width == Width::Half {
            self.lanes(Lanes::And, x, x, mask)?;
            return self.lanes(Lanes::Or, to, to, VectorOperand::Register(x));
        }
        /// The first operand, or both others.
        const FIRST_OR_BOTH: u32 = 0xf8;
        let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
        let (to, x) = (self.register(to), self.register(x));
        let instruction = with_source!(self, mask => Instruction::with4(code, to, x, mask, FIRST_OR_BOTH))?;
        self.a.add_instruction(instruction)
    }

    /// `to = to & mask | base`.
    pub fn choose_bits(
        &mut self,
        to: Vector,
        mask: VectorOperand,
        base: VectorOperand,
    ) -> Result<(), IcedError> {
        if let (VectorOperand::Register(mask), Width::Full) = (mask, self.width) {
            /// The first and the second operand, or the third.
            const BOTH_OR_THIRD: u32 = 0xea;
            let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
            let (to, mask) = (self.register(to), self.register(mask));
            let made = with_source!(self, base => Instruction::with4(code, to, mask, base, BOTH_OR_THIRD))?;
            return self.a.add_instruction(made);
        }
        self.lanes(Lanes::And, to, to, mask)?;
        self.lanes(Lanes::Or, to, to, base)
    }

    /// Bytes of a table of 16 that is in every 128 bits, looked up by bytes below 128.
    pub fn look_up(&mut self, to: Vector, table: Vector, index: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpshufb_ymm_ymm_ymmm256, Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512);
        self.three(code, to, table, VectorOperand::Register(index))
    }

    /// Bytes of such a table, looked up by the low six bits of bytes. 512-bit vectors of VBMI.
    pub fn look_up_any(&mut self, to: Vector, table: Vector, index: Vector) -> Result<(), IcedError> {
        self.three(Code::EVEX_Vpermb_zmm_k1z_zmm_zmmm512, to, index, VectorOperand::Register(table))
    }

    /// Bytes in memory, shifted by seven, as f16: of numbers in E4M3 2^-8 of each.
    pub fn load_e4m3(&mut self, to: Vector, place: Address) -> Result<(), IcedError> {
        let half = self.half(to);
        let widen = self.pick(Code::VEX_Vpmovzxbw_xmm_xmmm64, Code::EVEX_Vpmovzxbw_ymm_k1z_xmmm128);
        let shift = self.pick(Code::VEX_Vpsllw_xmm_xmm_imm8, Code::EVEX_Vpsllw_ymm_k1z_ymmm256_imm8);
        let convert = self.pick(Code::VEX_Vcvtph2ps_ymm_xmmm128, Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae);
        let place = self.memory(place, false);
        self.a.add_instruction(Instruction::with2(widen, half, place)?)?;
        self.a.add_instruction(Instruction::with3(shift, half, half, 7)?)?;
        self.a.add_instruction(Instruction::with2(convert, self.register(to), half)?)
    }

    /// The larger of two uint32.
    pub fn largest(&mut self, to: Vector, x: Vector, y: VectorOperand) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpmaxud_ymm_ymm_ymmm256, Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32);
        self.three(code, to, x, y)
    }
}
