//! Conversations in files.

use crate::error::{Error, Result};
use kernmill_chat::Conversation;
use kernmill_os::files::read_named;
use kernmill_os::output::NewFile;
use kernmill_plan::limit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The name of the files' schema.
const SCHEMA: &str = "kernmill.conversation/1";

/// A conversation as a file has it: with all that the next answer depends on, but for the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedConversation {
    /// Name and version of the form.
    schema: String,
    /// Name of the model that answered, with its preset.
    pub(super) model: String,
    /// Names of the adapters that were used.
    pub(super) adapters: Vec<String>,
    /// Seed of the answers.
    pub(super) seed: u64,
    /// The conversation.
    pub(super) conversation: Conversation,
    /// Ids of answers, by the place of their item.
    pub(super) answers: BTreeMap<usize, Vec<u32>>,
}

impl SavedConversation {
    /// A conversation that may be written.
    pub(super) fn new(
        model: String,
        adapters: Vec<String>,
        seed: u64,
        conversation: Conversation,
        answers: BTreeMap<usize, Vec<u32>>,
    ) -> SavedConversation {
        SavedConversation { schema: SCHEMA.to_owned(), model, adapters, seed, conversation, answers }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no saved conversation.
    pub(super) fn read(path: &Path) -> Result<SavedConversation> {
        let bytes = read_named(path, limit::PROMPT_BYTES as u64).map_err(Error::read(path))?;
        let what = |error| {
            Error::input(path, format!("{error}: expected a conversation that /save or --session wrote"))
        };
        let saved: SavedConversation = serde_json::from_slice(&bytes).map_err(what)?;
        if saved.schema != SCHEMA {
            let found = kernmill_os::text::shortened(&saved.schema);
            return Err(Error::input(path, format!("the schema is {found}, expected {SCHEMA}")));
        }
        Ok(saved)
    }

    /// Writes a file, which appears whole or stays what it was. Only its owner can read it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| Error::failed(error.to_string()))?;
        text.push(b'\n');
        let file = NewFile::create_file(path).map_err(Error::read(path))?;
        let written = file.file().set_permissions(Permissions::from_mode(0o600));
        written.and_then(|()| file.file().write_all(&text)).map_err(Error::write(path))?;
        file.finish().map_err(Error::write(path))
    }
}
