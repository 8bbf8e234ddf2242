//! The tile registers of a strip: their configuration, and products on their way through them. Configuring
//! needs AVX-512, AMX-TILE, AMX-BF16 and AMX-INT8.

use super::AsmKernel;
use super::gemm_bf16_amx::{ROW_BYTES_AT, ROWS_AT, configuration, configure};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::{HALF_PANEL, TileElement, TileShapes};
use iced_x86::code_asm::{AsmRegisterTmm, tmm0, tmm1, tmm2, tmm3, tmm4, tmm5, tmm6, tmm7};
use kernmill_plan::target::Features;
use std::collections::VecDeque;

/// Configuring.
pub const ON: AsmKernel = AsmKernel {
    name: "tiles_on_strip",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::TilesOn(TileShapes::Strip(_))),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::TilesOn(TileShapes::Strip(element)) => configure(a, &shapes(element)),
        _ => Ok(()),
    },
};

/// The numbers of tile registers: products that are under way, a block of a panel and one of weights. Those
/// of panels with up to [`HALF_PANEL`] rows have as many.
pub const PRODUCT_TILES: [AsmRegisterTmm; 3] = [tmm0, tmm1, tmm2];
const HALF_PRODUCT_TILES: [AsmRegisterTmm; 2] = [tmm3, tmm4];
pub const ROWS: AsmRegisterTmm = tmm5;
pub const HALF_ROWS: AsmRegisterTmm = tmm6;
pub const WEIGHTS: AsmRegisterTmm = tmm7;

/// Rows and bytes per row of each tile register.
fn shapes(element: TileElement) -> [u8; 64] {
    let mut config = configuration();
    let rows: [AsmRegisterTmm; 2] = [ROWS, HALF_ROWS];
    let number = |tile: AsmRegisterTmm| iced_x86::Register::from(tile).number();
    for tile in rows.map(number) {
        config[ROW_BYTES_AT + 2 * tile] = element.row_bytes() as u8;
    }
    for tile in HALF_PRODUCT_TILES.into_iter().chain([HALF_ROWS]).map(number) {
        config[ROWS_AT + tile] = HALF_PANEL as u8;
    }
    config[ROWS_AT + number(WEIGHTS)] = element.lines() as u8;
    config
}

/// A product on its way from tiles to memory.
#[derive(Clone, Copy)]
pub struct TileProduct {
    pub tile: AsmRegisterTmm,
    pub block: usize,
    /// The tile of weights.
    pub of: usize,
}

impl TileProduct {
    /// Product number `product` of a panel, for so many tiles of weights.
    pub fn new(product: usize, is_half: bool, tiles: usize) -> TileProduct {
        let tile = match is_half {
            false => PRODUCT_TILES[product % PRODUCT_TILES.len()],
            true => HALF_PRODUCT_TILES[product % HALF_PRODUCT_TILES.len()],
        };
        TileProduct { tile, block: product / tiles, of: product % tiles }
    }
}

/// Products that have begun and are not stored, the first one first.
#[derive(Default)]
pub struct PendingProducts(pub VecDeque<TileProduct>);

impl PendingProducts {
    pub fn began(&mut self, product: usize, is_half: bool, tiles: usize) {
        self.0.push_back(TileProduct::new(product, is_half, tiles));
    }
}
