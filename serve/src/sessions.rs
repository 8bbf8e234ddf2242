//! Sequences of tokens in files, with their rows: saved between steps, and brought back into the prefix
//! cache.

use crate::error::{Error, Result};
use crate::serving::Serving;
use kernmill_kv_store::{PayloadLayout, Session, SessionFile};
use kernmill_runtime::{AdapterUse, Tenant};
use std::path::Path;

/// A sequence of tokens that is saved, or was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedTokens {
    /// Tokens of the sequence.
    pub tokens: Vec<u32>,
    /// Adapters of all tokens.
    pub adapters: Vec<AdapterUse>,
    /// Whose part of the prefix cache it belongs to.
    pub tenant: Tenant,
    /// The owner's note, at most 16 MiB.
    pub note: String,
}

/// The tokens and the note of a saved sequence.
///
/// # Errors
/// When there is no such file, or it is damaged.
pub fn read_session(path: &Path) -> Result<(Vec<u32>, String)> {
    let file = SessionFile::open(path).map_err(Error::read(path))?;
    let Session { tokens, state, .. } = file.session();
    let note = std::str::from_utf8(state).map_err(|error| Error::input(path, error))?;
    Ok((tokens.clone(), note.to_owned()))
}

impl Serving {
    /// From now on sequences can be saved. `layout` is that of the model ([`Engine::kv_layout`]).
    ///
    /// [`Engine::kv_layout`]: kernmill_runtime::Engine::kv_layout
    pub fn keep_sessions(&mut self, layout: Option<PayloadLayout>) {
        self.layout = layout;
    }

    pub(crate) fn layout(&self) -> Result<PayloadLayout> {
        let missing = "the model was loaded without the option for sessions";
        self.layout.ok_or_else(|| Error::BadInput(missing.to_owned()))
    }

    /// Saves a sequence with the rows that the prefix cache has of it; of how many tokens these are. The file
    /// appears whole or not at all; only its owner can read it.
    ///
    /// # Errors
    /// When an adapter is not loaded, the sequence is too long, or the file cannot be written.
    pub fn save_session(&mut self, path: &Path, saved: &SavedTokens) -> Result<u32> {
        let (name, state) = (self.engine.model().name.clone(), saved.note.clone().into_bytes());
        self.write_session(path, name, saved.tokens.clone(), state, &saved.adapters, saved.tenant)
    }

    /// Writes a session with the rows that are cached of its tokens; of how many tokens these are.
    pub(crate) fn write_session(
        &mut self,
        path: &Path,
        name: String,
        tokens: Vec<u32>,
        state: Vec<u8>,
        adapters: &[AdapterUse],
        tenant: Tenant,
    ) -> Result<u32> {
        let session = Session { name, layout: self.layout()?, tokens, blocks: Vec::new(), state };
        let saved = self.engine.save_session(path, session, adapters, tenant);
        let saved = saved.map_err(|error| Error::Work(format!("{}: {error}", path.display())))?;
        tracing::info!("{}: {} tokens saved in {} records", path.display(), saved.tokens, saved.records);
        Ok(saved.tokens)
    }

    /// Brings the rows of a saved sequence into the prefix cache; of how many of its tokens they are there.
    /// Rows of another model, or of another tenant or other adapters than they were saved with, do not come.
    ///
    /// # Errors
    /// When there is no such file, it is damaged, or an adapter is not loaded.
    pub fn restore_session(&mut self, path: &Path, adapters: &[AdapterUse], tenant: Tenant) -> Result<u32> {
        let layout = self.layout()?;
        let file = SessionFile::open(path).map_err(Error::read(path))?;
        if file.session().layout != layout {
            return Ok(0);
        }
        let tokens = file.session().tokens.clone();
        self.engine.check_tokens(&tokens)?;
        Ok(self.engine.restore_session(&file, &tokens, layout, adapters, tenant)?)
    }
}
