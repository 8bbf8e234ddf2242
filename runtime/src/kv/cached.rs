//! Sequences that take part in the prefix cache.

use super::kind::KindTables;
use super::prefix::{CacheScope, PrefixMatch};
use super::sequence::{Cached, Sequence};
use super::tables::KvTables;
use super::{BLOCK, KvError, UNMAPPED};

impl KvTables {
    /// How many of the first tokens of a prompt a sequence would find if it began now.
    pub fn cached(&self, scope: &CacheScope, prompt: &[u32]) -> u32 {
        let asked = &prompt[..prompt.len().saturating_sub(1).min(self.context as usize)];
        self.prefixes.peek(scope, asked)
    }

    /// A sequence that starts with the longest cached prefix of `prompt`, and whose blocks are cached as they
    /// fill. At least the last token of the prompt is left to be run. The number of the sequence, and its
    /// length.
    ///
    /// # Errors
    /// [`KvError::NoFreeSequence`].
    pub fn begin(&mut self, scope: &CacheScope, prompt: &[u32]) -> Result<(u32, u32), KvError> {
        let number = self.create()?;
        let asked = &prompt[..prompt.len().saturating_sub(1).min(self.context as usize)];
        let PrefixMatch { length, tail } = self.prefixes.find(scope, asked);
        // Blocks that it uses cannot make way for its root.
        let mut first_block = [0; 2];
        for kind in self.kinds.iter_mut().filter(|kind| kind.used) {
            let n = kind.kind.index();
            first_block[n] = (kind.lowest_key(length) / BLOCK).min(length.div_ceil(BLOCK));
            for index in first_block[n]..length.div_ceil(BLOCK) {
                let id = self.prefixes.path_blocks(index)[n];
                self.pools[n].share(id);
                let entry = kind.entry(number, index);
                kind.tables[entry] = id;
            }
        }
        let tail = if length > 0 { Some(tail) } else { self.prefixes.root(scope, &mut self.pools) };
        let cached = tail.map(|tail| {
            self.prefixes.hold(tail);
            let mut tokens = Vec::with_capacity(self.context as usize);
            tokens.extend_from_slice(&prompt[..length as usize]);
            Cached { scope: *scope, tokens, tail, blocks: length / BLOCK }
        });
        self.sequences[number as usize] = Some(Sequence { length, first_block, cached });
        Ok((number, length))
    }

    /// Counts a prompt that a sequence began with, of which `found` tokens were cached, in
    /// [`KvTables::prefix_stats`].
    pub fn count_lookup(&mut self, prompt: &[u32], found: u32) {
        let asked = prompt.len().saturating_sub(1).min(self.context as usize);
        self.prefixes.count_lookup(asked as u64, found);
    }

    /// Ends a sequence's part in the prefix cache: what it computes from now on depends on more than its
    /// tokens.
    pub fn leave_cache(&mut self, sequence: u32) {
        let left = self.sequences[sequence as usize].as_mut().and_then(|sequence| sequence.cached.take());
        if let Some(cached) = left {
            self.prefixes.release(cached.tail);
        }
    }

    /// Gives a sequence's whole blocks to the prefix cache, those that it does not have.
    pub(super) fn publish(&mut self, number: u32) {
        let Some(sequence) = &mut self.sequences[number as usize] else { return };
        let Some(cached) = &mut sequence.cached else { return };
        while (cached.blocks + 1) * BLOCK <= sequence.length {
            let index = cached.blocks;
            let from = (index * BLOCK) as usize;
            let tokens = &cached.tokens[from..from + BLOCK as usize];
            let full = &mut self.kinds[0];
            let entry = full.entry(number, index);
            let own = if full.used { full.tables[entry] } else { UNMAPPED };
            let added =
                self.prefixes.insert(cached.tail, &cached.scope.tenant.name, tokens, own, &mut self.pools);
            let Some((node, was_there)) = added else { return };
            let there = self.prefixes.full_block(node);
            if was_there && full.used && there != own {
                // The same bits: one of both is enough.
                self.pools[0].share(there);
                full.tables[entry] = there;
                self.pools[0].give_back(own);
            }
            self.prefixes.hold(node);
            self.prefixes.release(std::mem::replace(&mut cached.tail, node));
            cached.blocks += 1;
        }
    }

    /// Keeps what a sequence takes to go on after its first `at` tokens: a partly filled last block, and the
    /// window of sliding layers. It can be found by [`KvTables::begin`] from then on, until it makes way.
    ///
    /// Nothing is kept of a sequence that takes no part in the cache.
    ///
    /// # Errors
    /// When `at` is past the end, or the window before it is no longer mapped.
    pub fn checkpoint(&mut self, sequence: u32, at: u32) -> Result<(), KvError> {
        self.check_return(sequence, at)?;
        self.keep_window(sequence, at);
        Ok(())
    }

    /// Keeps what [`KvTables::checkpoint`] keeps, where the window is known to be mapped.
    pub(super) fn keep_window(&mut self, number: u32, at: u32) {
        let Some(sequence) = &self.sequences[number as usize] else { return };
        let Some(cached) = &sequence.cached else { return };
        // Without room for its nodes the cache has less than the sequence.
        if at == 0 || cached.blocks < at / BLOCK {
            return;
        }
        let (mut node, _) = self.prefixes.up_to(cached.tail, cached.blocks, at / BLOCK);
        let rest = &cached.tokens[(at / BLOCK * BLOCK) as usize..at as usize];
        let block = |kind: &KindTables, index: u32| kind.tables[kind.entry(number, index)];
        if !rest.is_empty() {
            let own = if self.kinds[0].used { block(&self.kinds[0], at / BLOCK) } else { UNMAPPED };
            let there = Some(own).filter(|own| *own != UNMAPPED).and_then(|own| self.pools[0].node(own));
            // The sequence has not written since it began in the middle of a cached block, or since a fork of
            // it was kept: both have the same tokens there, as far as they go.
            let is_longer = there.is_some_and(|there| self.prefixes.tokens_in(there) < rest.len());
            if is_longer && let Some(shorter) = there {
                self.prefixes.remove_leaf(shorter, &mut self.pools);
            }
            node = match there.filter(|_| !is_longer) {
                Some(there) => there,
                None => {
                    let tenant = &cached.scope.tenant.name;
                    let added = self.prefixes.insert(node, tenant, rest, own, &mut self.pools);
                    let Some((added, _)) = added else { return };
                    added
                }
            };
        }
        let sliding = &self.kinds[1];
        if sliding.used {
            // One block more than needed, where it is mapped: a prompt may be edited in the last one.
            let first = (sliding.lowest_key(at) / BLOCK).min((at - 1) / BLOCK);
            let first = first.saturating_sub(1).max(sequence.first_block[1]).min(first);
            let mapped = |index| block(sliding, index);
            self.prefixes.keep_window(node, first, &mut self.pools[1], mapped);
        }
    }
}
