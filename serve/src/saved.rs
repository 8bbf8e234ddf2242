//! Texts that are saved in a file, and go on from there: their tokens, and the keys and values of these, so
//! that nothing is computed twice.
//!
//! A text that goes on has the tokens that it would have without the break. Which token is chosen depends on
//! the seed and the position alone, and on the tokens before where there are penalties; the file has both.
//!
//! The files hold sequences of tokens with their rows. They are saved between steps, and brought back into
//! the prefix cache.

use crate::error::{Error, Result};
use crate::request::{Answer, Request};
use crate::serving::Serving;
use kernmill_kv_store::{PayloadLayout, Session, SessionError, SessionFile};
use kernmill_os::output::NewFile;
use kernmill_runtime::{AdapterUse, Tenant};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Version of the state that sessions of this library have.
const STATE: u32 = 1;
/// Bytes of a model's name in a session at most.
const NAME_BYTES: usize = 200;

/// A text in a file, which may not be there yet; or one that is in no file.
#[derive(Debug, Default)]
pub struct SavedText {
    path: Option<PathBuf>,
    /// The saved file, which is replaced when the text is saved again.
    file: Option<SessionFile>,
    state: SavedState,
    restored: Restored,
    /// Names of the text's adapters, with their scales.
    adapters: Vec<String>,
}

/// A text that came back from a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Restored {
    /// Tokens that were not computed again.
    pub tokens: u32,
    /// Seconds that it took.
    pub seconds: f64,
}

/// The state that goes on besides the tokens.
#[derive(Clone, Debug, Default, PartialEq)]
struct SavedState {
    /// Seed of the choices; `None` in a new session.
    seed: Option<u64>,
    /// Tokens whose rows the file has.
    rows: u32,
    /// The tokens that the model wrote, and how often each.
    written: BTreeMap<u32, u32>,
}

impl SavedText {
    /// Opens the session in the file at `path`, for a model of `vocab` tokens whose texts use the adapters of
    /// these names, such as `poet:0.5`. A file that is not there is a new session. Without a path nothing is
    /// restored or saved.
    ///
    /// # Errors
    /// When the file is no session or is damaged where its tokens are, its tokens are not those of this
    /// vocabulary, or it could not be written again. The file stays as it is.
    pub fn open(path: Option<&Path>, vocab: usize, adapters: Vec<String>) -> Result<SavedText> {
        let Some(path) = path else { return Ok(SavedText::default()) };
        NewFile::check(path).map_err(Error::read(path))?;
        let new = SavedText { path: Some(path.to_owned()), adapters, ..SavedText::default() };
        let file = match SessionFile::open(path) {
            Ok(file) => file,
            Err(SessionError::Read(error)) if error.kind() == ErrorKind::NotFound => return Ok(new),
            Err(error) => return Err(Error::read(path)(error)),
        };
        let Session { tokens, state, name, .. } = file.session();
        let Some(state) = SavedState::decode(state) else {
            return Err(Error::input(path, "the session is of another version of kernmill"));
        };
        if let Some(token) = tokens.iter().find(|token| **token as usize >= vocab) {
            let what = format!(
                "the session was saved with {name}, and has token {token}; the vocabulary of this model has {vocab}"
            );
            return Err(Error::input(path, what));
        }
        Ok(SavedText { file: Some(file), state, ..new })
    }

    /// The tokens so far: none in a new session.
    pub fn tokens(&self) -> &[u32] {
        self.file.as_ref().map_or(&[], |file| &file.session().tokens)
    }

    /// The restored text; `None` without a file.
    pub fn restored(&self) -> Option<Restored> {
        self.path.is_some().then_some(self.restored)
    }

    /// Prepares a request that goes on with the session, whose prompt begins with its tokens: brings what the
    /// file has of it into the KV cache, and what was written into the request, and the seed unless
    /// `has_seed`. Where not all comes back, the rest is computed when the text goes on; a sentence says why
    /// then.
    ///
    /// # Errors
    /// When the adapters cannot be used.
    pub fn restore(
        &mut self,
        serving: &mut Serving,
        request: &mut Request,
        has_seed: bool,
    ) -> Result<Option<String>> {
        request.written = self.state.written.iter().map(|(token, count)| (*token, *count)).collect();
        if let Some(seed) = self.state.seed.filter(|_| !has_seed) {
            request.sampler.seed = Some(seed);
        }
        let start = Instant::now();
        let note = self.bring(serving, request)?;
        self.restored.seconds = start.elapsed().as_secs_f64();
        Ok(note)
    }

    /// Brings what the file has of a prompt; a sentence that says why not all came back, if so.
    fn bring(&mut self, serving: &mut Serving, request: &Request) -> Result<Option<String>> {
        let (Some(path), Some(file), Some(layout)) = (&self.path, &self.file, serving.layout) else {
            return Ok(None);
        };
        let (name, ours, path) = (&file.session().name, self.name(serving), path.display());
        let known = file.session().tokens.len();
        if *name != ours {
            return Ok(Some(format!(
                "{path} was saved with {name}, this is {ours}: its {known} tokens are computed anew"
            )));
        }
        if file.session().layout != layout {
            return Ok(Some(format!(
                "{path} was saved with other weights, another spec or another version: its {known} tokens \
                 are computed anew"
            )));
        }
        let Request { prompt, adapters, .. } = request;
        self.restored.tokens =
            serving.engine.restore_session(file, prompt, layout, adapters, request.cache_of())?;
        // The last token of a prompt is run in any case.
        let expected = self.state.rows.min(prompt.len().saturating_sub(1) as u32);
        let restored = self.restored.tokens;
        let fault = if adapters.is_empty() { "is damaged" } else { "is damaged, or has other adapters" };
        Ok((restored < expected).then(|| {
            format!(
                "{path} {fault}: {restored} of {known} tokens were restored, the others are computed anew"
            )
        }))
    }

    /// Saves the text as it is after an answer to `request`. The file appears whole, or stays as it was. Only
    /// its owner can read it.
    ///
    /// # Errors
    /// When the text is too long for a session, or the file cannot be written.
    pub fn save(&self, serving: &mut Serving, request: &Request, answer: &Answer) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut state = self.state.clone();
        state.seed = request.sampler.seed;
        answer.tokens.iter().for_each(|token| *state.written.entry(*token).or_insert(0) += 1);
        let tokens = [&*request.prompt, &*answer.tokens].concat();
        let (adapters, tenant) = (&request.adapters, request.cache_of());
        state.rows = serving.engine.session_tokens(&tokens, adapters, tenant)?;
        let name = self.name(serving);
        serving.write_session(path, name, tokens, state.encode(), adapters, tenant).map(drop)
    }

    /// The model, preset, formats and adapters of the session, for people.
    fn name(&self, serving: &Serving) -> String {
        let model = serving.engine.model();
        let mut name: String = model.name.chars().take(NAME_BYTES / 4).collect();
        name.push_str(&format!(", preset {}, KV cache {}", model.preset, model.kv.formats()));
        for adapter in &self.adapters {
            if name.len() + adapter.len() < 1000 {
                name.push_str(&format!(", adapter {adapter}"));
            }
        }
        name
    }
}

impl SavedState {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(STATE.to_le_bytes());
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.seed.unwrap_or_default().to_le_bytes());
        for (token, count) in &self.written {
            bytes.extend(token.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        bytes
    }

    /// The state in these bytes; `None` if they hold none.
    fn decode(bytes: &[u8]) -> Option<SavedState> {
        let (head, pairs) = bytes.split_first_chunk::<16>()?;
        let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
        if number(&head[..4])? != STATE || pairs.len() % 8 != 0 {
            return None;
        }
        let pair = |pair: &[u8]| Some((number(&pair[..4])?, number(&pair[4..])?));
        Some(SavedState {
            rows: number(&head[4..8])?,
            seed: head[8..].try_into().map(u64::from_le_bytes).ok(),
            written: pairs.chunks_exact(8).map(pair).collect::<Option<_>>()?,
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_and_others_are_refused() {
        let state = SavedState { seed: Some(7), rows: 12, written: BTreeMap::from([(3, 1), (900, 4)]) };
        let bytes = state.encode();
        assert_eq!(SavedState::decode(&bytes), Some(state));
        assert_eq!(SavedState::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(SavedState::decode(&bytes[..15]), None);
        assert_eq!(SavedState::decode(&[&[9], &bytes[1..]].concat()), None);
    }
}
