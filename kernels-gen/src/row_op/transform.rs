//! Hadamard transforms of blocks of 64 or 32 elements, in place or to elsewhere: sums and differences, not
//! divided by anything, and the way back.

use super::prelude::*;
use cranelift_codegen::ir::types::{F32X4, I32X4};

/// The transform of f32 `[n]` from `x` to `out`, which may be the same.
pub fn emit(e: &mut Emit, x: Value, out: Value, n: usize, block: usize) {
    emit_times(e, x, out, n, block, None);
}

/// Takes the transform of f32 `[n]` back, in place: it is its own inverse but for a factor of `block`.
pub fn emit_inverse(e: &mut Emit, x: Value, n: usize, block: usize) {
    emit_times(e, x, x, n, block, Some(1.0 / block as f32));
}

/// Blocks of f32 `[n]`, each element times `factor` at the end.
fn emit_times(e: &mut Emit, x: Value, out: Value, n: usize, block: usize, factor: Option<f32>) {
    e.for_count(n / block, |e, i| {
        let (x, out) = (e.at(x, i, block * 4), e.at(out, i, block * 4));
        let mut vectors: Vec<Value> = (0..block / LANES).map(|v| e.load(F32X4, x, v * LANES * 4)).collect();
        for vector in &mut vectors {
            let swapped = e.swap_pairs(*vector);
            let turned = turned(e, *vector, [1, 3]);
            let sums = e.fadd(swapped, turned);
            let swapped = e.swap_halves(sums);
            let turned = self::turned(e, sums, [2, 3]);
            *vector = e.fadd(swapped, turned);
        }
        let mut distance = 1;
        while distance < vectors.len() {
            for low in (0..vectors.len()).filter(|v| v & distance == 0) {
                let (a, b) = (vectors[low], vectors[low + distance]);
                vectors[low] = e.fadd(a, b);
                vectors[low + distance] = e.fsub(a, b);
            }
            distance *= 2;
        }
        if let Some(factor) = factor {
            let factor = e.splat_f32(factor);
            vectors.iter_mut().for_each(|vector| *vector = e.fmul(*vector, factor));
        }
        for (v, vector) in vectors.into_iter().enumerate() {
            e.store(vector, out, v * LANES * 4);
        }
    });
}

/// The vector with other signs in two lanes.
fn turned(e: &mut Emit, vector: Value, lanes: [usize; 2]) -> Value {
    let mut mask = [0; 16];
    lanes.into_iter().for_each(|lane| mask[4 * lane + 3] = 0x80);
    let mask = e.bytes(mask);
    let (mask, bits) = (e.cast(I32X4, mask), e.cast(I32X4, vector));
    let bits = e.b.ins().bxor(bits, mask);
    e.cast(F32X4, bits)
}
