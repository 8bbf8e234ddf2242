//! The vocabulary of GPT-OSS, from a crate that carries it.

use kernmill_constrain::{AddedToken, Vocabulary, VocabularyError};
use tiktoken_rs::CoreBPE;

pub struct O200k {
    inner: CoreBPE,
    added: Vec<AddedToken>,
}

impl O200k {
    pub fn new() -> O200k {
        let inner = tiktoken_rs::o200k_harmony().unwrap();
        let id = |text: &str| match inner.encode_with_special_tokens(text)[..] {
            [id] => id,
            ref ids => panic!("`{text}` has {} ids", ids.len()),
        };
        let token = |text: &str| AddedToken { text: text.to_owned(), id: id(text), is_special: true };
        let mut added: Vec<AddedToken> = inner.special_tokens().into_iter().map(token).collect();
        added.sort_by_key(|token| token.id);
        O200k { inner, added }
    }
}

impl Vocabulary for O200k {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(self.inner.encode_ordinary(text))
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(self.inner.encode_with_special_tokens(text))
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        self.added.clone()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.inner.decode_bytes(&[id]).ok()
    }
}
