//! The engine's tokenizer, as conversations need one.

use kernmill_chat::{AddedToken, Vocabulary, VocabularyError};
use kernmill_runtime::tokenizer::{Tokenizer, TokenizerError};

/// A tokenizer as [`kernmill_chat`] needs it.
///
/// ```
/// use kernmill::chat::{ChatVocabulary, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let json = include_bytes!("../../../model-specs/nano/tokenizer.json");
/// let tokenizer = kernmill::runtime::tokenizer::Tokenizer::from_json(json, 3072)?;
/// let vocabulary = ChatVocabulary(&tokenizer);
/// let ids = vocabulary.encode_ordinary("A text")?;
/// let bytes: Vec<u8> = ids.into_iter().filter_map(|id| vocabulary.bytes(id)).flatten().collect();
/// assert_eq!(bytes, b"A text");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ChatVocabulary<'t>(pub &'t Tokenizer);

impl Vocabulary for ChatVocabulary<'_> {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.0.encode_ordinary(text).map_err(wrong)
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.0.encode(text, false).map_err(wrong)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        let tokens = self.0.added_tokens().into_iter();
        tokens
            .map(|token| AddedToken { text: token.text, id: token.id, is_special: token.is_special })
            .collect()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.token_bytes(id)
    }
}

fn wrong(error: TokenizerError) -> VocabularyError {
    VocabularyError(error.to_string())
}
