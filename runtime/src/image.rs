//! What a plan gives the runtime, wherever it comes from: a plan file or a compiler in the same process.

use crate::tokenizer_handle::TokenizerHandle;
use kernmill_plan::program::Program;
use kernmill_plan::region::WeightRegion;
use std::sync::Arc;

/// A plan in memory. Several engines may share one through [`Arc`]s of its weights.
#[derive(Clone, Debug)]
pub struct PlanImage {
    /// Steps, memory plan and code for one target.
    pub program: Program,
    /// blake3 hash of [`Program::code`]'s bytes when the plan records one; the copy that is executed must match it.
    pub code_hash: Option<[u8; 32]>,
    /// Packed weights that the program's operands refer to.
    pub weights: Arc<WeightRegion>,
    /// Without a tokenizer a model still takes token ids.
    pub tokenizer: Option<TokenizerHandle>,
    /// Chat template (Jinja), for the fronts that apply it.
    pub chat_template: Option<String>,
}
