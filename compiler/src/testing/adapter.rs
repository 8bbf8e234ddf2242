//! Random adapters, for the interpreter and packed.

use super::Rng;
use crate::interp::LoraTargetAdapter;
use kernmill_plan::adapter::{LoraTarget, LoraTargetLayout};
use kernmill_plan::format::PackError;

/// An adapter of a LoRA target; with `factors`, rows of a dense matrix have some (DoRA).
pub fn random_adapter(
    lora_target: &LoraTarget,
    rank: usize,
    factors: bool,
    rng: &mut Rng,
) -> LoraTargetAdapter {
    let (k, rows, experts) =
        (lora_target.k as usize, lora_target.rows(), (lora_target.experts as usize).max(1));
    let mut numbers =
        |count: usize, spread: f32| -> Vec<f32> { (0..count).map(|_| rng.unit() * spread).collect() };
    let a = numbers(experts * rank * k, 1.7 / (k as f32).sqrt());
    let b = numbers(experts * rows * rank, 1.7 / (rank as f32).sqrt());
    let scales = numbers(rank, 0.5);
    let factors = (factors && lora_target.experts == 0)
        .then(|| numbers(rows, 0.2).into_iter().map(|factor| 1.0 + factor).collect());
    LoraTargetAdapter { rank, a, b, scales, factors }
}

/// Packs an adapter's data of a LoRA target into the adapter's `bytes`.
///
/// # Errors
/// An element that cannot be packed.
pub fn pack_adapter(
    lora_target: &LoraTarget,
    data: &LoraTargetAdapter,
    layout: &LoraTargetLayout,
    bytes: &mut [u8],
) -> Result<(), PackError> {
    let experts = (lora_target.experts as usize).max(1);
    let (a, b) = (data.a.len() / experts, data.b.len() / experts);
    for expert in 0..experts {
        layout.pack_a(expert, &data.a[expert * a..][..a], bytes)?;
        layout.pack_b(expert, &data.b[expert * b..][..b], bytes)?;
    }
    layout.pack_scales(&data.scales, bytes);
    if let Some(factors) = &data.factors {
        layout.pack_factors(factors, bytes);
    }
    Ok(())
}
