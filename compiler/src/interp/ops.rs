//! What each op does to a whole batch.

use super::attention::attend;
use super::expr::eval;
use super::num::{blockdot, dot4, exp, quantize_block, round_bf16, round_f16, sum_squares, tiledot};
use super::{BatchToken, Data, Interpreter};
use crate::graph::{Attention, Node, Op, Rows, TensorId, ValueId};
use kernmill_plan::abi::Route;
use kernmill_plan::format::BLOCK;

impl Interpreter {
    pub(super) fn eval(&mut self, node: &Node, batch: &[BatchToken], wanted: &[usize]) -> Data {
        let x = node.inputs[0];
        match &node.op {
            Op::Embed => Data::F32(self.embed(node, batch)),
            Op::RmsNorm { eps } => Data::F32(self.rms_norm(x, self.dense(node.tensors[0]), *eps)),
            Op::Linear(_) | Op::QuantLinear => Data::F32(self.linear(node, batch)),
            Op::QuantizeQ8 => self.quantize(x),
            Op::Bf16Cast => Data::F32(self.f32s(x).iter().map(|&x| round_bf16(x)).collect()),
            Op::Rope { rope, head_dim } => Data::F32(self.rope(x, *rope, *head_dim, batch)),
            Op::KvCast => Data::F32(self.f32s(x).iter().map(|&x| round_f16(x)).collect()),
            Op::Attention(attention) => Data::F32(self.attention(node, attention, batch)),
            Op::RouterTopk { k } => Data::Routing(self.topk(x, *k as usize)),
            Op::ExpertLinear | Op::QuantExpertLinear | Op::Bf16ExpertLinear => {
                Data::F32(self.expert_linear(node, batch))
            }
            Op::ExpertSum => Data::F32(self.expert_sum(x, node.inputs[1])),
            Op::Glu { expr } | Op::Elementwise { expr } => {
                let inputs: Vec<&[f32]> = node.inputs.iter().map(|&value| self.f32s(value)).collect();
                let mut vars = vec![0.0; inputs.len()];
                let element = |i: usize| {
                    vars.iter_mut().zip(&inputs).for_each(|(var, input)| *var = input[i]);
                    eval(expr, &vars)
                };
                Data::F32((0..inputs[0].len()).map(element).collect())
            }
            Op::Add => Data::F32(self.zip(node, |a, b| a + b)),
            Op::Mul => Data::F32(self.zip(node, |a, b| a * b)),
            Op::LoraShrink { lora_target, .. } => Data::F32(self.shrink(node, *lora_target, batch)),
            Op::SelectRows => {
                let cols = self.cols(x);
                let rows = self.f32s(x);
                Data::F32(wanted.iter().flat_map(|row| &rows[row * cols..][..cols]).copied().collect())
            }
        }
    }

    pub(super) fn cols(&self, value: ValueId) -> usize {
        self.graph.value(value).ty.cols()
    }

    pub(super) fn f32s(&self, value: ValueId) -> &[f32] {
        match &self.values[value.0 as usize] {
            Some(Data::F32(x)) => x,
            _ => &[],
        }
    }

    pub(super) fn routing(&self, value: ValueId) -> &[Route] {
        match &self.values[value.0 as usize] {
            Some(Data::Routing(x)) => x,
            _ => &[],
        }
    }

    fn dense(&self, tensor: TensorId) -> &[f32] {
        &self.weights[tensor.0 as usize].dense
    }

    fn zip(&self, node: &Node, f: impl Fn(f32, f32) -> f32) -> Vec<f32> {
        let (a, b) = (self.f32s(node.inputs[0]), self.f32s(node.inputs[1]));
        a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
    }

    fn embed(&self, node: &Node, batch: &[BatchToken]) -> Vec<f32> {
        let cols = self.cols(node.output);
        let table = self.dense(node.tensors[0]);
        batch.iter().flat_map(|token| &table[token.token as usize * cols..][..cols]).copied().collect()
    }

    fn rms_norm(&self, x: ValueId, weight: &[f32], eps: f32) -> Vec<f32> {
        let rows = self.f32s(x).chunks_exact(self.cols(x));
        rows.flat_map(|row| {
            let r = 1.0 / (sum_squares(row) / row.len() as f32 + eps).sqrt();
            row.iter().zip(weight).map(move |(x, w)| (x * r) * w)
        })
        .collect()
    }

    fn linear(&self, node: &Node, batch: &[BatchToken]) -> Vec<f32> {
        let (x, n) = (node.inputs[0], self.cols(node.output));
        let rows = self.rows(x);
        let per_token = rows / batch.len().max(1);
        let product = |row| {
            let mut y = self.product(node, x, row, 0, n);
            // Wanted rows have no branch.
            if node.shrunk().is_some() {
                self.expand(node, &batch[row / per_token.max(1)], row, 0, &mut y);
            }
            self.add_bias(node, 0, &mut y);
            y
        };
        (0..rows).flat_map(product).collect()
    }

    /// Rows of a value of the last run.
    fn rows(&self, value: ValueId) -> usize {
        match &self.values[value.0 as usize] {
            Some(Data::F32(x)) => x.len() / self.cols(value),
            Some(Data::Q8 { q, .. }) => q.len() / self.cols(value),
            _ => 0,
        }
    }

    /// Matrix number `expert` (0 for a plain matrix) times row `row` of `x`.
    fn product(&self, node: &Node, x: ValueId, row: usize, expert: usize, n: usize) -> Vec<f32> {
        let k = self.cols(x);
        let weight = &self.weights[node.tensors[0].0 as usize];
        let first = expert * n;
        match (&self.values[x.0 as usize], &weight.blocks) {
            (Some(Data::Q8 { q, scales, .. }), Some((ints, w_scales, unit))) => {
                let blocks = k / BLOCK;
                let (q, scales) = (&q[row * k..][..k], &scales[row * blocks..][..blocks]);
                let dot = |i: usize| {
                    let i = first + i;
                    blockdot(&ints[i * k..][..k], &w_scales[i * blocks..][..blocks], q, scales, *unit)
                };
                (0..n).map(dot).collect()
            }
            (Some(Data::F32(x)), _) => {
                let x = &x[row * k..][..k];
                let dot = if node.op == Op::Bf16ExpertLinear { tiledot } else { dot4 };
                (0..n).map(|i| dot(&weight.dense[(first + i) * k..][..k], x)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn add_bias(&self, node: &Node, expert: usize, y: &mut [f32]) {
        if let Some(bias) = node.tensors.get(1) {
            let first = expert * y.len();
            y.iter_mut().zip(&self.dense(*bias)[first..]).for_each(|(y, b)| *y += b);
        }
    }

    fn quantize(&self, x: ValueId) -> Data {
        let x = self.f32s(x);
        let mut q = vec![0; x.len()];
        let blocks = x.chunks_exact(BLOCK).zip(q.chunks_exact_mut(BLOCK));
        let (scales, sums) = blocks.map(|(x, q)| quantize_block(x, q)).unzip();
        Data::Q8 { q, scales, sums }
    }

    fn rope(&self, x: ValueId, rope: u32, head_dim: usize, batch: &[BatchToken]) -> Vec<f32> {
        let (inv_freq, factor) = &self.rope_tables[rope as usize];
        let half = head_dim / 2;
        let mut y = self.f32s(x).to_vec();
        for (row, token) in y.chunks_exact_mut(self.cols(x)).zip(batch) {
            let angles = inv_freq.iter().map(|freq| f64::from(token.position as f32 * freq));
            let table: Vec<(f32, f32)> =
                angles.map(|a| ((libm::cos(a) * factor) as f32, (libm::sin(a) * factor) as f32)).collect();
            for head in row.chunks_exact_mut(head_dim) {
                let (lo, hi) = head.split_at_mut(half);
                for ((lo, hi), (cos, sin)) in lo.iter_mut().zip(hi).zip(&table) {
                    let (l, h) = (*lo, *hi);
                    *lo = l * cos - h * sin;
                    *hi = h * cos + l * sin;
                }
            }
        }
        y
    }

    fn attention(&mut self, node: &Node, attention: &Attention, batch: &[BatchToken]) -> Vec<f32> {
        let kv_cols = attention.kv_heads * attention.head_dim;
        let k = self.f32s(node.inputs[1]).to_vec();
        let v = self.f32s(node.inputs[2]).to_vec();
        let layer = attention.layer as usize;
        for (i, token) in batch.iter().enumerate() {
            let kv = &mut self.sequences[token.sequence][layer];
            kv.k.extend(&k[i * kv_cols..][..kv_cols]);
            kv.v.extend(&v[i * kv_cols..][..kv_cols]);
        }
        let sinks = node.tensors.first().map(|&sinks| self.dense(sinks));
        let q = self.f32s(node.inputs[0]).chunks_exact(attention.heads * attention.head_dim);
        q.zip(batch)
            .flat_map(|(q, token)| {
                attend(attention, &self.sequences[token.sequence][layer], q, token.position, sinks)
            })
            .collect()
    }

    fn topk(&self, logits: ValueId, k: usize) -> Vec<Route> {
        let rows = self.f32s(logits).chunks_exact(self.cols(logits));
        rows.flat_map(|logits| {
            let chosen = largest(logits, k);
            let e: Vec<f32> = chosen.iter().map(|&i| exp(logits[i] - logits[chosen[0]])).collect();
            let sum = e[1..].iter().fold(e[0], |sum, e| sum + e);
            let routes = chosen.into_iter().zip(e);
            routes
                .map(move |(expert, e)| Route { expert: expert as u32, weight: e / sum })
                .collect::<Vec<_>>()
        })
        .collect()
    }

    fn expert_linear(&self, node: &Node, batch: &[BatchToken]) -> Vec<f32> {
        let (x, n) = (node.inputs[0], self.cols(node.output));
        let routing = self.routing(node.inputs[1]);
        let Rows::Slots(k) = self.graph.value(node.output).ty.rows() else { return Vec::new() };
        let per_token = self.graph.value(x).ty.rows() == Rows::Tokens;
        let row = |slot: usize| if per_token { slot / k as usize } else { slot };
        let product = |(slot, route): (usize, &Route)| {
            let expert = route.expert as usize;
            let mut y = self.product(node, x, row(slot), expert, n);
            self.expand(node, &batch[slot / k as usize], slot, expert, &mut y);
            self.add_bias(node, expert, &mut y);
            y
        };
        routing.iter().enumerate().flat_map(product).collect()
    }

    fn expert_sum(&self, y: ValueId, routing: ValueId) -> Vec<f32> {
        let (cols, k) = (self.cols(y), self.cols(routing));
        let tokens = self.f32s(y).chunks_exact(cols * k).zip(self.routing(routing).chunks_exact(k));
        tokens
            .flat_map(|(y, routes)| {
                let mut slots: Vec<usize> = (0..k).collect();
                slots.sort_by_key(|&slot| routes[slot].expert);
                let mut acc = vec![0.0f32; cols];
                for slot in slots {
                    super::num::accumulate(routes[slot].weight, &y[slot * cols..][..cols], &mut acc);
                }
                acc
            })
            .collect()
    }
}

/// Indices of the `k` largest, descending, ties to the lower index. A NaN is larger than nothing: it is chosen only when
/// nothing else is left, lower indices first.
fn largest(x: &[f32], k: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::with_capacity(k);
    for _ in 0..k {
        let mut best: Option<usize> = None;
        for i in (0..x.len()).filter(|i| !chosen.contains(i)) {
            if best.is_none_or(|b| x[i] > x[b] || (x[b].is_nan() && !x[i].is_nan())) {
                best = Some(i);
            }
        }
        chosen.extend(best);
    }
    chosen
}
