//! Tools of the command line beside the library: `kernmill bench`, `explain`, `inspect`, `cpu` and `fuse
//! check` print what is here, as values with a text and a JSON form, and `kernmill chat` talks by it.
//! Programs that run models need nothing of it.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod chat;
#[cfg(feature = "compiler")]
mod compiler;
#[cfg(not(feature = "compiler"))]
#[path = "without.rs"]
mod compiler;
mod drafter;
mod given;
mod hints;
pub mod interrupt;
pub mod listing;
#[cfg(feature = "server")]
pub mod load;
pub mod logits;
pub mod prompt;
mod rule;
pub mod run_figures;
#[cfg(feature = "server")]
pub mod serving;
mod stage;
pub mod stages;
pub mod stats;
pub mod tokens;
pub mod values;
pub mod vectors;

#[cfg(feature = "compiler")]
pub use compiler::*;
pub use drafter::drafter;
pub use given::{OF_THE_FIRST_STAGE, in_plan};
pub use hints::{corrected, instead_of};
pub use rule::RuleSource;

// Types of the crates below the library that the program needs.
pub use kernmill_checkpoint::SPEC_FILE;
pub use kernmill_checkpoint::file_kind::FileKind;
pub use kernmill_eval as eval;
pub use kernmill_os::affinity::CpuSet;
pub use kernmill_os::files::open_log;
pub use kernmill_os::output::{GoneOnWith, NewFile};
pub use kernmill_os::text::{message, size, visible};
pub use kernmill_os::{signals, stack, terminal};
pub use kernmill_plan::kv::KvRequest;
pub use kernmill_plan::target::{Level, Tuning};
pub use kernmill_runtime::pool::{MAX_THREADS, Numa, default_threads};
pub use kernmill_runtime::tokenizer::TokenizerError;
pub use kernmill_runtime::{
    Drafter, EngineError, Plan, PlanError, SamplerParams, Tokenizer, TokenizerHandle,
};
pub use kernmill_serve::{self as serve, EngineFigures};
#[cfg(feature = "server")]
pub use kernmill_server as server;
