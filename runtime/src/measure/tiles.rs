//! How long products on AMX tiles take beside those in vectors.

use super::MeasureError;
use crate::code::ExecutableCode;
use crate::executor::LoadError;
use kernmill_os::region::WeightRegion;
use kernmill_os::tiles;
use kernmill_plan::probe::{TileElementProbe, TileProbe};
use std::time::Instant;

/// Bytes of each operand and result.
const PLACE: usize = 128 << 10;
/// Fills all of them. As integers, as bf16 and as f32 these are numbers whose products and sums are normal.
/// As factors of tiles' products they are above 1: those below go another way.
const FILL: u8 = 0x40;
/// Runs of each function. The fastest one counts.
const RUNS: usize = 25;
/// Calls of a run: some hundred microseconds.
const CALLS: usize = 400;
/// Bytes from one row of sums to the next. Those of the second tile of weights begin [`GAP`] bytes behind
/// those of the first.
const STRIDE: u64 = 128;
const GAP: u64 = 64;

type Configure = unsafe extern "C" fn();
/// A product on tiles. The last six arguments say what is decoded meanwhile.
type Tiles = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *mut f32,
    u64,
    u64,
    *mut u8,
    *const u8,
    *const u8,
    *mut u8,
    u64,
    u64,
    u64,
);
type VectorProbe = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64, u64);

/// Seconds that tiles take for products of weights and rows in cache, as a share of what vectors take for the
/// same: one number for each of the probe's elements. One thread measures them.
///
/// # Errors
/// When this CPU lacks the probe's features, the system does not permit tiles that the probe uses, or refuses
/// memory.
///
/// # Safety
/// The probe is what kernmill's generator made (`kernmill_kernels_gen::tile_probe`): its code is called.
pub unsafe fn tile_shares(probe: &TileProbe) -> Result<Vec<f64>, MeasureError> {
    let missing = probe.level.missing();
    if !missing.is_empty() {
        return Err(MeasureError::Cpu(LoadError::Cpu { level: probe.level.name(), missing }));
    }
    if probe.level.has_tiles() {
        tiles::request().map_err(|error| MeasureError::Cpu(LoadError::Tiles(error)))?;
    }
    let code = ExecutableCode::load(&probe.code.bytes, &blake3::hash(&probe.code.bytes))?;
    let mut memory = WeightRegion::anonymous(4 * PLACE)?;
    let share = |element: &TileElementProbe| {
        let places = memory.as_mut_slice();
        // Sums of an earlier run may have become infinite.
        places.fill(FILL);
        let base = places.as_mut_ptr();
        // SAFETY: the places lie in the memory.
        let [weights, panel, sums, products] = [0, 1, 2, 3].map(|place| unsafe { base.add(place * PLACE) });
        let sums = sums.cast::<f32>();
        // SAFETY: the probe's functions have these types and operands of at most `PLACE` bytes, by the
        // caller's promise; the CPU has what they use, and the code lives longer than the pointers.
        unsafe {
            let at = |offset: u64| code.address(offset as usize);
            let on = std::mem::transmute::<*const u8, Configure>(at(element.on));
            let off = std::mem::transmute::<*const u8, Configure>(at(element.off));
            let multiply_tiles = std::mem::transmute::<*const u8, Tiles>(at(element.tiles));
            let multiply_vectors = std::mem::transmute::<*const u8, VectorProbe>(at(element.vectors));
            on();
            let [rows, blocks] = [element.tiles_rows, element.tiles_blocks];
            // Vectors do not decode either.
            let none = std::ptr::null();
            let in_tiles = fastest(|| {
                let out = std::ptr::null_mut();
                multiply_tiles(weights, panel, sums, rows, blocks, products, none, none, out, 0, 0, 0);
            });
            off();
            let in_vectors = fastest(|| multiply_vectors(weights, panel, sums, probe.blocks, STRIDE, GAP));
            in_tiles / element.tiles_work as f64 / (in_vectors / element.vectors_work as f64)
        }
    };
    Ok(probe.elements.iter().map(share).collect())
}

/// Seconds of a call.
fn fastest(mut call: impl FnMut()) -> f64 {
    let runs = (0..RUNS).map(|_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() / CALLS as f64
    });
    runs.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::program::CodeBlob;
    use kernmill_plan::target::Level;

    /// Functions that return at once, and one that goes round a loop first.
    fn probe(level: Level) -> TileProbe {
        // ret; mov eax, 1000; dec eax; jnz -4; ret
        let bytes = vec![0xc3, 0xb8, 0xe8, 3, 0, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3];
        let slow = TileElementProbe {
            on: 0,
            off: 0,
            tiles: 1,
            tiles_rows: 1,
            tiles_blocks: 1,
            tiles_work: 1,
            vectors: 0,
            vectors_work: 1,
        };
        let fast = TileElementProbe { tiles: 0, vectors: 1, ..slow };
        let more = TileElementProbe { tiles: 1, tiles_work: 1_000_000, vectors: 1, ..slow };
        let code = CodeBlob { bytes, symbols: Vec::new() };
        TileProbe { level, code, blocks: 1, elements: vec![slow, fast, more] }
    }

    #[test]
    fn the_faster_has_the_smaller_share() {
        // SAFETY: the functions touch no memory.
        let shares = unsafe { tile_shares(&probe(Level::V3)) }.unwrap();
        assert!(shares[0] > 1.0 && shares[1] < 1.0, "{shares:?}");
        assert!(shares[2] < 0.01, "work counts: {shares:?}");
    }

    #[test]
    fn a_cpu_without_tiles_is_told_so() {
        // SAFETY: as above.
        let measured = unsafe { tile_shares(&probe(Level::Amx)) };
        if !Level::Amx.missing().is_empty() {
            assert!(matches!(measured, Err(MeasureError::Cpu(LoadError::Cpu { level: "amx", .. }))));
        }
    }
}
