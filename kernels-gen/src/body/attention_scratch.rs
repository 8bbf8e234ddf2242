//! Attention's areas in scratch.

use super::attention_ukernels::{group, query_ukernel, weights_ukernel};
use crate::kernel::AttentionBody;
use crate::scratch::Scratch;
use crate::ukernel::{BLOCKS_AHEAD, QueryLayout, SCORE_STRIDE, ValueScratch};
use kernmill_plan::abi::COUNTERS;
use kernmill_plan::format::LINE;

/// Offsets in the body's scratch. T is the tile's tokens; P is that, or as many KV heads, for a lone token
/// whose segments are items.
pub(super) struct AttentionScratch {
    /// Pointers `[3][64]`: to a segment's keys, to its values, and to the keys of the one that comes next.
    pub planes: usize,
    /// Rounded queries `[T]`, each of the group's heads, where scores are sums of integers.
    pub queries: usize,
    /// f32 `[T][group]` rows of 1024 scores, then their exponentials, [`SCORE_STRIDE`] apart; in place of
    /// these i16 weights, where weighted values are sums of integers.
    pub scores: usize,
    /// f32 `[T][3][group]` maxima, sums and factors of a segment, where weighted values are sums of integers.
    pub weighing: usize,
    /// Memory of the micro-kernel that adds weighted values up, where they are integers.
    pub adding: usize,
    /// f32 `[P][segments][group][v_head_dim]` weighted values, first i32 where they are sums of integers.
    pub values: usize,
    /// f32 `[P][segments][group]` maxima.
    pub maxima: usize,
    /// f32 `[P][segments][group]` sums.
    pub sums: usize,
    /// f32 `[group][v_head_dim]` result before quantisation.
    pub result: usize,
    total: usize,
}

pub(super) fn areas(body: &AttentionBody) -> AttentionScratch {
    let (group, v_head_dim, tokens) = (group(body), body.geometry.v_head_dim, body.tile_tokens);
    let parts = if splits(body) { tokens.max(body.geometry.kv_heads) } else { tokens };
    let mut scratch = Scratch::default();
    let planes = scratch.take(3 * BLOCKS_AHEAD * 8);
    let queries = scratch.take(if query_ukernel(body).is_some() { tokens * query_bytes(body) } else { 0 });
    let scores = scratch.take(tokens * group * SCORE_STRIDE);
    let integers = weights_ukernel(body).is_some();
    let weighing = scratch.take(if integers { tokens * 3 * group * 4 } else { 0 });
    let adding = scratch.take(if integers { ValueScratch::new(group).bytes } else { 0 });
    let values = scratch.take(parts * body.max_segments * group * v_head_dim * 4);
    let maxima = scratch.take(parts * body.max_segments * group * 4);
    let sums = scratch.take(parts * body.max_segments * group * 4);
    let result = scratch.take(group * v_head_dim * 4);
    let total = scratch.used();
    AttentionScratch { planes, queries, scores, weighing, adding, values, maxima, sums, result, total }
}

/// Bytes from one token's rounded queries to the next's.
pub(super) fn query_bytes(body: &AttentionBody) -> usize {
    QueryLayout::new(body.geometry.head_dim, group(body)).bytes.next_multiple_of(LINE)
}

/// Bytes of the body's scratch.
pub fn scratch_bytes(body: &AttentionBody) -> usize {
    areas(body).total
}

/// Whether a lone token's segments are items: there are several, and a counter for each head besides the one
/// that hands out.
pub(super) fn splits(body: &AttentionBody) -> bool {
    body.window.is_none() && body.max_segments > 1 && body.geometry.kv_heads < COUNTERS
}
