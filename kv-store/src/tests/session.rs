//! Saved sessions, and blocks from a store into a session's file and back.

use super::{SMALL, StoreDir, block, files, holds, id, open, place, put};
use crate::block::{Block, BlockId, LayerPart, PayloadLayout};
use crate::session::{BlockRef, Session, SessionError, SessionFile, SessionWriter};
use crate::state::Put;
use crate::store::Store;
use kernmill_os::source::Source;
use std::cell::Cell;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn session(blocks: u64) -> Session {
    let key = |n| BlockRef { position: 16 * n as u32, key: id(n).key };
    Session {
        name: "a chat".to_owned(),
        layout: id(0).layout,
        tokens: (0..16 * blocks as u32).collect(),
        blocks: (0..blocks).map(key).collect(),
        state: b"a sampler".to_vec(),
    }
}

fn save(session: &Session, path: &Path) -> Result<(), SessionError> {
    SessionWriter::create(path, session)?.finish()
}

#[test]
fn a_session_is_read_as_it_was_saved() {
    let StoreDir { dir: path, _base } = place();
    let empty = Session { name: String::new(), tokens: vec![], blocks: vec![], state: vec![], ..session(0) };
    for session in [session(5), session(3000), empty] {
        save(&session, &path).unwrap();
        let file = SessionFile::open(&path).unwrap();
        assert_eq!(file.session(), &session);
        assert_eq!((file.records().count(), file.lost_records()), (0, 0));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_session_moves_from_store_to_store() {
    let [from, to, file] = [place(), place(), place()];
    let store = open(&from.dir, 1 << 20);
    // Even blocks have rows of full layers, odd ones windows; block 4 is not stored.
    (0..8).filter(|n| *n != 4).for_each(|n| put(&store, block(n, SMALL + n as usize)));
    let session = session(8);
    let exported = export(&store, &session, &file.dir).unwrap();
    assert_eq!((exported.records, exported.missing), (7, 5));
    drop(store);
    let saved = SessionFile::open(&file.dir).unwrap();
    assert_eq!(saved.session(), &session);
    let found = block(6, SMALL + 6);
    let mut payload = vec![0; saved.payload_bytes(&found.id).unwrap()];
    assert_eq!(saved.read(&found.id, &mut payload).unwrap().unwrap().tokens, found.tokens);
    assert!(payload == found.payload);
    assert_eq!(saved.read(&found.id, &mut [0; 3]).unwrap(), None);
    let other = BlockId { layout: PayloadLayout([8; 32]), ..found.id };
    assert_eq!(saved.read(&other, &mut payload).unwrap(), None);
    let store = open(&to.dir, 1 << 20);
    let imported = import(&saved, &store).unwrap();
    assert_eq!((imported.records, imported.damaged, imported.refused), (7, 0, 0));
    store.flush().unwrap();
    drop(store);
    let store = open(&to.dir, 1 << 20);
    assert!((0..8).all(|n| holds(&store, &block(n, SMALL + n as usize)) == (n != 4)));
    // A store that only reads takes nothing.
    let second = open(&to.dir, 1 << 20);
    assert_eq!(import(&saved, &second).unwrap().refused, 7);
}

#[test]
fn damaged_records_are_counted_and_the_others_imported() {
    let [from, to, file] = [place(), place(), place()];
    let store = open(&from.dir, 1 << 20);
    (0..6).for_each(|n| put(&store, block(n, SMALL)));
    export(&store, &session(6), &file.dir).unwrap();
    let mut bytes = std::fs::read(&file.dir).unwrap();
    let first = 2 * 4096;
    // A header, and the payload of another record.
    bytes[first + 8192 + 20] ^= 1;
    bytes[first + 3 * 8192 + 4096 + 7] ^= 1;
    let saved = SessionFile::read_from(&bytes[..]).unwrap();
    assert_eq!((saved.records().count(), saved.lost_records()), (5, 1));
    let store = open(&to.dir, 1 << 20);
    let imported = import(&saved, &store).unwrap();
    assert_eq!((imported.records, imported.damaged, imported.refused), (4, 2, 0));
}

/// A file of terabytes with few bytes in it, and how often it was read.
struct Sparse {
    bytes: Vec<u8>,
    /// Where a copy of the last record is, again and again, if it is anywhere.
    repeats: Option<u64>,
    reads: Cell<u64>,
}

impl Source for Sparse {
    fn bytes(&self) -> io::Result<u64> {
        Ok(1 << 40)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        let end = self.bytes.len() as u64;
        let at = match self.repeats {
            Some(every) if offset >= end && offset % every < 8192 => end - 8192 + offset % every,
            _ => offset,
        };
        let from = self.bytes.get(at as usize..).unwrap_or_default();
        let have = out.len().min(from.len());
        out[..have].copy_from_slice(&from[..have]);
        out[have..].fill(0);
        Ok(())
    }
}

#[test]
fn what_a_sparse_file_says_to_have_is_not_searched() {
    let [from, file] = [place(), place()];
    let store = open(&from.dir, 1 << 20);
    (0..6).for_each(|n| put(&store, block(n, SMALL)));
    export(&store, &session(6), &file.dir).unwrap();
    let mut bytes = std::fs::read(&file.dir).unwrap();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let last = bytes.len() - 8192;
    let mut damaged = bytes.clone();
    damaged[last] ^= 1;
    // A header that asks for more records than there are.
    let mut many = bytes.clone();
    many[28..32].fill(0xff);
    let sum = crate::format::checksum(&many[..4088]);
    many[4088..4096].copy_from_slice(&sum.to_le_bytes());
    for (bytes, repeats, records) in [(damaged, None, 5), (many.clone(), None, 6), (many, Some(60 << 20), 6)]
    {
        let sparse = Sparse { bytes, repeats, reads: Cell::new(0) };
        let saved = SessionFile::read_from(sparse).unwrap();
        assert_eq!(saved.records().count(), records);
        let reads = saved.source().reads.get();
        assert!(reads < 4 * 20_000, "{reads} reads");
    }
    // The largest record may be damaged all over.
    let gap = (64 << 20) - 4096;
    let mut moved = bytes.clone();
    moved[last - 8192] ^= 1;
    moved.splice(last..last, vec![0; gap]);
    assert_eq!(SessionFile::read_from(&moved[..]).unwrap().records().count(), 5);
}

#[test]
fn an_unfinished_session_leaves_the_old_one() {
    let place = place();
    std::fs::create_dir(&place.dir).unwrap();
    let path = place.dir.join("chat.session");
    save(&session(2), &path).unwrap();
    let mut writer = SessionWriter::create(&path, &session(3)).unwrap();
    writer.add(&block(1, SMALL)).unwrap();
    drop(writer);
    assert_eq!(SessionFile::open(&path).unwrap().session(), &session(2));
    assert_eq!(files(&place.dir).len(), 1);
}

#[test]
fn what_is_no_session_is_refused_with_a_reason() {
    let StoreDir { dir: path, _base } = place();
    for bytes in [&b""[..], b"a text", &[7; 5000]] {
        std::fs::write(&path, bytes).unwrap();
        let error = SessionFile::open(&path).unwrap_err();
        assert!(error.to_string().starts_with("it is not a saved session"), "{error}");
    }
    let error = SessionFile::open(&path.join("none")).unwrap_err();
    assert!(matches!(error, SessionError::Read(_)), "{error}");
    let error = save(&Session { name: "n".repeat(1025), ..session(1) }, &path).unwrap_err();
    assert_eq!(error.to_string(), "1025 bytes of a session's name, expected at most 1024");
    let error = save(&Session { tokens: vec![0; (1 << 20) + 1], ..session(1) }, &path).unwrap_err();
    assert_eq!(error.to_string(), "1048577 tokens of a session, expected at most 1048576");
    let error = save(&session(1), &path.join("below/nothing")).unwrap_err();
    assert!(error.to_string().starts_with("writing failed"), "{error}");
    let mut writer = SessionWriter::create(&path, &session(1)).unwrap();
    let error = writer.add(&block(1, 0)).unwrap_err();
    assert_eq!(error.to_string(), "writing failed: a payload of 0 bytes, expected 1 to 67108864");
}

#[test]
fn parts_have_different_numbers() {
    assert_eq!(LayerPart::ALL.map(LayerPart::number), [0, 1]);
}

/// The contents of a file that [`export`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Payloads.
    pub records: usize,
    /// Blocks whose rows of full layers are not in the store. They will be computed anew.
    pub missing: usize,
}

/// The contents of a file that [`import`] read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Payloads that the store has now.
    pub records: usize,
    /// Payloads that were damaged, and will be computed anew.
    pub damaged: usize,
    /// Payloads that the store did not take.
    pub refused: usize,
}

/// Saves a session at `path` together with every payload of its blocks that the store has, as a file that
/// needs no store.
///
/// # Errors
/// As [`SessionWriter::create`] and [`SessionWriter::finish`].
pub fn export(store: &Store, session: &Session, path: &Path) -> Result<Exported, SessionError> {
    let mut writer = SessionWriter::create(path, session)?;
    let mut exported = Exported::default();
    for block in &session.blocks {
        for part in LayerPart::ALL {
            let id = BlockId { layout: session.layout, key: block.key, part };
            match read_block(store, id) {
                Some(block) => {
                    writer.add(&block)?;
                    exported.records += 1;
                }
                None => exported.missing += usize::from(part == LayerPart::Full),
            }
        }
    }
    writer.finish()?;
    Ok(exported)
}

/// A block with its payload, if the store has it.
fn read_block(store: &Store, id: BlockId) -> Option<Block> {
    let mut payload = vec![0; store.payload_bytes(&id)?];
    let found = store.read(&id, &mut payload)?;
    Some(Block { id, parent: found.parent, tokens: found.tokens, seconds: found.seconds, payload })
}

/// Gives every payload of a session's file to a store. Waits while the store has too much to write.
///
/// # Errors
/// When the system cannot read the file.
pub fn import<S: Source>(file: &SessionFile<S>, store: &Store) -> io::Result<Imported> {
    let mut imported = Imported { damaged: file.lost_records(), ..Imported::default() };
    for (id, bytes) in file.records() {
        let mut payload = vec![0; bytes];
        let Some(found) = file.read(id, &mut payload)? else {
            imported.damaged += 1;
            continue;
        };
        let (parent, tokens, seconds) = (found.parent, found.tokens, found.seconds);
        match store.put_waiting(Block { id: *id, parent, tokens, seconds, payload }) {
            Put::Queued | Put::Known => imported.records += 1,
            Put::Busy | Put::ReadOnly | Put::Refused(_) => imported.refused += 1,
        }
    }
    Ok(imported)
}
