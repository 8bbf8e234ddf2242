//! Elements of keys and values: rounding to a format of the KV cache.

use super::kv_integers;
use crate::emit::{Emit, LANES, MEM};
use crate::integers;
use cranelift_codegen::ir::types::{F32X4, I8, I16, I32};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use kernmill_plan::kv::{KvFormat, KvRow};

/// A row of f32 `[n]` to a format of the cache, n a multiple of 4.
pub fn cast(e: &mut Emit, x: Value, out: Value, n: usize, to: KvRow) {
    if to.format.is_scaled() {
        return kv_integers::cast(e, x, out, n, to);
    }
    e.for_count(n / LANES, |e, i| {
        let (x, out) = (e.at(x, i, LANES * 4), e.at(out, i, to.format.elements_bytes(LANES)));
        let value = e.load(F32X4, x, 0);
        store(e, value, out, to.format);
    });
}

/// Rounds four elements and stores them beside each other.
pub fn store(e: &mut Emit, value: Value, out: Value, format: KvFormat) {
    match format {
        KvFormat::F16 => {
            let half = e.f32_to_f16(value);
            e.store_u16x4(half, out, 0);
        }
        KvFormat::Fp8 => {
            let codes = e.f32_to_fp8(value);
            let codes = integers::bytes(e, codes);
            e.store(codes, out, 0);
        }
        KvFormat::F32 | KvFormat::Int8 | KvFormat::Int4 => e.store(value, out, 0),
    }
}

/// Rounds four elements and stores them `stride` bytes apart.
pub fn scatter(e: &mut Emit, value: Value, out: Value, stride: usize, format: KvFormat) {
    let rounded = match format {
        KvFormat::F16 => e.f32_to_f16(value),
        KvFormat::Fp8 => e.f32_to_fp8(value),
        KvFormat::F32 | KvFormat::Int8 | KvFormat::Int4 => value,
    };
    for lane in 0..LANES {
        let scalar = e.b.ins().extractlane(rounded, lane as u8);
        match format {
            KvFormat::F16 => {
                e.b.ins().istore16(MEM, scalar, out, (lane * stride) as i32);
            }
            KvFormat::Fp8 => {
                e.b.ins().istore8(MEM, scalar, out, (lane * stride) as i32);
            }
            KvFormat::F32 | KvFormat::Int8 | KvFormat::Int4 => e.store(scalar, out, lane * stride),
        }
    }
}

/// An integer as wide as an element, of formats without scales.
pub fn element_type(format: KvFormat) -> Type {
    match format {
        KvFormat::F16 => I16,
        KvFormat::Fp8 => I8,
        KvFormat::F32 | KvFormat::Int8 | KvFormat::Int4 => I32,
    }
}
