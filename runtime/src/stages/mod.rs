//! Pipeline stages: the layers of one model in several processes, for models that one machine does not hold.
//!
//! All processes have the same model. The first one has the sequences, the block tables and the sampling; it
//! runs the first layers of a batch, and what follows the last layer. A [`StageServer`] runs the layers
//! between, with the KV cache of these. A batch goes from stage to stage over TCP, as rows of the residual
//! stream, and comes back along the same way. While it is away, the first stage runs another batch.
//!
//! No sum is split, so that the bits are those of one process. `docs/dev/stages.md` describes the protocol.
//! Stages know each other by a secret that they share.

mod hello;
mod link;
mod server;
mod tables;
#[cfg(test)]
mod tests;
mod upstream;
mod wire;

use crate::executor::{CutError, Cuts, MemoryNeed};
use crate::kv::KvShape;
use kernmill_os::files::read_named_text;
use kernmill_plan::program::Program;
pub use link::{StageHealth, StageLost};
pub use server::{StageError, StageServer, StageServerConfig};
use std::path::{Path, PathBuf};
use std::{fmt, io};
pub(crate) use upstream::{StagesChange, Upstream};

/// Where the other stages are, for the first one; and where the next one is, for those between.
#[derive(Clone, Debug)]
pub struct StagesConfig {
    /// Number of stages, at least 2.
    pub stages: u32,
    /// Address of the next stage, `HOST:PORT`.
    pub peer: String,
    /// The key that both sides must know.
    pub key: StageKey,
}

/// The part of a program that a stage holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StageShare {
    /// The first of its attention layers, and the one behind the last, counted from 0.
    pub layers: std::ops::Range<usize>,
    /// The part of all weights that it reads for a token, from 0 to 1.
    pub weights: f64,
}

impl StageShare {
    /// The part that stage `number` of `stages` holds, counted from 1, where the program is cut evenly.
    ///
    /// # Errors
    /// When the program cannot be cut so.
    pub fn of(program: &Program, number: u32, stages: u32) -> Result<StageShare, CutError> {
        let cuts = Cuts::even(program, stages)?;
        Ok(StageShare { layers: cuts.layers(number), weights: cuts.share(program, number) })
    }

    /// The memory that the stage needs besides weights.
    pub fn memory(&self, program: &Program, shape: KvShape, threads: usize) -> MemoryNeed {
        MemoryNeed::of_layers(program, shape, threads, self.layers.clone())
    }
}

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
    #[error("{}: the key has {found} characters, expected {LEAST} to {MOST}: `openssl rand -hex 32` makes \
        one", path.display())]
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
    fn seal(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether a seal is the one of `parts`; takes as long whatever differs.
    fn knows(&self, parts: &[&[u8]], seal: &[u8; 32]) -> bool {
        blake3::Hash::from_bytes(self.seal(parts)) == blake3::Hash::from_bytes(*seal)
    }
}

/// Shows nothing of the key.
impl fmt::Debug for StageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_secret { "StageKey(secret)" } else { "StageKey(none)" })
    }
}
