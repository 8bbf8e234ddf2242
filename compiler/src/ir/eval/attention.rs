//! Attention over a sequence's keys and values, split by absolute position.

use super::num::{accumulate, dot4, exp, exp_all, hadamard, lane_sum, max};
use crate::ir::AttentionAttributes;
use kernmill_plan::kv::{hadamard_block, to_int8, to_weights};
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// Keys and values of one layer of one sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerKv {
    /// Keys.
    pub k: CachedRows,
    /// Values.
    pub v: CachedRows,
}

/// Keys, or values, of one layer of one sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CachedRows {
    /// Elements before the scale, `[positions, kv_heads * head_dim]`.
    pub values: Vec<f32>,
    /// Scales `[positions, kv_heads]`; none of formats without.
    pub scales: Vec<f32>,
}

impl CachedRows {
    /// A head's elements at a position, and their scale.
    fn head(&self, a: &AttentionAttributes, position: usize, kv_head: usize) -> (&[f32], Option<f32>) {
        let head = position * a.kv_heads + kv_head;
        (&self.values[head * a.head_dim..][..a.head_dim], self.scales.get(head).copied())
    }
}

/// One token's attention: `q` is `[heads * head_dim]`, so is the result.
pub fn attend(
    a: &AttentionAttributes,
    kv: &LayerKv,
    q: &[f32],
    pos: usize,
    sinks: Option<&[f32]>,
) -> Vec<f32> {
    let group = a.heads / a.kv_heads;
    let heads = q.chunks_exact(a.head_dim).enumerate();
    heads.flat_map(|(h, q)| attend_head(a, kv, q, pos, h / group, sinks.map(|sinks| sinks[h]))).collect()
}

/// The contribution of one segment.
struct SegmentResult {
    largest: f32,
    sum: f32,
    out: Vec<f32>,
}

fn attend_head(
    a: &AttentionAttributes,
    kv: &LayerKv,
    q: &[f32],
    pos: usize,
    kv_head: usize,
    sink: Option<f32>,
) -> Vec<f32> {
    let first = a.window.map_or(0, |window| (pos + 1).saturating_sub(window as usize));
    let segments: Vec<SegmentResult> = (first / ATTENTION_SEGMENT..=pos / ATTENTION_SEGMENT)
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
    out.iter_mut().for_each(|o| *o /= sum);
    if a.kv.v.descriptor().rotated {
        let block = hadamard_block(a.head_dim);
        hadamard(&mut out, block);
        out.iter_mut().for_each(|o| *o *= 1.0 / block as f32);
    }
    out
}

fn segment(
    a: &AttentionAttributes,
    kv: &LayerKv,
    q: &[f32],
    keys: std::ops::Range<usize>,
    kv_head: usize,
) -> SegmentResult {
    let first = keys.start;
    let score = scores(a, q);
    let mut e: Vec<f32> = keys.clone().map(|p| score(kv.k.head(a, p, kv_head))).collect();
    let largest = largest(e.iter().copied());
    e.iter_mut().for_each(|score| *score -= largest);
    exp_all(&mut e);
    let out = match a.kv.v.is_scaled() {
        true => weighted_integers(a, kv, keys, kv_head, &e),
        false => {
            let mut out = vec![0.0; a.head_dim];
            keys.zip(&e).for_each(|(p, e)| accumulate(*e, kv.v.head(a, p, kv_head).0, &mut out));
            out
        }
    };
    SegmentResult { largest, sum: lane_sum(&e, first), out }
}

/// Weighted sums of values that are integers, with weights that become integers too.
fn weighted_integers(
    a: &AttentionAttributes,
    kv: &LayerKv,
    keys: std::ops::Range<usize>,
    kv_head: usize,
    e: &[f32],
) -> Vec<f32> {
    let scale = |p: usize| kv.v.head(a, p, kv_head).1.expect("values that are integers have scales");
    let weight = |(p, e): (usize, &f32)| if *e == 0.0 { 0.0 } else { e * scale(p) };
    let weights: Vec<f32> = keys.clone().zip(e).map(weight).collect();
    let (weights, factor) = to_weights(&weights);
    let mut sums = vec![0i32; a.head_dim];
    for (p, weight) in keys.zip(weights) {
        let values = kv.v.head(a, p, kv_head).0;
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += i32::from(weight) * *value as i32);
    }
    sums.into_iter().map(|sum| sum as f32 * factor).collect()
}

/// The score of a key and its scale, of keys that have one.
fn scores(a: &AttentionAttributes, q: &[f32]) -> impl Fn((&[f32], Option<f32>)) -> f32 {
    let (integers, query_scale) = match a.kv.k.is_scaled() {
        true => to_int8(q),
        false => (Vec::new(), 1.0),
    };
    let factor = query_scale * a.scale;
    move |(key, scale)| {
        let Some(scale) = scale else { return dot4(q, key) * a.scale };
        let sum: i32 = key.iter().zip(&integers).map(|(k, q)| *k as i32 * i32::from(*q)).sum();
        sum as f32 * scale * factor
    }
}

fn largest(x: impl Iterator<Item = f32>) -> f32 {
    x.fold(f32::NEG_INFINITY, max)
}
