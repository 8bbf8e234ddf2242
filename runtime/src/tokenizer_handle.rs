//! A tokenizer that may still be being read: large ones take longer than loading a plan.

use crate::tokenizer::{Tokenizer, TokenizerError};
use kernmill_text::{AddedToken, Vocabulary, VocabularyError};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

type TokenizerResult = Result<Tokenizer, TokenizerError>;
type PendingTokenizer = Box<dyn FnOnce() -> TokenizerResult + Send>;

/// A shared tokenizer, there when it is asked for.
#[derive(Clone)]
pub struct TokenizerHandle(Arc<LazyLock<TokenizerResult, PendingTokenizer>>);

impl fmt::Debug for TokenizerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenizerHandle")
    }
}

impl TokenizerHandle {
    /// Begins to read a tokenizer on a separate thread.
    pub fn start(read: impl FnOnce() -> TokenizerResult + Send + 'static) -> TokenizerHandle {
        TokenizerHandle::start_on(thread::Builder::new(), read)
    }

    /// Starts reading on a thread that `builder` makes. If the system makes no thread, the tokenizer is read
    /// when it is asked for.
    fn start_on(
        builder: thread::Builder,
        read: impl FnOnce() -> TokenizerResult + Send + 'static,
    ) -> TokenizerHandle {
        let gone = || TokenizerError::Parse { message: "the reading thread panicked".to_owned() };
        let read = Arc::new(Mutex::new(Some(read)));
        let take = move |read: &Mutex<Option<_>>| read.lock().ok().and_then(|mut read| read.take());
        let later = Arc::clone(&read);
        TokenizerHandle::later(match builder.spawn(move || Some(take(&read)?())) {
            Ok(thread) => Box::new(move || thread.join().ok().flatten().unwrap_or_else(|| Err(gone()))),
            Err(_) => Box::new(move || take(&later).map_or_else(|| Err(gone()), |read| read())),
        })
    }

    /// Waits for it, if need be.
    ///
    /// # Errors
    /// When it could not be read.
    pub fn get(&self) -> Result<&Tokenizer, TokenizerError> {
        LazyLock::force(&self.0).as_ref().map_err(TokenizerError::clone)
    }

    fn later(wait: PendingTokenizer) -> TokenizerHandle {
        TokenizerHandle(Arc::new(LazyLock::new(wait)))
    }
}

/// Without a tokenizer that can be read, no text has ids, and no id a text.
impl Vocabulary for TokenizerHandle {
    fn encode_ordinary(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        Vocabulary::encode_ordinary(self.get().map_err(wrong)?, text)
    }

    fn encode_marked(&self, text: &str) -> Result<Vec<u32>, VocabularyError> {
        self.get().map_err(wrong)?.encode_marked(text)
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        self.get().map(|tokenizer| tokenizer.added_tokens()).unwrap_or_default()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.get().ok()?.bytes(id)
    }
}

fn wrong(error: TokenizerError) -> VocabularyError {
    VocabularyError(error.to_string())
}

impl From<Tokenizer> for TokenizerHandle {
    fn from(tokenizer: Tokenizer) -> TokenizerHandle {
        let handle = TokenizerHandle::later(Box::new(move || Ok(tokenizer)));
        LazyLock::force(&handle.0);
        handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::tests::byte_tokenizer_json;

    #[test]
    fn it_is_there_when_asked_for_and_keeps_its_error() {
        let handle = TokenizerHandle::start(|| Tokenizer::from_json(&byte_tokenizer_json(), 300));
        assert_eq!(handle.clone().get().unwrap().vocab(), 300);
        let broken = TokenizerHandle::start(|| Tokenizer::from_json(b"{", 300));
        assert_eq!(broken.get().unwrap_err(), broken.get().unwrap_err());
        // No address space has room for such a stack: it is read when it is asked for.
        let refused = || thread::Builder::new().stack_size(1 << 60);
        let late = TokenizerHandle::start_on(refused(), || Tokenizer::from_json(&byte_tokenizer_json(), 300));
        assert_eq!(late.get().unwrap().vocab(), 300);
        let late = TokenizerHandle::start_on(refused(), || Tokenizer::from_json(b"{", 300));
        assert_eq!(late.get().unwrap_err(), broken.get().unwrap_err());
        let there = TokenizerHandle::from(Tokenizer::from_json(&byte_tokenizer_json(), 257).unwrap());
        assert_eq!(there.get().unwrap().vocab(), 257);
    }
}
