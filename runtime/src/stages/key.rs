//! The secret that stages share.

use kernmill_os::files::read_named_text;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a key's text at least.
const LEAST: usize = 16;
/// Bytes of a file of a key at most.
const MOST: u64 = 4096;

/// A secret by which stages know each other. Without one, every process that reaches a stage's port can use
/// it: then only addresses of the same machine are safe.
#[derive(Clone)]
pub struct StageKey {
    key: [u8; 32],
    is_secret: bool,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no usable text.
    #[error("{}: the key has {found} characters, expected {LEAST} to {MOST}: `openssl rand -hex 32` makes one", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes of the text.
        found: u64,
    },
}

impl StageKey {
    /// No secret.
    pub fn none() -> StageKey {
        StageKey { key: [0; 32], is_secret: false }
    }

    /// The secret of some text.
    pub fn of(text: &str) -> StageKey {
        StageKey {
            key: blake3::derive_key("kernmill 2026-11 key of pipeline stages", text.as_bytes()),
            is_secret: true,
        }
    }

    /// Reads a file whose text is the key; white space around it does not count.
    ///
    /// # Errors
    /// When the file cannot be read, or its text has less than 16 characters or more than 4096.
    pub fn read(path: &Path) -> Result<StageKey, KeyError> {
        let failed = |source| KeyError::Read { path: path.to_owned(), source };
        let text = read_named_text(path, MOST).map_err(failed)?;
        match text.trim() {
            short if short.len() < LEAST => {
                Err(KeyError::Length { path: path.to_owned(), found: short.len() as u64 })
            }
            key => Ok(StageKey::of(key)),
        }
    }

    /// Whether there is a secret.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// The proof that the other side's `parts` were seen by somebody who knows the key.
    pub(super) fn seal(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether a seal is the one of `parts`; takes as long whatever differs.
    pub(super) fn knows(&self, parts: &[&[u8]], seal: &[u8; 32]) -> bool {
        blake3::Hash::from_bytes(self.seal(parts)) == blake3::Hash::from_bytes(*seal)
    }
}

/// Shows nothing of the key.
impl fmt::Debug for StageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_secret { "StageKey(secret)" } else { "StageKey(none)" })
    }
}
