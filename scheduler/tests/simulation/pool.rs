//! A scripted KV cache: blocks with counts of their users, a prefix cache that is evicted oldest first.

use kernmill_scheduler::{BlockCounts, Demand, Memory, RequestId, StartDemand};
use std::collections::BTreeMap;

pub const BLOCK: u32 = 16;
pub const WINDOW: u32 = 128;

#[derive(Clone, Copy, Default)]
struct Users {
    sequences: u32,
    caches: u32,
}

impl Users {
    fn is_evictable(self) -> bool {
        self.sequences == 0 && self.caches > 0
    }
}

/// Blocks of one layer kind.
struct Kind {
    users: Vec<Users>,
    free: Vec<usize>,
    evictable: u64,
}

impl Kind {
    fn new(blocks: usize) -> Kind {
        Kind { users: vec![Users::default(); blocks], free: (0..blocks).rev().collect(), evictable: 0 }
    }

    /// Changes who uses a block; without users it is free again.
    fn change(&mut self, block: usize, change: impl FnOnce(&mut Users)) {
        let before = self.users[block];
        change(&mut self.users[block]);
        let after = self.users[block];
        self.evictable += u64::from(after.is_evictable());
        self.evictable -= u64::from(before.is_evictable());
        if after.sequences + after.caches == 0 {
            self.free.push(block);
        }
    }

    fn join_sequence(&mut self, block: usize) {
        self.change(block, |users| users.sequences += 1);
    }

    fn leave_sequence(&mut self, block: usize) {
        self.change(block, |users| {
            users.sequences = users.sequences.checked_sub(1).expect("a block is given back twice");
        });
    }

    fn join_cache(&mut self, block: usize) {
        self.change(block, |users| users.caches += 1);
    }

    fn leave_cache(&mut self, block: usize) {
        self.change(block, |users| {
            users.caches = users.caches.checked_sub(1).expect("a block is evicted twice");
        });
    }
}

/// Blocks of a sequence, or of a cached prefix: the first index that is there, and the blocks from there on.
#[derive(Clone, Default)]
struct Table {
    from: u32,
    blocks: Vec<usize>,
}

#[derive(Clone, Default)]
struct Sequence {
    length: u32,
    tables: [Table; 2],
}

/// The key of a cached prefix.
#[derive(Clone, Copy, PartialEq)]
pub enum Key {
    /// The blocks that a request had when it was preempted.
    Own(RequestId),
    /// The beginning that prompts of a family share.
    Family(u32),
}

pub struct Pool {
    kinds: [Kind; 2],
    sequences: BTreeMap<RequestId, Sequence>,
    /// The oldest first.
    cache: Vec<(Key, Sequence)>,
    /// By request: its family, and how many tokens that shares.
    pub families: BTreeMap<RequestId, (u32, u32)>,
    largest_step: u32,
    /// Blocks that somebody else pins for a while.
    pub pinned: BlockCounts,
}

impl Pool {
    pub fn new(blocks: BlockCounts, largest_step: u32) -> Pool {
        Pool {
            kinds: blocks.map(|blocks| Kind::new(blocks as usize)),
            sequences: BTreeMap::new(),
            cache: Vec::new(),
            families: BTreeMap::new(),
            largest_step,
            pinned: [0; 2],
        }
    }

    pub fn length(&self, id: RequestId) -> u32 {
        self.sequences[&id].length
    }

    pub fn runs(&self, id: RequestId) -> bool {
        self.sequences.contains_key(&id)
    }

    /// The longest prefix that a request finds.
    fn find(&self, id: RequestId) -> Option<usize> {
        let family = self.families.get(&id).map(|(family, _)| Key::Family(*family));
        let is_its = |key: Key| key == Key::Own(id) || Some(key) == family;
        let found = self.cache.iter().enumerate().filter(|(_, (key, _))| is_its(*key));
        found.max_by_key(|(_, (_, sequence))| sequence.length).map(|(at, _)| at)
    }

    /// Starts a sequence; the tokens that it has from the cache.
    pub fn start(&mut self, id: RequestId) -> u32 {
        let sequence = match self.find(id) {
            // A request's own cache becomes its sequence again.
            Some(at) if self.cache[at].0 == Key::Own(id) => {
                let (_, sequence) = self.cache.remove(at);
                self.share(&sequence);
                self.drop_cache(&sequence);
                sequence
            }
            Some(at) => {
                let entry = self.cache.remove(at);
                let sequence = entry.1.clone();
                self.cache.push(entry);
                self.share(&sequence);
                sequence
            }
            None => Sequence::default(),
        };
        let length = sequence.length;
        assert!(self.sequences.insert(id, sequence).is_none(), "{id:?} starts twice");
        length
    }

    fn share(&mut self, sequence: &Sequence) {
        for (kind, table) in self.kinds.iter_mut().zip(&sequence.tables) {
            table.blocks.iter().for_each(|block| kind.join_sequence(*block));
        }
    }

    fn drop_cache(&mut self, sequence: &Sequence) {
        for (kind, table) in self.kinds.iter_mut().zip(&sequence.tables) {
            table.blocks.iter().for_each(|block| kind.leave_cache(*block));
        }
    }

    /// Drops a sequence. Its blocks stay as cache, if they are to be `kept`.
    pub fn drop_sequence(&mut self, id: RequestId, is_kept: bool) {
        let sequence = self.sequences.remove(&id).expect("a sequence is dropped twice");
        if is_kept {
            self.keep(Key::Own(id), sequence.clone());
        }
        for (kind, table) in self.kinds.iter_mut().zip(&sequence.tables) {
            table.blocks.iter().for_each(|block| kind.leave_sequence(*block));
        }
    }

    fn keep(&mut self, key: Key, sequence: Sequence) {
        for (kind, table) in self.kinds.iter_mut().zip(&sequence.tables) {
            table.blocks.iter().for_each(|block| kind.join_cache(*block));
        }
        self.cache.push((key, sequence));
    }

    /// A request is gone: nobody asks for what it had any more, until it is evicted.
    pub fn forget(&mut self, id: RequestId) {
        self.families.remove(&id);
    }

    /// Appends tokens; false, and nothing done, if there are not enough blocks.
    pub fn append(&mut self, id: RequestId, tokens: u32) -> bool {
        let demand = self.to_append(id, tokens);
        let there = [0, 1].map(|kind| self.free()[kind] + self.evictable()[kind] + demand.frees[kind]);
        if demand.takes[0] > there[0] || demand.takes[1] > there[1] {
            return false;
        }
        let mut sequence = self.sequences.remove(&id).expect("only what runs grows");
        let end = sequence.length + tokens;
        for kind in 0..2 {
            let keep = first_kept(kind, sequence.length);
            let table = &mut sequence.tables[kind];
            while table.from < keep && !table.blocks.is_empty() {
                self.kinds[kind].leave_sequence(table.blocks.remove(0));
                table.from += 1;
            }
            if table.blocks.is_empty() {
                table.from = table.from.max(sequence.length / BLOCK).max(keep);
            }
            while table.from + (table.blocks.len() as u32) < end.div_ceil(BLOCK) {
                let block = self.take(kind);
                table.blocks.push(block);
            }
        }
        sequence.length = end;
        self.sequences.insert(id, sequence);
        self.keep_family(id, end - tokens);
        true
    }

    /// Keeps the shared beginning of a family's prompts when the first request has run it.
    fn keep_family(&mut self, id: RequestId, before: u32) {
        let Some((family, shared)) = self.families.get(&id).copied() else { return };
        let sequence = &self.sequences[&id];
        let is_known = self.cache.iter().any(|(key, _)| *key == Key::Family(family));
        if !is_known && before < shared && sequence.length >= shared {
            let blocks = sequence.tables[0].blocks[..(shared / BLOCK) as usize].to_vec();
            let tables = [Table { from: 0, blocks }, Table { from: shared / BLOCK, blocks: Vec::new() }];
            self.keep(Key::Family(family), Sequence { length: shared, tables });
        }
    }

    fn take(&mut self, kind: usize) -> usize {
        while self.kinds[kind].free.is_empty() {
            let (_, oldest) = self.cache.remove(0);
            self.drop_cache(&oldest);
        }
        let block = self.kinds[kind].free.pop().expect("it was made free");
        self.kinds[kind].join_sequence(block);
        block
    }

    /// Forgets tokens at the end, as after rejected drafts.
    pub fn truncate(&mut self, id: RequestId, length: u32) {
        let sequence = self.sequences.get_mut(&id).expect("only what runs is cut");
        assert!(length <= sequence.length);
        sequence.length = length;
        for (kind, table) in self.kinds.iter_mut().zip(&mut sequence.tables) {
            while table.from + table.blocks.len() as u32 > length.div_ceil(BLOCK).max(table.from) {
                kind.leave_sequence(table.blocks.pop().expect("there is one"));
            }
        }
    }

    /// Counts every block again.
    pub fn check(&self) {
        for (index, kind) in self.kinds.iter().enumerate() {
            let mut users = vec![Users::default(); kind.users.len()];
            for sequence in self.sequences.values() {
                sequence.tables[index].blocks.iter().for_each(|block| users[*block].sequences += 1);
            }
            for (_, sequence) in &self.cache {
                sequence.tables[index].blocks.iter().for_each(|block| users[*block].caches += 1);
            }
            let evictable = users.iter().filter(|users| users.is_evictable()).count();
            assert_eq!(evictable as u64, kind.evictable);
            let mut free = 0;
            for (block, (found, known)) in users.iter().zip(&kind.users).enumerate() {
                assert_eq!((found.sequences, found.caches), (known.sequences, known.caches), "block {block}");
                free += usize::from(found.sequences + found.caches == 0);
            }
            assert_eq!(free, kind.free.len(), "a block is lost");
        }
    }

    /// Blocks that sequences use.
    pub fn used(&self) -> usize {
        let users = self.kinds.iter().flat_map(|kind| &kind.users);
        users.filter(|users| users.sequences > 0).count()
    }

    fn free_of(&self, kind: usize) -> u64 {
        self.kinds[kind].free.len() as u64
    }

    /// Most blocks of a sequence that has grown to `tokens` tokens.
    fn most(&self, kind: usize, tokens: u32) -> u64 {
        let whole = u64::from(tokens.div_ceil(BLOCK));
        if kind == 0 { whole } else { whole.min(u64::from((WINDOW + self.largest_step).div_ceil(BLOCK)) + 2) }
    }
}

/// The first block that the next token after `length` others sees.
fn first_kept(kind: usize, length: u32) -> u32 {
    if kind == 0 { 0 } else { (length + 1).saturating_sub(WINDOW) / BLOCK }
}

impl Memory for Pool {
    fn free(&self) -> BlockCounts {
        [0, 1].map(|kind: usize| self.free_of(kind).saturating_sub(self.pinned[kind]))
    }

    fn evictable(&self) -> BlockCounts {
        // Blocks pinned beyond the free ones are pinned in the cache.
        [0, 1].map(|kind: usize| {
            let more = self.pinned[kind].saturating_sub(self.free_of(kind));
            self.kinds[kind].evictable.saturating_sub(more)
        })
    }

    fn held(&self, id: RequestId) -> BlockCounts {
        let sequence = &self.sequences[&id];
        [0, 1].map(|kind: usize| {
            let blocks = sequence.tables[kind].blocks.iter();
            blocks.filter(|block| self.kinds[kind].users[**block].sequences == 1).count() as u64
        })
    }

    fn cached(&self, id: RequestId) -> u32 {
        assert!(!self.runs(id), "{id:?} runs");
        self.find(id).map_or(0, |at| self.cache[at].1.length)
    }

    fn computes_the_same(&self, id: RequestId, other: RequestId) -> bool {
        let Some((family, shared)) = self.families.get(&id).copied() else { return false };
        let is_cached = self.cache.iter().any(|(key, _)| *key == Key::Family(family));
        let computed = self.sequences.get(&other).map_or(0, |sequence| sequence.length);
        let is_alike = self.families.get(&other).is_some_and(|one| one.0 == family);
        is_alike && !is_cached && computed < shared
    }

    fn to_start(&self, id: RequestId, tokens: u32) -> StartDemand {
        assert!(!self.runs(id), "{id:?} runs");
        let shares = [0, 1].map(|kind: usize| {
            let found = self.find(id).map_or(&[][..], |at| &self.cache[at].1.tables[kind].blocks);
            found.iter().filter(|block| self.kinds[kind].users[**block].sequences > 0).count() as u64
        });
        let takes = [0, 1].map(|kind: usize| self.most(kind, tokens).saturating_sub(shares[kind]));
        StartDemand { takes, shares }
    }

    fn to_append(&self, id: RequestId, tokens: u32) -> Demand {
        let sequence = &self.sequences[&id];
        let end = sequence.length + tokens;
        let mut demand = Demand::default();
        for kind in 0..2 {
            let (table, keep) = (&sequence.tables[kind], first_kept(kind, sequence.length));
            let dropped = (keep.saturating_sub(table.from) as usize).min(table.blocks.len());
            let gone = &table.blocks[..dropped];
            let own = gone.iter().filter(|block| self.kinds[kind].users[**block].sequences == 1).count();
            demand.frees[kind] = own as u64;
            let left = table.blocks.len() - dropped;
            let from = if left == 0 {
                (table.from + dropped as u32).max(sequence.length / BLOCK).max(keep)
            } else {
                table.from + dropped as u32
            };
            demand.takes[kind] = u64::from(end.div_ceil(BLOCK).saturating_sub(from + left as u32));
        }
        demand
    }

    fn to_grow(&self, id: RequestId, tokens: u32) -> BlockCounts {
        let sequence = &self.sequences[&id];
        [0, 1].map(|kind: usize| {
            let has = sequence.tables[kind].blocks.len() as u64;
            self.most(kind, sequence.length + tokens).saturating_sub(has)
        })
    }
}
