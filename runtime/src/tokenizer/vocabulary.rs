//! A tokenizer as conversations and constraints need it.

use super::{Tokenizer, TokenizerError};
use kernmill_text::{AddedToken, Vocabulary, VocabularyError};

/// ```
/// use kernmill_text::Vocabulary;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let json = include_bytes!("../../../model-specs/nano/tokenizer.json");
/// let tokenizer = kernmill_runtime::tokenizer::Tokenizer::from_json(json, 3072)?;
/// let ids = Vocabulary::encode_ordinary(&tokenizer, "A text")?;
/// let bytes: Vec<u8> = ids.into_iter().filter_map(|id| tokenizer.bytes(id)).flatten().collect();
/// assert_eq!(bytes, b"A text");
/// # Ok(())
/// # }
/// ```
impl Vocabulary for Tokenizer {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Tokenizer::encode_ordinary(self, text).map_err(wrong)
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.encode(text, false).map_err(wrong)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        Tokenizer::added_tokens(self)
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.token_bytes(id)
    }
}

fn wrong(error: TokenizerError) -> VocabularyError {
    VocabularyError(error.to_string())
}
