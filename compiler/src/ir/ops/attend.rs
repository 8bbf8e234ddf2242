//! The arithmetic of `attention`, as the interpreter does it.

use crate::ir::Attention;
use crate::ir::eval::num::{accumulate, dot4, exp, exp_all, hadamard, lane_sum, max, tanh};
use crate::ir::eval::state::{CachedRows, LayerKv};
use kernmill_plan::kv::{hadamard_block, to_int8, to_weights};
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use std::ops::RangeInclusive;

impl Attention {
    /// One token's attention to the positions `seen`: `q` is `[heads * head_dim]`, the result
    /// `[heads * v_head_dim]`.
    pub fn attend(
        &self,
        kv: &LayerKv,
        q: &[f32],
        seen: RangeInclusive<usize>,
        sinks: Option<&[f32]>,
    ) -> Vec<f32> {
        let group = self.heads / self.kv_heads;
        let heads = q.chunks_exact(self.head_dim).enumerate();
        let sink = |h: usize| sinks.map(|sinks| sinks[h]);
        heads.flat_map(|(h, q)| attend_head(self, kv, q, seen.clone(), h / group, sink(h))).collect()
    }
}

/// The elements of a head at a position, so many, and their scale.
fn head<'r>(
    rows: &'r CachedRows,
    a: &Attention,
    head_dim: usize,
    position: usize,
    kv_head: usize,
) -> (&'r [f32], Option<f32>) {
    let head = position * a.kv_heads + kv_head;
    (&rows.values[head * head_dim..][..head_dim], rows.scales.get(head).copied())
}

/// The contribution of one segment.
struct SegmentResult {
    largest: f32,
    sum: f32,
    out: Vec<f32>,
}

fn attend_head(
    a: &Attention,
    kv: &LayerKv,
    q: &[f32],
    seen: RangeInclusive<usize>,
    kv_head: usize,
    sink: Option<f32>,
) -> Vec<f32> {
    let (first, last) = seen.into_inner();
    let segments: Vec<SegmentResult> = (first / ATTENTION_SEGMENT..=last / ATTENTION_SEGMENT)
        .map(|j| {
            let (from, to) = (j * ATTENTION_SEGMENT, (j + 1) * ATTENTION_SEGMENT);
            segment(a, kv, q, from.max(first)..to.min(last + 1), kv_head)
        })
        .collect();
    let largest = largest(segments.iter().map(|s| s.largest).chain(sink));
    let (mut sum, mut out) = (0.0f32, vec![0.0f32; a.v_head_dim]);
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
        let block = hadamard_block(a.v_head_dim);
        hadamard(&mut out, block);
        out.iter_mut().for_each(|o| *o *= 1.0 / block as f32);
    }
    out
}

fn segment(
    a: &Attention,
    kv: &LayerKv,
    q: &[f32],
    keys: std::ops::Range<usize>,
    kv_head: usize,
) -> SegmentResult {
    let first = keys.start;
    let score = scores(a, q);
    let mut e: Vec<f32> = keys.clone().map(|p| score(head(&kv.k, a, a.head_dim, p, kv_head))).collect();
    if let Some(cap) = a.softcap {
        e.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
    }
    let largest = largest(e.iter().copied());
    e.iter_mut().for_each(|score| *score -= largest);
    exp_all(&mut e);
    let out = match a.kv.v.is_scaled() {
        true => weighted_integers(a, kv, keys, kv_head, &e),
        false => {
            let mut out = vec![0.0; a.v_head_dim];
            let value = |p: usize| head(&kv.v, a, a.v_head_dim, p, kv_head).0;
            keys.zip(&e).for_each(|(p, e)| accumulate(*e, value(p), &mut out));
            out
        }
    };
    SegmentResult { largest, sum: lane_sum(&e, first), out }
}

/// Weighted sums of values that are integers, with weights that become integers too.
fn weighted_integers(
    a: &Attention,
    kv: &LayerKv,
    keys: std::ops::Range<usize>,
    kv_head: usize,
    e: &[f32],
) -> Vec<f32> {
    let value = |p: usize| head(&kv.v, a, a.v_head_dim, p, kv_head);
    let scale = |p: usize| value(p).1.expect("values that are integers have scales");
    let weight = |(p, e): (usize, &f32)| if *e == 0.0 { 0.0 } else { e * scale(p) };
    let weights: Vec<f32> = keys.clone().zip(e).map(weight).collect();
    let (weights, factor) = to_weights(&weights);
    let mut sums = vec![0i32; a.v_head_dim];
    for (p, weight) in keys.zip(weights) {
        sums.iter_mut().zip(value(p).0).for_each(|(sum, value)| *sum += i32::from(weight) * *value as i32);
    }
    sums.into_iter().map(|sum| sum as f32 * factor).collect()
}

/// The score of a key and its scale, of keys that have one.
fn scores(a: &Attention, q: &[f32]) -> impl Fn((&[f32], Option<f32>)) -> f32 {
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
