//! Whether models have room, before any memory is taken: one budget for all that a process runs.

use crate::executor::MemoryNeed;
use crate::kv::{KvBudget, KvShape};
use crate::stages::StageShare;
use kernmill_os::memory::available_memory;
use kernmill_os::text::size;
use kernmill_plan::kv::KvLayers;
use kernmill_plan::program::Program;

/// Whether a model's weights take separate memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsIn {
    /// In separate memory.
    Memory,
    /// In a mapped file, whose pages the system may drop and read again: what is in its cache already, or on
    /// a file system in memory, is not taken once more.
    File,
}

/// A model that is about to be loaded, and what it takes.
pub struct MemoryClaim<'a> {
    /// Name of the model, for messages.
    pub name: &'a str,
    /// The program of the model.
    pub program: &'a Program,
    /// The sizes that it runs with.
    pub shape: KvShape,
    /// Worker threads.
    pub threads: usize,
    /// Whether its KV cache takes less than it may use where memory is short.
    pub yields: bool,
    /// Where its weights are.
    pub weights_in: WeightsIn,
    /// The part that is loaded, if that is a stage alone.
    pub share: Option<StageShare>,
}

impl MemoryClaim<'_> {
    /// Bytes of the weights that are read here.
    pub fn weight_bytes(&self) -> u64 {
        let all = self.program.weight_bytes;
        self.share.as_ref().map_or(all, |share| (all as f64 * share.weights) as u64)
    }

    /// The memory besides the weights.
    fn need(&self) -> MemoryNeed {
        match &self.share {
            None => MemoryNeed::of(self.program, self.shape, self.threads),
            Some(share) => share.memory(self.program, self.shape, self.threads),
        }
    }

    /// All that it takes, with its weights.
    pub fn total(&self) -> u64 {
        self.need().total().saturating_add(self.weight_bytes())
    }

    /// The memory that nobody can have meanwhile.
    fn taken(&self) -> u64 {
        if self.weights_in == WeightsIn::File { self.need().total() } else { self.total() }
    }
}

/// Sizes the KV caches that yield. All models may take `limit` bytes together. What weights, working memory
/// and other caches leave is shared by these, each by what it would take without a limit: three quarters of
/// it at most, but never less than one sequence of the whole context.
pub fn size_caches(claims: &mut [MemoryClaim<'_>], limit: Option<u64>) {
    let available = available_memory().unwrap_or(u64::MAX);
    let wanted = |claim: &MemoryClaim<'_>| {
        // A stage has its layers' part of the cache; the budget is that of all.
        MemoryNeed::of(claim.program, claim.shape, claim.threads)
    };
    let others = claims.iter().map(|claim| {
        let all = wanted(claim);
        let own = if claim.yields { all.total() - all.kv } else { all.total() };
        claim.weight_bytes().saturating_add(own)
    });
    let others = others.fold(0, u64::saturating_add);
    let left = limit.unwrap_or(u64::MAX).min(available).saturating_sub(others);
    let caches = claims.iter().filter(|claim| claim.yields).map(|claim| wanted(claim).kv);
    let caches = caches.fold(0, u64::saturating_add).max(1);
    for claim in claims.iter_mut().filter(|claim| claim.yields) {
        let layers = &claim.program.model.kv;
        let kv = wanted(claim).kv;
        let own = (u128::from(left) * u128::from(kv) / u128::from(caches)) as u64;
        let part = claim.share.as_ref().map_or(1.0, |it| it.layers.len() as f64 / layers.layers.len() as f64);
        claim.shape = kv_within(layers, claim.shape, kv, (own as f64 / part) as u64);
    }
}

/// A cache of `all` bytes, or of three quarters of what is `left` if that is less. The rest is for the
/// system's cache of files, adapters and other programs.
fn kv_within(layers: &KvLayers, shape: KvShape, all: u64, left: u64) -> KvShape {
    let most = left / 4 * 3;
    if all <= most {
        return shape;
    }
    let shape = KvShape { budget: KvBudget::Bytes(most), ..shape };
    let least = shape.least_budget(layers).unwrap_or(most);
    KvShape { budget: KvBudget::Bytes(least), ..shape }
}

/// Checks that there is memory enough to run all models together: KV caches and working memory of the
/// workers, and the weights unless they are mapped from files. Mapped weights count for `limit` too.
///
/// # Errors
/// When more is needed than is available, or than is allowed. The message says how much each part takes.
pub fn check_claims(claims: &[MemoryClaim<'_>], limit: Option<u64>) -> Result<(), String> {
    for MemoryClaim { shape, program, .. } in claims {
        if let Some(least) = shape.least_budget(&program.model.kv) {
            return Err(format!(
                "--kv-memory is too small: one sequence of {} tokens, {} of them at once, takes {}: give more, or \
                 lower --context or --chunk",
                shape.context,
                shape.chunk,
                size(least)
            ));
        }
    }
    let available = available_memory().unwrap_or(u64::MAX);
    if let Some(limit) = limit {
        check_sum(claims, MemoryClaim::total, limit)?;
    }
    check_sum(claims, MemoryClaim::taken, available)
}

/// Refuses models that take more than is `allowed`, counted by `of`.
fn check_sum<'a>(
    claims: &[MemoryClaim<'a>],
    of: impl Fn(&MemoryClaim<'a>) -> u64,
    allowed: u64,
) -> Result<(), String> {
    let needed = claims.iter().map(&of).fold(0, u64::saturating_add);
    if needed <= allowed {
        return Ok(());
    }
    let parts = |claim: &MemoryClaim<'a>| {
        let need = claim.need();
        let (all, besides) = (need.total(), need.total() - need.kv);
        let [weights, kv, besides] = [of(claim) - all, need.kv, besides].map(size);
        format!("(weights {weights}, KV cache {kv}, working memory {besides})")
    };
    let named = |claim: &MemoryClaim<'a>| format!("{} by {} {}", size(of(claim)), claim.name, parts(claim));
    let each = match claims {
        [one] => parts(one),
        _ => claims.iter().map(named).collect::<Vec<_>>().join(", "),
    };
    let (needed, allowed) = (size(needed), size(allowed));
    Err(format!(
        "not enough memory: {needed} needed {each}, {allowed} allowed: lower --context, --chunk or (batch) \
         --parallel, make the KV cache smaller with --kv-memory or --kv-format int8, or take a smaller model"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::kv::{KvFormat, KvGeometry, KvLayer, KvPair, LayerKind};

    /// GPT-OSS-20B: 24 layers, every second one with a window of 128.
    fn gpt_oss_20b(format: KvFormat) -> KvLayers {
        let geometry =
            KvGeometry { kv_heads: 8, head_dim: 64, v_head_dim: 64, formats: KvPair::both(format) };
        let layer = |n: u32| match n % 2 {
            0 => KvLayer { kind: LayerKind::Sliding, window: Some(128) },
            _ => KvLayer { kind: LayerKind::Full, window: None },
        };
        KvLayers { full: geometry, sliding: geometry, layers: (0..24).map(layer).collect() }
    }

    fn bytes(layers: &KvLayers, shape: KvShape) -> u64 {
        let of = |kind| layers.layers.iter().filter(|layer| layer.kind == kind).count() as u64;
        let kinds = [LayerKind::Full, LayerKind::Sliding];
        let blocks = shape.blocks(layers);
        kinds
            .map(|k| of(k) * layers.geometry(k).block_bytes() as u64 * u64::from(blocks[k.index()]))
            .iter()
            .sum()
    }

    const LONGEST: KvShape =
        KvShape { context: 131_072, sequences: 1, chunk: 512, budget: KvBudget::WorstCase };

    #[test]
    fn the_longest_context_takes_what_it_may() {
        for (format, most) in [(KvFormat::F16, 3.3e9), (KvFormat::Int8, 1.8e9), (KvFormat::Int4, 1.0e9)] {
            let taken = bytes(&gpt_oss_20b(format), LONGEST) as f64;
            assert!(taken <= most && taken > 0.9 * most, "{}: {taken} bytes of {most}", format.name());
        }
    }

    /// Eight sequences that need 26 GB take three quarters of what is left, and one sequence at least.
    #[test]
    fn a_cache_yields_to_what_is_free() {
        let layers = gpt_oss_20b(KvFormat::F16);
        let shape = KvShape { sequences: 8, ..LONGEST };
        let (all, one) = (bytes(&layers, shape), bytes(&layers, LONGEST));
        assert_eq!(kv_within(&layers, shape, all, all / 3 * 4 + 4), shape);
        for left in [20 << 30, 12 << 30, 8u64 << 30] {
            let KvBudget::Bytes(budget) = kv_within(&layers, shape, all, left).budget else {
                panic!("{left}")
            };
            assert_eq!(budget, left / 4 * 3);
        }
        for left in [0, 1 << 20, one] {
            let shape = kv_within(&layers, shape, all, left);
            assert_eq!(shape.least_budget(&layers), None, "one sequence has room");
            assert!(bytes(&layers, shape) < one + one / 3, "and little more than that is taken");
        }
    }
}
