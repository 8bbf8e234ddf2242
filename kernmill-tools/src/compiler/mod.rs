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
mod synthesise;
pub mod targets;
pub mod tensors;

pub use excerpt::excerpt;
pub use fused_files::{fused_set, read_fused};
pub use imported::imported;
pub use kept::{compile_as_usual, keep_plans};
pub use synthesise::{Synthesised, synthesise};

// Types of the compiler that the program needs.
pub use kernmill_checkpoint::CheckpointError;
pub use kernmill_compiler::front::import::ImportError;
pub use kernmill_compiler::front::spec::SpecError;
pub use kernmill_compiler::ir::Graph;
pub use kernmill_compiler::output::plan_file::{PlanParts, PlanPartsError, PlanWriter};
pub use kernmill_compiler::output::region::BuildError;
pub use kernmill_compiler::passes::fuse::{FusedSet, schema};
pub use kernmill_compiler::passes::quant::Preset;
pub use kernmill_compiler::passes::quant::choose::FormatChoices;
pub use kernmill_compiler::pipeline::{CompileError, Compiled, compile};
pub use kernmill_compiler::synth::GgufTypes;
pub use kernmill_plan::adapter::MAX_RANK;
pub use kernmill_quantize::QuantizeArgs;
pub use kernmill_runtime::profile::Detail;
