//! Segment files as they are read: a header, and slots of one size with a record each.

use crate::decode::{Damage, RecordHeader, check_page, field, is_blank, record_header, u32_at, u64_at};
use crate::format::{MAX_SEGMENT_BYTES, PAGE, PAGE_BYTES, SEGMENT_MAGIC, segment_at};
use kernmill_os::source::Source;
use std::io;

/// Why a file is not a segment that can be used.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The system could not read it.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
    /// The file has no header: its writer was stopped when it had just made the file.
    #[error("it was never finished")]
    Unfinished,
    /// The file's header is damaged.
    #[error("{0}")]
    Damaged(#[source] Damage),
}

/// The geometry of a segment file, which its header states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of a slot, a multiple of 4096: the header of a record, and its payload.
    pub slot_bytes: u64,
    /// Slots that the file may have; it grows as they are filled.
    pub slots: u32,
}

impl Segment {
    /// Reads and checks the header of a segment file.
    ///
    /// # Errors
    /// When it cannot be read, or is not one.
    pub fn open(source: &impl Source) -> Result<Segment, SegmentError> {
        let mut page = [0; PAGE];
        match source.read_at(0, &mut page) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(SegmentError::Read(error));
            }
            Err(_) => return Err(short(source)),
            Ok(()) if is_blank(&page) => return Err(SegmentError::Unfinished),
            Ok(()) => {}
        }
        check_page(&page, SEGMENT_MAGIC, segment_at::END).map_err(SegmentError::Damaged)?;
        let slot_bytes = u64_at(&page, segment_at::SLOT_BYTES);
        let slots = u32_at(&page, segment_at::SLOTS);
        let segment = Segment { slot_bytes, slots };
        let bytes = u64::from(slots).checked_mul(slot_bytes).and_then(|bytes| bytes.checked_add(PAGE_BYTES));
        let fits = bytes.is_some_and(|bytes| bytes <= MAX_SEGMENT_BYTES);
        if !fits || slots == 0 || slot_bytes < 2 * PAGE_BYTES || !slot_bytes.is_multiple_of(PAGE_BYTES) {
            let what = format!("{slots} slots of {slot_bytes} bytes, expected whole pages within a segment");
            return Err(SegmentError::Damaged(field(what)));
        }
        Ok(segment)
    }

    /// Byte offset of a slot.
    pub fn offset(&self, slot: u32) -> u64 {
        PAGE_BYTES.saturating_add(u64::from(slot).saturating_mul(self.slot_bytes))
    }

    /// Slots that a file of so many bytes has, the last one perhaps in part.
    pub fn slots_of(&self, file_bytes: u64) -> u32 {
        let slots = file_bytes.saturating_sub(PAGE_BYTES).div_ceil(self.slot_bytes);
        slots.min(u64::from(self.slots)) as u32
    }

    /// The headers of all slots, in order; `None` for a slot that is free.
    ///
    /// # Errors
    /// When the file cannot be read. A damaged slot is no error of the file.
    pub fn scan(&self, source: &impl Source) -> io::Result<Vec<Result<Option<RecordHeader>, Damage>>> {
        let bytes = source.bytes()?;
        (0..self.slots_of(bytes)).map(|slot| self.header(source, slot, bytes)).collect()
    }

    /// The header of one slot in a file of so many bytes.
    fn header(
        &self,
        source: &impl Source,
        slot: u32,
        file_bytes: u64,
    ) -> io::Result<Result<Option<RecordHeader>, Damage>> {
        let offset = self.offset(slot);
        let mut page = [0; PAGE];
        match source.read_at(offset, &mut page) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Err(Damage::CutOff)),
            other => other?,
        }
        Ok(record_header(&page).and_then(|header| {
            let Some(header) = header else { return Ok(None) };
            self.check_place(&header, offset, file_bytes).map(|()| Some(header))
        }))
    }

    /// Error unless a record's payload lies within its slot and its file.
    fn check_place(&self, header: &RecordHeader, offset: u64, file_bytes: u64) -> Result<(), Damage> {
        let payload = header.payload_bytes as u64;
        if payload > self.slot_bytes - PAGE_BYTES {
            return Err(field(format!("{payload} bytes of payload, in a slot of {}", self.slot_bytes)));
        }
        let end = offset + PAGE_BYTES + payload;
        if end > file_bytes { Err(Damage::CutOff) } else { Ok(()) }
    }

    /// Reads the payload of a slot into `out` and checks every byte, if the slot has the record that
    /// `is_wanted` accepts; what its header says. Without one, and after an error, `out` may hold anything.
    ///
    /// # Errors
    /// When the file cannot be read. Damage is no error of the file.
    pub fn read(
        &self,
        source: &impl Source,
        slot: u32,
        is_wanted: impl FnOnce(&RecordHeader) -> bool,
        out: &mut [u8],
    ) -> io::Result<Result<Option<RecordHeader>, Damage>> {
        let header = match self.header(source, slot, source.bytes()?)? {
            Ok(Some(header)) if is_wanted(&header) && header.payload_bytes == out.len() => header,
            Ok(_) => return Ok(Ok(None)),
            Err(damage) => return Ok(Err(damage)),
        };
        match source.read_at(self.offset(slot) + PAGE_BYTES, out) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Err(Damage::CutOff)),
            other => other?,
        }
        Ok(header.check_payload(out).map(|()| Some(header)))
    }
}

/// The error of a file that is shorter than its header: if all that it has of the magic is right, it was not
/// finished.
fn short(source: &impl Source) -> SegmentError {
    let start = |bytes: u64| {
        let mut start = [0; SEGMENT_MAGIC.len()];
        let length = start.len().min(bytes as usize);
        source.read_at(0, &mut start[..length]).map(|()| start[..length] == SEGMENT_MAGIC[..length])
    };
    match source.bytes().and_then(start) {
        Ok(true) => SegmentError::Unfinished,
        Ok(false) => SegmentError::Damaged(Damage::CutOff),
        Err(error) => SegmentError::Read(error),
    }
}
