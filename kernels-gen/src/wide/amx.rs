//! MXFP4 by bf16 activations on AMX tiles, for many tokens. Needs AVX-512 F, BW and AMX-TILE, AMX-BF16. No kernel calls these yet.
//!
//! - decode: `fn(scales: *const u8, data: *const u8, out: *mut u8, blocks: u64)`: `blocks` blocks of one packed MXFP4 tile, from the given
//!   places in its scale and data planes, to [`BF16_BLOCK`] bytes each: 16 lines of 2 k, the layout of bf16 tiles, which is that of
//!   the second operand of `tdpbf16ps`. A value times its scale is exact.
//! - gemm: `fn(weights: *const u8, rows: *const u8, sums: *mut f32, blocks: u64, stride: u64, gap: u64)`: adds `blocks` blocks of one or two
//!   decoded tiles, [`BF16_TILE`] bytes apart, times `tokens` rows of bf16 activations, `row_bytes` apart, to `sums`: 16 f32 per token
//!   and tile, tokens `stride` bytes apart, tiles `gap` bytes. With no blocks it touches nothing.
//!
//! Order of arithmetic ("tiledot" of docs/numerics.md): that of `tdpbf16ps`, a block at a time in ascending k. Register tile: up to
//! 2 x 16 tokens by 2 x 16 rows, four accumulators, two tiles of each operand: all eight. Clobbers: caller-saved registers, flags, and
//! the tile configuration, which it sets and releases.

use super::check::check;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::{AssembleError, IcedError};
use crate::leaf::contract::{Amount, Param, Region};
use crate::leaf::gemm_q8::CHUNK_BLOCKS;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterTmm, CodeAssembler, dword_ptr, eax, ptr, qword_ptr, tmm0, tmm1, tmm2, tmm3,
    tmm4, tmm5, tmm6, tmm7, xmmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS};
use kernmill_plan::target::Level;
use std::fmt;

/// Bytes of a decoded block: 32 k of 16 rows.
pub const BF16_BLOCK: usize = BLOCK * TILE_ROWS * 2;
/// Bytes from one decoded tile to the next.
pub const BF16_TILE: usize = CHUNK_BLOCKS * BF16_BLOCK;
/// Tokens of a register tile.
const GROUP: usize = 16;
/// Most tokens of a leaf.
pub const MAX_TOKENS: usize = 2 * GROUP;

/// A leaf for tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileLeaf {
    /// MXFP4 to bf16.
    Decode,
    /// `tiles` decoded tiles (1 or 2) by `tokens` rows (1 to [`MAX_TOKENS`]), `row_bytes` apart.
    Gemm {
        /// Decoded tiles.
        tiles: usize,
        /// Rows.
        tokens: usize,
        /// Bytes from one row to the next.
        row_bytes: usize,
    },
}

impl fmt::Display for TileLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TileLeaf::Decode => write!(f, "decode_mxfp4_bf16"),
            TileLeaf::Gemm { tiles, tokens, row_bytes } => {
                write!(f, "gemm_mxfp4_bf16_amx_{tiles}x{tokens}_r{row_bytes}")
            }
        }
    }
}

impl TileLeaf {
    /// The level whose features it needs: decoding is plain AVX-512.
    pub fn level(self) -> Level {
        if self == TileLeaf::Decode { Level::V4 } else { Level::Amx }
    }

    /// The parameters, in order.
    pub fn contract(self) -> Vec<Param> {
        match self {
            TileLeaf::Decode => vec![
                Param::Read(Region::new(Amount::times(3, TILE_ROWS))),
                Param::Read(Region::new(Amount::times(3, BLOCK * TILE_ROWS / 2))),
                Param::Write(Region::new(Amount::times(3, BF16_BLOCK))),
                Param::Number,
            ],
            TileLeaf::Gemm { tiles, tokens, row_bytes } => vec![
                Param::Read(Region::new(Amount::times(3, BF16_BLOCK)).times(tiles, BF16_TILE)),
                Param::Read(Region::new(Amount::times(3, BLOCK * 2)).times(tokens, row_bytes)),
                Param::Update(
                    Region::new(TILE_ROWS * 4).times(tokens, Amount::param(4)).times(tiles, Amount::param(5)),
                ),
                Param::Number,
                Param::Number,
                Param::Number,
            ],
        }
    }

    /// Machine code, checked.
    ///
    /// # Errors
    /// Only on defects.
    pub fn assemble(self) -> Result<Vec<u8>, AssembleError> {
        let mut a = CodeAssembler::new(64)?;
        match self {
            TileLeaf::Decode => decode(&mut a)?,
            TileLeaf::Gemm { tiles, tokens, row_bytes } => gemm(&mut a, tiles, tokens, row_bytes)?,
        }
        let bytes = a.assemble(0)?;
        check(&bytes, &self.contract(), self.level())?;
        Ok(bytes)
    }
}

/// The E2M1 values as bf16, by code.
const BF16_TABLE: [u16; 16] = [
    0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000,
    0xc040, 0xc080, 0xc0c0,
];

fn decode(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [scales, data, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let [scale, smallest, table, first, second, upper] = [(); 6].map(|()| regs.vector());
    let [nibbles, low, high] = [(); 3].map(|()| regs.vector());
    let mut constants = a.create_label();
    let (mut again, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    a.vmovdqu64(table, zmmword_ptr(SCRATCH))?;
    a.vmovdqu64(first, zmmword_ptr(SCRATCH + LINE))?;
    a.vmovdqu64(second, zmmword_ptr(SCRATCH + 2 * LINE))?;
    a.vpbroadcastd(smallest, dword_ptr(SCRATCH + 3 * LINE))?;
    a.vpbroadcastd(upper, dword_ptr(SCRATCH + (3 * LINE + 4)))?;
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.set_label(&mut again)?;
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
                // Two words per row; of a word as an index the low five bits count, and the table repeats every 16.
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
    a.add(scales, TILE_ROWS as i32)?;
    a.add(data, (4 * LINE) as i32)?;
    a.add(out, BF16_BLOCK as i32)?;
    a.dec(blocks)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dw(&BF16_TABLE.repeat(2))?;
    for start in [0, 2] {
        let pick: Vec<u8> = (0..TILE_ROWS)
            .flat_map(|row| [0, 1].map(|j| (row % 4 * 4 + start + j) as u8))
            .flat_map(|b| [b, 0x80])
            .collect();
        a.db(&pick)?;
    }
    a.dd(&[0x0040_0000, 0xffff_0000])
}

/// Accumulators by token group and tile, activations by group, weights by tile.
const SUMS: [[AsmRegisterTmm; 2]; 2] = [[tmm0, tmm1], [tmm2, tmm3]];
const ROWS: [AsmRegisterTmm; 2] = [tmm4, tmm5];
const WEIGHTS: [AsmRegisterTmm; 2] = [tmm6, tmm7];

/// The operand of `ldtilecfg`: rows and bytes per row of each tile.
fn configuration(groups: &[usize]) -> [u8; 64] {
    let mut config = [0; 64];
    // Palette 1: eight tiles of up to 16 rows of 64 bytes.
    config[0] = 1;
    let mut shape = |tile: usize, rows: usize| {
        config[16 + 2 * tile] = LINE as u8;
        config[48 + tile] = rows as u8;
    };
    for (group, tokens) in groups.iter().enumerate() {
        shape(2 * group, *tokens);
        shape(2 * group + 1, *tokens);
        shape(4 + group, *tokens);
    }
    // A line of weights is two k of 16 rows.
    shape(6, BLOCK / 2);
    shape(7, BLOCK / 2);
    config
}

fn gemm(a: &mut CodeAssembler, tiles: usize, tokens: usize, row_bytes: usize) -> Result<(), IcedError> {
    assert!((1..=2).contains(&tiles) && (1..=MAX_TOKENS).contains(&tokens), "a tile of {tiles} x {tokens}");
    let groups: Vec<usize> = (0..tokens).step_by(GROUP).map(|first| (tokens - first).min(GROUP)).collect();
    let mut regs = Regs::with_params(6);
    let [weights, rows, sums, blocks, stride, gap] = PARAMS;
    let row_stride = regs.general();
    let sums = Sums { groups: groups.len(), tiles, first: sums, stride, gap, place: regs.general() };
    let mut config = a.create_label();
    let (mut again, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.ldtilecfg(ptr(config))?;
    sums.each(a, |a, tile, at| a.tileloadd(tile, ptr(at + stride)))?;
    a.mov(row_stride, row_bytes as i64 as u64)?;
    a.mov(eax, LINE as i32)?;
    a.set_label(&mut again)?;
    for (tile, line) in WEIGHTS[..tiles].iter().enumerate() {
        a.tileloadd(*line, ptr(weights + SCRATCH + tile * BF16_TILE))?;
    }
    for group in 0..groups.len() {
        a.tileloadd(ROWS[group], ptr(rows + row_stride + group * GROUP * row_bytes))?;
        for tile in 0..tiles {
            a.tdpbf16ps(SUMS[group][tile], ROWS[group], WEIGHTS[tile])?;
        }
    }
    a.add(weights, BF16_BLOCK as i32)?;
    a.add(rows, (BLOCK * 2) as i32)?;
    a.dec(blocks)?;
    a.jne(again)?;
    sums.each(a, |a, tile, at| a.tilestored(ptr(at + stride), tile))?;
    a.tilerelease()?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut config)?;
    a.db(&configuration(&groups))
}

/// Where the accumulators come from and go to.
struct Sums {
    groups: usize,
    tiles: usize,
    first: AsmRegister64,
    stride: AsmRegister64,
    gap: AsmRegister64,
    place: AsmRegister64,
}

impl Sums {
    /// Does something with each accumulator and its place.
    fn each(
        &self,
        a: &mut CodeAssembler,
        act: impl Fn(&mut CodeAssembler, AsmRegisterTmm, AsmRegister64) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        for (group, tiles) in SUMS[..self.groups].iter().enumerate() {
            a.imul_3(self.place, self.stride, (group * GROUP) as i32)?;
            a.add(self.place, self.first)?;
            act(a, tiles[0], self.place)?;
            if self.tiles == 2 {
                a.add(self.place, self.gap)?;
                act(a, tiles[1], self.place)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_passes_the_checker() {
        TileLeaf::Decode.assemble().unwrap();
        for tiles in [1, 2] {
            for tokens in 1..=MAX_TOKENS {
                let leaf = TileLeaf::Gemm { tiles, tokens, row_bytes: 5760 };
                if let Err(error) = leaf.assemble() {
                    panic!("{leaf}: {error}");
                }
            }
        }
    }
}
