//! What this crate asks of a tokenizer.

/// A model's vocabulary: text to ids and back.
///
/// The engine's tokenizer implements it outside this crate, which knows neither of them.
pub trait Vocabulary {
    /// Ids of a text in which nothing is a special token.
    ///
    /// # Errors
    /// When the text cannot be encoded.
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError>;

    /// Ids of a text in which added tokens that are written out are recognised. No token is put around it.
    ///
    /// # Errors
    /// When the text cannot be encoded.
    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError>;

    /// Texts of the added tokens, special or not, with their ids.
    fn added_tokens(&self) -> Vec<(String, u32)>;

    /// Bytes that a token stands for in a text; `None` for an id without text. The bytes of an added token
    /// are its text.
    fn bytes(&self, id: u32) -> Option<Vec<u8>>;
}

/// Why a text has no ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VocabularyError(pub String);
