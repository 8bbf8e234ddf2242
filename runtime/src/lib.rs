//! kernmill's runtime: runs a program over a batch of tokens, keeps the KV cache, samples.
//!
//! [`load::Plan`] is a plan file, [`image::PlanImage`] a plan in memory; [`engine::Engine`] runs it over
//! sequences of tokens; a sampler chooses the next of them. It does not depend on the compiler.

pub mod adapter;
pub mod claim;
mod code;
pub mod draft;
pub mod engine;
mod error_kind;
mod executor;
#[doc(hidden)]
pub mod guarded;
pub mod guide;
pub mod image;
pub mod kv;
pub mod load;
pub mod measure;
pub mod perf;
pub mod pool;
pub mod profile;
pub mod sampler;
pub mod stages;
pub mod tokenizer;
pub mod tokenizer_handle;
#[cfg(test)]
mod toy;
pub mod trace;
#[cfg(feature = "vtune")]
pub mod vtune;
#[cfg(not(feature = "vtune"))]
#[path = "vtune/without.rs"]
pub mod vtune;

pub use adapter::{AdapterError, AdapterStore, AdapterUse};
pub use code::CodeError;
pub use draft::{DraftStats, Drafter, SuffixDrafter};
pub use engine::{
    BegunSequence, Engine, EngineConfig, EngineError, LogitRow, LogitRows, RowSink, SeqId, SequenceTokens,
    StepStats, Steps,
};
pub use error_kind::ErrorKind;
pub use executor::{BatchError, CutError, LaidWeights, LoadError, MemoryNeed, Replay};
pub use guide::{Guide, GuideError, Guided};
pub use image::PlanImage;
pub use kv::{Eviction, KvBudget, KvDemand, KvUsage, PrefixStats, Tenant};
pub use load::{Plan, PlanError, UntrustedReason};
pub use sampler::{Logprobs, Sampler, SamplerParams, TokenMask};
pub use tokenizer::Tokenizer;
pub use tokenizer_handle::TokenizerHandle;
