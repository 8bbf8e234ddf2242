//! `GemmQ8` in 256 bits without VNNI. Needs AVX2 and FMA.
//!
//! What costs most without VNNI is to widen: `vpmaddubsw` leaves pairs of products in 16 bits, and one more multiplication, `vpmaddwd` by
//! ones, makes them 32 bits. So they are added up in 16 bits first, as long as they surely fit. Rows are lanes, eight to a vector; tile of a pass:
//! - small weights (at most 24): 16 rows x up to 3 tokens. A pair is at least -2 * 24 * 128, four of them -24576: every fourth line is widened.
//! - bytes: 8 rows x up to 6 tokens. Low and high nibbles are multiplied one after the other. A pair is at least -2 * 15 * 128, the eight of a
//!   block -30720: each sum is widened once a block, that of the high nibbles by sixteens. That is two multiplications a line, as many as
//!   with widening every line; but whole bytes would saturate, unless signs were moved from one operand to the other (`vpsignb`, `vpabsb`), for
//!   which a Zen 4 has no units but the multipliers. From three tokens on it is a fifth faster this way, and it is right for every byte.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::Wide;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::leaf::Leaf;
use crate::leaf::gemm_q8::{
    DECODED_BLOCK, DECODED_DATA, DECODED_TILE, PANEL_BLOCK, PANEL_SCALES, PANEL_STARTS,
};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr,
    ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE};

/// The version.
pub const WIDE: Wide = Wide {
    name: "gemm_q8_avx2",
    levels: |_| true,
    serves: |leaf| matches!(leaf, Leaf::GemmQ8 { tiles: 1..=2, tokens: 1..=6, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::GemmQ8 { weights, tiles, tokens } => {
            Gemm::new(a, weights.is_small(), tokens).emit(a, tiles, tokens)
        }
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Lines of weights of a block.
const LINES: usize = BLOCK / 4;
/// Lines whose products with small weights add up in 16 bits.
const SMALL_LINES: usize = 4;
/// For the nibbles of bytes.
const MASK: u32 = 0x0f0f_0f0f;
/// Of int16.
const ONES: u32 = 0x0001_0001;
/// Of int16.
const SIXTEENS: u32 = 0x0010_0010;
const CONSTANTS: [u32; 3] = [MASK, ONES, SIXTEENS];
/// Tokens whose sums one pointer reaches.
const TOKENS_PER_BASE: usize = 3;

/// Two registers: of a line's two vectors of small weights, or of the low and the high nibbles of one vector of bytes.
type Pair = [AsmRegisterYmm; 2];

struct Gemm {
    small: bool,
    /// Of a pass, at most.
    tokens: usize,
    regs: Regs,
    /// Of one pass, advancing, as are the next two.
    weights: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// Where the pass's sums of its first token and of its fourth are.
    sums: [AsmRegister64; 2],
    line: Pair,
    /// The first is that of the activations too.
    products: Pair,
    /// Sums of products in 16 bits, by token.
    words: Vec<Pair>,
    /// Of small weights in 32 bits, by token.
    ints: Vec<Pair>,
    /// Sums in f32, `[token][row vector]`; in memory all the while if there is no room for them.
    floats: Vec<AsmRegisterYmm>,
    constants: CodeLabel,
}

impl Gemm {
    fn new(a: &mut CodeAssembler, small: bool, tokens: usize) -> Gemm {
        let mut regs = Regs::with_params(6);
        let general = [(); 5].map(|()| regs.general());
        let mut pairs =
            |count: usize| -> Vec<Pair> { (0..count).map(|_| [regs.half(), regs.half()]).collect() };
        let most = if small { 3 } else { 6 };
        // Passes of nearly equal numbers of tokens.
        let tokens = tokens.div_ceil(tokens.div_ceil(most));
        let (line, products) = (pairs(1)[0], pairs(1)[0]);
        let (words, ints) = (pairs(tokens), pairs(if small { tokens } else { 0 }));
        let room = tokens <= if small { 2 } else { 4 };
        let floats = regs.halves(if room { tokens * vectors(small) } else { 0 });
        let [weights, panel, blocks, first, fourth] = general;
        let (sums, constants) = ([first, fourth], a.create_label());
        Gemm {
            small,
            tokens,
            regs,
            weights,
            panel,
            blocks,
            sums,
            line,
            products,
            words,
            ints,
            floats,
            constants,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler, tiles: usize, tokens: usize) -> Result<(), IcedError> {
        let blocks = PARAMS[3];
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        for first in (0..tokens).step_by(self.tokens) {
            for vector in (0..2 * tiles).step_by(vectors(self.small)) {
                self.pass(a, vector, first, self.tokens.min(tokens - first))?;
            }
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        a.dd(&CONSTANTS)
    }

    /// A constant in every lane. The scratch register points to the constants, which are double words: of whole vectors, whose place depends on
    /// the code before them, some would straddle two lines of the cache, and be twice as slow.
    fn constant(&self, a: &mut CodeAssembler, to: AsmRegisterYmm, value: u32) -> Result<(), IcedError> {
        let index = CONSTANTS.iter().position(|constant| *constant == value).expect("one of them");
        a.vpbroadcastd(to, dword_ptr(SCRATCH + 4 * index))
    }

    /// The pass's sums of a token and a row vector.
    fn place(&self, token: usize, vector: usize) -> AsmMemoryOperand {
        let (base, stride) = (self.sums[token / TOKENS_PER_BASE], PARAMS[4]);
        match token % TOKENS_PER_BASE {
            0 => ymmword_ptr(base + vector * BYTES),
            1 => ymmword_ptr(base + stride + vector * BYTES),
            _ => ymmword_ptr(base + stride * 2 + vector * BYTES),
        }
    }

    /// All blocks of `count` tokens from `first` by the row vectors from number `vector`.
    fn pass(
        &self,
        a: &mut CodeAssembler,
        vector: usize,
        first: usize,
        count: usize,
    ) -> Result<(), IcedError> {
        let [weights, panel, sums, blocks, stride, gap] = PARAMS;
        let (tile, offset) = (vector / 2, vector % 2 * BYTES);
        a.lea(self.sums[0], qword_ptr(sums + offset))?;
        (0..tile).try_for_each(|_| a.add(self.sums[0], gap))?;
        (0..first).try_for_each(|_| a.add(self.sums[0], stride))?;
        if count > TOKENS_PER_BASE {
            a.lea(self.sums[1], qword_ptr(self.sums[0] + stride * 2))?;
            a.add(self.sums[1], stride)?;
        }
        a.lea(self.weights, qword_ptr(weights + (tile * DECODED_TILE + offset)))?;
        a.mov(self.panel, panel)?;
        a.mov(self.blocks, blocks)?;
        let floats = &self.floats[..self.floats.len().min(count * vectors(self.small))];
        let place = |i: usize| self.place(i / vectors(self.small), i % vectors(self.small));
        floats.iter().enumerate().try_for_each(|(i, float)| a.vmovups(*float, place(i)))?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, first, count)?;
        a.add(self.weights, DECODED_BLOCK as i32)?;
        a.add(self.panel, PANEL_BLOCK as i32)?;
        a.dec(self.blocks)?;
        a.jne(again)?;
        floats.iter().enumerate().try_for_each(|(i, float)| a.vmovups(place(i), *float))
    }

    fn one_block(&self, a: &mut CodeAssembler, first: usize, count: usize) -> Result<(), IcedError> {
        let most = if self.small { SMALL_LINES } else { LINES };
        for line in 0..LINES {
            self.load_line(a, line)?;
            for token in 0..count {
                self.multiply(a, token, (first + token) * BLOCK + line * 4, line % most == 0)?;
            }
            if self.small && line % most == most - 1 {
                self.widen(a, count, line < most)?;
            }
        }
        // The scales of both vectors; or of the one, and behind it what takes `MAGIC` away again.
        let [w, second] = self.line;
        a.vmovups(w, ymmword_ptr(self.weights))?;
        a.vmovups(second, ymmword_ptr(self.weights + if self.small { BYTES } else { LINE }))?;
        if !self.small {
            self.constant(a, self.products[1], ONES)?;
        }
        (0..count).try_for_each(|token| self.scale(a, token, first + token))
    }

    fn load_line(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        let [low, high] = self.line;
        let source =
            |vector: usize| ymmword_ptr(self.weights + (DECODED_DATA + line * LINE + vector * BYTES));
        if self.small {
            a.vmovdqu(low, source(0))?;
            return a.vmovdqu(high, source(1));
        }
        let mask = self.products[0];
        a.vmovdqu(high, source(0))?;
        self.constant(a, mask, MASK)?;
        a.vpand(low, high, mask)?;
        a.vpsrlw(high, high, 4)?;
        a.vpand(high, high, mask)
    }

    /// Adds the products of the loaded line and a token's activations, `offset` bytes into the panel's block, to the token's sums of 16 bits, or
    /// starts these with them.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        token: usize,
        offset: usize,
        starts: bool,
    ) -> Result<(), IcedError> {
        let ([low, high], [activations, product], sums) = (self.line, self.products, self.words[token]);
        a.vpbroadcastd(activations, dword_ptr(self.panel + offset))?;
        if starts {
            a.vpmaddubsw(sums[0], low, activations)?;
            return a.vpmaddubsw(sums[1], high, activations);
        }
        // Both multiplications before both additions: a Zen 4 divides these among its units better than one after the other.
        a.vpmaddubsw(product, low, activations)?;
        a.vpmaddubsw(activations, high, activations)?;
        a.vpaddw(sums[0], sums[0], product)?;
        a.vpaddw(sums[1], sums[1], activations)
    }

    /// Adds sums of 16 bits of small weights to those of 32, or starts these with them.
    fn widen(&self, a: &mut CodeAssembler, count: usize, starts: bool) -> Result<(), IcedError> {
        let ones = self.products[0];
        self.constant(a, ones, ONES)?;
        for (word, int) in self.words[..count].as_flattened().iter().zip(self.ints.as_flattened()) {
            if starts {
                a.vpmaddwd(*int, *word, ones)?;
            } else {
                a.vpmaddwd(*word, *word, ones)?;
                a.vpaddd(*int, *int, *word)?;
            }
        }
        Ok(())
    }

    /// Adds a block to the f32 sums of the pass's token `token`, number `row` of the panel.
    fn scale(&self, a: &mut CodeAssembler, token: usize, row: usize) -> Result<(), IcedError> {
        let ([x, y], pair) = (self.products, self.words[token]);
        let ints = if self.small { &self.ints[token][..] } else { &pair[..1] };
        if !self.small {
            let ([low, high], ones) = (pair, y);
            self.constant(a, x, SIXTEENS)?;
            a.vpmaddwd(low, low, ones)?;
            a.vpmaddwd(high, high, x)?;
            a.vpaddd(low, low, high)?;
        }
        a.vpbroadcastd(x, dword_ptr(self.panel + (PANEL_STARTS + row * 4)))?;
        for (vector, int) in ints.iter().enumerate() {
            a.vpaddd(*int, *int, x)?;
            if self.small {
                let negative = ymmword_ptr(self.weights + (LINE + vector * BYTES));
                a.vfmadd213ps(*int, self.line[vector], negative)?;
            } else {
                a.vfmadd213ps(*int, self.line[0], self.line[1])?;
            }
        }
        a.vbroadcastss(x, dword_ptr(self.panel + (PANEL_SCALES + row * 4)))?;
        for (vector, int) in ints.iter().enumerate() {
            if let Some(float) = self.floats.get(token * ints.len() + vector) {
                a.vfmadd231ps(*float, *int, x)?;
                continue;
            }
            let scale = if self.small { y } else { x };
            if self.small {
                a.vmovaps(scale, x)?;
            }
            a.vfmadd213ps(scale, *int, self.place(token, vector))?;
            a.vmovups(self.place(token, vector), scale)?;
        }
        Ok(())
    }
}

/// Of rows, to a pass.
fn vectors(small: bool) -> usize {
    if small { 2 } else { 1 }
}
