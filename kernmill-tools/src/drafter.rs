//! Drafters, which guess how a text goes on, from options of a program.

use kernmill::{Result, model_drafter};
use kernmill_runtime::TokenizerHandle;
use kernmill_runtime::draft::{Drafter, SuffixDrafter};
use std::path::Path;

/// The drafter of a text: none without `drafts`; the small model at `model` if there is one; else one that
/// looks for the text's end earlier in the text. `tokenizer` is that of the model whose text it is.
///
/// # Errors
/// As those of [`model_drafter`].
pub fn drafter(
    drafts: bool,
    model: Option<&Path>,
    tokenizer: Option<&TokenizerHandle>,
) -> Result<Option<Box<dyn Drafter>>> {
    Ok(match model.filter(|_| drafts) {
        Some(path) => Some(Box::new(model_drafter(path, tokenizer)?)),
        None => drafts.then(SuffixDrafter::boxed),
    })
}
