//! A row of the embedding table as f32.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::format::WeightFormat;

/// Converts `n` elements (bf16 or f32; n a multiple of 4) at `source` to f32 at `out`.
pub fn emit(e: &mut Emit, format: WeightFormat, source: Value, out: Value, n: usize) {
    e.for_count(n / LANES, |e, i| {
        let target = e.at(out, i, LANES * 4);
        let value = if format == WeightFormat::Bf16 {
            let ptr = e.at(source, i, LANES * 2);
            e.load_bf16x4(ptr, 0)
        } else {
            let ptr = e.at(source, i, LANES * 4);
            e.load(F32X4, ptr, 0)
        };
        e.store(value, target, 0);
    });
}
