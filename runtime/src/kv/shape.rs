//! How many blocks a cache has.

use super::{BLOCK, KINDS};
use kernmill_plan::kv::{KvLayers, LayerKind};

/// Tokens after which the prefix cache keeps the window of sliding layers, so that a sequence can go on
/// there.
pub const CHECKPOINT_TOKENS: u32 = 512;

/// Most sequences of a cache.
pub const MAX_SEQUENCES: u32 = 4096;

/// How much the cache must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Longest sequence, in tokens.
    pub context: u32,
    /// Sequences at once.
    pub sequences: u32,
    /// Most tokens that enter a sequence in one run.
    pub chunk: u32,
    /// Memory that the blocks may take.
    pub budget: KvBudget,
}

/// Memory of a KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvBudget {
    /// As much as all sequences take when each is as long as the context: blocks never run out.
    #[default]
    WorstCase,
    /// At most so many bytes, and at least one block for each kind of layers. Sequences may want more
    /// together than there is.
    Bytes(u64),
}

impl KvShape {
    /// Blocks of each kind; 0 for a kind that no layer has.
    ///
    /// A budget in bytes is shared out as follows. Sliding layers get what all sequences need at once, but at
    /// most half of the budget. The rest is for full layers, with as much for sliding ones as checkpoints
    /// take that lie [`CHECKPOINT_TOKENS`] apart.
    pub fn blocks(&self, layers: &KvLayers) -> [u32; 2] {
        let most = self.worst_case(layers);
        let KvBudget::Bytes(budget) = self.budget else { return most };
        let [full, sliding] = block_bytes(layers).map(u128::from);
        let budget = u128::from(budget);
        let running = (u128::from(most[1]) * sliding).min(if full > 0 { budget / 2 } else { budget });
        let rest = budget - running;
        let blocks_between = u128::from(CHECKPOINT_TOKENS / BLOCK);
        let per_checkpoint =
            window(layers, LayerKind::Sliding).map_or(0, |window| window.div_ceil(BLOCK) + 1);
        let of_full = blocks_between * full;
        let of_both = of_full + u128::from(per_checkpoint) * sliding;
        let for_full = (rest * of_full).checked_div(of_both).unwrap_or(0);
        let count = |bytes: u128, block: u128| match block {
            0 => 0,
            _ => u32::try_from(bytes / block).unwrap_or(u32::MAX).max(1),
        };
        let for_sliding = running + rest - for_full;
        [count(for_full, full), count(for_sliding, sliding)]
    }

    /// The bytes that a budget needs for one sequence of the whole context, if this one has less.
    pub fn least_budget(&self, layers: &KvLayers) -> Option<u64> {
        let alone = KvShape { sequences: 1, budget: KvBudget::WorstCase, ..*self }.blocks(layers);
        let holds = |bytes: u64| {
            let blocks = KvShape { budget: KvBudget::Bytes(bytes), ..*self }.blocks(layers);
            (0..2).all(|kind| blocks[kind] >= alone[kind])
        };
        match self.budget {
            KvBudget::Bytes(bytes) if !holds(bytes) => {
                // More bytes never give fewer blocks of a kind.
                let (mut low, mut high) = (bytes, bytes.max(1));
                while !holds(high) {
                    (low, high) = (high, high.saturating_mul(2));
                }
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if holds(middle) { high = middle } else { low = middle }
                }
                Some(high)
            }
            _ => None,
        }
    }

    fn worst_case(&self, layers: &KvLayers) -> [u32; 2] {
        KINDS.map(|kind| {
            if !layers.layers.iter().any(|layer| layer.kind == kind) {
                return 0;
            }
            let all = self.context.div_ceil(BLOCK);
            let per_sequence = match window(layers, kind) {
                None => all,
                Some(window) => all.min(window.saturating_add(self.chunk) / BLOCK + 2),
            };
            per_sequence.saturating_mul(self.sequences)
        })
    }
}

/// Bytes of a block in all layers of each kind.
pub(super) fn block_bytes(layers: &KvLayers) -> [u64; 2] {
    KINDS.map(|kind| {
        let count = layers.layers.iter().filter(|layer| layer.kind == kind).count();
        count as u64 * layers.geometry(kind).block_bytes() as u64
    })
}

/// The widest window of a kind's layers.
pub(super) fn window(layers: &KvLayers, kind: LayerKind) -> Option<u32> {
    layers.layers.iter().filter(|layer| layer.kind == kind).filter_map(|layer| layer.window).max()
}
