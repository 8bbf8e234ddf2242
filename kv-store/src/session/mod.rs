//! Saved sessions: a sequence of tokens in one file, with the keys of its blocks and perhaps the blocks.
//! [`SessionWriter`] writes such a file.

mod read;

use crate::block::{Block, PayloadLayout, StoreKey};
use crate::decode::Damage;
use crate::encode::{begin, put, record_header, sign};
use crate::format::{
    MAX_SEQUENCE, PAGE, PAGE_BYTES, SESSION_MAGIC, checksum, session_at, slot_bytes, whole_pages,
};
use kernmill_os::output::NewFile;
pub use read::SessionFile;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

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
        /// Plural name of the things that are too many, such as `steps`.
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

/// A session file that is being written. It appears when it is finished; dropped before, it leaves nothing.
/// Only its owner can read it.
#[derive(Debug)]
pub struct SessionWriter {
    file: NewFile,
    /// Without the number of records, and unsigned.
    header: [u8; PAGE],
    /// Where the next record goes.
    offset: u64,
    records: u32,
}

impl SessionWriter {
    /// Begins the file of a session at `path`, and replaces what is there when it is finished.
    ///
    /// # Errors
    /// When the session is too large, or the file cannot be made.
    pub fn create(path: &Path, session: &Session) -> Result<SessionWriter, SessionError> {
        let Session { name, layout, tokens, blocks, state } = session;
        let sizes = [name.len(), tokens.len(), blocks.len(), state.len()];
        check_sizes(sizes)?;
        let mut body = name.as_bytes().to_vec();
        tokens.iter().for_each(|token| body.extend(token.to_le_bytes()));
        for block in blocks {
            body.extend(block.position.to_le_bytes());
            body.extend(block.key.0);
        }
        body.extend(state);
        let mut header = begin(SESSION_MAGIC);
        let places =
            [session_at::NAME_BYTES, session_at::TOKENS, session_at::BLOCKS, session_at::STATE_BYTES];
        for (at, size) in places.into_iter().zip(sizes) {
            put(&mut header, at, &(size as u32).to_le_bytes());
        }
        put(&mut header, session_at::BODY_CHECKSUM, &checksum(&body).to_le_bytes());
        put(&mut header, session_at::LAYOUT, &layout.0);
        let file = NewFile::create_file(path).map_err(SessionError::Write)?;
        // A file system that refuses has the same permissions for all of its files.
        let _ = file.file().set_permissions(Permissions::from_mode(0o600));
        file.file().write_all_at(&body, PAGE_BYTES).map_err(SessionError::Write)?;
        let offset = PAGE_BYTES + whole_pages(body.len() as u64);
        Ok(SessionWriter { file, header, offset, records: 0 })
    }

    /// Adds the rows of a block, so that the file can be used without a store.
    ///
    /// # Errors
    /// When the block's payload is empty or too large, or the file cannot be written.
    pub fn add(&mut self, block: &Block) -> Result<(), SessionError> {
        let invalid = |error| SessionError::Write(io::Error::new(io::ErrorKind::InvalidInput, error));
        block.check().map_err(invalid)?;
        let header = record_header(block, 0.0, u64::from(self.records).min(MAX_SEQUENCE));
        let file = self.file.file();
        file.write_all_at(&header, self.offset).map_err(SessionError::Write)?;
        file.write_all_at(&block.payload, self.offset + PAGE_BYTES).map_err(SessionError::Write)?;
        self.offset += slot_bytes(block.payload.len());
        self.records = self.records.saturating_add(1);
        Ok(())
    }

    /// Gives the file its name, when all of it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left then.
    pub fn finish(mut self) -> Result<(), SessionError> {
        put(&mut self.header, session_at::RECORDS, &self.records.to_le_bytes());
        self.file.file().write_all_at(&sign(self.header), 0).map_err(SessionError::Write)?;
        self.file.finish_synced().map_err(SessionError::Write)
    }
}
