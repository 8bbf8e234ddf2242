//! Elements narrower than the lanes of vectors: loading and storing them, and arithmetic of bytes and words.

use super::vector::{Address, Vector, VectorOperand, Vectors};
use iced_x86::{Code, IcedError, Instruction, Register};

/// Arithmetic of bytes and of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// Words: sums of two products of unsigned bytes of x and signed ones of y, saturated.
    BytePairs,
    /// i32: sums of two products of words.
    WordPairs,
    /// i32: to plus four products of unsigned bytes of x and signed ones of y.
    AddBytes,
    /// x by bytes with the signs of y; 256 bits only.
    Sign,
}

impl Vectors<'_> {
    /// The lower half, as a vector of its own; of the first sixteen registers.
    fn half(&self, vector: Vector) -> Register {
        self.pick(Register::XMM0, Register::YMM0) + vector as u32
    }

    /// f16 numbers as f32.
    pub fn load_f16(&mut self, to: Vector, from: Address) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vcvtph2ps_ymm_xmmm128, Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae);
        self.two(code, to, from.into())
    }

    /// Signed bytes as f32: each as 16 bits, shifted up, of which those under the mask are an f16.
    pub fn load_bytes_as_f16(
        &mut self,
        to: Vector,
        from: Address,
        shift: u32,
        mask: VectorOperand,
    ) -> Result<(), IcedError> {
        use Code as C;
        let (half, from) = (self.half(to), self.memory(from, false));
        let code = self.pick(C::VEX_Vpmovsxbw_xmm_xmmm64, C::VEX_Vpmovsxbw_ymm_xmmm128);
        self.a.add_instruction(Instruction::with2(code, half, from)?)?;
        let code = self.pick(C::VEX_Vpsllw_xmm_xmm_imm8, C::VEX_Vpsllw_ymm_ymm_imm8);
        self.a.add_instruction(Instruction::with3(code, half, half, shift)?)?;
        let code = self.pick(C::VEX_Vpand_xmm_xmm_xmmm128, C::VEX_Vpand_ymm_ymm_ymmm256);
        let and = match mask {
            VectorOperand::Register(mask) => Instruction::with3(code, half, half, self.half(mask)),
            VectorOperand::Memory(place) | VectorOperand::Constant(place) => {
                Instruction::with3(code, half, half, self.memory(place, false))
            }
        };
        self.a.add_instruction(and?)?;
        let code = self.pick(C::VEX_Vcvtph2ps_ymm_xmmm128, C::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae);
        self.a.add_instruction(Instruction::with2(code, self.register(to), half)?)
    }
    /// Bytes or words.
    pub fn packed(
        &mut self,
        op: Packed,
        to: Vector,
        x: Vector,
        y: impl Into<VectorOperand>,
    ) -> Result<(), IcedError> {
        use Code as C;
        let code = match op {
            Packed::BytePairs => {
                self.pick(C::VEX_Vpmaddubsw_ymm_ymm_ymmm256, C::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512)
            }
            Packed::WordPairs => {
                self.pick(C::VEX_Vpmaddwd_ymm_ymm_ymmm256, C::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512)
            }
            Packed::AddBytes => {
                self.pick(C::VEX_Vpdpbusd_ymm_ymm_ymmm256, C::EVEX_Vpdpbusd_zmm_k1z_zmm_zmmm512b32)
            }
            Packed::Sign => C::VEX_Vpsignb_ymm_ymm_ymmm256,
        };
        self.three(code, to, x, y.into())
    }

    /// Magnitudes of signed bytes.
    pub fn abs_bytes(&mut self, to: Vector, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpabsb_ymm_ymmm256, Code::EVEX_Vpabsb_zmm_k1z_zmmm512);
        self.two(code, to, from.into())
    }
}
