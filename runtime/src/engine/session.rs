//! Sequences that are saved in files, and go on from there.

use super::shelf::stored_block;
use super::{Engine, EngineError};
use crate::adapter::AdapterUse;
use crate::kv::{CacheScope, Tenant};
use kernmill_kv_store::{
    BlockRef, PayloadLayout, Session, SessionError, SessionFile, SessionWriter, Source, StoreKey,
};
use std::path::Path;

/// The contents of a saved session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedSession {
    /// Tokens whose rows are in the file. The others are run when the session goes on.
    pub tokens: u32,
    /// Records of rows in the file.
    pub records: usize,
}

impl Engine {
    /// Brings the rows of a saved session into the prefix cache, so that a sequence that begins with `prompt`
    /// finds them. `prompt` begins with the session's tokens. `layout` is that of [`Engine::kv_layout`].
    /// Returns how many of the session's tokens need not be run.
    ///
    /// Rows that are damaged, or belong to another model, KV format, adapter or tenant, do not come back:
    /// they are computed when the sequence runs.
    ///
    /// # Errors
    /// When an adapter is not loaded, or the adapters cannot be combined.
    pub fn restore_session<S: Source>(
        &mut self,
        file: &SessionFile<S>,
        prompt: &[u32],
        layout: PayloadLayout,
        adapters: &[AdapterUse],
        tenant: impl Into<Tenant>,
    ) -> Result<u32, EngineError> {
        let scope = self.scope_of(adapters, tenant.into())?;
        self.restore_from(file, layout, &scope, prompt);
        let known = file.session().tokens.len().min(prompt.len()) as u32;
        Ok(self.tables.cached(&scope, prompt).min(known))
    }

    /// How many of the first of `tokens` [`Engine::save_session`] would have rows of.
    ///
    /// # Errors
    /// When an adapter is not loaded, or the adapters cannot be combined.
    pub fn session_tokens(
        &mut self,
        tokens: &[u32],
        adapters: &[AdapterUse],
        tenant: impl Into<Tenant>,
    ) -> Result<u32, EngineError> {
        let scope = self.scope_of(adapters, tenant.into())?;
        self.restore_from_disk(&scope, tokens);
        Ok(self.tables.blocks_of(&scope, tokens).1)
    }

    /// Saves a sequence of tokens together with the rows that the prefix cache, or the store on disk, has of
    /// them. The file at `path` appears whole or not at all; only its owner can read it. `session` says the
    /// tokens, the state and the name; its blocks are filled in here.
    ///
    /// # Errors
    /// When an adapter is not loaded ([`io::ErrorKind::InvalidInput`]), the session is too large, or the file
    /// cannot be written.
    ///
    /// [`io::ErrorKind::InvalidInput`]: std::io::ErrorKind::InvalidInput
    pub fn save_session(
        &mut self,
        path: &Path,
        mut session: Session,
        adapters: &[AdapterUse],
        tenant: impl Into<Tenant>,
    ) -> Result<SavedSession, SessionError> {
        let invalid =
            |error| SessionError::Write(std::io::Error::new(std::io::ErrorKind::InvalidInput, error));
        let scope = self.scope_of(adapters, tenant.into()).map_err(invalid)?;
        self.restore_from_disk(&scope, &session.tokens);
        let (blocks, tokens) = self.tables.blocks_of(&scope, &session.tokens);
        let mut position = 0;
        session.blocks.clear();
        for (n, block) in blocks.iter().enumerate() {
            // Rows of both kinds of layers are parts of one block.
            if n > 0 && blocks[n - 1].key == block.key {
                continue;
            }
            session.blocks.push(BlockRef { position, key: StoreKey(block.key) });
            position += block.len;
        }
        let mut writer = SessionWriter::create(path, &session)?;
        let mut records = 0;
        for block in &blocks {
            if let Some(block) = stored_block(&self.executor, block, session.layout, 0.0) {
                writer.add(&block)?;
                records += 1;
            }
        }
        writer.finish()?;
        Ok(SavedSession { tokens, records })
    }

    /// Whose blocks a sequence with these adapters shares.
    fn scope_of(&mut self, adapters: &[AdapterUse], tenant: Tenant) -> Result<CacheScope, EngineError> {
        let slot = self.store.acquire(adapters, &mut self.adapters)?;
        let scope = CacheScope { adapters: self.store.digest(slot), tenant };
        self.store.release(slot, &mut self.adapters);
        Ok(scope)
    }
}
