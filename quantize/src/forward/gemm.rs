//! Products of rows with a matrix in f32. A sum goes through the columns in their order, one fused
//! multiply-add for each, so that its bits depend on nothing else: not on the rows beside it, nor on the CPU.

use std::arch::x86_64::*;
use std::ops::Range;

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
        let has_avx512 = std::is_x86_feature_detected!("avx512f");
        self.product_on(has_avx512, x)
    }

    fn product_on(&self, has_avx512: bool, x: &[f32]) -> Vec<f32> {
        assert!(std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"));
        let mut out = vec![0.0; x.len() / self.cols * self.rows];
        match has_avx512 {
            // SAFETY: the caller has detected the feature.
            true => self.multiply(x, &mut out, |panel, x, sums| unsafe { tile_512(panel, x, sums) }),
            // SAFETY: the features were detected above.
            false => self.multiply(x, &mut out, |panel, x, sums| unsafe { tile_256(panel, x, sums) }),
        }
        out
    }

    /// Adds all products to `out`, tile by tile.
    fn multiply<const TILE: usize>(
        &self,
        x: &[f32],
        out: &mut [f32],
        tile: impl Fn(PanelRows<'_>, &[[f32; TILE]], &mut [[f32; LANES]; TILE]),
    ) {
        let (cols, n) = (self.cols, self.rows);
        let mut packed = Vec::new();
        for from in (0..cols).step_by(DEPTH) {
            let depth = DEPTH.min(cols - from);
            for (block, x) in x.chunks(BLOCK_ROWS * cols).enumerate() {
                let tiles = (x.len() / cols).div_ceil(TILE);
                pack(x, cols, from..from + depth, &mut packed);
                let out = &mut out[block * BLOCK_ROWS * n..][..x.len() / cols * n];
                for (at, panel) in self.panels.chunks_exact(LANES * cols).enumerate() {
                    let panel = panel[from * LANES..][..depth * LANES].as_chunks().0;
                    let lanes = LANES.min(n - at * LANES);
                    for t in 0..tiles {
                        let mut sums = [[0.0; LANES]; TILE];
                        let rows = out[t * TILE * n..].chunks_exact_mut(n);
                        for (sums, row) in sums.iter_mut().zip(rows) {
                            sums[..lanes].copy_from_slice(&row[at * LANES..][..lanes]);
                        }
                        tile(panel, &packed[t * depth..][..depth], &mut sums);
                        let rows = out[t * TILE * n..].chunks_exact_mut(n);
                        for (sums, row) in sums.iter().zip(rows) {
                            row[at * LANES..][..lanes].copy_from_slice(&sums[..lanes]);
                        }
                    }
                }
            }
        }
    }
}

/// Columns of a panel.
type PanelRows<'a> = &'a [[f32; LANES]];

/// Puts the elements of a column beside each other, for as many rows as a tile has; rows that are not there
/// are 0.
fn pack<const TILE: usize>(x: &[f32], cols: usize, of: Range<usize>, packed: &mut Vec<[f32; TILE]>) {
    packed.clear();
    for rows in x.chunks(TILE * cols) {
        let first = packed.len();
        packed.resize(first + of.len(), [0.0; TILE]);
        for (r, row) in rows.chunks_exact(cols).enumerate() {
            let columns = packed[first..].iter_mut().zip(&row[of.clone()]);
            columns.for_each(|(column, x)| column[r] = *x);
        }
    }
}

/// Adds the products of a panel's columns with those of some rows.
#[target_feature(enable = "avx512f")]
fn tile_512(panel: PanelRows<'_>, x: &[[f32; TILE_512]], sums: &mut [[f32; LANES]; TILE_512]) {
    // SAFETY: an array of 16 numbers is as long as the vector.
    let load = |x: &[f32; LANES]| unsafe { _mm512_loadu_ps(x.as_ptr()) };
    let mut lanes: [__m512; TILE_512] = std::array::from_fn(|r| load(&sums[r]));
    for (w, x) in panel.iter().zip(x) {
        let w = load(w);
        for r in 0..TILE_512 {
            lanes[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r]), w, lanes[r]);
        }
    }
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), lanes) };
    }
}

/// Adds the products of a panel's columns with those of some rows.
#[target_feature(enable = "avx2,fma")]
fn tile_256(panel: PanelRows<'_>, x: &[[f32; TILE_256]], sums: &mut [[f32; LANES]; TILE_256]) {
    // SAFETY: an array of 16 numbers is as long as two vectors.
    let load = |x: &[f32; LANES]| unsafe { [_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x[8..].as_ptr())] };
    let mut lanes: [[__m256; 2]; TILE_256] = std::array::from_fn(|r| load(&sums[r]));
    for (w, x) in panel.iter().zip(x) {
        let w = load(w);
        for r in 0..TILE_256 {
            let x = _mm256_set1_ps(x[r]);
            lanes[r] = [_mm256_fmadd_ps(x, w[0], lanes[r][0]), _mm256_fmadd_ps(x, w[1], lanes[r][1])];
        }
    }
    for (sums, [low, high]) in sums.iter_mut().zip(lanes) {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_ps(sums.as_mut_ptr(), low);
            _mm256_storeu_ps(sums[8..].as_mut_ptr(), high);
        }
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
            let matrix = PanelMatrix::new(&w, cols);
            let found = matrix.product(&x);
            assert_eq!(found, matrix.product_on(false, &x));
            for (row, found) in x.chunks(cols).zip(found.chunks(n)) {
                for (w, found) in w.chunks(cols).zip(found) {
                    let sum = row.iter().zip(w).fold(0.0f32, |sum, (x, w)| x.mul_add(*w, sum));
                    assert_eq!(sum.to_bits(), found.to_bits(), "{rows} {n} {cols}");
                }
            }
        }
    }
}
