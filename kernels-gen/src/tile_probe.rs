//! Probes of the speed of AMX tiles beside vectors: the micro-kernels themselves, their data in cache.

use crate::asm;
use crate::generate::{GenerateError, generate_ukernels};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_q8::{CHUNK_BLOCKS, DotStep, GROUP};
use crate::ukernel::gemm_tiles::{self, PANEL_ROWS, Strip, TileElement, TileShapes};
use kernmill_plan::format::{BLOCK, WeightFormat};
use kernmill_plan::probe::{TileElementProbe, TileProbe};
use kernmill_plan::target::Level;

/// Bytes from one row of sums to the next: those of two tiles of weights.
const STRIDE: usize = 128;
/// Bytes to those of the second tile.
const GAP: usize = 64;
/// Rows that tiles multiply: those of an expert in a prompt.
const ROWS: usize = 4 * PANEL_ROWS;

/// The probe for a level, with one entry for each of [`TileElement::ALL`]. At a level without tiles, code for
/// vectors stands in for them.
///
/// # Errors
/// Only on defects, see [`GenerateError`].
pub fn tile_probe(level: Level) -> Result<TileProbe, GenerateError> {
    let steps = DotStep::at(level);
    // Elements may share some: no two functions have the same name.
    let mut ukernels = Vec::new();
    let mut place = |ukernel: MicroKernel| {
        let known = ukernels.iter().position(|other| *other == ukernel);
        known.unwrap_or_else(|| {
            ukernels.push(ukernel);
            ukernels.len() - 1
        })
    };
    let places = TileElement::ALL.map(|element| {
        let format = match element {
            TileElement::Bf16 => WeightFormat::Mxfp4,
            TileElement::I8 => WeightFormat::Int8,
        };
        let k = gemm_tiles::CHUNK_BLOCKS * BLOCK;
        [
            MicroKernel::TilesOn(TileShapes::Strip(element)),
            MicroKernel::TilesOff,
            MicroKernel::GemmStrip(Strip { format, tiles: 2, k, stride: STRIDE, gap: GAP }),
            MicroKernel::GemmQ8 { weights: steps.decoded(format), tiles: 2, tokens: GROUP },
        ]
        .map(&mut place)
    });
    let code = generate_ukernels(&ukernels, level, &|ukernel| asm::find(ukernel, level))?;
    let elements = places.into_iter().map(|places| {
        let [on, off, tiles, vectors] = places.map(|place| code.symbols[place].offset);
        let blocks = gemm_tiles::CHUNK_BLOCKS;
        let [tiles_work, vectors_work] = [blocks * 2 * ROWS, CHUNK_BLOCKS * 2 * GROUP];
        let [tiles_blocks, tiles_rows] = [blocks, ROWS].map(|number| number as u64);
        TileElementProbe { on, off, tiles, tiles_blocks, tiles_rows, tiles_work, vectors, vectors_work }
    });
    let elements = elements.collect();
    Ok(TileProbe { level, code, blocks: CHUNK_BLOCKS as u64, elements })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disasm;

    #[test]
    fn probes_of_every_level_multiply_in_its_instructions() {
        for level in Level::ALL {
            let probe = tile_probe(level).unwrap();
            assert_eq!(probe.elements.len(), TileElement::ALL.len());
            let text = disasm::blob(&probe.code);
            let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
            for product in ["tdpbf16ps", "tdpbssd"] {
                assert_eq!(count(product) > 0, level.has_tiles(), "{product} at {}", level.name());
            }
            let offsets: Vec<u64> = probe.code.symbols.iter().map(|symbol| symbol.offset).collect();
            for TileElementProbe { on, off, tiles, vectors, .. } in &probe.elements {
                assert!([on, off, tiles, vectors].into_iter().all(|offset| offsets.contains(offset)));
                assert!(tiles != vectors && on != off);
            }
        }
    }
}
