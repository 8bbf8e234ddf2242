//! Several loaded adapters as one, for sequences that use them together. Nothing else depends on it but the
//! store, which keeps what comes out.

use super::error::AdapterError;
use super::factors::{Factors, unpack_ranks, unpack_rows};
use super::load::{AdapterLoader, Loading, check_weight};
use super::packed::Adapter;
use super::pieces::{Mixed, PartA, PartB};
use kernmill_plan::adapter::{Adapters, LoraTargetLayout, LoraTargetShape, MAX_RANK};
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
                    "one of the adapters is a DoRA at {}, where another one has a part too: a DoRA scales whole rows, and \
                     cannot be added to",
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
}

impl Factors for FromPacked {
    fn shapes(&self) -> Vec<Option<LoraTargetShape>> {
        self.shapes.clone()
    }

    fn mixed(&self, _lora_target: usize) -> Mixed {
        Mixed::default()
    }

    fn a(&self, lora_target: usize, wanted: &PartA) -> Result<Vec<f32>, AdapterError> {
        let mut a = Vec::with_capacity(wanted.elements());
        let k = self.adapters.lora_targets[lora_target].k as usize;
        for expert in wanted.experts.clone() {
            let mut first = 0;
            for (adapter, _) in self.at(lora_target) {
                let rank = adapter.packed.layouts()[lora_target].as_ref().map_or(0, LoraTargetLayout::rank);
                let ranks = wanted.ranks.start.max(first)..wanted.ranks.end.min(first + rank);
                if !ranks.is_empty() {
                    let ranks = ranks.start - first..ranks.end - first;
                    let rows = unpack_ranks(&self.adapters, &adapter.packed, lora_target, expert, ranks);
                    rows.chunks_exact(k).for_each(|row| a.extend_from_slice(&row[wanted.columns.clone()]));
                }
                first += rank;
            }
        }
        Ok(a)
    }

    fn b(&self, lora_target: usize, wanted: &PartB) -> Result<Vec<f32>, AdapterError> {
        let rank = self.shapes[lora_target].map_or(0, |shape| shape.rank);
        let mut b = Vec::with_capacity(wanted.elements(rank));
        for expert in wanted.experts.clone() {
            let rows = |(adapter, _): &(Arc<Adapter>, f32)| {
                let rank = adapter.packed.layouts()[lora_target].as_ref().map_or(0, LoraTargetLayout::rank);
                let rows = wanted.rows.clone();
                (rank, unpack_rows(&self.adapters, &adapter.packed, lora_target, expert, wanted.out, rows))
            };
            let parts: Vec<(usize, Vec<f32>)> = self.at(lora_target).map(rows).collect();
            for row in 0..wanted.rows.len() {
                parts.iter().for_each(|(rank, b_part)| b.extend_from_slice(&b_part[row * rank..][..*rank]));
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
