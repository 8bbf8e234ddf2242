//! Language models on ordinary x86-64 CPUs: kernmill compiles a model to kernels for the CPU at hand, and
//! runs it.
//!
//! Three lines make a text:
//!
//! ```no_run
//! # fn main() -> Result<(), kernmill::Error> {
//! // A plan, a checkpoint's directory, or a GGUF file.
//! let model = kernmill::Model::open("gpt-oss-20b.plan")?;
//! for piece in model.generate("A slice is", &kernmill::Sampling::default())? {
//!     print!("{}", piece?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # From a path to text
//!
//! | step | type | what it has |
//! |---|---|---|
//! | [`locate::locate`] | [`locate::Located`] | what the path names |
//! | [`Opened::open`] | [`Opened`] | checked files, tokenizer |
//! | [`Opened::prepare`] | [`Prepared`] | code for this CPU |
//! | [`Prepared::load`] | [`Loaded`] | weights in memory, an [`Engine`] |
//!
//! [`Model`] takes all of them at once, and makes many texts at the same time. The [`Engine`] below it runs
//! many sequences together, with adapters of their own; what it computes for a sequence does not depend on
//! the others.
//!
//! # What it needs
//!
//! An x86-64 CPU with AVX2, on Linux. Models run in the memory that their weights take and a little more;
//! [`Options::max_memory`] sets a limit. Nothing is downloaded but by `pull`, with the
//! feature of that name.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod adapters;
#[cfg(feature = "compiler")]
mod cache;
pub mod chat;
#[cfg(feature = "compiler")]
pub mod compile;
pub mod constrain;
mod disk;
pub mod drafter;
mod error;
pub mod hub;
mod hub_name;
pub mod interrupt;
pub mod lines;
pub mod locate;
#[cfg(feature = "compiler")]
pub mod machine;
pub mod memory;
#[cfg(feature = "compiler")]
pub mod merge;
mod model;
pub mod nano;
pub mod observe;
mod options;
pub mod plan;
pub mod prompt;
#[cfg(feature = "pull")]
pub mod pull;
#[cfg(feature = "compiler")]
pub mod regenerate;
pub mod serve;
#[cfg(feature = "compiler")]
pub mod source;
pub mod stage;
mod stage_server;
mod text;
pub mod tokens;
pub mod tools;

pub use error::{Error, Result};
#[cfg(feature = "compiler")]
pub use kernmill_compiler::{
    fuse::{FusedSet, FusedSpec},
    quant::Preset,
    synth,
};
pub use kernmill_os::foreign;
pub use kernmill_os::output::{GoneOnWith, NewFile};
pub use kernmill_plan::kv::{KvFormat, KvFormats, KvPair, KvRequest};
pub use kernmill_plan::target::{Level, Tuning};
/// The runtime: the engine, its steps and sequences, the KV cache, sampling.
pub use kernmill_runtime as runtime;
pub use kernmill_runtime::{
    AdapterUse, Engine, EngineError, Entry, LogitRow, LogitRows, Logprobs, RowSink, Sampler, SamplerParams,
    SeqId, StepStats, Steps, TokenMask,
};
pub use kernmill_serve::{Answer, Finish, Text};
#[cfg(feature = "compiler")]
pub use model::OpenedSource;
pub use model::{Loaded, Opened, Origin, Prepared, Times};
#[cfg(feature = "compiler")]
pub use options::{CompileOptions, DEFAULT_CHUNK};
pub use options::{DEFAULT_KV_DISK_BYTES, Options, Target};
pub use text::{Model, Sampling};

/// The code of `docs/user/embedding.md`, as tests.
#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!("../../docs/user/embedding.md")]
struct Embedding;
