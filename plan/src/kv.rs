//! Geometry of the paged KV cache.
//!
//! Tokens live in blocks of 16. There is one block table per sequence and layer *kind*: a block id is valid
//! in every layer of its kind and covers all KV heads of it. A layer's pool is `blocks * block_bytes` long.
//! Within a block: a 64-byte header (room for scales), then per KV head K as `[head_dim][16 tokens]` and V as
//! `[16 tokens][head_dim]`.

use crate::bounded;
use crate::limit::STEPS;
use half::f16;
use serde::{Deserialize, Serialize};

/// Tokens per block.
pub const BLOCK_TOKENS: usize = 16;
/// Bytes of a block's header.
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

/// Element type of cached keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvElem {
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
}

impl KvElem {
    /// Every element type.
    pub const ALL: [KvElem; 2] = [KvElem::F16, KvElem::F32];

    /// The name in texts of graphs.
    pub fn name(self) -> &'static str {
        match self {
            KvElem::F16 => "f16",
            KvElem::F32 => "f32",
        }
    }

    /// The element type of that name.
    pub fn from_name(name: &str) -> Option<KvElem> {
        KvElem::ALL.into_iter().find(|elem| elem.name() == name)
    }

    /// Elements as the cache has them, little-endian; each value is rounded to nearest even.
    pub fn encode(self, values: &[f32]) -> Vec<u8> {
        let encode = |value: &f32| match self {
            KvElem::F16 => f16::from_f32(*value).to_le_bytes().to_vec(),
            KvElem::F32 => value.to_le_bytes().to_vec(),
        };
        values.iter().flat_map(encode).collect()
    }

    /// The values of elements that lie one behind the other.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let decode = |e: &[u8]| match self {
            KvElem::F16 => f16::from_le_bytes([e[0], e[1]]).to_f32(),
            KvElem::F32 => f32::from_le_bytes([e[0], e[1], e[2], e[3]]),
        };
        bytes.chunks_exact(self.bytes()).map(decode).collect()
    }

    /// Bytes per element.
    pub fn bytes(self) -> usize {
        match self {
            KvElem::F16 => 2,
            KvElem::F32 => 4,
        }
    }
}

/// Shape of one layer's blocks, the same for all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KvGeometry {
    /// KV heads.
    pub kv_heads: usize,
    /// Elements per head.
    pub head_dim: usize,
    /// Element type.
    pub elem: KvElem,
}

impl KvGeometry {
    /// Bytes of K (and of V) of one head in a block.
    pub fn plane_bytes(&self) -> usize {
        BLOCK_TOKENS * self.head_dim * self.elem.bytes()
    }

    /// Byte offset in a block of a head's K, `[head_dim][16]`.
    pub fn k_offset(&self, head: usize) -> usize {
        BLOCK_HEADER + head * 2 * self.plane_bytes()
    }

    /// Byte offset in a block of a head's V, `[16][head_dim]`.
    pub fn v_offset(&self, head: usize) -> usize {
        self.k_offset(head) + self.plane_bytes()
    }

    /// Bytes from one block to the next.
    pub fn block_bytes(&self) -> usize {
        self.k_offset(self.kv_heads)
    }
}

/// The KV side of a model: which layers there are and how long a context may get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayers {
    /// Shape of the blocks.
    pub geometry: KvGeometry,
    /// Kind and, for sliding layers, window of each layer in order.
    #[serde(deserialize_with = "bounded::list::<_, _, STEPS>")]
    pub layers: Vec<KvLayer>,
}

/// One attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayer {
    /// Full or sliding.
    pub kind: LayerKind,
    /// Keys in view, the token itself included; `None` for full layers.
    pub window: Option<u32>,
}
