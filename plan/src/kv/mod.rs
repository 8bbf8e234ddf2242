//! Geometry of the paged KV cache.
//!
//! Tokens live in blocks of 16. There is one block table per sequence and layer *kind*: a block id is valid
//! in every layer of its kind and covers all KV heads of it. A layer's pool is `blocks * block_bytes` long.
//! Within a block: a header of 64 bytes, then per KV head the plane of its keys and that of its values. The
//! contents of a plane depend on its format: a file here for each.

mod descriptor;
mod format;
mod formats;
mod planes;
mod rounding;

mod f16;
mod f32;
mod fp8;
mod int4;
mod int8;

#[cfg(test)]
mod tests;

pub use descriptor::{KeyLayout, KvDescriptor, KvElements, Words};
pub use format::KvFormat;
pub use formats::{KvFormats, KvPair, KvRequest, KvRow};
pub use planes::store_plane;
pub use rounding::{hadamard_block, to_int4, to_int8, to_weights};

use crate::bounded;
use crate::limit::STEPS;
use serde::{Deserialize, Serialize};

/// Tokens per block.
pub const BLOCK_TOKENS: usize = 16;
/// Bytes of a block's header. It is not used; it keeps the same heads of consecutive blocks in different sets
/// of a cache.
pub const BLOCK_HEADER: usize = 64;

/// Layers that share a block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerKind {
    /// Attends to the whole context.
    Full,
    /// Attends to a sliding window; blocks behind it are given back.
    Sliding,
}

impl LayerKind {
    /// Index into [`crate::abi::Args::block_tables`].
    pub fn index(self) -> usize {
        match self {
            LayerKind::Full => 0,
            LayerKind::Sliding => 1,
        }
    }
}

/// Keys or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvPlane {
    /// Keys.
    K,
    /// Values.
    V,
}

/// Shape of the blocks of one kind of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KvGeometry {
    /// KV heads.
    pub kv_heads: usize,
    /// Elements of a head's keys, and of its queries.
    pub head_dim: usize,
    /// Elements of a head's values.
    pub v_head_dim: usize,
    /// Formats of keys and values.
    pub formats: KvPair,
}

impl KvGeometry {
    /// The format of a plane.
    pub fn format(&self, plane: KvPlane) -> KvFormat {
        self.formats.of(plane)
    }

    /// Elements of a head in a plane.
    pub fn head_dim(&self, plane: KvPlane) -> usize {
        match plane {
            KvPlane::K => self.head_dim,
            KvPlane::V => self.v_head_dim,
        }
    }

    /// Bytes of a plane of one head in a block.
    pub fn plane_bytes(&self, plane: KvPlane) -> usize {
        self.format(plane).plane_bytes(self.head_dim(plane))
    }

    /// Bytes of a head's keys and values in a block.
    pub fn head_bytes(&self) -> usize {
        self.plane_bytes(KvPlane::K) + self.plane_bytes(KvPlane::V)
    }

    /// Byte offset in a block of a head's plane.
    pub fn offset(&self, plane: KvPlane, head: usize) -> usize {
        let before = match plane {
            KvPlane::K => 0,
            KvPlane::V => self.plane_bytes(KvPlane::K),
        };
        BLOCK_HEADER + head * self.head_bytes() + before
    }

    /// Bytes from one block to the next.
    pub fn block_bytes(&self) -> usize {
        self.offset(KvPlane::K, self.kv_heads)
    }

    /// Clears what a block holds behind its first `tokens` tokens, in all heads.
    pub fn clear_behind(&self, block: &mut [u8], tokens: usize) {
        let tokens = tokens.min(BLOCK_TOKENS);
        for (head, plane) in (0..self.kv_heads).flat_map(|head| [(head, KvPlane::K), (head, KvPlane::V)]) {
            let bytes = &mut block[self.offset(plane, head)..][..self.plane_bytes(plane)];
            let (scales, elements) = bytes.split_at_mut(self.format(plane).scales_bytes());
            scales.get_mut(4 * tokens..).unwrap_or_default().fill(0);
            // Keys lie in lines of all 16 tokens, values token by token.
            let line = match (plane, self.format(plane).words()) {
                (KvPlane::K, Some(_)) => 4,
                (KvPlane::K, None) => self.format(plane).elements_bytes(1),
                (KvPlane::V, _) => self.format(plane).elements_bytes(self.v_head_dim),
            };
            for line_of_all in elements.chunks_exact_mut(line * BLOCK_TOKENS) {
                line_of_all[line * tokens..].fill(0);
            }
        }
    }

    /// Bytes of one token's keys and values of all heads, scales included.
    pub fn token_bytes(&self) -> usize {
        self.kv_heads * self.head_bytes() / BLOCK_TOKENS
    }
}

/// The KV side of a model: which layers there are and how long a context may get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayers {
    /// Shape of the blocks of full layers.
    pub full: KvGeometry,
    /// Shape of the blocks of sliding layers.
    pub sliding: KvGeometry,
    /// Kind and, for sliding layers, window of each layer in order.
    #[serde(deserialize_with = "bounded::list::<_, _, STEPS>")]
    pub layers: Vec<KvLayer>,
}

impl KvLayers {
    /// Formats of both kinds.
    pub fn formats(&self) -> KvFormats {
        KvFormats { full: self.full.formats, sliding: self.sliding.formats }
    }

    /// Shape of the blocks of layers of a kind.
    pub fn geometry(&self, kind: LayerKind) -> &KvGeometry {
        match kind {
            LayerKind::Full => &self.full,
            LayerKind::Sliding => &self.sliding,
        }
    }
}

/// One attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayer {
    /// Full or sliding.
    pub kind: LayerKind,
    /// Keys in view, the token itself included; `None` for full layers.
    pub window: Option<u32>,
}
