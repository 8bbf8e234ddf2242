//! Headers as they are read. Nothing in them is believed before it has been checked.

use crate::block::{BlockId, BlockTokens, FoundBlock, LayerPart, PayloadLayout, StoreKey};
use crate::format::{
    BLOCK_TOKENS, CHECKSUM_AT, MAX_PAYLOAD_BYTES, MAX_SEQUENCE, PAGE, RECORD_MAGIC, VERSION, VERSION_AT,
    checksum, record_at,
};

/// The damage of a segment's or a session's bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A header does not begin as it should.
    #[error("it does not begin with the expected bytes")]
    Magic,
    /// Another version wrote a header.
    #[error("it has version {found}, expected {VERSION}")]
    Version {
        /// Version in the header.
        found: u32,
    },
    /// The bytes of a header are not those that were written.
    #[error("the header's checksum does not fit")]
    HeaderChecksum,
    /// A field of a header has a value that it cannot have.
    #[error("the header says {what}")]
    Field {
        /// The damage, and what was expected.
        what: String,
    },
    /// The bytes of a payload are not those that were written.
    #[error("the payload's checksum does not fit")]
    PayloadChecksum,
    /// The record is gone, or another one is there.
    #[error("another record is there, or none")]
    OtherRecord,
    /// The file ends within it.
    #[error("the file ends within it")]
    CutOff,
}

/// The fields of a record's header.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordHeader {
    /// The name by which the payload is found.
    pub id: BlockId,
    /// Other facts about the block.
    pub found: FoundBlock,
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Checksum of the payload.
    pub(crate) payload_checksum: u64,
    /// The block's place in the order of eviction when it was written: finite, at least 0.
    pub(crate) priority: f64,
    /// The number of the write among all of its store.
    pub(crate) sequence: u64,
}

impl RecordHeader {
    /// Error unless these are the payload's bytes.
    pub(crate) fn check_payload(&self, payload: &[u8]) -> Result<(), Damage> {
        let fits = payload.len() == self.payload_bytes && checksum(payload) == self.payload_checksum;
        if fits { Ok(()) } else { Err(Damage::PayloadChecksum) }
    }
}

/// The 4 bytes from `at` on; zeros past the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// The 8 bytes from `at` on; zeros past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The bytes from `at` on; zeros past the end.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

/// Error unless a header has this magic, this version and its checksum, and zeros from `end` to the checksum.
pub(crate) fn check_page(page: &[u8; PAGE], magic: [u8; 8], end: usize) -> Result<(), Damage> {
    if array_at(page, 0) != magic {
        return Err(Damage::Magic);
    }
    if checksum(&page[..CHECKSUM_AT]) != u64_at(page, CHECKSUM_AT) {
        return Err(Damage::HeaderChecksum);
    }
    let found = u32_at(page, VERSION_AT);
    if found != VERSION {
        return Err(Damage::Version { found });
    }
    if page[end..CHECKSUM_AT].iter().any(|byte| *byte != 0) {
        return Err(field("something where zeros are expected"));
    }
    Ok(())
}

/// Damage of a field.
pub(crate) fn field(what: impl Into<String>) -> Damage {
    Damage::Field { what: what.into() }
}

/// Whether a page was never written, or cleared.
pub(crate) fn is_blank(page: &[u8; PAGE]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

/// The header of a record; none where nothing was written.
///
/// # Errors
/// When it is damaged.
pub(crate) fn record_header(page: &[u8; PAGE]) -> Result<Option<RecordHeader>, Damage> {
    if is_blank(page) {
        return Ok(None);
    }
    check_page(page, RECORD_MAGIC, record_at::END)?;
    let part = LayerPart::ALL.get(usize::from(page[record_at::PART]));
    let part = *part.ok_or_else(|| field(format!("part {}, expected 0 or 1", page[record_at::PART])))?;
    let payload_bytes = u64_at(page, record_at::PAYLOAD_BYTES);
    if !(1..=MAX_PAYLOAD_BYTES as u64).contains(&payload_bytes) {
        return Err(field(format!("{payload_bytes} bytes of payload, expected 1 to {MAX_PAYLOAD_BYTES}")));
    }
    let [seconds, priority] =
        [record_at::SECONDS, record_at::PRIORITY].map(|at| f64::from_bits(u64_at(page, at)));
    if [seconds, priority].iter().any(|number| !number.is_finite() || number.is_sign_negative()) {
        return Err(field(format!("{seconds} seconds and priority {priority}, expected numbers from 0 on")));
    }
    let sequence = u64_at(page, record_at::SEQUENCE);
    if sequence > MAX_SEQUENCE {
        return Err(field(format!("write {sequence}, expected at most {MAX_SEQUENCE}")));
    }
    let id = BlockId {
        layout: PayloadLayout(array_at(page, record_at::LAYOUT)),
        key: StoreKey(array_at(page, record_at::KEY)),
        part,
    };
    let found =
        FoundBlock { parent: StoreKey(array_at(page, record_at::PARENT)), tokens: tokens(page)?, seconds };
    Ok(Some(RecordHeader {
        id,
        found,
        payload_bytes: payload_bytes as usize,
        payload_checksum: u64_at(page, record_at::PAYLOAD_CHECKSUM),
        priority,
        sequence,
    }))
}

/// The tokens that a record's header lists.
fn tokens(page: &[u8; PAGE]) -> Result<BlockTokens, Damage> {
    let ids: [u32; BLOCK_TOKENS] = std::array::from_fn(|n| u32_at(page, record_at::TOKENS + 4 * n));
    let count = usize::from(page[record_at::COUNT]);
    let listed = ids.get(..count).unwrap_or_default();
    BlockTokens::new(listed).map_err(|_| field(format!("{count} tokens, expected 1 to {BLOCK_TOKENS}")))
}
