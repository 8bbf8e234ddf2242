//! Adapters added to base weights, row by row, for plans that have them baked in.

use super::factors::{unpack_a, unpack_b};
use super::packed::Adapter;

impl Adapter {
    /// Whether the adapter changes a LoRA target.
    pub fn changes(&self, lora_target: usize) -> bool {
        self.packed.layouts()[lora_target].is_some()
    }

    /// Makes base rows those of base and adapter together: `weights` is `[rows][k]` of an expert (0 for a
    /// dense matrix), row i being row `first + i * step` of the checkpoint's tensor. With DoRA, rows get
    /// their magnitudes.
    ///
    /// # Panics
    /// When the adapter does not change the LoRA target, or there are no such rows.
    pub fn merge(&self, lora_target: usize, expert: usize, first: usize, step: usize, weights: &mut [f32]) {
        let layout =
            self.packed.layouts()[lora_target].as_ref().expect("the adapter changes the LoRA target");
        let (k, rank) = (self.lora_targets.lora_targets[lora_target].k as usize, layout.rank());
        let a = unpack_a(&self.lora_targets, &self.packed, lora_target, expert);
        let b = unpack_b(&self.lora_targets, &self.packed, lora_target, expert);
        for (index, row) in weights.chunks_exact_mut(k).enumerate() {
            let n = first + index * step;
            for ((b, scale), a) in
                b[n * rank..][..rank].iter().zip(&self.scales[lora_target]).zip(a.chunks_exact(k))
            {
                let factor = b * scale;
                row.iter_mut().zip(a).for_each(|(w, a)| *w += factor * a);
            }
            if let Some(magnitude) = &self.magnitudes[lora_target] {
                let length = row.iter().map(|w| w * w).sum::<f32>().sqrt();
                // A row of zeros has no direction to scale.
                let factor = if length > 0.0 { magnitude[n] / length } else { 0.0 };
                row.iter_mut().for_each(|w| *w *= factor);
            }
        }
    }
}
