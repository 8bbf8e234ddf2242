//! The micro-kernels of attention.

use crate::expr::{Binary, Expr, Unary};
use crate::kernel::AttentionBody;
use crate::ukernel::MicroKernel;
use crate::ukernel::map::Map;
use kernmill_plan::kv::{BLOCK_TOKENS, KvGeometry};

/// Query heads that share a KV head.
pub(super) fn group(body: &AttentionBody) -> usize {
    body.heads / body.geometry.kv_heads
}

pub(super) fn score_ukernel(body: &AttentionBody) -> MicroKernel {
    let KvGeometry { formats, head_dim, .. } = body.geometry;
    match formats.k.is_scaled() {
        true => MicroKernel::IntegerScore { elem: formats.k, head_dim, group: group(body) },
        false => {
            MicroKernel::Score { elem: formats.k, head_dim, group: group(body), scale: body.scale.bits() }
        }
    }
}

/// The micro-kernel that caps blocks of scores, where they are capped.
pub(super) fn cap_ukernel(body: &AttentionBody) -> Option<MicroKernel> {
    let cap = Expr::Const(f32::from_bits(body.softcap?.bits()));
    let binary = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
    let part = binary(Binary::Div, Expr::Var(0), cap.clone());
    let capped = binary(Binary::Mul, cap, Expr::Unary(Unary::Tanh, Box::new(part)));
    let bytes = BLOCK_TOKENS * 4;
    Some(MicroKernel::Map(Map::new(capped, BLOCK_TOKENS, &[bytes], bytes)))
}

/// The micro-kernel that rounds queries, where scores are sums of integers.
pub(super) fn query_ukernel(body: &AttentionBody) -> Option<MicroKernel> {
    let zero = body.geometry.formats.k.words()?.zero;
    let (head_dim, scale) = (body.geometry.head_dim, body.scale.bits());
    Some(MicroKernel::Query { head_dim, group: group(body), zero, scale })
}

pub(super) fn value_ukernel(body: &AttentionBody) -> MicroKernel {
    let KvGeometry { formats, head_dim, .. } = body.geometry;
    match formats.v.is_scaled() {
        true => {
            let stride = body.max_segments * group(body) * head_dim * 4;
            MicroKernel::IntegerValue { elem: formats.v, head_dim, group: group(body), stride }
        }
        false => MicroKernel::Value { elem: formats.v, head_dim, group: group(body) },
    }
}

/// The micro-kernel that makes rounded weights of scores, where weighted values are sums of integers.
pub(super) fn weights_ukernel(body: &AttentionBody) -> Option<MicroKernel> {
    body.geometry.formats.v.is_scaled().then(|| MicroKernel::Weights { group: group(body) })
}

pub(super) fn combine_ukernel(body: &AttentionBody) -> MicroKernel {
    MicroKernel::Combine { head_dim: body.geometry.head_dim, group: group(body), sinks: body.sinks.is_some() }
}

/// Micro-kernels that the body calls.
pub fn ukernels(body: &AttentionBody) -> Vec<MicroKernel> {
    let mut ukernels = vec![
        score_ukernel(body),
        MicroKernel::Softmax,
        value_ukernel(body),
        combine_ukernel(body),
        MicroKernel::Quantize,
    ];
    ukernels.extend(cap_ukernel(body));
    ukernels.extend(query_ukernel(body));
    ukernels.extend(weights_ukernel(body));
    ukernels
}
