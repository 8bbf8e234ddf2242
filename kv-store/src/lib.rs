//! A store of KV cache blocks on disk, and saved sessions.
//!
//! A [`Store`] keeps blocks of up to 16 tokens in the segment files of a directory and gives them back by
//! their keys. It knows neither engine nor model: keys, layouts and payloads are bytes that its caller makes.
//! Every byte that comes back is checked; what is damaged is a miss and a [`StoreEvent`] for the log, never
//! a wrong byte. A [`Session`] is a sequence of tokens with the keys of its blocks in one file, which may
//! hold the blocks too.
//!
//! `docs/dev/kv-store.md` has the formats to the byte and says why a kill or a power cut does no harm.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kernmill_kv_store::{
//!     Block, BlockId, BlockTokens, LayerPart, PayloadLayout, Store, StoreKey, StoreOptions,
//! };
//! # let base = std::env::temp_dir().join(format!("kernmill-kv-store-doc-{}", std::process::id()));
//! # std::fs::create_dir(&base)?;
//! # let dir = base.join("store");
//! let store = Store::open(&dir, StoreOptions::default())?;
//! let id = BlockId { layout: PayloadLayout([1; 32]), key: StoreKey([2; 32]), part: LayerPart::Full };
//! let block = Block {
//!     id,
//!     parent: StoreKey([0; 32]),
//!     tokens: BlockTokens::new(&[5, 6, 7])?,
//!     seconds: 0.02,
//!     payload: vec![9; 1000],
//! };
//! assert!(store.put(block).is_kept());
//! let mut rows = vec![0; 1000];
//! let found = store.read(&id, &mut rows).ok_or("a miss")?;
//! assert_eq!((found.tokens.as_slice(), rows[999]), (&[5, 6, 7][..], 9));
//! # drop(store);
//! # std::fs::remove_dir_all(&base)?;
//! # Ok(())
//! # }
//! ```

mod block;
mod decode;
mod directory;
mod disk;
mod encode;
mod event;
mod format;
mod index;
mod load;
mod order;
mod place;
mod segment;
mod session;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use block::{Block, BlockError, BlockId, BlockTokens, FoundBlock, LayerPart, PayloadLayout, StoreKey};
pub use decode::{Damage, RecordHeader};
pub use directory::OpenError;
pub use event::StoreEvent;
pub use format::{BLOCK_TOKENS, MAX_PAYLOAD_BYTES, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
/// Bytes that can be read at any place: what segments and sessions are read from.
pub use kernmill_os::source::Source;
pub use segment::{Segment, SegmentError};
pub use session::{BlockRef, Session, SessionError, SessionFile, SessionWriter};
pub use state::{Put, StoreOptions, StoreStats};
pub use store::Store;
