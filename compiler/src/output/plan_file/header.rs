//! The section table, and the header around it.

use super::error::PlanPartsError;
use kernmill_plan::file::{
    ENTRY_BYTES, HEADER_BYTES, HEADER_HASH_OFFSET, Hash, MAGIC, MAX_SECTIONS, SECTION_ALIGN, SectionKind,
    TABLE_OFFSET, VERSION, WEIGHT_ALIGN,
};

/// A section with its place.
#[derive(Debug)]
pub(super) struct SectionEntry {
    pub kind: SectionKind,
    pub target: u32,
    pub offset: u64,
    pub contents: Contents,
}

/// The contents that a section will have.
#[derive(Debug)]
pub(super) enum Contents {
    /// Bytes that are there already.
    Bytes(Vec<u8>),
    /// So many, which come out of packing the weights.
    Later(u64),
}

impl Contents {
    pub fn bytes(&self) -> u64 {
        match self {
            Contents::Bytes(bytes) => bytes.len() as u64,
            Contents::Later(bytes) => *bytes,
        }
    }
}

impl SectionEntry {
    pub fn end(&self) -> u64 {
        self.offset + self.contents.bytes()
    }
}

/// Gives sections their places, one behind the other.
pub(super) fn place(
    contents: Vec<(SectionKind, u32, Contents)>,
) -> Result<Vec<SectionEntry>, PlanPartsError> {
    if contents.len() > MAX_SECTIONS {
        return Err(PlanPartsError::Sections { found: contents.len(), most: MAX_SECTIONS });
    }
    let mut end = HEADER_BYTES as u64;
    let mut entries = Vec::with_capacity(contents.len());
    for (kind, target, contents) in contents {
        let (bytes, most) = (contents.bytes(), kind.max_bytes());
        if bytes > most {
            return Err(PlanPartsError::Large { section: kind.name(), bytes, most });
        }
        let align = if kind == SectionKind::Weights { WEIGHT_ALIGN } else { SECTION_ALIGN };
        let entry = SectionEntry { kind, target, offset: end.next_multiple_of(align), contents };
        end = entry.end();
        entries.push(entry);
    }
    Ok(entries)
}

/// The header of a file of `bytes` bytes whose weight hashes have hash `pieces`.
pub(super) fn encode(entries: &[SectionEntry], bytes: u64, pieces: &Hash) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    put(0, &MAGIC);
    put(8, &VERSION.to_le_bytes());
    put(12, &(HEADER_BYTES as u32).to_le_bytes());
    put(16, &bytes.to_le_bytes());
    put(24, &(entries.len() as u32).to_le_bytes());
    for (entry, at) in entries.iter().zip((TABLE_OFFSET..).step_by(ENTRY_BYTES)) {
        put(at, &(entry.kind as u32).to_le_bytes());
        put(at + 4, &entry.target.to_le_bytes());
        put(at + 8, &entry.offset.to_le_bytes());
        put(at + 16, &entry.contents.bytes().to_le_bytes());
        match (&entry.contents, entry.kind) {
            (Contents::Bytes(bytes), _) => put(at + 32, blake3::hash(bytes).as_bytes()),
            (_, SectionKind::WeightHashes) => put(at + 32, pieces),
            _ => {}
        }
    }
    let hash = blake3::hash(&header);
    header[HEADER_HASH_OFFSET..HEADER_HASH_OFFSET + size_of::<Hash>()].copy_from_slice(hash.as_bytes());
    header
}
