//! Tools that compile models, and that show the results.

pub mod bench;
pub mod cpu;
pub mod estimate;
mod excerpt;
pub mod explain;
pub mod fuse_check;
mod fused_files;
pub mod fused_rules;
mod imported;
mod kept;
pub mod machine;
pub mod merge;
pub(crate) mod stages;
pub mod targets;
pub mod tensors;

pub use excerpt::excerpt;
pub use fused_files::{fused_set, read_fused};
pub use imported::imported;
pub use kept::keep_plans;

// Types of the compiler that the program needs.
pub use kernmill_checkpoint::CheckpointError;
pub use kernmill_compiler::fuse::{FusedSet, schema};
pub use kernmill_compiler::graph::Graph;
pub use kernmill_compiler::import::ImportError;
pub use kernmill_compiler::pack::PackWeightsError;
pub use kernmill_compiler::pack::region::BuildError;
pub use kernmill_compiler::pipeline::{CompileError, Compiled, compile};
pub use kernmill_compiler::plan_file::{PlanParts, PlanPartsError, PlanWriter};
pub use kernmill_compiler::quant::Preset;
pub use kernmill_compiler::quant::choose::FormatChoices;
pub use kernmill_compiler::spec::SpecError;
pub use kernmill_compiler::synth::{self, AdapterShape, SynthError};
pub use kernmill_plan::adapter::MAX_RANK;
pub use kernmill_runtime::profile::Detail;
