//! Sequences that begin in the prefix cache.

use super::{Engine, EngineError, SeqId};
use crate::adapter::AdapterUse;
use crate::kv::{CacheScope, PrefixStats, Tenant};

/// A sequence that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunSequence {
    /// The sequence.
    pub sequence: SeqId,
    /// Tokens of the prompt that it has already. The rest is to be run.
    pub cached_tokens: u32,
    /// Tokens among these that only the store on disk had ([`Engine::keep_on_disk`]).
    pub disk_tokens: u32,
}

impl Engine {
    /// Starts a sequence with the longest prefix of `prompt` that the prefix cache has, for tokens with these
    /// adapters of the store, added up. At least the last token of the prompt is left to be run, so that it
    /// gives logits. The sequence's own blocks are cached as they fill, and stay in the cache after its end
    /// until others need the room.
    ///
    /// `tenant` separates callers: a sequence finds blocks of its own tenant, and those of tenant zero, which
    /// belong to everybody. A server derives it from the caller's key, since who can name a tenant can find
    /// out what it has asked. A [`Tenant`] can have a salt besides, whose cache is one of its own.
    ///
    /// With a store on disk ([`Engine::keep_on_disk`]), what it has beyond memory is read first.
    ///
    /// Cached keys and values have the bits that computing them would give. Of a model whose texts run whole,
    /// nothing is cached.
    ///
    /// # Errors
    /// When a token is past the vocabulary, all sequences are in use, an adapter is not loaded, or the
    /// adapters cannot be combined.
    ///
    /// ```no_run
    /// # fn show(engine: &mut kernmill_runtime::Engine) -> Result<(), kernmill_runtime::EngineError> {
    /// use kernmill_runtime::{SequenceTokens, Steps};
    /// let prompt = [1, 2, 3, 4, 5];
    /// let begun = engine.begin(&prompt, &[], [0; 32])?;
    /// let rest = &prompt[begun.cached_tokens as usize..];
    /// engine.step(&[SequenceTokens::last(begun.sequence, rest)], &())?;
    /// // The next prompt that begins with these five tokens finds them.
    /// engine.checkpoint(begun.sequence)?;
    /// engine.drop_sequence(begun.sequence);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(
        &mut self,
        prompt: &[u32],
        adapters: &[AdapterUse],
        tenant: impl Into<Tenant>,
    ) -> Result<BegunSequence, EngineError> {
        self.check_tokens(prompt)?;
        if self.model.whole_texts {
            let sequence = self.create_with(adapters)?;
            return Ok(BegunSequence { sequence, cached_tokens: 0, disk_tokens: 0 });
        }
        let adapter = self.store.acquire(adapters, &mut self.adapters)?;
        let scope = CacheScope { adapters: self.store.digest(adapter), tenant: tenant.into() };
        let disk_tokens = self.restore_from_disk(&scope, prompt);
        match self.tables.begin(&scope, prompt) {
            Ok((number, cached_tokens)) => {
                self.tables.count_lookup(prompt, cached_tokens);
                let sequence = self.name(number);
                self.sequence_adapters[number as usize] = adapter;
                Ok(BegunSequence { sequence, cached_tokens, disk_tokens })
            }
            Err(error) => {
                self.store.release(adapter, &mut self.adapters);
                Err(error.into())
            }
        }
    }

    /// How many of the first tokens of a prompt [`Engine::begin`] would find now, in memory or in the store
    /// on disk. Nothing is read for it: what the store has is known from its index. Less is found in the end
    /// if the disk fails or other sequences take the room; up to 15 tokens more, where a block in memory goes
    /// on behind what comes from the disk. 0 for adapters whose combination has not been made yet.
    pub fn cached_tokens(&self, prompt: &[u32], adapters: &[AdapterUse], tenant: impl Into<Tenant>) -> u32 {
        let digest = self.store.digest_of(adapters).filter(|_| !self.model.whole_texts);
        let Some(adapters) = digest else { return 0 };
        self.foreseen(&CacheScope { adapters, tenant: tenant.into() }, prompt)
    }

    /// KV blocks that others could have if a sequence ended now, by layer kind.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn held_blocks(&self, id: SeqId) -> Result<[usize; 2], EngineError> {
        Ok(self.tables.held(self.number_of(id)?))
    }

    /// Keeps in the prefix cache what it takes to go on after a sequence's present tokens: at the end of a
    /// prompt, of a message, or of the text. Without a checkpoint, a model with sliding layers goes on after
    /// the last multiple of [`crate::kv::CHECKPOINT_TOKENS`] tokens at best.
    ///
    /// Nothing is kept of a sequence that was made by [`Engine::create`].
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn checkpoint(&mut self, id: SeqId) -> Result<(), EngineError> {
        let number = self.number_of(id)?;
        Ok(self.tables.checkpoint(number, self.tables.length(number))?)
    }

    /// Counts of the prefix cache since the engine was made.
    pub fn prefix_stats(&self) -> PrefixStats {
        self.tables.prefix_stats()
    }
}
