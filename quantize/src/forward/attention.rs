//! Attention of a whole text in f32, by two products for each head of keys and values.

use super::gemm::PanelMatrix;
use kernmill_compiler::interp::num::{exp_all, tanh};
use kernmill_compiler::ir::Attention;

/// What every token of a text sees, `[tokens][heads * head_dim]`, of its queries, keys and values.
pub(super) fn attend(a: &Attention, q: &[f32], k: &[f32], v: &[f32], sinks: Option<&[f32]>) -> Vec<f32> {
    let (dim, group) = (a.head_dim, a.heads / a.kv_heads);
    let (q_cols, kv_cols) = (a.heads * dim, a.kv_heads * dim);
    let tokens = q.len() / q_cols;
    let mut out = vec![0.0; q.len()];
    for kv_head in 0..a.kv_heads {
        let of_head = |rows: &[f32]| -> Vec<f32> {
            rows.chunks_exact(kv_cols).flat_map(|row| &row[kv_head * dim..][..dim]).copied().collect()
        };
        let keys = PanelMatrix::new(&of_head(k), dim);
        let values = of_head(v);
        let across: Vec<f32> =
            (0..dim).flat_map(|column| values.iter().skip(column).step_by(dim)).copied().collect();
        let values = PanelMatrix::new(&across, tokens);
        for head in kv_head * group..(kv_head + 1) * group {
            let queries: Vec<f32> =
                q.chunks_exact(q_cols).flat_map(|row| &row[head * dim..][..dim]).copied().collect();
            let mut scores = keys.product(&queries);
            for (position, row) in scores.chunks_exact_mut(tokens).enumerate() {
                weigh(a, row, position, sinks.map(|sinks| sinks[head]));
            }
            let seen = values.product(&scores);
            for (row, seen) in out.chunks_exact_mut(q_cols).zip(seen.chunks_exact(dim)) {
                row[head * dim..][..dim].copy_from_slice(seen);
            }
        }
    }
    out
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
