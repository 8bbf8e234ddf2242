//! The micro-kernels of attention.

use crate::kernel::AttentionBody;
use crate::ukernel::MicroKernel;
use kernmill_plan::kv::KvGeometry;

/// Query heads that share a KV head.
pub(super) fn group(body: &AttentionBody) -> usize {
    body.heads / body.geometry.kv_heads
}

pub(super) fn score_ukernel(body: &AttentionBody) -> MicroKernel {
    let KvGeometry { elem, head_dim, .. } = body.geometry;
    MicroKernel::Score { elem, head_dim, group: group(body), scale: body.scale.bits() }
}

pub(super) fn value_ukernel(body: &AttentionBody) -> MicroKernel {
    let KvGeometry { elem, head_dim, .. } = body.geometry;
    MicroKernel::Value { elem, head_dim, group: group(body) }
}

pub(super) fn combine_ukernel(body: &AttentionBody) -> MicroKernel {
    MicroKernel::Combine { head_dim: body.geometry.head_dim, group: group(body), sinks: body.sinks.is_some() }
}

/// Micro-kernels that the body calls.
pub fn ukernels(body: &AttentionBody) -> [MicroKernel; 5] {
    [
        score_ukernel(body),
        MicroKernel::Softmax,
        value_ukernel(body),
        combine_ukernel(body),
        MicroKernel::Quantize,
    ]
}
