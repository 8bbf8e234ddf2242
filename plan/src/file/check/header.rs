//! The header: magic, version, section table.

use super::FileError;
use crate::file::{
    ENTRY_BYTES, HEADER_BYTES, HEADER_HASH_OFFSET, Hash, MAGIC, MAX_SECTIONS, SECTION_ALIGN, SectionKind,
    TABLE_OFFSET, VERSION, WEIGHT_ALIGN,
};
use kernmill_os::source::Source;

/// An entry of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The contents of the section.
    pub kind: SectionKind,
    /// Target that a program or code belongs to; 0 for the others.
    pub target: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Hash of the bytes.
    pub hash: Hash,
}

impl Section {
    /// Name of the section for listings and messages.
    pub fn name(&self) -> String {
        match self.kind {
            SectionKind::Program | SectionKind::Code => format!("{} {}", self.kind.name(), self.target),
            _ => self.kind.name().to_owned(),
        }
    }

    /// Byte after the last.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    fn align(&self) -> u64 {
        if self.kind == SectionKind::Weights { WEIGHT_ALIGN } else { SECTION_ALIGN }
    }
}

/// Checks everything about the header and the places of the sections.
pub(super) fn read<S: Source>(source: &S) -> Result<Vec<Section>, FileError> {
    let length = source.bytes().map_err(FileError::Read)?;
    let mut magic = [0; MAGIC.len()];
    if length < MAGIC.len() as u64 {
        return Err(FileError::Magic);
    }
    source.read_at(0, &mut magic).map_err(FileError::Read)?;
    if magic != MAGIC {
        return Err(FileError::Magic);
    }
    if length < HEADER_BYTES as u64 {
        return Err(FileError::Length { found: length, expected: HEADER_BYTES as u64 });
    }
    let mut header = [0; HEADER_BYTES];
    source.read_at(0, &mut header).map_err(FileError::Read)?;
    let version = u32_at(&header, 8);
    if version != VERSION {
        return Err(FileError::Version { found: version });
    }
    check_hash(&header)?;
    let stated = u64_at(&header, 16);
    if stated != length {
        return Err(FileError::Length { found: length, expected: stated });
    }
    let size = u32_at(&header, 12);
    if size as usize != HEADER_BYTES {
        return Err(FileError::Header { what: format!("it says {size} bytes, expected {HEADER_BYTES}") });
    }
    let count = u32_at(&header, 24);
    if !(4..=MAX_SECTIONS as u32).contains(&count) {
        return Err(FileError::SectionCount { found: count });
    }
    let table_end = TABLE_OFFSET + count as usize * ENTRY_BYTES;
    if u32_at(&header, 28) != 0 || header[table_end..].iter().any(|byte| *byte != 0) {
        return Err(FileError::Header { what: "bytes without meaning are not zero".to_owned() });
    }
    let entries = header[TABLE_OFFSET..table_end].chunks_exact(ENTRY_BYTES);
    let sections = entries.enumerate().map(|(n, entry)| section(n, entry)).collect::<Result<Vec<_>, _>>()?;
    check_order(&sections)?;
    check_places(&sections, length)?;
    check_padding(source, &sections)?;
    Ok(sections)
}

fn check_hash(header: &[u8; HEADER_BYTES]) -> Result<(), FileError> {
    let mut blank = *header;
    let place = HEADER_HASH_OFFSET..HEADER_HASH_OFFSET + size_of::<Hash>();
    blank[place.clone()].fill(0);
    if blake3::hash(&blank).as_bytes()[..] != header[place] {
        return Err(FileError::HeaderHash);
    }
    Ok(())
}

fn section(n: usize, entry: &[u8]) -> Result<Section, FileError> {
    let number = u32_at(entry, 0);
    let Some(kind) = SectionKind::ALL.into_iter().find(|kind| *kind as u32 == number) else {
        return Err(FileError::Header { what: format!("section {n} is of unknown kind {number}") });
    };
    if u64_at(entry, 24) != 0 {
        return Err(FileError::Header { what: format!("bytes without meaning in section {n} are not zero") });
    }
    let mut hash = Hash::default();
    hash.copy_from_slice(&entry[32..]);
    let (target, offset, bytes) = (u32_at(entry, 4), u64_at(entry, 8), u64_at(entry, 16));
    Ok(Section { kind, target, offset, bytes, hash })
}

/// Metadata, spec, perhaps tokenizer, chat template and chat, program and code of each target, weight hashes,
/// weights.
fn check_order(sections: &[Section]) -> Result<(), FileError> {
    let mut rest = sections.iter().peekable();
    let mut expect = |kind: SectionKind, target: u32, needed: bool| match rest.peek() {
        Some(section) if section.kind == kind && section.target == target => {
            rest.next();
            Ok(true)
        }
        Some(section) if needed => Err(FileError::Place {
            section: section.name(),
            what: format!("it stands where `{}` was expected", kind.name()),
        }),
        None if needed => Err(FileError::Header { what: format!("there is no section `{}`", kind.name()) }),
        _ => Ok(false),
    };
    expect(SectionKind::Metadata, 0, true)?;
    expect(SectionKind::Spec, 0, true)?;
    expect(SectionKind::Tokenizer, 0, false)?;
    expect(SectionKind::ChatTemplate, 0, false)?;
    expect(SectionKind::Chat, 0, false)?;
    for target in 0.. {
        if !expect(SectionKind::Program, target, false)? {
            break;
        }
        expect(SectionKind::Code, target, true)?;
    }
    expect(SectionKind::WeightHashes, 0, true)?;
    expect(SectionKind::Weights, 0, true)?;
    match rest.next() {
        Some(section) => {
            Err(FileError::Place { section: section.name(), what: "it comes after the weights".to_owned() })
        }
        None => Ok(()),
    }
}

/// Each section begins at the first multiple of its alignment after the one before, and the last one ends the
/// file.
fn check_places(sections: &[Section], length: u64) -> Result<(), FileError> {
    let mut end = HEADER_BYTES as u64;
    for section in sections {
        let wrong = |what: String| Err(FileError::Place { section: section.name(), what });
        let (offset, bytes, align) = (section.offset, section.bytes, section.align());
        if !offset.is_multiple_of(align) {
            return wrong(format!("it starts at byte {offset}, expected a multiple of {align}"));
        }
        if offset < end {
            return wrong(format!(
                "it starts at byte {offset}, before byte {end}, where the one before ends"
            ));
        }
        if offset != end.next_multiple_of(align) {
            return wrong(format!("it starts at byte {offset}, expected {}", end.next_multiple_of(align)));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            return wrong(format!("{bytes} bytes at {offset} pass the file's end at {length}"));
        }
        let most = section.kind.max_bytes();
        if bytes > most {
            return wrong(format!("it has {bytes} bytes, expected at most {most}"));
        }
        if section.kind == SectionKind::Weights && section.hash != Hash::default() {
            return wrong("it has a hash, expected none: its pieces have them".to_owned());
        }
        end = section.end();
    }
    if end != length {
        return Err(FileError::Length { found: length, expected: end });
    }
    Ok(())
}

/// The padding between the sections must be zero.
fn check_padding<S: Source>(source: &S, sections: &[Section]) -> Result<(), FileError> {
    const ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    let mut buffer = ZEROS;
    let mut end = HEADER_BYTES as u64;
    for section in sections {
        while end < section.offset {
            let count = ZEROS.len().min((section.offset - end) as usize);
            source.read_at(end, &mut buffer[..count]).map_err(FileError::Read)?;
            if buffer[..count] != ZEROS[..count] {
                let what = "the bytes before it are not zero".to_owned();
                return Err(FileError::Place { section: section.name(), what });
            }
            end += count as u64;
        }
        end = section.end();
    }
    Ok(())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
