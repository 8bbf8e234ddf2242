//! Text to token ids and back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer as Inner,
    TokenizerImpl,
};

/// A model's tokenizer, checked against its vocabulary.
#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    vocab: u32,
}

/// Why there is no tokenizer, or it cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// `tokenizer.json` is not one.
    #[error("tokenizer.json: {message}")]
    Parse {
        /// What the parser says.
        message: String,
    },
    /// It knows tokens that the model does not.
    #[error(
        "the tokenizer does not fit the model: its token `{token}` has id {id}, the vocabulary has {vocab} tokens"
    )]
    TooLarge {
        /// Token with the largest id.
        token: String,
        /// That id.
        id: u32,
        /// The model's vocabulary size.
        vocab: u32,
    },
    /// It has no tokens.
    #[error("the tokenizer has no tokens")]
    Empty,
    /// Text could not be encoded.
    #[error("encoding text: {message}")]
    Encode {
        /// What the library says.
        message: String,
    },
    /// Ids could not be decoded.
    #[error("decoding tokens: {message}")]
    Decode {
        /// What the library says.
        message: String,
    },
}

/// Tokens by which published models end a turn or a text.
const END_TOKENS: [&str; 8] = [
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "</s>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<eos>",
];

impl Tokenizer {
    /// Reads a `tokenizer.json` for a model of `vocab` tokens.
    ///
    /// # Errors
    /// When it does not parse or has ids past the vocabulary.
    pub fn from_json(json: &[u8], vocab: u32) -> Result<Tokenizer, TokenizerError> {
        let tokenizer = Tokenizer::from_checked_json(json, vocab)?;
        let tokens = tokenizer.inner.get_vocab(true);
        match tokens.into_iter().max_by_key(|(_, id)| *id) {
            None => Err(TokenizerError::Empty),
            Some((token, id)) if id >= vocab => Err(TokenizerError::TooLarge { token, id, vocab }),
            Some(_) => Ok(tokenizer),
        }
    }

    /// As [`Tokenizer::from_json`], without looking at every id, which takes a while for large vocabularies: for one that has been looked
    /// at, such as a plan's. Should it have ids past the vocabulary after all, texts that make them are refused.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn from_checked_json(json: &[u8], vocab: u32) -> Result<Tokenizer, TokenizerError> {
        let mut inner = contained(|| parse(json)).map_err(|message| TokenizerError::Parse { message })?;
        // For batches of equal length, of no use here: a prompt is neither filled up nor silently cut.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| TokenizerError::Parse { message: e.to_string() })?;
        Ok(Tokenizer { inner, vocab })
    }

    /// Ids of a text. `special` adds what the tokenizer puts around a text, such as a start token; special tokens written
    /// out in the text are recognised either way.
    ///
    /// # Errors
    /// When the library fails.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, TokenizerError> {
        let encoding = contained(|| self.inner.encode(text, special).map_err(|e| e.to_string()))
            .map_err(|message| TokenizerError::Encode { message })?;
        let ids = encoding.get_ids().to_vec();
        // What is put around a text is not bound to the vocabulary that has been checked.
        match ids.iter().find(|id| **id >= self.vocab) {
            Some(id) => {
                let message = format!("it makes token {id}, the model has {} tokens", self.vocab);
                Err(TokenizerError::Encode { message })
            }
            None => Ok(ids),
        }
    }

    /// Text of ids, special tokens left out.
    ///
    /// # Errors
    /// When the library fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        contained(|| self.inner.decode(ids, true).map_err(|e| e.to_string()))
            .map_err(|message| TokenizerError::Decode { message })
    }

    /// The id of a token by its exact text.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of a token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Ids of well-known end tokens that this vocabulary has.
    pub fn end_tokens(&self) -> Vec<u32> {
        END_TOKENS.iter().filter_map(|token| self.token_id(token)).collect()
    }

    /// The model's vocabulary size.
    pub fn vocab(&self) -> u32 {
        self.vocab
    }
}

/// A tokenizer whose model is of the kind that published models have.
type BpeTokenizer =
    TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Byte pair models are read directly: where the library does not know the kind of model before, it copies the whole vocabulary through
/// other forms, which takes several times as long.
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

/// Turns a stream of tokens into pieces of text that are whole characters.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    /// Tokens that still matter: context, then those not yet shown.
    ids: Vec<u32>,
    /// How many of `ids` are context: shown already, kept because spaces depend on what is before.
    shown: usize,
}

/// A character has at most 4 bytes: after so many tokens without a whole one, the bytes are not text.
const MAX_PENDING: usize = 4;
/// What decoding puts for bytes that are no character.
const REPLACEMENT: char = '\u{fffd}';

impl TextStream {
    /// An empty stream.
    pub fn new() -> TextStream {
        TextStream::default()
    }

    /// The text that `id` completes; empty while a character is unfinished.
    ///
    /// # Errors
    /// When the library fails.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String, TokenizerError> {
        self.ids.push(id);
        self.take(tokenizer, self.ids.len() - self.shown >= MAX_PENDING)
    }

    /// What is left at the end, unfinished characters replaced.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> Result<String, TokenizerError> {
        self.take(tokenizer, true)
    }

    fn take(&mut self, tokenizer: &Tokenizer, even_unfinished: bool) -> Result<String, TokenizerError> {
        let before = tokenizer.decode(&self.ids[..self.shown])?;
        let all = tokenizer.decode(&self.ids)?;
        if !even_unfinished && all.ends_with(REPLACEMENT) {
            return Ok(String::new());
        }
        let new = all.get(before.len()..).unwrap_or_default().to_owned();
        if !new.is_empty() {
            self.ids.drain(..self.shown);
            self.shown = self.ids.len();
        }
        Ok(new)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A byte-level tokenizer without merges: id b is byte b, 256 is an end token.
    pub(crate) fn byte_tokenizer_json() -> Vec<u8> {
        let mut vocab = serde_json::Map::new();
        let (mut shifted, mut id) = (256u32, 0);
        for byte in 0..=255u8 {
            // The byte-level alphabet: printable bytes are themselves, the others follow from U+0100.
            let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
            let c = if printable {
                char::from(byte)
            } else {
                shifted += 1;
                char::from_u32(shifted - 1).unwrap()
            };
            vocab.insert(c.to_string(), id.into());
            id += 1;
        }
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
            "added_tokens": [{"id": 256, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
                              "normalized": false, "special": true}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
                      "merges": []}
        });
        serde_json::to_vec(&json).unwrap()
    }

    #[test]
    fn text_round_trips_and_end_tokens_are_found() {
        let tokenizer = Tokenizer::from_json(&byte_tokenizer_json(), 257).unwrap();
        let ids = tokenizer.encode("Grüße, 世界</s>", true).unwrap();
        assert_eq!(ids.last(), Some(&256));
        assert_eq!(tokenizer.decode(&ids).unwrap(), "Grüße, 世界");
        assert_eq!(tokenizer.end_tokens(), [256]);
    }

    #[test]
    fn misfits_say_what_does_not_fit() {
        let error = Tokenizer::from_json(&byte_tokenizer_json(), 200).unwrap_err();
        assert_eq!(error, TokenizerError::TooLarge { token: "</s>".to_owned(), id: 256, vocab: 200 });
        assert!(matches!(Tokenizer::from_json(b"{}", 200), Err(TokenizerError::Parse { .. })));
    }

    #[test]
    fn streams_give_whole_characters() {
        let tokenizer = Tokenizer::from_json(&byte_tokenizer_json(), 257).unwrap();
        let text = "aü世😀 z";
        let mut stream = TextStream::new();
        let pieces: Vec<String> = text
            .bytes()
            .map(|b| stream.push(&tokenizer, b.into()).unwrap())
            .filter(|p| !p.is_empty())
            .collect();
        assert_eq!(pieces, ["a", "ü", "世", "😀", " ", "z"]);
        assert_eq!(stream.finish(&tokenizer).unwrap(), "");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_block_the_stream() {
        let tokenizer = Tokenizer::from_json(&byte_tokenizer_json(), 257).unwrap();
        let mut stream = TextStream::new();
        let mut all = String::new();
        for b in [0xffu32, 0xff, 0xff, 0xff, 0x41, 0xe4] {
            all += &stream.push(&tokenizer, b).unwrap();
        }
        assert!(all.ends_with('A'), "{all:?}");
        assert_eq!(stream.finish(&tokenizer).unwrap(), "\u{fffd}");
    }
}
