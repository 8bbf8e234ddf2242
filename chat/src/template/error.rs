//! Why a template has no prompt.

use kernmill_text::VocabularyError;

/// Why a template has no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template is not one, or too long.
    #[error("the chat template: {0}")]
    Parse(String),
    /// The template refuses the conversation.
    #[error("the chat template refuses this conversation: {0}")]
    Refused(String),
    /// The template fails, or does not come to an end.
    #[error("the chat template fails: {0}")]
    Render(String),
    /// A text cannot be encoded.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The tokenizer finds special tokens that the template did not write.
    #[error("the tokenizer finds other special tokens in the prompt than the chat template wrote")]
    Tokens,
}
