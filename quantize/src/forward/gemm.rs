//! Products of rows with a matrix in f32. A sum goes through the columns in their order, one fused
//! multiply-add for each, so that its bits depend on nothing else: not on the rows beside it, nor on the CPU.

/// Rows of a matrix that are side by side in a panel.
const LANES: usize = 16;
/// Columns that are multiplied before the next: a panel's stay in the nearest cache.
const DEPTH: usize = 512;
/// Rows of inputs that go through all panels before the next: with [`DEPTH`] columns they stay in a cache.
const BLOCK_ROWS: usize = 96;
/// Rows of a tile, whose sums are in registers: with AVX-512, and without.
const TILE_512: usize = 12;
const TILE_256: usize = 6;

/// A matrix in panels of 16 rows, in which the elements of a column are side by side.
pub(crate) struct PanelMatrix {
    rows: usize,
    cols: usize,
    panels: Vec<f32>,
}

impl PanelMatrix {
    /// Packs `elements`, rows of `cols` elements one after the other.
    pub(crate) fn new(elements: &[f32], cols: usize) -> PanelMatrix {
        let rows = elements.len() / cols;
        let mut panels = vec![0.0; rows.next_multiple_of(LANES) * cols];
        for (panel, rows) in panels.chunks_exact_mut(LANES * cols).zip(elements.chunks(LANES * cols)) {
            for (lane, row) in rows.chunks_exact(cols).enumerate() {
                for (column, x) in panel.chunks_exact_mut(LANES).zip(row) {
                    column[lane] = *x;
                }
            }
        }
        PanelMatrix { rows, cols, panels }
    }

    /// Rows of the matrix: columns of its products.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The products of the rows `x` with every row of the matrix, row by row.
    pub(crate) fn product(&self, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; x.len() / self.cols * self.rows];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("fma") {
                // SAFETY: the features that it is compiled for were detected.
                unsafe { with_avx512(self, x, &mut out) };
                return out;
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                // SAFETY: the features that it is compiled for were detected.
                unsafe { with_avx2(self, x, &mut out) };
                return out;
            }
        }
        multiply::<TILE_256>(self, x, &mut out);
        out
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn with_avx512(matrix: &PanelMatrix, x: &[f32], out: &mut [f32]) {
    multiply::<TILE_512>(matrix, x, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(matrix: &PanelMatrix, x: &[f32], out: &mut [f32]) {
    multiply::<TILE_256>(matrix, x, out);
}

#[inline(always)]
fn multiply<const TILE: usize>(matrix: &PanelMatrix, x: &[f32], out: &mut [f32]) {
    let (cols, n) = (matrix.cols, matrix.rows);
    let rows = x.len() / cols;
    for from in (0..cols).step_by(DEPTH) {
        let depth = DEPTH.min(cols - from);
        for block in (0..rows).step_by(BLOCK_ROWS) {
            let end = rows.min(block + BLOCK_ROWS);
            for (at, panel) in matrix.panels.chunks_exact(LANES * cols).enumerate() {
                let panel = &panel[from * LANES..][..depth * LANES];
                let lanes = LANES.min(n - at * LANES);
                let mut row = block;
                while row < end {
                    // The last rows go one by one.
                    let count = if row + TILE <= end { TILE } else { 1 };
                    let first = row * n + at * LANES;
                    if count == TILE {
                        let x: [&[f32]; TILE] =
                            std::array::from_fn(|r| &x[(row + r) * cols + from..][..depth]);
                        tile(panel, x, &mut out[first..], n, lanes);
                    } else {
                        tile(panel, [&x[row * cols + from..][..depth]], &mut out[first..], n, lanes);
                    }
                    row += count;
                }
            }
        }
    }
}

/// Adds the products of a panel's columns with as many of each row.
#[inline(always)]
fn tile<const ROWS: usize>(panel: &[f32], x: [&[f32]; ROWS], out: &mut [f32], n: usize, lanes: usize) {
    let mut sums = [[0.0f32; LANES]; ROWS];
    for (r, sums) in sums.iter_mut().enumerate() {
        sums[..lanes].copy_from_slice(&out[r * n..][..lanes]);
    }
    for (k, w) in panel.as_chunks::<LANES>().0.iter().enumerate() {
        for r in 0..ROWS {
            let x = x[r][k];
            for lane in 0..LANES {
                sums[r][lane] = x.mul_add(w[lane], sums[r][lane]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        out[r * n..][..lanes].copy_from_slice(&sums[..lanes]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn sums_go_through_the_columns_in_order_whatever_is_beside_them() {
        let mut rng = Rng::with_seed(3);
        for (rows, n, cols) in [(1, 1, 1), (7, 33, 40), (13, 16, 513), (101, 50, 96), (24, 40, 1100)] {
            let mut random = |count: usize| (0..count).map(|_| rng.f32() - 0.5).collect::<Vec<f32>>();
            let (x, w) = (random(rows * cols), random(n * cols));
            let found = PanelMatrix::new(&w, cols).product(&x);
            for (row, found) in x.chunks(cols).zip(found.chunks(n)) {
                for (w, found) in w.chunks(cols).zip(found) {
                    let sum = row.iter().zip(w).fold(0.0f32, |sum, (x, w)| x.mul_add(*w, sum));
                    assert_eq!(sum.to_bits(), found.to_bits(), "{rows} {n} {cols}");
                }
            }
        }
    }
}
