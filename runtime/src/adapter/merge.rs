//! Adapters added to base weights, row by row, for plans that have them baked in.

use super::factors::{unpack_a, unpack_b};
use super::packed::Adapter;

impl Adapter {
    /// Whether it changes a site.
    pub fn changes(&self, site: usize) -> bool {
        self.packed.layouts()[site].is_some()
    }

    /// Makes base rows those of base and adapter together: `weights` is `[rows][k]` of an expert (0 for a dense matrix), row i being row
    /// `first + i * step` of the checkpoint's tensor. With DoRA, rows get their magnitudes.
    ///
    /// # Panics
    /// When the adapter does not change the site, or there are no such rows.
    pub fn merge(&self, site: usize, expert: usize, first: usize, step: usize, weights: &mut [f32]) {
        let layout = self.packed.layouts()[site].as_ref().expect("the adapter changes the site");
        let (k, rank) = (self.sites.sites[site].k as usize, layout.rank());
        let a = unpack_a(&self.sites, &self.packed, site, expert);
        let b = unpack_b(&self.sites, &self.packed, site, expert);
        for (index, row) in weights.chunks_exact_mut(k).enumerate() {
            let n = first + index * step;
            for ((b, scale), a) in b[n * rank..][..rank].iter().zip(&self.scales[site]).zip(a.chunks_exact(k))
            {
                let factor = b * scale;
                row.iter_mut().zip(a).for_each(|(w, a)| *w += factor * a);
            }
            if let Some(magnitude) = &self.magnitudes[site] {
                let length = row.iter().map(|w| w * w).sum::<f32>().sqrt();
                // A row of zeros has no direction to scale.
                let factor = if length > 0.0 { magnitude[n] / length } else { 0.0 };
                row.iter_mut().for_each(|w| *w *= factor);
            }
        }
    }
}
