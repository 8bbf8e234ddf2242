//! The micro-kernels of attention.

use crate::expr::{Binary, Expr, Unary};
use crate::kernel::AttentionBody;
use crate::ukernel::map::Map;
use crate::ukernel::{MicroKernel, QueryHeads};
use kernmill_plan::kv::{BLOCK_TOKENS, KvGeometry, KvPair};

/// Query heads of a tile of the micro-kernels.
const TILE_HEADS: usize = 4;

/// Query heads that share a KV head.
pub(super) fn group(body: &AttentionBody) -> usize {
    body.heads / body.geometry.kv_heads
}

/// Tokens whose queries share the loads of keys and values in a call, where they see the same ones: as many
/// as make whole tiles of query heads, which have four. A larger group fills tiles by itself.
pub(super) fn tokens_per_call(body: &AttentionBody) -> usize {
    if group(body) < TILE_HEADS { TILE_HEADS.min(body.tile_tokens) } else { 1 }
}

/// The micro-kernel of scores of so many tokens. The rows of queries are `stride` bytes apart.
pub(super) fn score_ukernel(body: &AttentionBody, tokens: usize, stride: usize) -> MicroKernel {
    let KvGeometry { formats: KvPair { k: elem, .. }, head_dim, .. } = body.geometry;
    match elem.is_scaled() {
        true => MicroKernel::IntegerScore { elem, head_dim, group: group(body) },
        false => {
            let queries = queries(body, tokens, stride);
            MicroKernel::Score { elem, head_dim, queries, scale: body.scale.bits() }
        }
    }
}

fn queries(body: &AttentionBody, tokens: usize, stride: usize) -> QueryHeads {
    match tokens {
        1 => QueryHeads::of_token(group(body)),
        _ => QueryHeads { group: group(body), tokens, stride },
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

/// The micro-kernel of weighted values of so many tokens.
pub(super) fn value_ukernel(body: &AttentionBody, tokens: usize) -> MicroKernel {
    let KvGeometry { formats: KvPair { v: elem, .. }, v_head_dim: head_dim, .. } = body.geometry;
    let stride = body.max_segments * group(body) * head_dim * 4;
    match elem.is_scaled() {
        true => MicroKernel::IntegerValue { elem, head_dim, group: group(body), stride },
        false => MicroKernel::Value { elem, head_dim, queries: queries(body, tokens, stride) },
    }
}

/// The micro-kernel that makes rounded weights of scores, where weighted values are sums of integers.
pub(super) fn weights_ukernel(body: &AttentionBody) -> Option<MicroKernel> {
    body.geometry.formats.v.is_scaled().then(|| MicroKernel::Weights { group: group(body) })
}

pub(super) fn combine_ukernel(body: &AttentionBody) -> MicroKernel {
    MicroKernel::Combine {
        head_dim: body.geometry.v_head_dim,
        group: group(body),
        sinks: body.sinks.is_some(),
    }
}

/// Micro-kernels that the body calls. The rows of queries are `stride` bytes apart.
pub fn ukernels(body: &AttentionBody, stride: usize) -> Vec<MicroKernel> {
    let mut ukernels = vec![
        score_ukernel(body, 1, stride),
        MicroKernel::Softmax,
        value_ukernel(body, 1),
        combine_ukernel(body),
        MicroKernel::Quantize,
    ];
    let tokens = tokens_per_call(body);
    if tokens > 1 {
        ukernels.extend([score_ukernel(body, tokens, stride), value_ukernel(body, tokens)]);
    }
    ukernels.extend(cap_ukernel(body));
    ukernels.extend(query_ukernel(body));
    ukernels.extend(weights_ukernel(body));
    ukernels
}
