//! The scheduler's view of the engine's KV cache.

use crate::active::Active;
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_runtime::kv::CHECKPOINT_TOKENS;
use kernmill_runtime::{Engine, KvDemand};
use kernmill_scheduler::{BlockCounts, Demand, Memory, RequestId, StartDemand};
use std::collections::BTreeMap;

/// The cache as it is between two steps.
pub(crate) struct CacheView<'a> {
    pub engine: &'a Engine,
    pub active: &'a BTreeMap<RequestId, Active>,
}

fn blocks(counts: [usize; 2]) -> BlockCounts {
    counts.map(|count| count as u64)
}

impl CacheView<'_> {
    /// Blocks that hold `tokens` tokens at most at one time, by layer kind.
    fn holding(&self, tokens: u32) -> BlockCounts {
        let full = u64::from(tokens.div_ceil(BLOCK_TOKENS as u32));
        let usage = self.engine.kv();
        let exists = usage.blocks.map(|count| u64::from(count > 0));
        [full * exists[0], full.min(self.engine.most_sliding_blocks()) * exists[1]]
    }
}

impl Memory for CacheView<'_> {
    fn free(&self) -> BlockCounts {
        let usage = self.engine.kv();
        blocks([0, 1].map(|kind| usage.free[kind] - usage.cached[kind]))
    }

    fn evictable(&self) -> BlockCounts {
        blocks(self.engine.kv().cached)
    }

    fn held(&self, id: RequestId) -> BlockCounts {
        let sequence = self.active.get(&id).and_then(|active| active.sequence);
        sequence.and_then(|sequence| self.engine.held_blocks(sequence).ok()).map_or([0; 2], blocks)
    }

    fn cached(&self, id: RequestId) -> u32 {
        let Some(active) = self.active.get(&id) else { return 0 };
        if active.needs_all() {
            return 0;
        }
        self.engine.cached_tokens(&active.known, &active.request.adapters, active.request.cache_of())
    }

    fn computes_the_same(&self, id: RequestId, other: RequestId) -> bool {
        let (Some(waiting), Some(other)) = (self.active.get(&id), self.active.get(&other)) else {
            return false;
        };
        if waiting.needs_all() || other.needs_all() {
            return false;
        }
        let (asks, makes) = (&waiting.request, &other.request);
        if asks.adapters != makes.adapters || asks.salt != makes.salt {
            return false;
        }
        if makes.tenant != asks.tenant && makes.tenant != 0 {
            return false;
        }
        let alike = waiting.known.iter().zip(&makes.prompt).take_while(|(a, b)| a == b).count() as u32;
        // Sliding layers can be taken up near the end of the other prompt, or where checkpoints lie.
        let is_near_end = alike + BLOCK_TOKENS as u32 >= makes.prompt.len() as u32;
        let found = if is_near_end { alike } else { alike / CHECKPOINT_TOKENS * CHECKPOINT_TOKENS };
        let has = other.sequence.map_or(0, |sequence| self.engine.length(sequence).unwrap_or(0));
        has < found && found >= self.cached(id) + BLOCK_TOKENS as u32
    }

    fn to_start(&self, _: RequestId, tokens: u32) -> StartDemand {
        // Cached blocks count as taken, also where another sequence uses them. A shared last block is copied,
        // except where the sequence needs all there are: then the cache gives its share up.
        let (holding, all) = (self.holding(tokens), self.engine.kv().blocks);
        let copied = |kind: usize| u64::from(holding[kind] > 0 && holding[kind] < all[kind] as u64);
        StartDemand { takes: [0, 1].map(|kind| holding[kind] + copied(kind)), shares: [0; 2] }
    }

    fn to_append(&self, id: RequestId, tokens: u32) -> Demand {
        let sequence = self.active.get(&id).and_then(|active| active.sequence);
        let demand = sequence.and_then(|sequence| self.engine.blocks_for(sequence, tokens).ok());
        let KvDemand { takes, frees } = demand.unwrap_or_default();
        Demand { takes: blocks(takes), frees: blocks(frees) }
    }

    fn to_grow(&self, id: RequestId, tokens: u32) -> BlockCounts {
        let Some(sequence) = self.active.get(&id).and_then(|active| active.sequence) else { return [0; 2] };
        let length = self.engine.length(sequence).unwrap_or(0);
        let (has, wants) = (self.holding(length), self.holding(length.saturating_add(tokens)));
        // A last block that the cache has too is copied.
        [0, 1].map(|kind| wants[kind].saturating_sub(has[kind]) + u64::from(wants[kind] > 0))
    }
}
