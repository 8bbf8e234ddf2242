//! The formats of segment and session files, for writers and readers: docs/dev/kv-store.md as code.

/// Tokens of a block at most.
pub const BLOCK_TOKENS: usize = 16;
/// Bytes of a block's payload at most.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;
/// Bytes of a segment file at most.
pub const MAX_SEGMENT_BYTES: u64 = 256 << 20;
/// Bytes that a segment file may be limited to at least.
pub const MIN_SEGMENT_BYTES: u64 = 64 << 10;

/// Bytes to whose multiples everything is aligned; also those of every header.
pub(crate) const PAGE: usize = 4096;
/// [`PAGE`] as a size in a file.
pub(crate) const PAGE_BYTES: u64 = PAGE as u64;
/// Version of segments, records and sessions.
pub(crate) const VERSION: u32 = 1;
/// Seconds that a block's cost counts at most.
pub(crate) const MAX_SECONDS: f64 = 3600.0;

/// The number of a write, or of a segment, at most: what is counted on from there never overflows.
pub(crate) const MAX_SEQUENCE: u64 = 1 << 62;

/// First bytes of a segment file.
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"\x89KMKVS\r\n";
/// First bytes of a record.
pub(crate) const RECORD_MAGIC: [u8; 8] = *b"\x89KMKVR\r\n";
/// First bytes of a session file.
pub(crate) const SESSION_MAGIC: [u8; 8] = *b"\x89KMKVN\r\n";
/// Where every header has its version.
pub(crate) const VERSION_AT: usize = 8;
/// Where every header has the checksum of the bytes before it.
pub(crate) const CHECKSUM_AT: usize = PAGE - 8;

/// Places in a segment's header.
pub(crate) mod segment_at {
    pub const SLOT_BYTES: usize = 16;
    pub const SLOTS: usize = 24;
    /// Zeros from here to the checksum.
    pub const END: usize = 32;
}

/// Places in a record's header.
pub(crate) mod record_at {
    pub const PART: usize = 12;
    pub const COUNT: usize = 13;
    pub const PAYLOAD_BYTES: usize = 16;
    pub const PAYLOAD_CHECKSUM: usize = 24;
    pub const SECONDS: usize = 32;
    pub const PRIORITY: usize = 40;
    pub const SEQUENCE: usize = 48;
    pub const KEY: usize = 64;
    pub const PARENT: usize = 96;
    pub const LAYOUT: usize = 128;
    pub const TOKENS: usize = 160;
    /// Zeros from here to the checksum.
    pub const END: usize = 224;
}

/// Places in a session's header.
pub(crate) mod session_at {
    pub const NAME_BYTES: usize = 12;
    pub const TOKENS: usize = 16;
    pub const BLOCKS: usize = 20;
    pub const STATE_BYTES: usize = 24;
    pub const RECORDS: usize = 28;
    pub const BODY_CHECKSUM: usize = 32;
    pub const LAYOUT: usize = 64;
    /// Zeros from here to the checksum.
    pub const END: usize = 96;
    /// Bytes of a reference to a block in the body: its key, its position.
    pub const REF_BYTES: usize = 36;
}

/// The checksum of all files: XXH3 with 64 bits.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Bytes rounded up to whole pages.
pub(crate) const fn whole_pages(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES
}

/// Bytes of the slot of a record with a payload of so many: its header and the payload in whole pages.
pub(crate) const fn slot_bytes(payload_bytes: usize) -> u64 {
    PAGE_BYTES + whole_pages(payload_bytes as u64)
}
