//! What tools show of models and machines, as values with a text and a JSON form: `kernmill bench`,
//! `explain`, `inspect`, `cpu` and `fuse check` print these. Programs that only run models need nothing of
//! it.

#[cfg(feature = "compiler")]
pub mod bench;
#[cfg(feature = "compiler")]
pub mod cpu;
pub mod engine_figures;
#[cfg(feature = "compiler")]
pub mod estimate;
#[cfg(feature = "compiler")]
pub mod explain;
#[cfg(feature = "compiler")]
pub mod fuse_check;
#[cfg(feature = "compiler")]
pub mod fused_rules;
pub mod hints;
pub mod listing;
#[cfg(feature = "compiler")]
pub mod load;
pub mod logits;
pub mod run_figures;
pub mod stages;
#[cfg(feature = "compiler")]
pub mod stats;
#[cfg(feature = "compiler")]
pub mod tensors;
