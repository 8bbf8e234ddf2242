//! Headers as they are written. `decode.rs` reads them and shares no code with this file.

use crate::block::{Block, bounded_seconds};
use crate::format::{
    CHECKSUM_AT, PAGE, RECORD_MAGIC, SEGMENT_MAGIC, VERSION, VERSION_AT, checksum, record_at, segment_at,
};

/// Writes `bytes` into a header.
pub(crate) fn put(page: &mut [u8; PAGE], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A header with magic and version, and zeros elsewhere.
pub(crate) fn begin(magic: [u8; 8]) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    put(&mut page, 0, &magic);
    put(&mut page, VERSION_AT, &VERSION.to_le_bytes());
    page
}

/// Puts the checksum under a header that is complete.
pub(crate) fn sign(mut page: [u8; PAGE]) -> [u8; PAGE] {
    let sum = checksum(&page[..CHECKSUM_AT]);
    put(&mut page, CHECKSUM_AT, &sum.to_le_bytes());
    page
}

/// The header of a segment file with so many slots at most, of so many bytes each.
pub(crate) fn segment_header(slot_bytes: u64, slots: u32) -> [u8; PAGE] {
    let mut page = begin(SEGMENT_MAGIC);
    put(&mut page, segment_at::SLOT_BYTES, &slot_bytes.to_le_bytes());
    put(&mut page, segment_at::SLOTS, &slots.to_le_bytes());
    sign(page)
}

/// The header of a block's record. `priority` is the block's in the order of eviction, and `sequence` the
/// number of the write among all of a store.
pub(crate) fn record_header(block: &Block, priority: f64, sequence: u64) -> [u8; PAGE] {
    let mut page = begin(RECORD_MAGIC);
    let tokens = block.tokens.as_slice();
    put(&mut page, record_at::PART, &[block.id.part.number(), tokens.len() as u8]);
    put(&mut page, record_at::PAYLOAD_BYTES, &(block.payload.len() as u64).to_le_bytes());
    put(&mut page, record_at::PAYLOAD_CHECKSUM, &checksum(&block.payload).to_le_bytes());
    put(&mut page, record_at::SECONDS, &bounded_seconds(block.seconds).to_le_bytes());
    put(&mut page, record_at::PRIORITY, &priority.to_le_bytes());
    put(&mut page, record_at::SEQUENCE, &sequence.to_le_bytes());
    put(&mut page, record_at::KEY, &block.id.key.0);
    put(&mut page, record_at::PARENT, &block.parent.0);
    put(&mut page, record_at::LAYOUT, &block.id.layout.0);
    for (n, token) in tokens.iter().enumerate() {
        put(&mut page, record_at::TOKENS + 4 * n, &token.to_le_bytes());
    }
    sign(page)
}
