//! What says how fast AMX tiles are beside vectors: the micro-kernels themselves, their data in cache.

use crate::asm;
use crate::generate::{GenerateError, generate_ukernels};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_q8::{CHUNK_BLOCKS, DotStep, GROUP};
use crate::ukernel::gemm_tiles::{PANEL_ROWS, TileElement};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::probe::{TileElementProbe, TileProbe};
use kernmill_plan::target::Level;

/// Bytes from one row of sums to the next: those of two tiles of weights.
const STRIDE: usize = 128;

/// The probe for a level, with one entry for each of [`TileElement::ALL`]. At a level without tiles, code for
/// vectors stands in for them.
///
/// # Errors
/// Only on defects, see [`GenerateError`].
pub fn tile_probe(level: Level) -> Result<TileProbe, GenerateError> {
    let steps = DotStep::at(level);
    let of = |element: TileElement| {
        let format = match element {
            TileElement::Bf16 => WeightFormat::Mxfp4,
            TileElement::I8 => WeightFormat::Int8,
        };
        [
            MicroKernel::TilesOn(element),
            MicroKernel::TilesOff,
            MicroKernel::GemmTiles { element, stride: STRIDE },
            MicroKernel::GemmQ8 { weights: steps.decoded(format), tiles: 2, tokens: GROUP },
        ]
    };
    let ukernels = TileElement::ALL.map(of);
    let code = generate_ukernels(ukernels.as_flattened(), level, &|ukernel| asm::find(ukernel, level))?;
    let elements = code.symbols.as_chunks().0.iter().map(|[on, off, tiles, vectors]| TileElementProbe {
        on: on.offset,
        off: off.offset,
        tiles: tiles.offset,
        tiles_work: PANEL_ROWS,
        vectors: vectors.offset,
        vectors_work: 2 * GROUP,
    });
    let elements = elements.collect();
    Ok(TileProbe { level, code, blocks: CHUNK_BLOCKS as u64, elements })
}
