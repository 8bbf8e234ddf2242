//! A row of the embedding table as f32.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::format::{PlainDecode, WeightFormat};

/// Converts `n` elements (bf16 or f32; n a multiple of 4) at `source` to f32 at `out`.
pub fn emit(e: &mut Emit, format: WeightFormat, source: Value, out: Value, n: usize) {
    let decode = format.decode().plain().expect("the checker lets no other tables through");
    e.for_count(n / LANES, |e, i| {
        let target = e.at(out, i, LANES * 4);
        let ptr = e.at(source, i, LANES * decode.bytes());
        let value = match decode {
            PlainDecode::Bf16 => e.load_bf16x4(ptr, 0),
            PlainDecode::F32 => e.load(F32X4, ptr, 0),
        };
        e.store(value, target, 0);
    });
}
