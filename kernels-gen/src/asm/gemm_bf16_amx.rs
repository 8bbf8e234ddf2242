//! `GemmBf16`, `TilesOn` and `TilesOff` on AMX tiles. Needs AMX-TILE and AMX-BF16.
//!
//! Register tile: up to 2 x 16 tokens by 2 x 16 rows, four accumulators, two tiles of each operand: all
//! eight. Every tile is 16 rows of 64 bytes, so that one configuration serves a whole kernel; a group of
//! fewer tokens multiplies the panel's other rows, whatever they hold, and nothing reads their sums.
//! Clobbers: caller-saved general registers, flags, and the tiles.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_bf16::{DECODED_BLOCK, DECODED_TILE, GROUP, PANEL_BLOCK, ROW_BYTES, Shape};
use crate::ukernel::gemm_tiles::TileShapes;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterTmm, CodeAssembler, eax, ptr, tmm0, tmm1, tmm2, tmm3, tmm4, tmm5, tmm6, tmm7,
};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS};
use kernmill_plan::target::Features;

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_bf16_amx",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::GemmBf16(Shape { tiles: 1..=2, groups: 1..=2, .. })),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmBf16(shape) => gemm(a, shape),
        _ => Ok(()),
    },
};

/// Configuring.
pub const ON: AsmKernel = AsmKernel {
    name: "tiles_on",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::TilesOn(TileShapes::Whole),
    assemble: |a, _| configure(a, &configuration()),
};

/// Releasing.
pub const OFF: AsmKernel = AsmKernel {
    name: "tiles_off",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::TilesOff,
    assemble: |a, _| {
        a.tilerelease()?;
        a.ret()
    },
};

/// Where the operand of `ldtilecfg` has bytes per row.
pub const ROW_BYTES_AT: usize = 16;
/// Where it has rows.
pub const ROWS_AT: usize = 48;

/// Accumulators by token group and tile, activations by group, weights by tile.
const SUMS: [[AsmRegisterTmm; 2]; 2] = [[tmm0, tmm1], [tmm2, tmm3]];
const ROWS: [AsmRegisterTmm; 2] = [tmm4, tmm5];
const WEIGHTS: [AsmRegisterTmm; 2] = [tmm6, tmm7];

// 16 f32 of sums, 32 bf16 of a row and a line of weights, two k of 16 rows, are a tile's row each; a block's
// 16 lines are its rows.
const _: () = assert!(TILE_ROWS * 4 == LINE && ROW_BYTES == LINE && BLOCK / 2 == GROUP);

/// A function that configures tiles and does nothing else.
pub fn configure(a: &mut CodeAssembler, configuration: &[u8; 64]) -> Result<(), IcedError> {
    let mut config = a.create_label();
    a.ldtilecfg(ptr(config))?;
    a.ret()?;
    a.set_label(&mut config)?;
    a.db(configuration)
}

/// The operand of `ldtilecfg`: bytes per row, from [`ROW_BYTES_AT`] on two bytes for each tile, and rows of
/// each tile, from [`ROWS_AT`] on.
pub fn configuration() -> [u8; 64] {
    let mut config = [0; 64];
    // Palette 1: eight tiles of up to 16 rows of 64 bytes.
    config[0] = 1;
    for tile in 0..8 {
        config[ROW_BYTES_AT + 2 * tile] = LINE as u8;
        config[ROWS_AT + tile] = GROUP as u8;
    }
    config
}

fn gemm(a: &mut CodeAssembler, shape: Shape) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(5);
    let [weights, panel, sums, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let stride = regs.general();
    let (mut again, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.mov(stride, shape.stride as u64)?;
    each_sum(a, shape, sums, |a, tile, at| a.tileloadd(tile, ptr(at + stride)))?;
    a.mov(eax, LINE as i32)?;
    a.set_label(&mut again)?;
    for (tile, lines) in WEIGHTS[..shape.tiles].iter().enumerate() {
        a.tileloadd(*lines, ptr(weights + SCRATCH + tile * DECODED_TILE))?;
    }
    for (group, rows) in ROWS[..shape.groups].iter().enumerate() {
        a.tileloadd(*rows, ptr(panel + SCRATCH + group * GROUP * ROW_BYTES))?;
        for (sum, lines) in SUMS[group].iter().zip(&WEIGHTS[..shape.tiles]) {
            a.tdpbf16ps(*sum, *rows, *lines)?;
        }
    }
    a.add(weights, DECODED_BLOCK as i32)?;
    a.add(panel, PANEL_BLOCK as i32)?;
    a.dec(blocks)?;
    a.jne(again)?;
    each_sum(a, shape, sums, |a, tile, at| a.tilestored(ptr(at + stride), tile))?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)
}

/// Does something with each accumulator and the place of its sums, which is given in [`SCRATCH`].
fn each_sum(
    a: &mut CodeAssembler,
    shape: Shape,
    sums: AsmRegister64,
    act: impl Fn(&mut CodeAssembler, AsmRegisterTmm, AsmRegister64) -> Result<(), IcedError>,
) -> Result<(), IcedError> {
    for (group, tiles) in SUMS[..shape.groups].iter().enumerate() {
        for (tile, sum) in tiles[..shape.tiles].iter().enumerate() {
            a.lea(SCRATCH, ptr(sums + group * GROUP * shape.stride + tile * shape.gap))?;
            act(a, *sum, SCRATCH)?;
        }
    }
    Ok(())
}
