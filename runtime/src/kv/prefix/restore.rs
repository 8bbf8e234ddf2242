//! The longest prefix of a prompt that is cached here or elsewhere, block by block.

use super::super::blocks::BlockPool;
use super::super::{BLOCK, UNMAPPED};
use super::leaving::{CachedBlock, cost};
use super::node::{BlockKey, NONE};
use super::{CacheScope, EVERYBODY, PrefixCache, block_key, root_key};
use kernmill_plan::kv::LayerKind;

/// Whether the rows of a block with that name are elsewhere.
pub(in crate::kv) type IsElsewhere<'a> = dyn FnMut(LayerKind, &BlockKey) -> bool + 'a;

/// A block of a prompt that is cached, here or elsewhere.
#[derive(Clone, Copy, Debug)]
pub(in crate::kv) struct PromptBlock {
    /// The block's identity, without the number of a block.
    pub of: CachedBlock,
    /// The tenant that may use it.
    pub tenant: [u8; 32],
}

/// Where a chain of blocks begins, and whose blocks it goes through.
struct Chain<'a> {
    root: BlockKey,
    /// Tenants whose blocks are tried, in this order.
    tenants: &'a [[u8; 32]],
}

impl PrefixCache {
    /// Notes blocks that leave the cache from now on.
    pub(in crate::kv) fn watch_leaving(&mut self) {
        self.leaving.is_wanted = true;
    }

    /// Hands out the blocks that have left the cache since this was last called.
    pub(in crate::kv) fn hand_over(&mut self, take: &mut dyn FnMut(&CachedBlock)) {
        self.leaving.hand_over(take);
    }

    /// Whether a block has left the cache and was not handed out.
    pub(in crate::kv) fn is_leaving(&self, kind: LayerKind, key: &[u8; 32]) -> bool {
        self.leaving.has(kind, key)
    }

    /// The blocks of the longest prefix of `prompt`, of up to `most` tokens and `blocks` whole blocks, whose
    /// rows are here or elsewhere, as far as a sequence that goes on there needs them; and its tokens.
    pub(in crate::kv) fn places(
        &self,
        scope: &CacheScope,
        prompt: &[u32],
        (most, blocks): (u32, usize),
        is_elsewhere: &mut IsElsewhere<'_>,
    ) -> (Vec<PromptBlock>, u32) {
        let tenant = scope.tenant.name;
        let tenants = [tenant, EVERYBODY, tenant];
        let root = root_key(scope);
        let own = Chain { root, tenants: &tenants[..1 + usize::from(tenant != EVERYBODY)] };
        let found = self.chain(&own, prompt, (most, blocks), is_elsewhere);
        if found.1 == most || tenant == EVERYBODY {
            return found;
        }
        // Everybody's blocks may go further than those that the tenant has of the same tokens.
        let shared = Chain { root, tenants: &tenants[1..] };
        let other = self.chain(&shared, prompt, (most, blocks), is_elsewhere);
        if other.1 > found.1 { other } else { found }
    }

    /// The blocks of [`PrefixCache::places`] in one chain.
    fn chain(
        &self,
        chain: &Chain<'_>,
        prompt: &[u32],
        (most, blocks): (u32, usize),
        is_elsewhere: &mut IsElsewhere<'_>,
    ) -> (Vec<PromptBlock>, u32) {
        let mut places: Vec<PromptBlock> = Vec::new();
        for block in prompt.chunks_exact(BLOCK as usize).take(blocks) {
            let Some(place) = self.place(&places, chain, block, false, is_elsewhere) else { break };
            places.push(place);
        }
        let has_room = places.len() < blocks;
        let mut end = places.len() as u32 * BLOCK;
        if has_room {
            end += self.add_partial(&mut places, chain, prompt, is_elsewhere);
        }
        end = end.min(most);
        while self.window.is_some() && end > 0 {
            let needed = self.lowest_key(end) / BLOCK..end.div_ceil(BLOCK);
            let mut lacks = |index: &u32| !self.has_window(&places[*index as usize], is_elsewhere);
            let Some(missing) = needed.rev().find(|index| lacks(index)) else { break };
            // No position behind it will do; one inside it may, if the block was kept up to there.
            places.truncate(missing as usize);
            end = missing * BLOCK + self.add_partial(&mut places, chain, prompt, is_elsewhere);
            end = end.min(most);
        }
        places.truncate(end.div_ceil(BLOCK) as usize);
        (places, end)
    }

    /// Adds the longest part of the next block of `prompt` that is cached as a block of its own, with its
    /// window; the count of its tokens.
    fn add_partial(
        &self,
        places: &mut Vec<PromptBlock>,
        chain: &Chain<'_>,
        prompt: &[u32],
        is_elsewhere: &mut IsElsewhere<'_>,
    ) -> u32 {
        let from = (places.len() * BLOCK as usize).min(prompt.len());
        let rest = &prompt[from..];
        for len in (1..BLOCK as usize).rev().filter(|len| *len <= rest.len()) {
            if let Some(place) = self.place(places, chain, &rest[..len], true, is_elsewhere) {
                places.push(place);
                return len as u32;
            }
        }
        0
    }

    /// The block of these tokens behind `places`, if its rows are here or elsewhere; also those of the window
    /// for `is_last`.
    fn place(
        &self,
        places: &[PromptBlock],
        chain: &Chain<'_>,
        tokens: &[u32],
        is_last: bool,
        is_elsewhere: &mut IsElsewhere<'_>,
    ) -> Option<PromptBlock> {
        let parent = places.last().map_or(chain.root, |place| place.of.key);
        let tenants = chain.tenants.iter().copied();
        let needs_window = is_last && self.window.is_some();
        let name = |tenant: [u8; 32]| (tenant, block_key(&parent, &tenant, tokens));
        let is_here = |key: &BlockKey| self.by_key.contains_key(key);
        let mut found = tenants.clone().map(name).find(|(_, key)| {
            is_here(key) && (!needs_window || self.window_of(key) || is_elsewhere(LayerKind::Sliding, key))
        });
        if found.is_none() {
            // Where there are no full layers, a block without a window has no rows.
            found = tenants.map(name).find(|(_, key)| {
                (!self.has_full || is_elsewhere(LayerKind::Full, key))
                    && (!needs_window || is_elsewhere(LayerKind::Sliding, key))
            });
        }
        let (tenant, key) = found?;
        let mut padded = [0; BLOCK as usize];
        padded[..tokens.len()].copy_from_slice(tokens);
        let (index, len) = (places.len() as u32, tokens.len() as u32);
        let of = CachedBlock {
            kind: LayerKind::Full,
            block: UNMAPPED,
            key,
            parent: places.last().map_or(BlockKey::default(), |place| place.of.key),
            tokens: padded,
            len,
            cost: cost(LayerKind::Full, index, len, 0),
        };
        Some(PromptBlock { of, tenant })
    }

    /// Whether the node of that name holds a block of sliding layers.
    fn window_of(&self, key: &BlockKey) -> bool {
        self.by_key.get(key).is_some_and(|id| self.nodes[*id].blocks[1] != UNMAPPED)
    }

    fn has_window(&self, place: &PromptBlock, is_elsewhere: &mut IsElsewhere<'_>) -> bool {
        self.window_of(&place.of.key) || is_elsewhere(LayerKind::Sliding, &place.of.key)
    }

    /// The node of that name.
    pub(in crate::kv) fn node_of(&self, key: &BlockKey) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// The block of sliding layers that a node holds, if it does.
    pub(in crate::kv) fn sliding_block(&self, id: u32) -> Option<u32> {
        Some(self.nodes[id].blocks[1]).filter(|block| *block != UNMAPPED)
    }

    /// Indices of the blocks whose windows a sequence of `length` tokens needs.
    pub(in crate::kv) fn window_before(&self, length: u32) -> std::ops::Range<u32> {
        match self.window {
            Some(_) => self.lowest_key(length) / BLOCK..length.div_ceil(BLOCK),
            None => 0..0,
        }
    }

    /// Whether there are full layers.
    pub(in crate::kv) fn has_full(&self) -> bool {
        self.has_full
    }

    /// Every cached block, those at the start of texts first.
    pub(in crate::kv) fn all_blocks(&self) -> Vec<CachedBlock> {
        let mut nodes: Vec<u32> =
            self.by_key.values().copied().filter(|id| !self.nodes[*id].is_root()).collect();
        nodes.sort_unstable_by_key(|id| (self.nodes[*id].index, self.nodes[*id].key));
        let kinds = [LayerKind::Full, LayerKind::Sliding];
        let both = nodes.into_iter().flat_map(|id| kinds.map(|kind| (id, kind)));
        let held = both.filter(|(id, kind)| self.nodes[*id].blocks[kind.index()] != UNMAPPED);
        held.map(|(id, kind)| CachedBlock::of(&self.nodes, id, kind, self.leaving.window)).collect()
    }

    /// The blocks that hold the longest cached prefix of `tokens`, first to last, under the names that its
    /// own tokens give them: those of full layers, and of sliding ones those of the window before its end;
    /// and its length.
    pub(in crate::kv) fn blocks_of(&self, scope: &CacheScope, tokens: &[u32]) -> (Vec<CachedBlock>, u32) {
        let mut path = Vec::new();
        let Some((_, length)) = self.search(&mut path, scope, tokens) else { return (Vec::new(), 0) };
        // A block more, if it is there: the sequence may go on a token before its end.
        let windows = self.window_before(length);
        let windows = windows.start.saturating_sub(1)..windows.end;
        let mut blocks = Vec::new();
        for (index, (id, own)) in (0..).zip(path.iter().zip(tokens.chunks(BLOCK as usize))) {
            let len = (length - index * BLOCK).min(BLOCK);
            for kind in [LayerKind::Full, LayerKind::Sliding] {
                let is_needed = kind == LayerKind::Full || windows.contains(&index);
                if self.nodes[*id].blocks[kind.index()] == UNMAPPED || !is_needed {
                    continue;
                }
                let mut of = CachedBlock::of(&self.nodes, *id, kind, self.leaving.window);
                if of.len != len {
                    // The prefix ends inside a block.
                    let own = &own[..len as usize];
                    of.key = block_key(&self.nodes[self.nodes[*id].parent].key, &scope.tenant.name, own);
                    of.tokens = [0; BLOCK as usize];
                    of.tokens[..own.len()].copy_from_slice(own);
                    of.len = len;
                }
                blocks.push(of);
            }
        }
        (blocks, length)
    }

    /// Holds the node of the last of `places` that is in memory, from the first one on, or the root, which is
    /// made if it is missing. Returns the node, and how many of the places are in memory.
    pub(in crate::kv) fn hold_known(
        &mut self,
        scope: &CacheScope,
        places: &[PromptBlock],
        pools: &mut [BlockPool; 2],
    ) -> Option<(u32, usize)> {
        let known = places.iter().map_while(|place| self.node_of(&place.of.key)).collect::<Vec<u32>>();
        let tail = match known.last() {
            Some(last) => *last,
            None => self.root(scope, pools)?,
        };
        debug_assert!(tail != NONE, "a node that is there");
        self.hold(tail);
        Some((tail, known.len()))
    }
}
