//! Attention over a sequence's keys and values, split by absolute position.

use super::num::{accumulate, dot4, exp, exp_all, lane_sum, max};
use crate::graph::Attention;
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// Keys and values of one layer of one sequence, `[positions, kv_heads * head_dim]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerKv {
    /// Keys.
    pub k: Vec<f32>,
    /// Values.
    pub v: Vec<f32>,
}

/// One token's attention: `q` is `[heads * head_dim]`, so is the result.
pub fn attend(a: &Attention, kv: &LayerKv, q: &[f32], pos: usize, sinks: Option<&[f32]>) -> Vec<f32> {
    let group = a.heads / a.kv_heads;
    let heads = q.chunks_exact(a.head_dim).enumerate();
    heads.flat_map(|(h, q)| attend_head(a, kv, q, pos, h / group, sinks.map(|sinks| sinks[h]))).collect()
}

/// What one segment contributes.
struct Segment {
    largest: f32,
    sum: f32,
    out: Vec<f32>,
}

fn attend_head(
    a: &Attention,
    kv: &LayerKv,
    q: &[f32],
    pos: usize,
    kv_head: usize,
    sink: Option<f32>,
) -> Vec<f32> {
    let first = a.window.map_or(0, |window| (pos + 1).saturating_sub(window as usize));
    let segments: Vec<Segment> = (first / ATTENTION_SEGMENT..=pos / ATTENTION_SEGMENT)
        .map(|j| {
            let (from, to) = (j * ATTENTION_SEGMENT, (j + 1) * ATTENTION_SEGMENT);
            segment(a, kv, q, from.max(first)..to.min(pos + 1), kv_head)
        })
        .collect();
    let largest = largest(segments.iter().map(|s| s.largest).chain(sink));
    let (mut sum, mut out) = (0.0f32, vec![0.0f32; a.head_dim]);
    for segment in &segments {
        let factor = exp(segment.largest - largest);
        sum = factor.mul_add(segment.sum, sum);
        accumulate(factor, &segment.out, &mut out);
    }
    if let Some(sink) = sink {
        sum += exp(sink - largest);
    }
    out.iter().map(|o| o / sum).collect()
}

fn segment(a: &Attention, kv: &LayerKv, q: &[f32], keys: std::ops::Range<usize>, kv_head: usize) -> Segment {
    let first = keys.start;
    let row = |rows: &[f32], p: usize| -> std::ops::Range<usize> {
        let start = (p * a.kv_heads + kv_head) * a.head_dim;
        debug_assert!(start + a.head_dim <= rows.len());
        start..start + a.head_dim
    };
    let mut e: Vec<f32> = keys.clone().map(|p| dot4(q, &kv.k[row(&kv.k, p)]) * a.scale).collect();
    let largest = largest(e.iter().copied());
    e.iter_mut().for_each(|score| *score -= largest);
    exp_all(&mut e);
    let mut out = vec![0.0; a.head_dim];
    for (p, e) in keys.zip(&e) {
        accumulate(*e, &kv.v[row(&kv.v, p)], &mut out);
    }
    Segment { largest, sum: lane_sum(&e, first), out }
}

fn largest(x: impl Iterator<Item = f32>) -> f32 {
    x.fold(f32::NEG_INFINITY, max)
}
