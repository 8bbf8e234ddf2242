//! Several loaded adapters as one, for sequences that use them together. Nothing else depends on it but the
//! store, which keeps what comes out.

use super::error::AdapterError;
use super::factors::{Factors, unpack_a, unpack_b};
use super::load::{AdapterLoader, Loading, check_weight};
use super::packed::Adapter;
use kernmill_plan::adapter::{Adapters, LoraTargetShape, MAX_RANK};
use std::sync::Arc;

impl AdapterLoader {
    /// Several loaded adapters as one, each with a weight.
    ///
    /// # Errors
    /// When their ranks are too many at some LoRA target, or one is a DoRA where another has a part too.
    pub fn combine(&self, parts: &[(Arc<Adapter>, f32)]) -> Result<Loading, AdapterError> {
        parts.iter().try_for_each(|(_, weight)| check_weight(*weight))?;
        let factors = FromPacked::new(Arc::clone(&self.adapters), parts.to_vec())?;
        let mut loading = Loading::new(self.clone(), Box::new(factors), Vec::new())?;
        loading.parts = parts.iter().map(|(adapter, weight)| (Arc::downgrade(adapter), *weight)).collect();
        Ok(loading)
    }
}

/// Several packed adapters as one: their ranks one after the other, every scale times its adapter's weight.
struct FromPacked {
    adapters: Arc<Adapters>,
    parts: Vec<(Arc<Adapter>, f32)>,
    shapes: Vec<Option<LoraTargetShape>>,
}

impl FromPacked {
    /// Checks that they can be one.
    fn new(adapters: Arc<Adapters>, parts: Vec<(Arc<Adapter>, f32)>) -> Result<FromPacked, AdapterError> {
        let mut shapes = Vec::new();
        for (index, lora_target) in adapters.lora_targets.iter().enumerate() {
            let layouts = parts.iter().filter_map(|(adapter, _)| adapter.packed.layouts()[index].as_ref());
            let (mut rank, mut count, mut factors) = (0, 0, false);
            for layout in layouts {
                (rank, count, factors) = (rank + layout.rank(), count + 1, factors || layout.has_factors());
            }
            if rank > MAX_RANK {
                return Err(AdapterError::Combination(format!(
                    "the adapters' ranks add up to {rank} at {}, expected at most {MAX_RANK}",
                    lora_target.name
                )));
            }
            if factors && count > 1 {
                return Err(AdapterError::Combination(format!(
                    "one of the adapters is a DoRA at {}, where another one has a part too: a DoRA scales \
                     whole rows, and cannot be added to",
                    lora_target.name
                )));
            }
            shapes.push((rank > 0).then_some(LoraTargetShape { rank, factors }));
        }
        Ok(FromPacked { adapters, parts, shapes })
    }

    /// Adapters that have something at a LoRA target, with their weights.
    fn at(&self, lora_target: usize) -> impl Iterator<Item = &(Arc<Adapter>, f32)> {
        self.parts.iter().filter(move |(adapter, _)| adapter.packed.layouts()[lora_target].is_some())
    }

    /// Numbers of a LoRA target's experts; 0 for a dense matrix.
    fn experts(&self, lora_target: usize) -> std::ops::Range<usize> {
        0..(self.adapters.lora_targets[lora_target].experts as usize).max(1)
    }
}

impl Factors for FromPacked {
    fn shapes(&self) -> Vec<Option<LoraTargetShape>> {
        self.shapes.clone()
    }

    fn a(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError> {
        let of_expert = |expert: usize| {
            let parts = self.at(lora_target);
            parts.flat_map(move |(part, _)| unpack_a(&self.adapters, &part.packed, lora_target, expert))
        };
        Ok(self.experts(lora_target).flat_map(of_expert).collect())
    }

    fn b(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError> {
        let rows = self.adapters.lora_targets[lora_target].rows();
        let mut b = Vec::new();
        for expert in self.experts(lora_target) {
            let part =
                |(part, _): &(Arc<Adapter>, f32)| unpack_b(&self.adapters, &part.packed, lora_target, expert);
            let parts: Vec<Vec<f32>> = self.at(lora_target).map(part).collect();
            for row in 0..rows {
                parts.iter().for_each(|part| {
                    let rank = part.len() / rows;
                    b.extend_from_slice(&part[row * rank..][..rank]);
                });
            }
        }
        Ok(b)
    }

    fn scales(&self, lora_target: usize) -> Vec<f32> {
        let scaled = |(adapter, weight): &(Arc<Adapter>, f32)| -> Vec<f32> {
            adapter.scales[lora_target].iter().map(|scale| scale * weight).collect()
        };
        self.at(lora_target).flat_map(scaled).collect()
    }

    fn magnitude(&self, lora_target: usize) -> Result<Option<Vec<f32>>, AdapterError> {
        Ok(self.at(lora_target).find_map(|(adapter, _)| adapter.magnitudes[lora_target].clone()))
    }
}
