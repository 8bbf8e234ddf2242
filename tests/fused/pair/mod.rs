//! Random pairs of a fused-op spec and a model that it may apply to.
//!
//! The model is made of blocks as layers have them, and unlike any known one: odd widths, a fourth and a
//! fifth root beside queries, keys and values, results that meet in several ways. The rule is cut out of the
//! model's graph: matrices of one input, some of what comes before them, and some of what becomes of their
//! results. Now and then it is spoilt, so that it must be refused.

mod cut;
mod model;

use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::lora::with_adapters;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::{Preset, quantise_chosen};
use kernmill_compiler::testing::Rng;

/// A rule, a model, and how the two are compiled and run.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The seed that it was made from.
    pub seed: u64,
    /// The fused-op spec.
    pub spec: String,
    /// The model's graph, before quantisation.
    pub graph: Graph,
    /// Quantisation.
    pub preset: Preset,
    /// Whether tokens have an adapter.
    pub adapted: bool,
    /// Largest batch.
    pub chunk: usize,
}

/// The name of every pair's rule.
pub const RULE: &str = "random_rule";

/// The pair of a seed.
///
/// # Errors
/// When no model came of it, which is a defect of the generator.
pub fn random_pair(seed: u64) -> Result<Pair, String> {
    let mut rng = Rng::new(seed);
    let preset = rng.pick(&[Preset::Exact, Preset::Exact, Preset::Faithful, Preset::Fast, Preset::Bf16]);
    let graph = model::model(preset != Preset::Exact, &mut rng).map_err(|error| error.to_string())?;
    // Products of adapters have separate kernels.
    let adapted = rng.one_in(6);
    let choices = FormatChoices::assumed(&graph);
    let quantised = quantise_chosen(&graph, preset, Some(&choices)).map_err(|error| error.to_string())?;
    let compiled = match adapted {
        true => with_adapters(&quantised, preset.adapter_format()).map_err(|error| error.to_string())?,
        false => quantised,
    };
    let spec = cut::rule(&compiled, &mut rng);
    let chunk = rng.pick(&[1, 2, 5, 8, 9, 16, 17, 24]);
    Ok(Pair { seed, spec, graph, preset, adapted, chunk })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_compiler::passes::fuse::{FusedSpec, KernelTemplate};
    use std::collections::BTreeMap;

    #[test]
    fn pairs_have_every_kind_of_kernel_and_are_the_same_again() {
        let mut kernels: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..400 {
            let pair = random_pair(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(pair.spec, random_pair(seed).unwrap().spec);
            if let Ok(spec) = FusedSpec::parse("pair.toml", &pair.spec) {
                *kernels.entry(spec.rule.unwrap().template.name()).or_default() += 1;
            }
        }
        assert_eq!(kernels.len(), KernelTemplate::NAMED.len(), "{kernels:?}");
        assert!(kernels.values().all(|count| *count >= 5), "{kernels:?}");
    }
}
