//! Models that are compiled in this process: specs, checkpoints, and writing plans.

mod cache;
mod compile;
mod error;
mod identity;
mod memory;
mod nano;
mod opened;
mod options;
mod regenerate;
mod source;

pub use compile::{compile_plan, write_plan};
pub use kernmill_compiler::fuse::FusedSet;
pub(crate) use kernmill_compiler::import::instead_of_config;
pub(crate) use kernmill_compiler::pipeline::Compiled;
pub use kernmill_compiler::quant::Preset;
pub use opened::OpenedSource;
pub(crate) use opened::{CompiledModel, Found, Made};
pub use options::CompileOptions;
pub(crate) use regenerate::generated_image;
pub use regenerate::{PlanOrigin, origin, source};
pub use source::{SourceModel, SpecSource, choices};
