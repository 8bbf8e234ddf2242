//! Why a sequence cannot go on as asked.

use kernmill_plan::kv::LayerKind;

/// Why a sequence cannot go on as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// All sequences of the engine are in use.
    #[error("all {limit} sequences of this engine are in use: drop one, or make the engine with more")]
    NoFreeSequence {
        /// Sequences of the engine.
        limit: u32,
    },
    /// The tokens would not fit.
    #[error("{length} tokens and {more} more exceed the context of {context}")]
    Context {
        /// Tokens in the sequence.
        length: u32,
        /// Tokens to be added.
        more: usize,
        /// Tokens a sequence may have.
        context: u32,
    },
    /// There are no blocks left.
    #[error("the KV cache needs {needed} more blocks for {kind:?} layers and has {free}")]
    OutOfBlocks {
        /// Which layers.
        kind: LayerKind,
        /// Blocks that this step needs.
        needed: usize,
        /// Blocks that are free.
        free: usize,
    },
    /// A sequence can only go back to where its window is still cached.
    #[error(
        "position {position} of a sequence of {length} tokens cannot be returned to: its window starts at \
         {lowest}, and sliding layers keep keys from {kept} on"
    )]
    Forgotten {
        /// Position asked for.
        position: u32,
        /// Tokens in the sequence.
        length: u32,
        /// First key that a query there sees.
        lowest: u32,
        /// First key still cached.
        kept: u32,
    },
    /// A position past the end.
    #[error("position {position} of a sequence of {length} tokens")]
    PastEnd {
        /// Position asked for.
        position: u32,
        /// Tokens in the sequence.
        length: u32,
    },
}
