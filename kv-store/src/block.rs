//! Blocks as the caller has them: keys, tokens, payload.

use crate::format::{BLOCK_TOKENS, MAX_PAYLOAD_BYTES, MAX_SECONDS};
use std::fmt;

/// The key of a block in a chain of blocks: a hash of everything that its rows depend on, which is model,
/// adapters, tenant, the parent's key and the block's tokens. The caller makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey(pub [u8; 32]);

/// The fingerprint of what a payload's bytes mean: a hash of the plan and of the format of the KV cache. The
/// caller makes it. One directory may hold blocks of several layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PayloadLayout(pub [u8; 32]);

/// The kind of layers whose rows a payload holds. The parts of a block are stored, found and evicted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerPart {
    /// Rows of the layers that see the whole context.
    Full,
    /// Rows of the sliding layers, which a prefix needs for the last blocks before its end only.
    Window,
}

impl LayerPart {
    /// Every part, in the order of their numbers in files.
    pub const ALL: [LayerPart; 2] = [LayerPart::Full, LayerPart::Window];

    /// The number of the part in files.
    pub(crate) fn number(self) -> u8 {
        match self {
            LayerPart::Full => 0,
            LayerPart::Window => 1,
        }
    }
}

/// The name by which a stored payload is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId {
    /// The meaning of the payload's bytes.
    pub layout: PayloadLayout,
    /// The block.
    pub key: StoreKey,
    /// Which of its rows.
    pub part: LayerPart,
}

/// The tokens of a block: 1 to 16 ids.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BlockTokens {
    /// Zeros behind the last.
    ids: [u32; BLOCK_TOKENS],
    count: u8,
}

impl BlockTokens {
    /// The tokens `ids`.
    ///
    /// # Errors
    /// When there are no ids, or more than 16.
    pub fn new(ids: &[u32]) -> Result<BlockTokens, BlockError> {
        if !(1..=BLOCK_TOKENS).contains(&ids.len()) {
            return Err(BlockError::Tokens { found: ids.len() });
        }
        let mut padded = [0; BLOCK_TOKENS];
        padded[..ids.len()].copy_from_slice(ids);
        Ok(BlockTokens { ids: padded, count: ids.len() as u8 })
    }

    /// The ids, first to last.
    pub fn as_slice(&self) -> &[u32] {
        &self.ids[..usize::from(self.count)]
    }
}

impl fmt::Debug for BlockTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// A block to be stored: one part of its rows, and what must be known of it later.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The name by which it will be found.
    pub id: BlockId,
    /// The key of the block before it in its chain; zeros for the first one.
    pub parent: StoreKey,
    /// The tokens whose rows these are.
    pub tokens: BlockTokens,
    /// Seconds that computing the rows anew would take. Blocks that are cheap for their size go first.
    pub seconds: f64,
    /// The rows, in the form that the layout stands for: 1 byte to [`MAX_PAYLOAD_BYTES`].
    pub payload: Vec<u8>,
}

impl Block {
    /// Error unless the payload can be stored.
    pub(crate) fn check(&self) -> Result<(), BlockError> {
        match self.payload.len() {
            1..=MAX_PAYLOAD_BYTES => Ok(()),
            found => Err(BlockError::Payload { found }),
        }
    }
}

/// The cost of a block as the order of eviction takes it: a number of seconds that is not a number counts as
/// zero, and an hour is the most.
pub(crate) fn bounded_seconds(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.clamp(0.0, MAX_SECONDS) } else { 0.0 }
}

/// Facts about a block whose payload was read.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundBlock {
    /// The key of the block before it in its chain; zeros for the first one.
    pub parent: StoreKey,
    /// The tokens whose rows these are.
    pub tokens: BlockTokens,
    /// Seconds that computing the rows anew takes, as the block's writer said.
    pub seconds: f64,
}

/// Why a block cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block has no tokens or too many.
    #[error("a block of {found} tokens, expected 1 to {BLOCK_TOKENS}")]
    Tokens {
        /// Tokens.
        found: usize,
    },
    /// The block's payload is empty or too large.
    #[error("a payload of {found} bytes, expected 1 to {MAX_PAYLOAD_BYTES}")]
    Payload {
        /// Bytes.
        found: usize,
    },
}
