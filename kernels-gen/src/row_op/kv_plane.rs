//! Places in a head's plane of a block.

use crate::cx::KvSlot;
use crate::emit::Emit;
use crate::kernel::KvPlane;
use cranelift_codegen::ir::Value;
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat, KvGeometry};

/// Where a token's keys or values of a head go.
pub struct HeadPlane {
    /// The plane's first byte.
    pub start: Value,
    /// The token within the block, 0..16.
    pub token: Value,
    pub plane: KvPlane,
    pub format: KvFormat,
    pub head_dim: usize,
}

impl HeadPlane {
    pub fn new(e: &mut Emit, slot: KvSlot, head: Value, plane: KvPlane, geometry: &KvGeometry) -> HeadPlane {
        let start = e.add_imm(slot.block, geometry.offset(plane, 0) as i64);
        let start = e.at(start, head, geometry.head_bytes());
        let format = geometry.format(plane);
        HeadPlane { start, token: slot.token, plane, format, head_dim: geometry.head_dim(plane) }
    }

    /// Address of the token's element 0, of formats without scales.
    pub fn token_start(&self, e: &mut Emit) -> Value {
        let elements = match self.plane {
            KvPlane::K => 1,
            KvPlane::V => self.head_dim,
        };
        e.at(self.start, self.token, self.format.elements_bytes(elements))
    }

    /// Bytes from one element of a token to its next.
    pub fn element_stride(&self) -> usize {
        match self.plane {
            KvPlane::K => self.format.elements_bytes(BLOCK_TOKENS),
            KvPlane::V => self.format.elements_bytes(1),
        }
    }
}
