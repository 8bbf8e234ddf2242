//! Text to token ids and back.

mod accept;
mod bytes;
mod charsmap;
mod decode;
mod ordinary;
mod parts;
mod spelt;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod vocabulary;

pub use kernmill_text::AddedToken;
pub use stream::TextStream;

use decode::DecodeStep;
use kernmill_checkpoint::end_tokens;
use kernmill_checkpoint::file_kind::{FileKind, KIND_BYTES};
use kernmill_os::files::failed_by_system;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use std::collections::HashMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    AddedVocabulary, DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, Tokenizer as Inner, TokenizerImpl,
};

/// A model's tokenizer.
///
/// It may know tokens past the model's vocabulary, such as one that fills up batches: texts that hold one are
/// refused.
#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    vocab: u32,
    /// Texts of ids that the library does not know, because another id has the same text.
    same_text: HashMap<u32, String>,
    /// Id of the token for the unknown, where the tokenizer has an id for it and no text.
    unknown: Option<u32>,
    /// The decoder, before the first token.
    steps: Vec<DecodeStep>,
    /// The added tokens, of which the special ones are not looked for in texts.
    ordinary: OnceLock<AddedVocabulary>,
    /// Bytes of the longest token.
    longest: OnceLock<usize>,
}

/// Why there is no tokenizer, or why one cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// `tokenizer.json` is not one, or has what is not accepted.
    #[error("tokenizer.json: {message}")]
    Parse {
        /// The parser's message.
        message: String,
    },
    /// The tokenizer's file cannot be read.
    #[error("{message}")]
    Read {
        /// Which file, and why.
        message: String,
        /// Whether the system failed, and nothing is wrong with the file.
        by_system: bool,
    },
    /// The tokenizer has no tokens.
    #[error("the tokenizer has no tokens")]
    Empty,
    /// A text holds a token that the model does not have.
    #[error("the text holds token `{}` (id {id}), but the model's vocabulary has {vocab} tokens", shortened(.token))]
    PastVocabulary {
        /// Text of the token.
        token: String,
        /// Id of the token.
        id: u32,
        /// The model's vocabulary size.
        vocab: u32,
    },
    /// A text is longer than what can be used of it.
    #[error("the text has {bytes} bytes, {expected}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The components that would be accepted.
        expected: String,
    },
    /// Text could not be encoded.
    #[error("encoding text: {message}")]
    Encode {
        /// The library's message.
        message: String,
    },
    /// Ids could not be decoded.
    #[error("decoding tokens: {message}")]
    Decode {
        /// The library's message.
        message: String,
    },
}

impl TokenizerError {
    /// A tokenizer that was there is not any more.
    pub fn gone() -> TokenizerError {
        TokenizerError::Read { message: "the tokenizer is gone".to_owned(), by_system: false }
    }

    /// A tokenizer's file cannot be read, for this reason.
    pub fn unreadable(error: &(dyn Error + 'static)) -> TokenizerError {
        TokenizerError::Read { message: error.to_string(), by_system: failed_by_system(error) }
    }
}

impl Tokenizer {
    /// Reads a `tokenizer.json` for a model of `vocab` tokens.
    ///
    /// Accepted are the components that published language models use, few enough of them that a text grows
    /// little; their number is limited before anything is built.
    ///
    /// # Errors
    /// When it does not parse, has no tokens, or has components that are not accepted.
    pub fn from_json(json: &[u8], vocab: u32) -> Result<Tokenizer, TokenizerError> {
        let wrong = |message| TokenizerError::Parse { message };
        if json.len() as u64 > limit::TOKENIZER_BYTES {
            let most = limit::TOKENIZER_BYTES;
            return Err(wrong(format!("it has {} bytes, expected at most {most}", json.len())));
        }
        match FileKind::of(&json[..json.len().min(KIND_BYTES)]) {
            FileKind::Json | FileKind::Text => {}
            other => return Err(wrong(format!("expected JSON: {}", other.describe()))),
        }
        let accepted = accept::accept(json).map_err(wrong)?;
        let mut inner = contained(|| parse(&accepted.json)).map_err(wrong)?;
        accept::accept_model(inner.get_model()).map_err(wrong)?;
        // Merges that are left out at random are for training: the same text has the same ids here.
        if let ModelWrapper::BPE(bpe) = inner.get_model()
            && bpe.dropout.is_some()
        {
            let mut bpe = bpe.clone();
            bpe.dropout = None;
            inner.with_model(bpe);
        }
        // For batches of equal length, of no use here: a prompt is neither filled up nor silently cut.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| wrong(e.to_string()))?;
        if inner.get_vocab_size(true) == 0 {
            return Err(TokenizerError::Empty);
        }
        let steps = decode::steps(inner.get_decoder()).map_err(wrong)?;
        Ok(Tokenizer {
            inner,
            vocab,
            same_text: accepted.same_text,
            unknown: accepted.unknown,
            steps,
            ordinary: OnceLock::new(),
            longest: OnceLock::new(),
        })
    }

    /// Ids of a text. `special` adds what the tokenizer puts around a text, such as a start token; special
    /// tokens written out in the text are recognised either way. [`Tokenizer::encode_ordinary`] takes them
    /// for text.
    ///
    /// # Errors
    /// When the text is too long, holds tokens past the vocabulary, or the library fails.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, TokenizerError> {
        check_bytes(text)?;
        let encoding = contained(|| self.inner.encode_fast(text, special).map_err(|e| e.to_string()))
            .map_err(|message| TokenizerError::Encode { message })?;
        self.check(encoding.get_ids().to_vec())
    }

    /// Encodes as [`Tokenizer::encode`] does, a text of which at most `most` tokens can be used. A text that
    /// certainly has more is refused by its length, before the work.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], and when the text has more bytes than `most` tokens can stand for.
    pub fn encode_within(&self, text: &str, special: bool, most: usize) -> Result<Vec<u32>, TokenizerError> {
        self.check_length(text.len(), most)?;
        self.encode(text, special)
    }

    /// Checks that a text of `bytes` may have as few as `most` tokens, by its length alone.
    ///
    /// # Errors
    /// When it certainly has more.
    pub fn check_length(&self, bytes: usize, most: usize) -> Result<(), TokenizerError> {
        if self.covers_bytes() && bytes / self.longest() > most {
            let bound = most.saturating_mul(self.longest());
            let expected =
                format!("expected at most {bound}: {most} tokens of {} bytes each", self.longest());
            return Err(TokenizerError::TooLong { bytes, expected });
        }
        Ok(())
    }

    fn check(&self, ids: Vec<u32>) -> Result<Vec<u32>, TokenizerError> {
        match ids.iter().find(|id| **id >= self.vocab) {
            Some(&id) => {
                let token = self.token(id).unwrap_or_default();
                Err(TokenizerError::PastVocabulary { token, id, vocab: self.vocab })
            }
            None => Ok(ids),
        }
    }

    /// Text of ids, special tokens left out. Bytes that are no character become U+FFFD each; where a
    /// vocabulary of characters spells bytes as tokens, the whole characters among them are kept, as
    /// SentencePiece does.
    ///
    /// # Errors
    /// When the library fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        let mut stream = TextStream::new();
        let mut text = String::new();
        for id in ids {
            text += &stream.push(self, *id)?;
        }
        Ok(text + &stream.finish(self)?)
    }

    /// The id of a token by its exact text.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of a token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id).or_else(|| self.same_text.get(&id).cloned())
    }

    /// The id of a special token by its exact text.
    pub fn special_token_id(&self, token: &str) -> Option<u32> {
        let is_special = self.inner.get_added_vocabulary().is_special_token(token);
        if is_special { self.token_id(token) } else { None }
    }

    /// A special token that occurs in a text: its text.
    pub fn special_token_in(&self, text: &str) -> Option<&str> {
        let added = self.inner.get_added_vocabulary();
        let special = added.get_vocab().keys().filter(|token| added.is_special_token(token));
        special.map(String::as_str).filter(|token| text.contains(token)).max_by_key(|token| token.len())
    }

    /// The start token's text, if `ids` begin with it twice: the text began with it, and the tokenizer put
    /// another one before.
    pub fn repeated_start(&self, ids: &[u32]) -> Option<String> {
        let [first, second, ..] = ids else { return None };
        let token = self.token(*first)?;
        self.special_token_id(&token)?;
        let added = self.encode("", true).ok()?;
        (first == second && added.first() == Some(first)).then_some(token)
    }

    /// Ids of well-known end tokens that this vocabulary has. A model's files may state others:
    /// `kernmill_checkpoint::end_tokens`.
    pub fn end_tokens(&self) -> Vec<u32> {
        let known = end_tokens::NAMES.iter().filter_map(|token| self.token_id(token));
        known.filter(|id| *id < self.vocab).collect()
    }

    /// The model's vocabulary size.
    pub fn vocab(&self) -> u32 {
        self.vocab
    }

    /// The token that a decoder gets for an id; `None` for one without text.
    fn shown(&self, id: u32, shows_special: bool) -> Option<String> {
        let token = self.token(id)?;
        let hidden = !shows_special && self.inner.get_added_vocabulary().is_special_token(&token);
        (!hidden).then_some(token)
    }

    /// Whether every byte of a text is in one of its tokens, as with byte-level vocabularies that are not
    /// normalised.
    fn covers_bytes(&self) -> bool {
        let byte_level = |step: &DecodeStep| matches!(step, DecodeStep::ByteLevel(_));
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        self.inner.get_normalizer().is_none()
            && self.steps.iter().any(byte_level)
            && added.values().all(|token| !token.lstrip && !token.rstrip)
            && bytes::alphabet().all(|c| self.token_id(c.encode_utf8(&mut [0; 4])).is_some())
    }

    /// Bytes of the longest token.
    fn longest(&self) -> usize {
        let longest = || self.inner.get_vocab(true).keys().map(String::len).max().unwrap_or(1).max(1);
        *self.longest.get_or_init(longest)
    }
}

/// Encoding takes some 200 bytes of memory for each of a text.
fn check_bytes(text: &str) -> Result<(), TokenizerError> {
    if text.len() <= limit::PROMPT_BYTES {
        return Ok(());
    }
    let expected = format!("expected at most {}", limit::PROMPT_BYTES);
    Err(TokenizerError::TooLong { bytes: text.len(), expected })
}

/// A tokenizer whose model is of the kind that published models have.
type BpeTokenizer =
    TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Byte pair models are read directly: where the library does not know the kind of model before, it copies
/// the whole vocabulary through other forms, which takes several times as long.
fn parse(json: &[u8]) -> Result<Inner, String> {
    match serde_json::from_slice::<BpeTokenizer>(json) {
        Ok(tokenizer) => Ok(tokenizer.into()),
        Err(_) => Inner::from_bytes(json).map_err(|error| error.to_string()),
    }
}

/// Runs the library, which panics on some files that it should refuse.
fn contained<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("the tokenizer library panicked".to_owned()))
}
