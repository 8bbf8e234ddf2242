//! Saved sessions: a sequence of tokens in one file, with the keys of its blocks and perhaps the blocks.

mod read;
mod write;

pub use read::SessionFile;
pub use write::SessionWriter;

use crate::block::{PayloadLayout, StoreKey};
use crate::decode::Damage;
use std::io;

/// Bytes of a session's name at most.
const MAX_NAME_BYTES: usize = 1024;
/// Tokens of a session at most.
const MAX_TOKENS: usize = 1 << 20;
/// Blocks of a session at most.
const MAX_BLOCKS: usize = 1 << 20;
/// Bytes of a session's state at most.
const MAX_STATE_BYTES: usize = 16 << 20;

/// A sequence of tokens that can go on where it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Name of the session, at most 1024 bytes.
    pub name: String,
    /// The meaning of its blocks' rows. Another plan or KV format has another layout, and must compute them
    /// anew.
    pub layout: PayloadLayout,
    /// All of its tokens, at most 1,048,576.
    pub tokens: Vec<u32>,
    /// Blocks of the session, by position.
    pub blocks: Vec<BlockRef>,
    /// The state of the sampler, and whatever else its caller needs to go on, at most 16 MiB.
    pub state: Vec<u8>,
}

/// A block of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// The position of its first token in the session.
    pub position: u32,
    /// Key of the block.
    pub key: StoreKey,
}

/// Why a session cannot be saved or opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The system could not read the file.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
    /// The system could not write the file.
    #[error("writing failed: {0}")]
    Write(#[source] io::Error),
    /// The file does not begin as sessions do.
    #[error("it is not a saved session: expected a file that `--session` wrote")]
    NotASession,
    /// The file is damaged where its tokens are.
    #[error("the session is damaged: {0}")]
    Damaged(#[source] Damage),
    /// There is more of something than a session may have.
    #[error("{found} {what}, expected at most {most}")]
    TooMany {
        /// The thing of which there is too much.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
}

/// Error unless there are at most so many of everything: bytes of the name, tokens, blocks, bytes of state.
fn check_sizes(sizes: [usize; 4]) -> Result<(), SessionError> {
    let limits = [
        ("bytes of a session's name", MAX_NAME_BYTES),
        ("tokens of a session", MAX_TOKENS),
        ("blocks of a session", MAX_BLOCKS),
        ("bytes of a session's state", MAX_STATE_BYTES),
    ];
    for (found, (what, most)) in sizes.into_iter().zip(limits) {
        if found > most {
            return Err(SessionError::TooMany { what, found, most });
        }
    }
    Ok(())
}
