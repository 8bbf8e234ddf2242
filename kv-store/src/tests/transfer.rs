//! Blocks from a store into a session's file, and back.

use crate::block::{Block, BlockId, LayerPart};
use crate::session::{Session, SessionError, SessionFile, SessionWriter};
use crate::state::Put;
use crate::store::Store;
use kernmill_os::source::Source;
use std::io;
use std::path::Path;

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
