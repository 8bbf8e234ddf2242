//! Rotary tables, as docs/dev/numerics.md defines them.

use kernmill_plan::program::RopeTable;

/// Floats per row.
pub(crate) fn row_len(table: &RopeTable) -> usize {
    table.inv_freq.len() * 2
}

/// Fills `out`, `[rows][cos half, sin half]`, for positions from 0.
pub(crate) fn fill(table: &RopeTable, out: &mut [f32]) {
    let half = table.inv_freq.len();
    for (position, row) in out.chunks_exact_mut(2 * half).enumerate() {
        let (cos, sin) = row.split_at_mut(half);
        for (j, inv_freq) in table.inv_freq.iter().enumerate() {
            let angle = f64::from(position as f32 * inv_freq);
            cos[j] = (libm::cos(angle) * table.factor) as f32;
            sin[j] = (libm::sin(angle) * table.factor) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_cosines_then_sines() {
        let table = RopeTable { inv_freq: vec![1.0, 0.5], factor: 2.0 };
        let mut rows = vec![0.0; 3 * row_len(&table)];
        fill(&table, &mut rows);
        assert_eq!(rows[..4], [2.0, 2.0, 0.0, 0.0]);
        let expected = [2.0 * 2f64.cos(), 2.0 * 1f64.cos(), 2.0 * 2f64.sin(), 2.0 * 1f64.sin()];
        for (got, want) in rows[8..].iter().zip(expected) {
            assert!((f64::from(*got) - want).abs() < 1e-6);
        }
    }
}
