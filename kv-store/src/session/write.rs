//! Writing a session file.

use super::{Session, SessionError, check_sizes};
use crate::block::Block;
use crate::encode::{begin, put, record_header, sign};
use crate::format::{
    MAX_SEQUENCE, PAGE, PAGE_BYTES, SESSION_MAGIC, checksum, session_at, slot_bytes, whole_pages,
};
use kernmill_os::output::NewFile;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

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
