//! Keys and values: rounding, and their way into the paged cache.

use crate::cx::KvSlot;
use crate::emit::{Emit, LANES, MEM};
use crate::kernel::KvPlane;
use cranelift_codegen::ir::types::{F32X4, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::{BLOCK_TOKENS, KvElem, KvGeometry};

/// f32 `[n]` to `elem` `[n]`, n a multiple of 4.
pub fn cast(e: &mut Emit, x: Value, out: Value, n: usize, elem: KvElem) {
    e.for_count(n / LANES, |e, i| {
        let (x, out) = (e.at(x, i, LANES * 4), e.at(out, i, LANES * elem.bytes()));
        let value = e.load(F32X4, x, 0);
        store(e, value, out, elem);
    });
}

/// Rounds four elements and stores them beside each other.
fn store(e: &mut Emit, value: Value, out: Value, elem: KvElem) {
    match elem {
        KvElem::F32 => e.store(value, out, 0),
        KvElem::F16 => {
            let half = e.f32_to_f16(value);
            e.store_u16x4(half, out, 0);
        }
    }
}

/// Rounds four elements and stores them `stride` bytes apart.
fn scatter(e: &mut Emit, value: Value, out: Value, stride: usize, elem: KvElem) {
    let rounded = match elem {
        KvElem::F32 => value,
        KvElem::F16 => e.f32_to_f16(value),
    };
    for lane in 0..LANES {
        let scalar = e.b.ins().extractlane(rounded, lane as u8);
        match elem {
            KvElem::F32 => e.store(scalar, out, lane * stride),
            KvElem::F16 => {
                e.b.ins().istore16(MEM, scalar, out, (lane * stride) as i32);
            }
        }
    }
}

/// Copies a row of all heads, already in the cache's element type, into the cache.
pub fn store_row(e: &mut Emit, x: Value, slot: KvSlot, plane: KvPlane, geometry: &KvGeometry) {
    let elem = geometry.elem.bytes();
    e.for_count(geometry.kv_heads, |e, head| {
        let source = e.at(x, head, geometry.head_dim * elem);
        let target = head_target(e, slot, head, plane, geometry);
        e.for_count(geometry.head_dim, |e, d| {
            let source = e.at(source, d, elem);
            let target = e.at(target, d, element_stride(plane, geometry));
            let ty = if elem == 2 { I16 } else { I32 };
            let value = e.load(ty, source, 0);
            e.store(value, target, 0);
        });
    });
}

/// Writes one head's f32 `[head_dim]` into the cache, rounding to its element type.
pub fn write_head(e: &mut Emit, x: Value, slot: KvSlot, head: Value, plane: KvPlane, geometry: &KvGeometry) {
    let target = head_target(e, slot, head, plane, geometry);
    let stride = element_stride(plane, geometry);
    e.for_count(geometry.head_dim / LANES, |e, i| {
        let source = e.at(x, i, LANES * 4);
        let target = e.at(target, i, LANES * stride);
        let value = e.load(F32X4, source, 0);
        match plane {
            KvPlane::V => store(e, value, target, geometry.elem),
            KvPlane::K => scatter(e, value, target, stride, geometry.elem),
        }
    });
}

/// Address of the token's element 0 of a head.
fn head_target(e: &mut Emit, slot: KvSlot, head: Value, plane: KvPlane, geometry: &KvGeometry) -> Value {
    let start = match plane {
        KvPlane::K => geometry.k_offset(0),
        KvPlane::V => geometry.v_offset(0),
    };
    let base = e.add_imm(slot.block, start as i64);
    let base = e.at(base, head, 2 * geometry.plane_bytes());
    debug_assert_eq!(e.b.func.dfg.value_type(base), I64);
    let token_bytes = match plane {
        KvPlane::K => geometry.elem.bytes(),
        KvPlane::V => geometry.head_dim * geometry.elem.bytes(),
    };
    e.at(base, slot.token, token_bytes)
}

/// Bytes from one element of a token to its next.
fn element_stride(plane: KvPlane, geometry: &KvGeometry) -> usize {
    match plane {
        KvPlane::K => BLOCK_TOKENS * geometry.elem.bytes(),
        KvPlane::V => geometry.elem.bytes(),
    }
}
