//! Reading a session file. Nothing in it is believed before it has been checked.

use super::{BlockRef, Session, SessionError, check_sizes};
use crate::block::{BlockId, FoundBlock, PayloadLayout, StoreKey};
use crate::decode::{Damage, RecordHeader, array_at, check_page, field, record_header, u32_at, u64_at};
use crate::format::{
    MAX_PAYLOAD_BYTES, PAGE, PAGE_BYTES, SESSION_MAGIC, checksum, session_at, slot_bytes, whole_pages,
};
use kernmill_os::files::open_regular;
use kernmill_os::source::Source;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// An open session file: its tokens have been checked, its records are when they are read.
#[derive(Debug)]
pub struct SessionFile<S = File> {
    source: S,
    session: Session,
    /// Records with the offsets of their payloads, by their blocks.
    records: BTreeMap<BlockId, (u64, RecordHeader)>,
    /// Records that the file should have.
    expected: u32,
}

impl SessionFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, is not a session, or is damaged where its tokens are. Damaged records are no
    /// errors.
    pub fn open(path: &Path) -> Result<SessionFile, SessionError> {
        SessionFile::read_from(open_regular(path).map_err(SessionError::Read)?)
    }
}

impl<S: Source> SessionFile<S> {
    /// Reads a session from any source of bytes.
    ///
    /// # Errors
    /// As [`SessionFile::open`].
    pub fn read_from(source: S) -> Result<SessionFile<S>, SessionError> {
        let mut page = [0; PAGE];
        read(&source, 0, &mut page)?;
        check_page(&page, SESSION_MAGIC, session_at::END).map_err(|damage| match damage {
            Damage::Magic => SessionError::NotASession,
            other => SessionError::Damaged(other),
        })?;
        let sizes = [session_at::NAME_BYTES, session_at::TOKENS, session_at::BLOCKS, session_at::STATE_BYTES]
            .map(|at| u32_at(&page, at) as usize);
        check_sizes(sizes)?;
        let [name, tokens, blocks, state] = sizes;
        let parts = [name, 4 * tokens, session_at::REF_BYTES * blocks, state];
        let bytes: usize = parts.iter().sum();
        let end = PAGE_BYTES + bytes as u64;
        if end > source.bytes().map_err(SessionError::Read)? {
            return Err(SessionError::Damaged(Damage::CutOff));
        }
        let mut body = vec![0; bytes];
        read(&source, PAGE_BYTES, &mut body)?;
        if checksum(&body) != u64_at(&page, session_at::BODY_CHECKSUM) {
            return Err(SessionError::Damaged(Damage::PayloadChecksum));
        }
        let layout = PayloadLayout(array_at(&page, session_at::LAYOUT));
        let session = session(layout, &body, parts)?;
        let expected = u32_at(&page, session_at::RECORDS);
        let records = records(&source, whole_pages(end), expected).map_err(SessionError::Read)?;
        Ok(SessionFile { source, session, records, expected })
    }

    #[cfg(test)]
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The blocks whose rows the file has, with the bytes of their payloads.
    pub fn records(&self) -> impl Iterator<Item = (&BlockId, usize)> {
        self.records.iter().map(|(id, (_, header))| (id, header.payload_bytes))
    }

    /// Records that the file had when it was written and that cannot be found any more.
    pub fn lost_records(&self) -> usize {
        (self.expected as usize).saturating_sub(self.records.len())
    }

    /// The bytes of a block's payload, if the file has it.
    pub fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        self.records.get(id).map(|(_, header)| header.payload_bytes)
    }

    /// Reads a block's payload into `out`, which has the length that [`SessionFile::payload_bytes`] says, and
    /// checks every byte. None when the file does not have the block, or has other bytes than were written;
    /// `out` may hold anything then.
    ///
    /// # Errors
    /// When the system cannot read the file.
    pub fn read(&self, id: &BlockId, out: &mut [u8]) -> io::Result<Option<FoundBlock>> {
        let Some((offset, header)) = self.records.get(id) else { return Ok(None) };
        if header.payload_bytes != out.len() {
            return Ok(None);
        }
        match self.source.read_at(*offset, out) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        Ok(header.check_payload(out).ok().map(|()| header.found.clone()))
    }
}

fn read(source: &impl Source, offset: u64, out: &mut [u8]) -> Result<(), SessionError> {
    source.read_at(offset, out).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof if offset == 0 => SessionError::NotASession,
        io::ErrorKind::UnexpectedEof => SessionError::Damaged(Damage::CutOff),
        _ => SessionError::Read(error),
    })
}

/// The session that a body holds; `parts` are the bytes of its name, tokens, blocks and state.
fn session(layout: PayloadLayout, body: &[u8], parts: [usize; 4]) -> Result<Session, SessionError> {
    let mut rest = body;
    let [name, tokens, blocks, state] = parts.map(|bytes| {
        let (part, behind) = rest.split_at(bytes.min(rest.len()));
        rest = behind;
        part
    });
    let name = std::str::from_utf8(name)
        .map_err(|_| SessionError::Damaged(field("a name that is not UTF-8")))?
        .to_owned();
    let tokens = tokens.chunks_exact(4).map(|bytes| u32_at(bytes, 0)).collect();
    let block = |bytes: &[u8]| BlockRef { position: u32_at(bytes, 0), key: StoreKey(array_at(bytes, 4)) };
    let blocks = blocks.chunks_exact(session_at::REF_BYTES).map(block).collect();
    Ok(Session { name, layout, tokens, blocks, state: state.to_vec() })
}

/// Bytes that are searched for a record behind one that is damaged: the largest one is passed over, but not
/// all that a sparse file says to have.
const SEARCHED: u64 = slot_bytes(MAX_PAYLOAD_BYTES);
/// Bytes that are searched for records in a whole file.
const SEARCHED_IN_ALL: u64 = 4 * SEARCHED;

/// The records from `offset` on, at most so many. Behind a damaged one, the next is looked for page by page.
fn records(
    source: &impl Source,
    mut offset: u64,
    expected: u32,
) -> io::Result<BTreeMap<BlockId, (u64, RecordHeader)>> {
    let bytes = source.bytes()?;
    let mut records = BTreeMap::new();
    let mut page = [0; PAGE];
    let (mut here, mut in_all) = (0, 0);
    while records.len() < expected as usize
        && offset.saturating_add(PAGE_BYTES) < bytes
        && here <= SEARCHED
        && in_all <= SEARCHED_IN_ALL
    {
        match source.read_at(offset, &mut page) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            other => other?,
        }
        let payload_at = offset + PAGE_BYTES;
        match record_header(&page) {
            Ok(Some(header)) if payload_at + header.payload_bytes as u64 <= bytes => {
                offset += slot_bytes(header.payload_bytes);
                here = 0;
                records.insert(header.id, (payload_at, header));
            }
            Ok(_) | Err(_) => {
                offset += PAGE_BYTES;
                here += PAGE_BYTES;
                in_all += PAGE_BYTES;
            }
        }
    }
    Ok(records)
}
