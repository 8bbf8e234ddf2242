//! `Decode` and `GemmQ8` in 256 bits. Both need AVX2 and FMA, `Decode` F16C too; the faster of the two versions of `GemmQ8` AVX-VNNI.
//!
//! Tile of a pass of `GemmQ8`: rows are lanes, eight to a vector; an int32 and a f32 accumulator per vector and token.
//! - with VNNI: 16 rows x up to 3 tokens. An activation is broadcast once for both vectors, so that loads stay below the multiplications.
//! - small weights (at most 64) without: 8 rows x up to 6 tokens. Pairs of products (`vpmaddubsw`) lie within -2 * 64 * 128 ..= 2 * 64 * 127,
//!   so two of them add up in 16 bits, to -32768 at least, before `vpmaddwd` by ones widens them.
//! - bytes without: 16 rows x up to 2 tokens. As in `dot_q8_avx2`: the weight's sign bit is flipped back (q in [-127, 127]), the activation's
//!   sign moves to the weight. The products are those of signed weights, so a block starts from `MAGIC` itself, uncorrected.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::Wide;
use super::dot_q8_avx2::{Constants, load_nibbles, load_row_scale};
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::leaf::Leaf;
use crate::leaf::block::{data_lines, scale_bytes};
use crate::leaf::gemm_q8::{
    DECODED_BLOCK, DECODED_DATA, DECODED_TILE, MAGIC, PANEL_BLOCK, PANEL_SCALES, PANEL_STARTS,
};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};
use kernmill_plan::target::Level;

/// Decoding.
pub const DECODE: Wide = Wide {
    name: "decode_avx2",
    levels: |_| true,
    serves: |leaf| matches!(leaf, Leaf::Decode { .. }),
    assemble: |a, leaf| match leaf {
        Leaf::Decode { format } => decode(a, format),
        _ => Ok(()),
    },
};

/// Multiplying with `vpdpbusd`, VEX-encoded.
pub const VNNI: Wide = Wide {
    name: "gemm_q8_avx2vnni",
    levels: |level| level == Level::V3Vnni,
    serves: |leaf| matches!(leaf, Leaf::GemmQ8 { tiles: 1..=2, tokens: 1..=6, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::GemmQ8 { tiles, tokens, .. } => Gemm::new(a, Multiply::Vnni).emit(a, tiles, tokens),
        _ => Ok(()),
    },
};

/// Multiplying without.
pub const PLAIN: Wide = Wide {
    name: "gemm_q8_avx2",
    levels: |_| true,
    serves: |leaf| matches!(leaf, Leaf::GemmQ8 { tiles: 1..=2, tokens: 1..=6, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::GemmQ8 { weights, tiles, tokens } => {
            Gemm::new(a, if weights.is_small() { Multiply::Small } else { Multiply::Bytes })
                .emit(a, tiles, tokens)
        }
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;

fn decode(a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [scales, data, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let mut constants = Constants { base: regs.general(), label: a.create_label() };
    let (table, bytes, scale) = (regs.half(), regs.halves(8), regs.halves(2));
    regs.save(a)?;
    a.lea(constants.base, qword_ptr(constants.label))?;
    if format == WeightFormat::Mxfp4 {
        a.vmovdqu(table, constants.table())?;
    }
    let lines = data_lines(format);
    let (mut again, mut done) = (a.create_label(), a.create_label());
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    for half in 0..2 {
        let [w, negative] = [scale[0], scale[1]];
        load_row_scale(a, format, w, scales, half, &constants)?;
        a.vmulps(negative, w, constants.minus_magic())?;
        a.vmovups(ymmword_ptr(out + half * BYTES), w)?;
        a.vmovups(ymmword_ptr(out + (LINE + half * BYTES)), negative)?;
    }
    for vector in 0..2 * lines {
        let (line, half) = (vector / 2, vector % 2);
        let source = ymmword_ptr(data + vector * BYTES);
        let place = |line: usize| ymmword_ptr(out + (DECODED_DATA + line * LINE + half * BYTES));
        if format == WeightFormat::Int8 {
            a.vmovdqu(bytes[vector % 8], source)?;
            a.vmovdqu(place(line), bytes[vector % 8])?;
            continue;
        }
        let pair = [bytes[vector * 2 % 8], bytes[(vector * 2 + 1) % 8]];
        load_nibbles(a, format, pair, source, table, &constants)?;
        a.vmovdqu(place(2 * line), pair[0])?;
        a.vmovdqu(place(2 * line + 1), pair[1])?;
    }
    a.add(scales, scale_bytes(format) as i32)?;
    a.add(data, (lines * LINE) as i32)?;
    a.add(out, DECODED_BLOCK as i32)?;
    a.dec(blocks)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    constants.emit(a, format)
}

/// How bytes are multiplied.
#[derive(Clone, Copy, PartialEq)]
enum Multiply {
    Vnni,
    Small,
    Bytes,
}

impl Multiply {
    /// Row vectors and tokens of a pass.
    fn shape(self) -> (usize, usize) {
        match self {
            Multiply::Vnni => (2, 3),
            Multiply::Small => (1, 6),
            Multiply::Bytes => (2, 2),
        }
    }
}

struct Gemm {
    multiply: Multiply,
    regs: Regs,
    /// Of one pass, advancing, as are the next two.
    weights: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// Lines of weights: a vector per row vector, or of two lines for small weights.
    lines: [AsmRegisterYmm; 2],
    temporary: Vec<AsmRegisterYmm>,
    /// `[token][row vector]`, of one pass.
    ints: Vec<AsmRegisterYmm>,
    /// As `ints`.
    floats: Vec<AsmRegisterYmm>,
    /// Sixteen 1, as int16.
    ones: CodeLabel,
    sign_bits: CodeLabel,
    magic: CodeLabel,
}

impl Gemm {
    fn new(a: &mut CodeAssembler, multiply: Multiply) -> Gemm {
        let mut regs = Regs::with_params(6);
        let (vectors, tokens) = multiply.shape();
        Gemm {
            multiply,
            weights: regs.general(),
            panel: regs.general(),
            blocks: regs.general(),
            lines: [regs.half(), regs.half()],
            temporary: regs.halves(if multiply == Multiply::Bytes { 3 } else { 2 }),
            ints: regs.halves(vectors * tokens),
            floats: regs.halves(vectors * tokens),
            regs,
            ones: a.create_label(),
            sign_bits: a.create_label(),
            magic: a.create_label(),
        }
    }

    fn emit(mut self, a: &mut CodeAssembler, tiles: usize, tokens: usize) -> Result<(), IcedError> {
        let blocks = PARAMS[3];
        let (vectors, most) = self.multiply.shape();
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        // Passes of nearly equal numbers of tokens.
        let passes = tokens.div_ceil(most);
        for pass in 0..passes {
            let (first, end) = (tokens * pass / passes, tokens * (pass + 1) / passes);
            for vector in (0..2 * tiles).step_by(vectors) {
                self.pass(a, vector, first, end - first)?;
            }
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)?;
        for (label, value) in [
            (&mut self.ones, 0x0001_0001),
            (&mut self.sign_bits, 0x8080_8080),
            (&mut self.magic, MAGIC.to_bits()),
        ] {
            a.set_label(label)?;
            a.dd(&[value; 8])?;
        }
        Ok(())
    }

    /// All blocks of `count` tokens from `first` by the row vectors from number `vector`.
    fn pass(
        &self,
        a: &mut CodeAssembler,
        vector: usize,
        first: usize,
        count: usize,
    ) -> Result<(), IcedError> {
        let [weights, panel, blocks] = [PARAMS[0], PARAMS[1], PARAMS[3]];
        let (vectors, _) = self.multiply.shape();
        let floats = &self.floats[..count * vectors];
        let (tile, half) = (vector / 2, vector % 2);
        self.sums(a, tile, first)?;
        for floats in floats.chunks(vectors) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(*float, ymmword_ptr(SCRATCH + (half + i) * BYTES))?;
            }
            a.add(SCRATCH, PARAMS[4])?;
        }
        a.lea(self.weights, qword_ptr(weights + (tile * DECODED_TILE + half * BYTES)))?;
        a.mov(self.panel, panel)?;
        a.mov(self.blocks, blocks)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, first, count)?;
        a.add(self.weights, DECODED_BLOCK as i32)?;
        a.add(self.panel, PANEL_BLOCK as i32)?;
        a.dec(self.blocks)?;
        a.jne(again)?;
        self.sums(a, tile, first)?;
        for floats in floats.chunks(vectors) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(ymmword_ptr(SCRATCH + (half + i) * BYTES), *float)?;
            }
            a.add(SCRATCH, PARAMS[4])?;
        }
        Ok(())
    }

    /// Where a tile's sums of a token are, in the scratch register.
    fn sums(&self, a: &mut CodeAssembler, tile: usize, token: usize) -> Result<(), IcedError> {
        let [sums, stride, gap] = [PARAMS[2], PARAMS[4], PARAMS[5]];
        a.mov(SCRATCH, sums)?;
        for _ in 0..tile {
            a.add(SCRATCH, gap)?;
        }
        (0..token).try_for_each(|_| a.add(SCRATCH, stride))
    }

    fn one_block(&self, a: &mut CodeAssembler, first: usize, count: usize) -> Result<(), IcedError> {
        let (vectors, _) = self.multiply.shape();
        let (ints, floats) = (&self.ints[..count * vectors], &self.floats[..count * vectors]);
        for (token, ints) in ints.chunks(vectors).enumerate() {
            for int in ints {
                match self.multiply {
                    Multiply::Bytes => a.vmovdqu(*int, ymmword_ptr(self.magic))?,
                    _ => {
                        a.vpbroadcastd(*int, dword_ptr(self.panel + (PANEL_STARTS + (first + token) * 4)))?;
                    }
                }
            }
        }
        let step = if self.multiply == Multiply::Small { 2 } else { 1 };
        for quad in (0..BLOCK / 4).step_by(step) {
            for (i, line) in self.lines.iter().enumerate() {
                // Two lines of one row vector, or one of two.
                let offset = if step == 2 { (quad + i) * LINE } else { quad * LINE + i * BYTES };
                a.vmovdqu(*line, ymmword_ptr(self.weights + (DECODED_DATA + offset)))?;
                if self.multiply == Multiply::Bytes {
                    a.vpxor(*line, *line, ymmword_ptr(self.sign_bits))?;
                }
            }
            for (token, ints) in ints.chunks(vectors).enumerate() {
                self.multiply(a, ints, (first + token) * BLOCK + quad * 4)?;
            }
        }
        for (i, w) in self.lines[..vectors].iter().enumerate() {
            a.vmovups(*w, ymmword_ptr(self.weights + i * BYTES))?;
        }
        let a_scale = self.temporary[0];
        for (token, (ints, floats)) in ints.chunks(vectors).zip(floats.chunks(vectors)).enumerate() {
            a.vbroadcastss(a_scale, dword_ptr(self.panel + (PANEL_SCALES + (first + token) * 4)))?;
            for (i, ((int, float), w)) in ints.iter().zip(floats).zip(&self.lines).enumerate() {
                a.vfmadd213ps(*int, *w, ymmword_ptr(self.weights + (LINE + i * BYTES)))?;
                a.vfmadd231ps(*float, *int, a_scale)?;
            }
        }
        Ok(())
    }

    /// Adds the products of the loaded lines and a token's activations, `offset` bytes into the panel's block.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        ints: &[AsmRegisterYmm],
        offset: usize,
    ) -> Result<(), IcedError> {
        let [x, y] = [self.temporary[0], self.temporary[1]];
        let ones = ymmword_ptr(self.ones);
        a.vpbroadcastd(x, dword_ptr(self.panel + offset))?;
        match self.multiply {
            Multiply::Vnni => {
                ints.iter().zip(&self.lines).try_for_each(|(int, line)| a.vpdpbusd(*int, *line, x))
            }
            Multiply::Small => {
                a.vpmaddubsw(x, self.lines[0], x)?;
                a.vpbroadcastd(y, dword_ptr(self.panel + (offset + 4)))?;
                a.vpmaddubsw(y, self.lines[1], y)?;
                a.vpaddw(x, x, y)?;
                a.vpmaddwd(x, x, ones)?;
                a.vpaddd(ints[0], ints[0], x)
            }
            Multiply::Bytes => {
                let signed = self.temporary[2];
                a.vpabsb(y, x)?;
                for (int, line) in ints.iter().zip(&self.lines) {
                    a.vpsignb(signed, *line, x)?;
                    a.vpmaddubsw(signed, y, signed)?;
                    a.vpmaddwd(signed, signed, ones)?;
                    a.vpaddd(*int, *int, signed)?;
                }
                Ok(())
            }
        }
    }
}
