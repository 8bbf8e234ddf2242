//! Prefixes that come back from elsewhere: a store on disk, or a saved session.

use super::UNMAPPED;
use super::blocks::BlockPool;
use super::prefix::{CacheScope, CachedBlock, PrefixCache, PromptBlock};
use super::tables::KvTables;
use kernmill_plan::kv::LayerKind;
use std::collections::HashSet;

/// Where rows of blocks are besides memory.
pub trait BlockSource {
    /// Whether the rows of a block are there.
    fn has(&mut self, kind: LayerKind, key: &[u8; 32]) -> bool;

    /// Writes the rows of a block to its place in memory. Returns whether they were read, and are those of
    /// these tokens behind that parent; the place may hold anything if not.
    fn read(&mut self, block: &CachedBlock) -> bool;

    /// Takes a block that has left the prefix cache, and whose place is written over after this.
    fn keep(&mut self, block: &CachedBlock);
}

/// Why not all of a prefix came back.
enum RestoreStopped {
    /// A block could not be read.
    Lost(LayerKind, [u8; 32]),
    /// Memory has no room for more than so many blocks of full layers.
    NoRoom(usize),
}

impl KvTables {
    /// Notes blocks that leave the prefix cache from now on, for [`super::BlockChange::Leaves`].
    pub fn watch_leaving(&mut self) {
        self.prefixes.watch_leaving();
    }

    /// Hands out the blocks that have left the prefix cache. Their rows are in place until the next
    /// [`KvTables::reserve`] or [`KvTables::restore`], which do the same first.
    pub fn hand_over(&mut self, take: &mut dyn FnMut(&CachedBlock)) {
        self.prefixes.hand_over(take);
    }

    /// How many of the first tokens of a prompt a sequence would find if it began now, with what
    /// `is_elsewhere` says of the rows that are not in memory. Less comes back where memory has no room, or
    /// rows cannot be read.
    pub fn foreseen(
        &self,
        scope: &CacheScope,
        prompt: &[u32],
        is_elsewhere: &mut dyn FnMut(LayerKind, &[u8; 32]) -> bool,
    ) -> u32 {
        let cached = self.cached(scope, prompt);
        let most = prompt.len().saturating_sub(1).min(self.context as usize) as u32;
        if cached == most {
            return cached;
        }
        let prompt = &prompt[..prompt.len().min(self.context as usize)];
        let blocks = if self.kinds[0].used { self.pools[0].count() } else { usize::MAX };
        // Blocks that have just left the cache are kept elsewhere before anything is looked for.
        let is_elsewhere =
            &mut |kind, key: &[u8; 32]| self.prefixes.is_leaving(kind, key) || is_elsewhere(kind, key);
        cached.max(self.prefixes.places(scope, prompt, (most, blocks), is_elsewhere).1)
    }

    /// Brings blocks back into the prefix cache, so that the next sequence that begins with `prompt` finds as
    /// many of its tokens as memory and `source` have together. Other cached blocks make way; where there is
    /// no room, less comes back. Returns how many tokens more than before are cached.
    pub fn restore(&mut self, scope: &CacheScope, prompt: &[u32], source: &mut dyn BlockSource) -> u32 {
        let before = self.cached(scope, prompt);
        let most = prompt.len().saturating_sub(1).min(self.context as usize) as u32;
        if before == most || self.sequences.iter().all(Option::is_some) {
            return 0;
        }
        let prompt = &prompt[..prompt.len().min(self.context as usize)];
        self.prefixes.hand_over(&mut |block| source.keep(block));
        let mut lost = HashSet::new();
        let mut blocks = usize::MAX;
        // Every round but the last one ends with a block less.
        loop {
            let is_elsewhere =
                &mut |kind, key: &[u8; 32]| !lost.contains(&(kind, *key)) && source.has(kind, key);
            let (places, end) = self.prefixes.places(scope, prompt, (most, blocks), is_elsewhere);
            if end <= before {
                break;
            }
            match self.bring(scope, &places, end, source) {
                Ok(()) => break,
                Err(RestoreStopped::Lost(kind, key)) => drop(lost.insert((kind, key))),
                Err(RestoreStopped::NoRoom(room)) if room < places.len() => blocks = room,
                Err(RestoreStopped::NoRoom(_)) => break,
            }
        }
        let restored = self.cached(scope, prompt).saturating_sub(before);
        self.prefixes.count_restored(restored);
        restored
    }

    /// Brings the blocks of a prefix of `end` tokens into memory that are not there.
    fn bring(
        &mut self,
        scope: &CacheScope,
        places: &[PromptBlock],
        end: u32,
        source: &mut dyn BlockSource,
    ) -> Result<(), RestoreStopped> {
        let KvTables { prefixes, pools, .. } = self;
        let held = prefixes.hold_known(scope, places, pools);
        let Some((mut tail, known)) = held else { return Err(RestoreStopped::NoRoom(0)) };
        let mut outcome = Ok(());
        for (index, place) in places.iter().enumerate().skip(known) {
            let block = match prefixes.has_full() {
                true => read_block(prefixes, pools, place.of, LayerKind::Full, source),
                false => Ok(UNMAPPED),
            };
            let added = block.and_then(|block| {
                let added = prefixes.insert(tail, &place.tenant, place.of.tokens(), block, pools);
                if block != UNMAPPED {
                    pools[0].give_back(block);
                }
                added.map(|(node, _)| node).ok_or(RestoreStopped::NoRoom(0))
            });
            match added {
                Ok(node) => {
                    prefixes.hold(node);
                    prefixes.release(std::mem::replace(&mut tail, node));
                }
                Err(stopped) => {
                    outcome = Err(match stopped {
                        RestoreStopped::NoRoom(_) => RestoreStopped::NoRoom(index),
                        lost => lost,
                    });
                    break;
                }
            }
        }
        if outcome.is_ok() {
            outcome = bring_window(prefixes, pools, places, (tail, end), source);
        }
        prefixes.release(tail);
        outcome
    }

    /// Every cached block, those at the start of texts first.
    pub fn cached_blocks(&self) -> Vec<CachedBlock> {
        self.prefixes.all_blocks()
    }

    /// The blocks that hold the longest cached prefix of `tokens`, first to last, and its length. Of sliding
    /// layers they are those of the window before its end.
    pub fn blocks_of(&self, scope: &CacheScope, tokens: &[u32]) -> (Vec<CachedBlock>, u32) {
        self.prefixes.blocks_of(scope, &tokens[..tokens.len().min(self.context as usize)])
    }
}

/// Keeps the window of sliding layers before `end`, which lies in the node `tail` or at its end.
fn bring_window(
    prefixes: &mut PrefixCache,
    pools: &mut [BlockPool; 2],
    places: &[PromptBlock],
    (tail, end): (u32, u32),
    source: &mut dyn BlockSource,
) -> Result<(), RestoreStopped> {
    let window = prefixes.window_before(end);
    if window.is_empty() {
        return Ok(());
    }
    let needed = &places[window.start as usize..window.end as usize];
    // Blocks in memory must not make way for the rest.
    let in_memory =
        |place: &PromptBlock| prefixes.node_of(&place.of.key).and_then(|id| prefixes.sliding_block(id));
    let mut blocks: Vec<Option<u32>> = needed.iter().map(in_memory).collect();
    blocks.iter().flatten().for_each(|block| pools[1].share(*block));
    let mut outcome = Ok(());
    for (place, block) in needed.iter().zip(&mut blocks).filter(|(_, block)| block.is_none()) {
        match read_block(prefixes, pools, place.of, LayerKind::Sliding, source) {
            Ok(read) => *block = Some(read),
            Err(stopped) => {
                outcome = Err(stopped);
                break;
            }
        }
    }
    if outcome.is_ok() {
        let block_of = |index: u32| blocks[(index - window.start) as usize].unwrap_or(UNMAPPED);
        prefixes.keep_window(tail, window.start, &mut pools[1], block_of);
    }
    for block in blocks.into_iter().flatten() {
        pools[1].give_back(block);
    }
    outcome
}

/// Reads rows into a block, which makes room for itself and has one user.
fn read_block(
    prefixes: &mut PrefixCache,
    pools: &mut [BlockPool; 2],
    of: CachedBlock,
    kind: LayerKind,
    source: &mut dyn BlockSource,
) -> Result<u32, RestoreStopped> {
    let n = kind.index();
    if pools[n].free() == 0 && !prefixes.evict(n, pools) {
        return Err(RestoreStopped::NoRoom(usize::MAX));
    }
    prefixes.hand_over(&mut |block| source.keep(block));
    let Some(block) = pools[n].take() else { return Err(RestoreStopped::NoRoom(usize::MAX)) };
    if source.read(&CachedBlock { kind, block, ..of }) {
        return Ok(block);
    }
    pools[n].give_back(block);
    Err(RestoreStopped::Lost(kind, of.key))
}
