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
pub mod chat;
#[cfg(feature = "compiler")]
pub mod compiler;
#[cfg(not(feature = "compiler"))]
#[path = "compiler/without.rs"]
pub mod compiler;
mod constrain;
mod error;
mod hub;
mod hub_name;
pub mod locate;
mod makes;
mod memory;
mod model;
mod nano;
pub mod observe;
mod options;
mod plan;
#[cfg(feature = "pull")]
pub mod pull;
pub mod stage;
mod stage_server;
mod target;
mod text;
mod together;
mod vectors;

pub use compiler::CompileOptions;
#[cfg(feature = "compiler")]
pub use compiler::{FusedSet, Preset};
pub use constrain::lexicon;
pub use error::{Error, ErrorKind, Result};
pub use hub::{how_to_fetch, resolve as of_hub};
pub use kernmill_constrain::Rule;
pub use kernmill_plan::target::Level;
pub use kernmill_runtime::{Engine, PlanImage, SamplerParams, TokenizerHandle};
pub use kernmill_serve::{Answer, Finish, Request, SchedulerConfig, ServingThread, Text};
pub use makes::ModelMakes;
pub use memory::{check_space, context};
pub use model::{Loaded, Opened, Origin, Prepared, Times};
pub use options::Options;
pub use plan::{PlanModel, why};
pub use target::Target;
pub use text::{About, Model, Sampling};
pub use together::load_together;

/// The code of `docs/user/embedding.md`, as tests.
#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!("../../docs/user/embedding.md")]
struct Embedding;
