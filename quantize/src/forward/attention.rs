//! Attention of a whole text in f32, by two products for each head of keys and values.

use super::gemm::PanelMatrix;
use kernmill_compiler::interp::num::{exp_all, tanh};
use kernmill_compiler::ir::Attention;

/// The results of all tokens of a text, `[tokens][heads * v_head_dim]`, of its queries, keys and values.
pub(super) fn attend(a: &Attention, q: &[f32], k: &[f32], v: &[f32], sinks: Option<&[f32]>) -> Vec<f32> {
    let (k_dim, v_dim, group) = (a.head_dim, a.v_head_dim, a.heads / a.kv_heads);
    let tokens = q.len() / (a.heads * k_dim);
    let mut out = vec![0.0; tokens * a.heads * v_dim];
    for kv_head in 0..a.kv_heads {
        let keys = PanelMatrix::new(&of_head(k, kv_head, a.kv_heads, k_dim), k_dim);
        let values = of_head(v, kv_head, a.kv_heads, v_dim);
        let across: Vec<f32> =
            (0..v_dim).flat_map(|column| values.iter().skip(column).step_by(v_dim)).copied().collect();
        let values = PanelMatrix::new(&across, tokens);
        for head in kv_head * group..(kv_head + 1) * group {
            let mut scores = keys.product(&of_head(q, head, a.heads, k_dim));
            for (position, row) in scores.chunks_exact_mut(tokens).enumerate() {
                weigh(a, row, position, sinks.map(|sinks| sinks[head]));
            }
            let seen = values.product(&scores);
            for (row, seen) in out.chunks_exact_mut(a.heads * v_dim).zip(seen.chunks_exact(v_dim)) {
                row[head * v_dim..][..v_dim].copy_from_slice(seen);
            }
        }
    }
    out
}

/// The elements `[tokens][dim]` of one of so many heads, of rows with all of them.
fn of_head(rows: &[f32], head: usize, heads: usize, dim: usize) -> Vec<f32> {
    rows.chunks_exact(heads * dim).flat_map(|row| &row[head * dim..][..dim]).copied().collect()
}

/// Turns the products of a query with all keys into the weights of what it sees; others become 0.
fn weigh(a: &Attention, row: &mut [f32], position: usize, sink: Option<f32>) {
    let seen = a.view(position, row.len() - 1);
    let (first, end) = (*seen.start(), seen.end() + 1);
    row[..first].fill(0.0);
    row[end..].fill(0.0);
    let row = &mut row[first..end];
    row.iter_mut().for_each(|score| *score *= a.scale);
    if let Some(cap) = a.softcap {
        row.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
    }
    let largest = row.iter().copied().chain(sink).fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|score| *score -= largest);
    exp_all(row);
    let mut rest = [sink.map_or(0.0, |sink| sink - largest)];
    exp_all(&mut rest);
    let sum: f64 = row.iter().map(|e| f64::from(*e)).sum::<f64>()
        + if sink.is_some() { f64::from(rest[0]) } else { 0.0 };
    row.iter_mut().for_each(|e| *e = (f64::from(*e) / sum) as f32);
}
