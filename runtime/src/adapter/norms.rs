//! Row factors of DoRA: magnitude over the length of the row of `W + B (scale A)`, W being the packed base
//! weights.
//!
//! docs/dev/numerics.md has the order of arithmetic. Twenty billion multiply-adds for the 20B's attention:
//! hence the vectors.

use kernmill_plan::format::{Column, unpack_tile};
use kernmill_plan::format::{LINE, TILE_ROWS, WeightFormat};
use std::arch::x86_64::*;

/// Columns that are summed side by side.
const LANES: usize = 4;

/// Elements of A for [`LANES`] columns.
type Quad = [f32; LANES];

/// A of a LoRA target, and B of 16 of its rows, as they are packed.
pub(super) struct TileFactors<'a> {
    /// `[k / 4][rank]`, see [`quads`].
    pub a: &'a [Quad],
    /// `[rank]`, B times the rank's scale.
    pub b: &'a [Column],
}

/// `a [rank][k]` in the order in which it is read: four columns of every rank, then the next four. `k` is a
/// multiple of 4.
pub(super) fn quads(a: &[f32], k: usize) -> Vec<Quad> {
    let rows: Vec<&[Quad]> = a.chunks_exact(k).map(|row| row.as_chunks::<LANES>().0).collect();
    (0..k / LANES).flat_map(|block| rows.iter().map(move |row| row[block])).collect()
}

/// Lengths of 16 rows of the sum of a packed tile and the adapter's product. `columns` is scratch, one for
/// each k.
pub(super) fn row_lengths(
    format: WeightFormat,
    tile: &[u8],
    factors: &TileFactors<'_>,
    columns: &mut [Column],
) -> Column {
    // The lowest target that kernels are generated for has both.
    let vectors = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    match format {
        WeightFormat::Int8 if vectors => {
            unpack_scales(tile, columns);
            // SAFETY: the CPU has AVX2.
            unsafe { unpack_int8(&tile[format.tile(columns.len()).scale_bytes..], columns) }
        }
        _ => unpack_tile(format, tile, columns),
    }
    let squares = if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512 F.
        unsafe { squares_avx512(factors, columns) }
    } else if vectors {
        // SAFETY: the CPU has AVX2 and FMA.
        unsafe { squares_avx2(factors, columns) }
    } else {
        squares(factors, columns)
    };
    squares.map(f32::sqrt)
}

/// Puts the scales of each block of an int8 tile into its first column.
fn unpack_scales(tile: &[u8], columns: &mut [Column]) {
    let blocks = columns.chunks_mut(kernmill_plan::format::BLOCK);
    for (columns, plane) in blocks.zip(tile.chunks_exact(2 * TILE_ROWS)) {
        for (scale, bytes) in columns[0].iter_mut().zip(plane.as_chunks::<2>().0) {
            *scale = half::f16::from_le_bytes(*bytes).to_f32();
        }
    }
}

/// Elements of an int8 tile's data plane by k, then row, where the first column of each block holds the
/// scales.
#[target_feature(enable = "avx2")]
fn unpack_int8(data: &[u8], columns: &mut [Column]) {
    let lines = data.as_chunks::<LINE>().0;
    let (mask, zero) = (_mm256_set1_epi32(0xff), _mm256_set1_epi32(128));
    let blocks = columns.chunks_mut(kernmill_plan::format::BLOCK);
    for (columns, lines) in blocks.zip(lines.chunks_exact(8)) {
        let scales = load(&columns[0]);
        for (columns, line) in columns.as_chunks_mut::<LANES>().0.iter_mut().zip(lines) {
            for half in 0..2 {
                let bytes: &[u8; 32] = line[32 * half..].first_chunk().expect("a line has 64 bytes");
                // SAFETY: 32 bytes are there; the load takes any alignment.
                let mut bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
                for column in columns.iter_mut() {
                    let q = _mm256_sub_epi32(_mm256_and_si256(bytes, mask), zero);
                    let w = _mm256_mul_ps(_mm256_cvtepi32_ps(q), scales[half]);
                    store(w, column[8 * half..].first_chunk_mut().expect("a column has 16 rows"));
                    bytes = _mm256_srli_epi32::<8>(bytes);
                }
            }
        }
    }
}

/// [`squares`] in vectors of 512 bits: eight columns at a time, as many fmas as a core has under way.
#[target_feature(enable = "avx512f")]
fn squares_avx512(factors: &TileFactors<'_>, columns: &[Column]) -> Column {
    let rank = factors.b.len();
    let mut sums = [_mm512_setzero_ps(); LANES];
    let (pairs, rest) = columns.as_chunks::<{ 2 * LANES }>();
    let (paired, single) = factors.a.split_at(pairs.len() * 2 * rank);
    for (base, a) in pairs.iter().zip(paired.chunks_exact(2 * rank)) {
        let [c0, c1, c2, c3, c4, c5, c6, c7] = base;
        let mut w = [wide(c0), wide(c1), wide(c2), wide(c3)];
        let mut v = [wide(c4), wide(c5), wide(c6), wide(c7)];
        let (one, other) = a.split_at(rank);
        for (b, (one, other)) in factors.b.iter().zip(one.iter().zip(other)) {
            let b = wide(b);
            for lane in 0..LANES {
                w[lane] = _mm512_fmadd_ps(b, _mm512_set1_ps(one[lane]), w[lane]);
                v[lane] = _mm512_fmadd_ps(b, _mm512_set1_ps(other[lane]), v[lane]);
            }
        }
        for (sum, (w, v)) in sums.iter_mut().zip(w.into_iter().zip(v)) {
            *sum = _mm512_fmadd_ps(v, v, _mm512_fmadd_ps(w, w, *sum));
        }
    }
    for (base, a) in rest.as_chunks::<LANES>().0.iter().zip(single.chunks_exact(rank)) {
        for (lane, (sum, base)) in sums.iter_mut().zip(base).enumerate() {
            let mut w = wide(base);
            for (b, a) in factors.b.iter().zip(a) {
                w = _mm512_fmadd_ps(wide(b), _mm512_set1_ps(a[lane]), w);
            }
            *sum = _mm512_fmadd_ps(w, w, *sum);
        }
    }
    let mut lanes = [[0.0f32; TILE_ROWS]; LANES];
    for (lane, sum) in lanes.iter_mut().zip(sums) {
        // SAFETY: 16 floats are there; the store takes any alignment.
        unsafe { _mm512_storeu_ps(lane.as_mut_ptr(), sum) };
    }
    add_lanes(&lanes)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn wide(column: &Column) -> __m512 {
    // SAFETY: 16 floats are there; the load takes any alignment.
    unsafe { _mm512_loadu_ps(column.as_ptr()) }
}

/// [`squares`] in vectors.
#[target_feature(enable = "avx2,fma")]
fn squares_avx2(factors: &TileFactors<'_>, columns: &[Column]) -> Column {
    let rank = factors.b.len();
    let mut sums = [[_mm256_setzero_ps(); 2]; LANES];
    for (base, a) in columns.as_chunks::<LANES>().0.iter().zip(factors.a.chunks_exact(rank)) {
        let [c0, c1, c2, c3] = base;
        let mut w = [load(c0), load(c1), load(c2), load(c3)];
        for (b, a) in factors.b.iter().zip(a) {
            let b = load(b);
            for (w, a) in w.iter_mut().zip(a) {
                let a = _mm256_set1_ps(*a);
                w[0] = _mm256_fmadd_ps(b[0], a, w[0]);
                w[1] = _mm256_fmadd_ps(b[1], a, w[1]);
            }
        }
        for (sum, w) in sums.iter_mut().zip(&w) {
            sum[0] = _mm256_fmadd_ps(w[0], w[0], sum[0]);
            sum[1] = _mm256_fmadd_ps(w[1], w[1], sum[1]);
        }
    }
    let mut lanes = [[0.0f32; TILE_ROWS]; LANES];
    for (lane, sum) in lanes.iter_mut().zip(sums) {
        let (low, high) = lane.split_at_mut(8);
        store(sum[0], low.first_chunk_mut().expect("8 of 16"));
        store(sum[1], high.first_chunk_mut().expect("8 of 16"));
    }
    add_lanes(&lanes)
}

/// Sums of the squares of 16 rows of base and adapter together.
fn squares(factors: &TileFactors<'_>, columns: &[Column]) -> Column {
    let mut sums = [[0.0f32; TILE_ROWS]; LANES];
    for (base, a) in columns.as_chunks::<LANES>().0.iter().zip(factors.a.chunks_exact(factors.b.len())) {
        for (lane, base) in base.iter().enumerate() {
            for (row, w) in base.iter().enumerate() {
                let w = factors.b.iter().zip(a).fold(*w, |w, (b, a)| b[row].mul_add(a[lane], w));
                sums[lane][row] = w.mul_add(w, sums[lane][row]);
            }
        }
    }
    add_lanes(&sums)
}

fn add_lanes(sums: &[Column; LANES]) -> Column {
    std::array::from_fn(|row| (sums[0][row] + sums[1][row]) + (sums[2][row] + sums[3][row]))
}

#[target_feature(enable = "avx")]
#[inline]
fn load(column: &Column) -> [__m256; 2] {
    // SAFETY: 16 floats are there; the loads take any alignment.
    unsafe { [_mm256_loadu_ps(column.as_ptr()), _mm256_loadu_ps(column[8..].as_ptr())] }
}

#[target_feature(enable = "avx")]
#[inline]
fn store(values: __m256, out: &mut [f32; 8]) {
    // SAFETY: 8 floats are there; the store takes any alignment.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::format::pack_f32_tile;

    #[test]
    fn lengths_are_those_of_the_sum() {
        // Columns that are a multiple of eight, and not.
        [96, 32 + 4].into_iter().for_each(lengths_of);
    }

    fn lengths_of(k: usize) {
        let rank = 3;
        let number = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
        let rows: Vec<f32> = (0..16 * k).map(number).collect();
        let a: Vec<f32> = (0..rank * k).map(|i| number(i + 5)).collect();
        let b: Vec<Column> = (0..rank).map(|r| std::array::from_fn(|n| number(16 * r + n + 9))).collect();
        let quads = quads(&a, k);
        let factors = TileFactors { a: &quads, b: &b };
        for format in [WeightFormat::F32, WeightFormat::Int8, WeightFormat::Int4] {
            if format != WeightFormat::F32 && !k.is_multiple_of(kernmill_plan::format::BLOCK) {
                continue;
            }
            let mut tile = vec![0; format.tile(k).bytes()];
            pack_f32_tile(format, k, &rows, &mut tile).unwrap();
            let (mut base, mut columns) = (vec![[0.0; 16]; k], vec![[0.0; 16]; k]);
            unpack_tile(format, &tile, &mut base);
            let lengths = row_lengths(format, &tile, &factors, &mut columns);
            assert_eq!(columns, base, "{format:?}");
            assert_eq!(squares(&factors, &base).map(f32::sqrt), lengths, "{format:?}");
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the CPU has both.
                let squares = unsafe { squares_avx2(&factors, &base) };
                assert_eq!(squares.map(f32::sqrt), lengths, "{format:?}");
            }
            for (n, length) in lengths.iter().enumerate() {
                let element = |i: usize| {
                    let delta: f64 = (0..rank).map(|r| f64::from(b[r][n]) * f64::from(a[r * k + i])).sum();
                    f64::from(base[i][n]) + delta
                };
                let expected = (0..k).map(|i| element(i) * element(i)).sum::<f64>().sqrt();
                assert!((f64::from(*length) - expected).abs() < 1e-5 * expected, "{length} {expected}");
            }
        }
    }
}
