//! Elements narrower than the lanes of vectors: loading and storing them, and arithmetic of bytes and words.

use super::vector::{Address, Vector, VectorOperand, Vectors, Width, with_source};
use iced_x86::{Code, IcedError, Instruction, Register};

/// Arithmetic of bytes and of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `x - y` by words.
    SubWords,
    /// Words: sums of two products of unsigned bytes of x and signed ones of y, saturated.
    BytePairs,
    /// i32: sums of two products of words.
    WordPairs,
    /// i32: to plus four products of unsigned bytes of x and signed ones of y.
    AddBytes,
    /// i32: to plus two products of words.
    AddWords,
    /// x by bytes with the signs of y; 256 bits only.
    Sign,
    /// `x + y` by words.
    SumWords,
    /// `x - y` by bytes.
    SubBytes,
    /// `x - y` by i32.
    SubInts,
    /// Words of x as unsigned bytes, saturated, then those of y; in each 128 bits.
    PackWords,
    /// Bytes of the lower halves of x and y in turn, in each 128 bits.
    LowBytes,
    /// Bytes of the upper halves in turn.
    HighBytes,
    /// Words of the lower halves in turn.
    LowWords,
    /// Words of the upper halves in turn.
    HighWords,
}

impl Vectors<'_> {
    /// The lower half, as a vector of its own; of the first sixteen registers.
    pub fn half(&self, vector: Vector) -> Register {
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
            Packed::SubWords => self.pick(C::VEX_Vpsubw_ymm_ymm_ymmm256, C::EVEX_Vpsubw_zmm_k1z_zmm_zmmm512),
            Packed::BytePairs => {
                self.pick(C::VEX_Vpmaddubsw_ymm_ymm_ymmm256, C::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512)
            }
            Packed::WordPairs => {
                self.pick(C::VEX_Vpmaddwd_ymm_ymm_ymmm256, C::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512)
            }
            Packed::AddBytes => {
                self.pick(C::VEX_Vpdpbusd_ymm_ymm_ymmm256, C::EVEX_Vpdpbusd_zmm_k1z_zmm_zmmm512b32)
            }
            Packed::AddWords => {
                self.pick(C::VEX_Vpdpwssd_ymm_ymm_ymmm256, C::EVEX_Vpdpwssd_zmm_k1z_zmm_zmmm512b32)
            }
            Packed::Sign => C::VEX_Vpsignb_ymm_ymm_ymmm256,
            Packed::SumWords => self.pick(C::VEX_Vpaddw_ymm_ymm_ymmm256, C::EVEX_Vpaddw_zmm_k1z_zmm_zmmm512),
            Packed::SubBytes => self.pick(C::VEX_Vpsubb_ymm_ymm_ymmm256, C::EVEX_Vpsubb_zmm_k1z_zmm_zmmm512),
            Packed::SubInts => {
                self.pick(C::VEX_Vpsubd_ymm_ymm_ymmm256, C::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32)
            }
            Packed::PackWords => {
                self.pick(C::VEX_Vpackuswb_ymm_ymm_ymmm256, C::EVEX_Vpackuswb_zmm_k1z_zmm_zmmm512)
            }
            Packed::LowBytes => {
                self.pick(C::VEX_Vpunpcklbw_ymm_ymm_ymmm256, C::EVEX_Vpunpcklbw_zmm_k1z_zmm_zmmm512)
            }
            Packed::HighBytes => {
                self.pick(C::VEX_Vpunpckhbw_ymm_ymm_ymmm256, C::EVEX_Vpunpckhbw_zmm_k1z_zmm_zmmm512)
            }
            Packed::LowWords => {
                self.pick(C::VEX_Vpunpcklwd_ymm_ymm_ymmm256, C::EVEX_Vpunpcklwd_zmm_k1z_zmm_zmmm512)
            }
            Packed::HighWords => {
                self.pick(C::VEX_Vpunpckhwd_ymm_ymm_ymmm256, C::EVEX_Vpunpckhwd_zmm_k1z_zmm_zmmm512)
            }
        };
        self.three(code, to, x, y.into())
    }

    /// Magnitudes of signed bytes.
    pub fn abs_bytes(&mut self, to: Vector, from: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpabsb_ymm_ymmm256, Code::EVEX_Vpabsb_zmm_k1z_zmmm512);
        self.two(code, to, from.into())
    }
    /// Words shifted down, zeros following.
    pub fn shift_words_right(&mut self, to: Vector, x: Vector, bits: u32) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpsrlw_ymm_ymm_imm8, Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8);
        let instruction = Instruction::with3(code, self.register(to), self.register(x), bits)?;
        self.a.add_instruction(instruction)
    }

    /// Unsigned bytes as i32.
    pub fn load_bytes(&mut self, to: Vector, from: Address) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpmovzxbd_ymm_xmmm64, Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128);
        self.two(code, to, from.into())
    }

    /// The lower 256 bits, zeros above. 512-bit vectors.
    pub fn load_half(&mut self, to: Vector, from: Address) -> Result<(), IcedError> {
        let load =
            Instruction::with2(Code::VEX_Vmovups_ymm_ymmm256, self.half(to), self.memory(from, false))?;
        self.a.add_instruction(load)
    }

    /// Lanes of `from` by the numbers in `order`. 512-bit vectors.
    pub fn pick_lanes(&mut self, to: Vector, order: Vector, from: VectorOperand) -> Result<(), IcedError> {
        self.three(Code::EVEX_Vpermps_zmm_k1z_zmm_zmmm512b32, to, order, from)
    }

    /// i32 lanes shifted down by the numbers in `bits`, zeros following.
    pub fn shift_right_by(&mut self, to: Vector, x: Vector, bits: Vector) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32);
        self.three(code, to, x, bits.into())
    }

    /// Signed bytes as i32.
    pub fn load_signed_bytes(&mut self, to: Vector, from: Address) -> Result<(), IcedError> {
        let code = self.pick(Code::VEX_Vpmovsxbd_ymm_xmmm64, Code::EVEX_Vpmovsxbd_zmm_k1z_xmmm128);
        self.two(code, to, from.into())
    }

    /// To the lower words of 32 bits, which are 0, those of `from`; `lower` is their mask.
    pub fn put_low_words(&mut self, to: Vector, from: Vector, lower: VectorOperand) -> Result<(), IcedError> {
        // The upper 16 of each 32 bits from the second source.
        const UPPER_WORDS: u32 = 0xaa;
        // The first, with what the second and the third have in common.
        const FIRST_OR_BOTH: u32 = 0xf8;
        let [to, from] = [to, from].map(|vector| self.register(vector));
        let instruction = match (self.width, lower) {
            (Width::Half, _) => {
                Instruction::with4(Code::VEX_Vpblendw_ymm_ymm_ymmm256_imm8, to, from, to, UPPER_WORDS)
            }
            (Width::Full, lower) => {
                let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
                with_source!(self, lower => Instruction::with4(code, to, from, lower, FIRST_OR_BOTH))
            }
        };
        self.a.add_instruction(instruction?)
    }

    /// Sixteen i32 that fit as words: of the first vector, or of two, of which the first is overwritten.
    pub fn store_words(&mut self, place: Address, integers: [Vector; 2]) -> Result<(), IcedError> {
        // 64 bits in the order 0, 2, 1, 3.
        const MIDDLE_SWAPPED: u32 = 0b11_01_10_00;
        let [first, second] = integers.map(|vector| self.register(vector));
        if self.width == Width::Full {
            let memory = self.memory(place, false);
            let instruction = Instruction::with2(Code::EVEX_Vpmovdw_ymmm256_k1z_zmm, memory, first)?;
            return self.a.add_instruction(instruction);
        }
        let code = Code::VEX_Vpackssdw_ymm_ymm_ymmm256;
        self.a.add_instruction(Instruction::with3(code, first, first, second)?)?;
        let code = Code::VEX_Vpermq_ymm_ymmm256_imm8;
        self.a.add_instruction(Instruction::with3(code, first, first, MIDDLE_SWAPPED)?)?;
        self.store(place, integers[0])
    }
}
