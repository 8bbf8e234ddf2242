//! Row factors of DoRA: magnitude over the length of the row of `W + B (scale A)`, W being the packed base weights.
//!
//! docs/numerics.md has the order of arithmetic.

use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::pack::{Column, unpack_tile};

/// Columns that are summed side by side.
const LANES: usize = 4;

/// A of a site, and B of 16 of its rows, as they are packed.
pub(super) struct TileFactors<'a> {
    /// `[rank][k]`.
    pub a: &'a [f32],
    /// `[rank]`, B times the rank's scale.
    pub b: &'a [Column],
}

/// Lengths of 16 rows of the sum of a packed tile and the adapter's product. `columns` is scratch, one for each k.
pub(super) fn row_lengths(
    format: WeightFormat,
    tile: &[u8],
    factors: &TileFactors<'_>,
    columns: &mut [Column],
) -> Column {
    unpack_tile(format, tile, columns);
    let squares = if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    {
        // SAFETY: the features that the function is compiled for are there.
        unsafe { squares_avx2(factors, columns) }
    } else {
        squares(factors, columns)
    };
    squares.map(f32::sqrt)
}

/// [`squares`] with the vectors of the lowest target; every kernel needs them too.
#[target_feature(enable = "avx2,fma")]
fn squares_avx2(factors: &TileFactors<'_>, columns: &[Column]) -> Column {
    squares(factors, columns)
}

#[inline(always)]
fn squares(factors: &TileFactors<'_>, columns: &[Column]) -> Column {
    let k = columns.len();
    let mut sums = [[0.0f32; TILE_ROWS]; LANES];
    for (block, base) in columns.as_chunks::<LANES>().0.iter().enumerate() {
        let mut w = *base;
        for (b, a) in factors.b.iter().zip(factors.a.chunks_exact(k)) {
            let a = &a[block * LANES..][..LANES];
            for (w, a) in w.iter_mut().zip(a) {
                for (w, b) in w.iter_mut().zip(b) {
                    *w = b.mul_add(*a, *w);
                }
            }
        }
        for (sum, w) in sums.iter_mut().zip(&w) {
            for (sum, w) in sum.iter_mut().zip(w) {
                *sum = w.mul_add(*w, *sum);
            }
        }
    }
    std::array::from_fn(|row| (sums[0][row] + sums[1][row]) + (sums[2][row] + sums[3][row]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::pack::pack_f32_tile;

    #[test]
    fn lengths_are_those_of_the_sum() {
        let (k, rank) = (36, 3);
        let number = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
        let rows: Vec<f32> = (0..16 * k).map(number).collect();
        let a: Vec<f32> = (0..rank * k).map(|i| number(i + 5)).collect();
        let b: Vec<Column> = (0..rank).map(|r| std::array::from_fn(|n| number(16 * r + n + 9))).collect();
        let mut tile = vec![0; WeightFormat::F32.tile(k).bytes()];
        pack_f32_tile(WeightFormat::F32, k, &rows, &mut tile).unwrap();
        let mut columns = vec![[0.0; 16]; k];
        let lengths = row_lengths(WeightFormat::F32, &tile, &TileFactors { a: &a, b: &b }, &mut columns);
        for (n, length) in lengths.iter().enumerate() {
            let element = |i: usize| {
                let delta: f64 = (0..rank).map(|r| f64::from(b[r][n]) * f64::from(a[r * k + i])).sum();
                f64::from(rows[n * k + i]) + delta
            };
            let expected = (0..k).map(|i| element(i) * element(i)).sum::<f64>().sqrt();
            assert!((f64::from(*length) - expected).abs() < 1e-5 * expected, "{length} {expected}");
        }
        assert_eq!(squares(&TileFactors { a: &a, b: &b }, &columns).map(f32::sqrt), lengths);
    }
}
