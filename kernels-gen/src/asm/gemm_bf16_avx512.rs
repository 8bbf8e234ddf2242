//! `DecodeBf16` and `GemmBf16` in 512 bits. Need AVX-512 F, BW and DQ.
//!
//! Tile of `GemmBf16`: one or two times 16 rows (the lanes) x up to 6 tokens, two accumulators each, for even
//! and for odd k. Its bounds are 4 fmas a line and token, and the two operations that take a pair of
//! activations apart. Clobbers: caller-saved registers and flags.

use super::AsmKernel;
use super::decoder::{first_block, next_block_ahead};
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_bf16::{DECODED_BLOCK, DECODED_TILE, PANEL_BLOCK, ROW_BYTES, SMALL, Shape};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr, k1, qword_ptr, xmmword_ptr,
    zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_bf16_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::DecodeBf16,
    assemble: |a, _| decode(a),
};

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_bf16_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::GemmBf16(Shape { tiles: 1..=2, .. })),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmBf16(shape) => GemmBf16Avx512::assemble(a, shape),
        _ => Ok(()),
    },
};

/// The E2M1 values as bf16, by code; the zero of the upper half is +0 as well.
pub const BF16_TABLE: [u16; 16] = [
    0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x0000, 0xbf00, 0xbf80, 0xbfc0, 0xc000,
    0xc040, 0xc080, 0xc0c0,
];
/// The upper bf16 of two.
const UPPER: u32 = 0xffff_0000;

/// How to shuffle a line so that each row has a word for byte `start` of its four, and one for the byte
/// behind it.
pub fn pairs_of_words(start: usize) -> Vec<u8> {
    let bytes = (0..TILE_ROWS).flat_map(|row| [0, 1].map(|j| (row % 4 * 4 + start + j) as u8));
    bytes.flat_map(|byte| [byte, 0x80]).collect()
}

fn decode(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(5);
    let [scales, data, out, _, ahead, ..] = PARAMS;
    let [scale, smallest, table, first, second, upper] = [(); 6].map(|()| regs.vector());
    let [nibbles, low, high] = [(); 3].map(|()| regs.vector());
    let mut constants = a.create_label();
    regs.save(a)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    a.vmovdqu64(table, zmmword_ptr(SCRATCH))?;
    a.vmovdqu64(first, zmmword_ptr(SCRATCH + LINE))?;
    a.vmovdqu64(second, zmmword_ptr(SCRATCH + 2 * LINE))?;
    a.vpbroadcastd(smallest, dword_ptr(SCRATCH + 3 * LINE))?;
    a.vpbroadcastd(upper, dword_ptr(SCRATCH + (3 * LINE + 4)))?;
    let labels = first_block(a)?;
    for line in 0..4 {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    a.vpmovzxbd(scale, xmmword_ptr(scales))?;
    a.vpslld(scale, scale, 23)?;
    // A scale byte of 0 stands for 2^-127, whose bits are below those of every other.
    a.vpmaxud(scale, scale, smallest)?;
    for line in 0..4 {
        a.vmovdqu64(nibbles, zmmword_ptr(data + line * LINE))?;
        for half in 0..2 {
            if half == 1 {
                a.vpsrlw(nibbles, nibbles, 4)?;
            }
            for (pair, bytes) in [first, second].into_iter().enumerate() {
                // Two words per row; of a word as an index the low five bits count, and the table repeats
                // every 16.
                a.vpshufb(low, nibbles, bytes)?;
                a.vpermw(low, low, table)?;
                a.vpandd(high, low, upper)?;
                a.vpslld(low, low, 16)?;
                a.vmulps(high, high, scale)?;
                a.vmulps(low, low, scale)?;
                a.vpsrld(low, low, 16)?;
                a.vpord(low, low, high)?;
                a.vmovdqu64(zmmword_ptr(out + (line * 4 + half * 2 + pair) * LINE), low)?;
            }
        }
    }
    next_block_ahead(a, WeightFormat::Mxfp4, DECODED_BLOCK, labels)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dw(&BF16_TABLE.repeat(2))?;
    for start in [0, 2] {
        a.db(&pairs_of_words(start))?;
    }
    a.dd(&[0x0040_0000, UPPER])
}

/// Tokens of a pass: as many as there are accumulators for, then what is left.
const PASSES: [usize; 3] = [6, 2, 1];

/// Registers of a gemm.
struct GemmBf16Avx512 {
    shape: Shape,
    weights: AsmRegister64,
    panel: AsmRegister64,
    sums: AsmRegister64,
    blocks: AsmRegister64,
    tokens: AsmRegister64,
    /// Where a pass is: in weights, in the panel; blocks and lines to do.
    now: [AsmRegister64; 4],
    /// Even and odd k, by token and tile.
    halves: Vec<[AsmRegisterZmm; 2]>,
    lines: Vec<[AsmRegisterZmm; 2]>,
    pair: [AsmRegisterZmm; 2],
    upper: AsmRegisterZmm,
    sign: AsmRegisterZmm,
}

impl GemmBf16Avx512 {
    fn assemble(a: &mut CodeAssembler, shape: Shape) -> Result<(), IcedError> {
        let mut regs = Regs::with_params(5);
        let now = [(); 4].map(|()| regs.general());
        let mut two = || [regs.vector(), regs.vector()];
        let gemm = GemmBf16Avx512 {
            shape,
            weights: PARAMS[0],
            panel: PARAMS[1],
            sums: PARAMS[2],
            blocks: PARAMS[3],
            tokens: PARAMS[4],
            now,
            halves: (0..PASSES[0] * shape.tiles).map(|_| two()).collect(),
            lines: (0..shape.tiles).map(|_| two()).collect(),
            pair: two(),
            upper: regs.vector(),
            sign: regs.vector(),
        };
        let mut constants = a.create_label();
        let (mut done, close, plain) = (a.create_label(), a.create_label(), a.create_label());
        regs.save(a)?;
        a.test(gemm.blocks, gemm.blocks)?;
        a.je(done)?;
        a.lea(SCRATCH, qword_ptr(constants))?;
        gemm.look_for_small(a)?;
        a.vpbroadcastd(gemm.upper, dword_ptr(SCRATCH))?;
        a.vpbroadcastd(gemm.sign, dword_ptr(SCRATCH + 4))?;
        a.kortestd(k1, k1)?;
        a.je(plain)?;
        gemm.passes(a, true, close, done)?;
        gemm.passes(a, false, plain, done)?;
        a.set_label(&mut done)?;
        regs.restore_and_return(a)?;
        a.set_label(&mut constants)?;
        a.dd(&[UPPER, 0x8000_0000, 0x7fff_7fff, u32::from(SMALL - 1) * 0x1_0001])
    }

    /// k1 tells of elements that are nonzero and below [`SMALL`].
    fn look_for_small(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let [weights, panel, blocks, rows] = self.now;
        let [[least, ones], [magnitude, limit]] = [self.halves[0], self.halves[1]];
        let mut free = self.halves[2..].iter().flatten().copied().cycle();
        let mut look = |a: &mut CodeAssembler, place| {
            let x = free.next().expect("a cycle");
            a.vpandd(x, magnitude, place)?;
            // One below, so that zeros are the largest.
            a.vpaddw(x, x, ones)?;
            a.vpminuw(least, least, x)
        };
        a.vpbroadcastd(magnitude, dword_ptr(SCRATCH + 8))?;
        a.vpbroadcastd(limit, dword_ptr(SCRATCH + 12))?;
        a.vpternlogd(ones, ones, ones, 0xff)?;
        a.vmovdqa64(least, ones)?;
        a.mov(weights, self.weights)?;
        a.mov(blocks, self.blocks)?;
        a.mov(panel, self.panel)?;
        let mut next_block = a.create_label();
        a.set_label(&mut next_block)?;
        for tile in 0..self.shape.tiles {
            for line in 0..BLOCK / 2 {
                look(a, zmmword_ptr(weights + (tile * DECODED_TILE + line * LINE)))?;
            }
        }
        a.add(weights, DECODED_BLOCK as i32)?;
        a.dec(blocks)?;
        a.jne(next_block)?;
        a.mov(blocks, self.blocks)?;
        let mut next_panel = a.create_label();
        a.set_label(&mut next_panel)?;
        a.mov(weights, panel)?;
        a.mov(rows, self.tokens)?;
        let mut next_row = a.create_label();
        a.set_label(&mut next_row)?;
        look(a, zmmword_ptr(weights))?;
        a.add(weights, ROW_BYTES as i32)?;
        a.dec(rows)?;
        a.jne(next_row)?;
        a.add(panel, PANEL_BLOCK as i32)?;
        a.dec(blocks)?;
        a.jne(next_panel)?;
        // Less than.
        a.vpcmpuw(k1, least, limit, 1)
    }

    /// All tokens; the code starts at one label and micro-kernels for the other.
    fn passes(
        &self,
        a: &mut CodeAssembler,
        flush: bool,
        mut start: CodeLabel,
        done: CodeLabel,
    ) -> Result<(), IcedError> {
        for tokens in PASSES {
            let fewer = if tokens == 1 { done } else { a.create_label() };
            a.set_label(&mut start)?;
            a.cmp(self.tokens, tokens as i32)?;
            a.jb(fewer)?;
            self.pass(a, tokens, flush)?;
            a.add(self.panel, (tokens * ROW_BYTES) as i32)?;
            a.add(self.sums, (tokens * self.shape.stride) as i32)?;
            a.sub(self.tokens, tokens as i32)?;
            a.jmp(start)?;
            start = fewer;
        }
        Ok(())
    }

    fn pass(&self, a: &mut CodeAssembler, tokens: usize, flush: bool) -> Result<(), IcedError> {
        let tiles = self.shape.tiles;
        let [weights, panel, blocks, lines] = self.now;
        let halves = &self.halves[..tokens * tiles];
        let (mut next_block, mut next_line) = (a.create_label(), a.create_label());
        a.mov(weights, self.weights)?;
        a.mov(panel, self.panel)?;
        a.mov(blocks, self.blocks)?;
        a.set_label(&mut next_block)?;
        for half in halves.iter().flatten() {
            a.vpxord(*half, *half, *half)?;
        }
        a.mov(lines, (BLOCK / 2) as u64)?;
        a.set_label(&mut next_line)?;
        for (tile, line) in self.lines.iter().enumerate() {
            a.vmovdqu64(line[1], zmmword_ptr(weights + tile * DECODED_TILE))?;
            self.take_apart(a, *line, flush)?;
        }
        for (token, halves) in halves.chunks(tiles).enumerate() {
            a.vpbroadcastd(self.pair[1], dword_ptr(panel + token * ROW_BYTES))?;
            self.take_apart(a, self.pair, flush)?;
            for (half, line) in halves.iter().zip(&self.lines) {
                for i in 0..2 {
                    a.vfmadd231ps(half[i], self.pair[i], line[i])?;
                    if flush {
                        self.flush(a, half[i])?;
                    }
                }
            }
        }
        a.add(weights, LINE as i32)?;
        a.add(panel, 4)?;
        a.dec(lines)?;
        a.jne(next_line)?;
        a.add(panel, (PANEL_BLOCK - ROW_BYTES) as i32)?;
        for (at, [even, odd]) in halves.iter().enumerate() {
            let (token, tile) = (at / tiles, at % tiles);
            let place = zmmword_ptr(self.sums + (token * self.shape.stride + tile * self.shape.gap));
            a.vaddps(*even, *even, *odd)?;
            if flush {
                self.flush(a, *even)?;
            }
            a.vmovups(*odd, place)?;
            self.flush(a, *odd)?;
            a.vaddps(*odd, *odd, *even)?;
            self.flush(a, *odd)?;
            a.vmovups(place, *odd)?;
        }
        a.dec(blocks)?;
        a.jne(next_block)
    }

    /// From the pairs of bf16 in `[1]`, the lower ones to `[0]`, the upper ones to `[1]`, as f32.
    fn take_apart(
        &self,
        a: &mut CodeAssembler,
        [low, high]: [AsmRegisterZmm; 2],
        flush: bool,
    ) -> Result<(), IcedError> {
        a.vpslld(low, high, 16)?;
        a.vpandd(high, high, self.upper)?;
        if flush {
            self.flush(a, low)?;
            self.flush(a, high)?;
        }
        Ok(())
    }

    /// Denormals as zeros of their sign.
    fn flush(&self, a: &mut CodeAssembler, x: AsmRegisterZmm) -> Result<(), IcedError> {
        const DENORMAL: i32 = 0x20;
        a.vfpclassps(k1, x, DENORMAL)?;
        a.vpandd(x.k1(), x, self.sign)
    }
}
