//! The interface of a tokenizer that this crate needs.

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

    /// The added tokens, special or not.
    fn added_tokens(&self) -> Vec<AddedToken>;

    /// Bytes that a token stands for in a text; `None` for an id without text. The bytes of an added token
    /// are its text.
    fn bytes(&self, id: u32) -> Option<Vec<u8>>;
}

/// A vocabulary without tokens.
impl Vocabulary for () {
    fn encode_ordinary(&self, _text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(Vec::new())
    }

    fn encode_marked(&self, _text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(Vec::new())
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        Vec::new()
    }

    fn bytes(&self, _id: u32) -> Option<Vec<u8>> {
        None
    }
}

/// A token that a tokenizer looks for in a text before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// Text of the token.
    pub text: String,
    /// Id of the token.
    pub id: u32,
    /// Whether the token is left out of texts that people read.
    pub is_special: bool,
}

/// Why a text has no ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VocabularyError(pub String);
