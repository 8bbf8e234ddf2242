//! A plan as the runtime takes it, wherever it comes from: a plan file or a compiler in the same process.

use crate::tokenizer_handle::TokenizerHandle;
use kernmill_os::region::WeightRegion;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::program::Program;
use std::sync::Arc;

/// A plan in memory. Several engines may share one through [`Arc`]s of its weights.
///
/// An engine calls the machine code in it, and nothing can check machine code. So an image comes from a plan
/// file whose owner and permissions allow its code to run ([`crate::Plan::image`]), or from somebody who
/// vouches for the code ([`PlanImage::generated`]).
#[derive(Clone, Debug)]
pub struct PlanImage {
    program: Program,
    code_hash: Option<[u8; 32]>,
    weights: Arc<WeightRegion>,
    tokenizer: Option<TokenizerHandle>,
    chat_templates: Arc<ChatTemplates>,
    identity: Option<[u8; 32]>,
}

impl PlanImage {
    /// An image of a program that was generated in this process, without tokenizer and chat templates.
    ///
    /// # Safety
    /// When an engine of this image runs a step, the program's code is what kernmill's generator made for
    /// exactly this program: functions of the kernel ABI ([`kernmill_plan::abi`]) that read and write only
    /// what the operands, the batch and the scratch give them. For code that came out of
    /// `kernmill_compiler::pipeline::compile`, nothing else needs to be shown.
    ///
    /// Safe code cannot bring code of its own:
    ///
    /// ```compile_fail,E0133
    /// use kernmill_os::region::WeightRegion;
    /// use kernmill_plan::program::Program;
    /// use kernmill_runtime::PlanImage;
    /// fn image(program: Program, weights: std::sync::Arc<WeightRegion>) -> PlanImage {
    ///     PlanImage::generated(program, weights)
    /// }
    /// ```
    ///
    /// ```compile_fail,E0616
    /// # use kernmill_runtime::PlanImage;
    /// fn change(image: &mut PlanImage) {
    ///     image.program.scratch_bytes = 0;
    /// }
    /// ```
    ///
    /// ```compile_fail,E0616
    /// # use kernmill_runtime::PlanImage;
    /// fn unhash(image: &mut PlanImage) {
    ///     image.code_hash = None;
    /// }
    /// ```
    ///
    /// ```compile_fail,E0451
    /// # use kernmill_plan::program::Program;
    /// # use kernmill_runtime::PlanImage;
    /// fn exchange(program: Program, image: PlanImage) -> PlanImage {
    ///     PlanImage { program, ..image }
    /// }
    /// ```
    ///
    /// ```compile_fail,E0596
    /// # use kernmill_runtime::PlanImage;
    /// fn overwrite(image: &mut PlanImage) {
    ///     image.program().code.bytes.fill(0x90);
    /// }
    /// ```
    ///
    /// An image as it is can be looked at and passed on:
    ///
    /// ```
    /// # use kernmill_plan::program::Program;
    /// # use kernmill_runtime::PlanImage;
    /// fn scratch(image: &PlanImage) -> u64 {
    ///     let Program { scratch_bytes, .. } = image.program();
    ///     image.code_hash().map_or(0, |_| *scratch_bytes)
    /// }
    /// ```
    pub unsafe fn generated(program: Program, weights: Arc<WeightRegion>) -> PlanImage {
        PlanImage::sealed(program, weights)
    }

    /// Makes an image inside the runtime, whose callers have the reason to trust the program.
    pub(crate) fn sealed(program: Program, weights: Arc<WeightRegion>) -> PlanImage {
        let chat_templates = Arc::default();
        PlanImage { program, code_hash: None, weights, tokenizer: None, chat_templates, identity: None }
    }

    /// This image with the blake3 hash of its code's bytes: an engine refuses another copy.
    #[must_use]
    pub fn with_code_hash(self, hash: [u8; 32]) -> PlanImage {
        PlanImage { code_hash: Some(hash), ..self }
    }

    /// This image with a tokenizer. Without one a model still takes token ids.
    #[must_use]
    pub fn with_tokenizer(self, tokenizer: Option<TokenizerHandle>) -> PlanImage {
        PlanImage { tokenizer, ..self }
    }

    /// This image with chat templates (Jinja), for the fronts that apply them.
    #[must_use]
    pub fn with_chat_templates(self, chat_templates: ChatTemplates) -> PlanImage {
        PlanImage { chat_templates: Arc::new(chat_templates), ..self }
    }

    /// This image with the identity of its model ([`kernmill_plan::file::Identity`]).
    #[must_use]
    pub fn with_identity(self, identity: [u8; 32]) -> PlanImage {
        PlanImage { identity: Some(identity), ..self }
    }

    /// The model's identity, by its spec, weights, preset and version; `None` where nobody asked for it.
    /// Images with the same identity compute the same bits.
    pub fn identity(&self) -> Option<[u8; 32]> {
        self.identity
    }

    /// Steps, memory plan and code for one target.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// blake3 hash of the code's bytes, when the plan records one.
    pub fn code_hash(&self) -> Option<[u8; 32]> {
        self.code_hash
    }

    /// Packed weights that the program's operands refer to.
    pub fn weights(&self) -> &Arc<WeightRegion> {
        &self.weights
    }

    /// The tokenizer, if there is one.
    pub fn tokenizer(&self) -> Option<&TokenizerHandle> {
        self.tokenizer.as_ref()
    }

    /// The chat templates, and the tokens that they write by name.
    pub fn chat_templates(&self) -> &Arc<ChatTemplates> {
        &self.chat_templates
    }

    /// For tests of what is refused.
    #[cfg(test)]
    pub(crate) fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}
