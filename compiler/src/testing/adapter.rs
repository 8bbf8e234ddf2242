//! Random adapters, for the interpreter and packed.

use super::Rng;
use crate::interp::SiteAdapter;
use kernmill_plan::adapter::{Site, SiteLayout};
use kernmill_plan::pack::PackError;

/// An adapter of a site; with `factors`, rows of a dense matrix have some (DoRA).
pub fn random_adapter(site: &Site, rank: usize, factors: bool, rng: &mut Rng) -> SiteAdapter {
    let (k, rows, experts) = (site.k as usize, site.rows(), (site.experts as usize).max(1));
    let mut numbers =
        |count: usize, spread: f32| -> Vec<f32> { (0..count).map(|_| rng.unit() * spread).collect() };
    let a = numbers(experts * rank * k, 1.7 / (k as f32).sqrt());
    let b = numbers(experts * rows * rank, 1.7 / (rank as f32).sqrt());
    let scales = numbers(rank, 0.5);
    let factors = (factors && site.experts == 0)
        .then(|| numbers(rows, 0.2).into_iter().map(|factor| 1.0 + factor).collect());
    SiteAdapter { rank, a, b, scales, factors }
}

/// Packs an adapter's data of a site into the adapter's `bytes`.
///
/// # Errors
/// An element that cannot be packed.
pub fn pack_adapter(
    site: &Site,
    data: &SiteAdapter,
    layout: &SiteLayout,
    bytes: &mut [u8],
) -> Result<(), PackError> {
    let experts = (site.experts as usize).max(1);
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
