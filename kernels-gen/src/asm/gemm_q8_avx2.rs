//! `Decode`, `DecodeWords` and `GemmQ8` in 256 bits. All need AVX2, decoding F16C too, `GemmQ8` FMA and
//! AVX-VNNI.
//!
//! Tile of a pass of `GemmQ8`: 16 rows (the lanes, eight to a vector) x up to 3 tokens; an int32 and a f32
//! accumulator per vector and token. An activation is broadcast once for both vectors, so that loads stay
//! below the multiplications.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::decoder::{first_block, next_block};
use super::dot_q8_avx2::{Constants, load_nibbles, load_row_scale};
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::data_lines;
use crate::ukernel::gemm_q8::{
    DECODED_BLOCK, DECODED_DATA, DECODED_TILE, DotStep, PANEL_BLOCK, PANEL_SCALES, PANEL_STARTS, WORDS_BLOCK,
    WORDS_DATA,
};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, AsmRegisterYmm, CodeAssembler, dword_ptr, qword_ptr, ymmword_ptr};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(
            ukernel,
            MicroKernel::Decode { .. } | MicroKernel::DecodeWords { format: WeightFormat::Int8 }
        )
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Decode { format } => decode(a, format),
        MicroKernel::DecodeWords { .. } => decode_words(a),
        _ => Ok(()),
    },
};

/// Multiplying with `vpdpbusd`, VEX-encoded.
pub const VNNI: AsmKernel = AsmKernel {
    name: "gemm_q8_avx2vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| ukernel.is_gemm(DotStep::K4),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmQ8 { tiles, tokens, .. } => GemmQ8Avx2::new().emit(a, tiles, tokens),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of rows in a pass.
const VECTORS: usize = 2;
/// Tokens of a pass at most.
const TOKENS: usize = 3;

fn decode(a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [scales, data, out] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let mut constants = Constants { base: regs.general(), label: a.create_label() };
    let (table, bytes, scale) = (regs.half(), regs.halves(8), regs.halves(2));
    regs.save(a)?;
    a.lea(constants.base, qword_ptr(constants.label))?;
    if has_table(format) {
        a.vmovdqu(table, constants.table())?;
    }
    let lines = data_lines(format);
    let labels = first_block(a)?;
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
        if !has_nibbles(format) {
            a.vmovdqu(bytes[vector % 8], source)?;
            a.vmovdqu(place(line), bytes[vector % 8])?;
            continue;
        }
        let pair = [bytes[vector * 2 % 8], bytes[(vector * 2 + 1) % 8]];
        load_nibbles(a, format, pair, source, table, &constants)?;
        a.vmovdqu(place(2 * line), pair[0])?;
        a.vmovdqu(place(2 * line + 1), pair[1])?;
    }
    next_block(a, format, DECODED_BLOCK, labels)?;
    regs.restore_and_return(a)?;
    constants.emit(a, format)
}

fn decode_words(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let format = WeightFormat::Int8;
    let mut regs = Regs::with_params(4);
    let [scales, data, out] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let mut constants = Constants { base: regs.general(), label: a.create_label() };
    let (signs, even, odd, w) = (regs.half(), regs.halves(2), regs.halves(2), regs.half());
    regs.save(a)?;
    a.lea(constants.base, qword_ptr(constants.label))?;
    a.vmovdqu(signs, constants.sign_bits())?;
    let labels = first_block(a)?;
    for half in 0..2 {
        load_row_scale(a, format, w, scales, half, &constants)?;
        a.vmovups(ymmword_ptr(out + half * BYTES), w)?;
    }
    for vector in 0..2 * data_lines(format) {
        let (line, half) = (vector / 2, vector % 2);
        let place = |line: usize| ymmword_ptr(out + (WORDS_DATA + line * LINE + half * BYTES));
        let (even, odd) = (even[half], odd[half]);
        a.vpxor(odd, signs, ymmword_ptr(data + vector * BYTES))?;
        a.vpsllw(even, odd, 8)?;
        a.vpsraw(even, even, 8)?;
        a.vpsraw(odd, odd, 8)?;
        a.vmovdqu(place(line), even)?;
        a.vmovdqu(place(BLOCK / 4 + line), odd)?;
    }
    next_block(a, format, WORDS_BLOCK, labels)?;
    regs.restore_and_return(a)?;
    constants.emit(a, format)
}

struct GemmQ8Avx2 {
    regs: Regs,
    /// Weights of one pass, advancing, as are the next two.
    weights: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// A line of weights.
    line: [AsmRegisterYmm; VECTORS],
    activations: AsmRegisterYmm,
    /// `[token][row vector]`, of one pass.
    ints: Vec<AsmRegisterYmm>,
    /// Sums in f32, laid out as `ints`.
    floats: Vec<AsmRegisterYmm>,
}

impl GemmQ8Avx2 {
    fn new() -> GemmQ8Avx2 {
        let mut regs = Regs::with_params(6);
        GemmQ8Avx2 {
            weights: regs.general(),
            panel: regs.general(),
            blocks: regs.general(),
            line: [regs.half(), regs.half()],
            activations: regs.half(),
            ints: regs.halves(VECTORS * TOKENS),
            floats: regs.halves(VECTORS * TOKENS),
            regs,
        }
    }

    fn emit(self, a: &mut CodeAssembler, tiles: usize, tokens: usize) -> Result<(), IcedError> {
        let blocks = PARAMS[3];
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        // Passes of nearly equal numbers of tokens.
        let passes = tokens.div_ceil(TOKENS);
        for pass in 0..passes {
            let (first, end) = (tokens * pass / passes, tokens * (pass + 1) / passes);
            (0..tiles).try_for_each(|tile| self.pass(a, tile, first, end - first))?;
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)
    }

    /// All blocks of `count` tokens from `first` by a tile.
    fn pass(&self, a: &mut CodeAssembler, tile: usize, first: usize, count: usize) -> Result<(), IcedError> {
        let [weights, panel, blocks] = [PARAMS[0], PARAMS[1], PARAMS[3]];
        let floats = &self.floats[..count * VECTORS];
        self.sums(a, tile, first)?;
        for floats in floats.chunks(VECTORS) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(*float, ymmword_ptr(SCRATCH + i * BYTES))?;
            }
            a.add(SCRATCH, PARAMS[4])?;
        }
        a.lea(self.weights, qword_ptr(weights + tile * DECODED_TILE))?;
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
        for floats in floats.chunks(VECTORS) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(ymmword_ptr(SCRATCH + i * BYTES), *float)?;
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
        let (ints, floats) = (&self.ints[..count * VECTORS], &self.floats[..count * VECTORS]);
        for (token, ints) in ints.chunks(VECTORS).enumerate() {
            for int in ints {
                a.vpbroadcastd(*int, dword_ptr(self.panel + (PANEL_STARTS + (first + token) * 4)))?;
            }
        }
        for quad in 0..BLOCK / 4 {
            for (i, line) in self.line.iter().enumerate() {
                let offset = DECODED_DATA + quad * LINE + i * BYTES;
                a.vmovdqu(*line, ymmword_ptr(self.weights + offset))?;
            }
            for (token, ints) in ints.chunks(VECTORS).enumerate() {
                let offset = (first + token) * BLOCK + quad * 4;
                a.vpbroadcastd(self.activations, dword_ptr(self.panel + offset))?;
                for (int, line) in ints.iter().zip(&self.line) {
                    a.vpdpbusd(*int, *line, self.activations)?;
                }
            }
        }
        for (i, w) in self.line.iter().enumerate() {
            a.vmovups(*w, ymmword_ptr(self.weights + i * BYTES))?;
        }
        let a_scale = self.activations;
        for (token, (ints, floats)) in ints.chunks(VECTORS).zip(floats.chunks(VECTORS)).enumerate() {
            a.vbroadcastss(a_scale, dword_ptr(self.panel + (PANEL_SCALES + (first + token) * 4)))?;
            for (i, ((int, float), w)) in ints.iter().zip(floats).zip(&self.line).enumerate() {
                a.vfmadd213ps(*int, *w, ymmword_ptr(self.weights + (LINE + i * BYTES)))?;
                a.vfmadd231ps(*float, *int, a_scale)?;
            }
        }
        Ok(())
    }
}
