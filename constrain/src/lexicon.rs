//! A vocabulary made ready for constraints.

use crate::error::{Error, one_line};
use crate::limits;
use kernmill_text::Vocabulary;
use llguidance::ParserFactory;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use std::fmt;
use std::sync::Arc;

/// A vocabulary that threads share.
pub(crate) type SharedVocabulary = Arc<dyn Vocabulary + Send + Sync>;

/// Bytes of the longest token that is used. Longer ones are never allowed.
const TOKEN_BYTES: usize = 1000;

/// Most nodes of the tree of all tokens' bytes.
const NODES: usize = 1 << 22;

/// Most ids of a vocabulary.
const IDS: usize = 1 << 24;

/// An id that no token has. The parser below has no end token: [`crate::Constraint`] adds the model's.
const NO_TOKEN: TokenId = u32::MAX;

/// A model's vocabulary as constraints need it: the tree of its tokens' bytes. One is made for a model, which
/// takes a moment, and serves all constraints.
pub struct Lexicon {
    pub(crate) factory: Arc<ParserFactory>,
    pub(crate) width: usize,
    /// Tokens that end a text.
    pub(crate) ends: Vec<u32>,
    /// Whether the tokenizer spells a text within another one exactly.
    pub(crate) is_exact: bool,
}

impl fmt::Debug for Lexicon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lexicon")
            .field("width", &self.width)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl Lexicon {
    /// Reads a vocabulary. `width` is the number of the model's logits: ids without text up to there, and
    /// all ids from there on, are never allowed. `ends` are the tokens that end a text; they are allowed
    /// where a text may end.
    ///
    /// # Errors
    /// When there are too many tokens.
    pub fn new(vocabulary: SharedVocabulary, width: usize, ends: &[u32]) -> Result<Lexicon, Error> {
        if width == 0 || width >= IDS {
            return Err(Error::Vocabulary(format!(
                "the model has {width} logits, expected 1 to {}",
                IDS - 1
            )));
        }
        let words = words(&*vocabulary, width);
        let nodes = nodes(&words);
        if nodes >= NODES {
            return Err(Error::Vocabulary(format!("its tree has {nodes} nodes, expected less than {NODES}")));
        }
        let trie = TokTrie::from(&TokRxInfo::new(width as u32, NO_TOKEN), &words);
        let is_exact = is_exact(&*vocabulary, &trie);
        let env: TokEnv = Arc::new(Env { trie, vocabulary });
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
            .map_err(|error| Error::Vocabulary(one_line(&error.to_string())))?;
        factory.quiet();
        *factory.limits_mut() = limits::of_work();
        let mut ends: Vec<u32> = ends.iter().copied().filter(|id| (*id as usize) < width).collect();
        ends.sort_unstable();
        ends.dedup();
        Ok(Lexicon { factory: Arc::new(factory), width, ends, is_exact })
    }

    /// Number of the model's logits.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Bytes of every id. None means: never allowed. Those of special tokens begin with a byte that no text has,
/// so that no text allows them.
fn words(vocabulary: &dyn Vocabulary, width: usize) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = (0..width as u32)
        .map(|id| vocabulary.bytes(id).unwrap_or_default())
        .map(|bytes| {
            let is_used = bytes.len() <= TOKEN_BYTES && bytes.first() != Some(&TokTrie::SPECIAL_TOKEN_MARKER);
            if is_used { bytes } else { Vec::new() }
        })
        .collect();
    for token in vocabulary.added_tokens().into_iter().filter(|token| token.is_special) {
        if let Some(word) = words.get_mut(token.id as usize) {
            word.clear();
            if token.text.len() < TOKEN_BYTES {
                word.push(TokTrie::SPECIAL_TOKEN_MARKER);
                word.extend_from_slice(token.text.as_bytes());
            }
        }
    }
    words
}

/// Nodes of the tree that these words make.
fn nodes(words: &[Vec<u8>]) -> usize {
    let mut sorted: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let shared = |pair: &[&[u8]]| pair[0].iter().zip(pair[1]).take_while(|(a, b)| a == b).count();
    let first = sorted.first().map_or(0, |word| word.len());
    1 + first + sorted.windows(2).map(|pair| pair[1].len() - shared(pair)).sum::<usize>()
}

/// Whether the tokenizer spells a text within another one exactly, without a space before it for example.
/// Only then may tokens be forced.
fn is_exact(vocabulary: &dyn Vocabulary, trie: &TokTrie) -> bool {
    ["{\"name\": \"", "assistant", " to=functions.f", "a", "[1, 2]\n  }", "true"]
        .iter()
        .all(|text| exact_ids(vocabulary, trie, text).is_some())
}

/// Ids of a text, if their bytes are its bytes.
fn exact_ids(vocabulary: &dyn Vocabulary, trie: &TokTrie, text: &str) -> Option<Vec<u32>> {
    let ids = vocabulary.encode_ordinary(text).ok()?;
    let is_known = ids.iter().all(|id| (*id as usize) < trie.vocab_size());
    (is_known && trie.decode_raw(&ids) == text.as_bytes()).then_some(ids)
}

/// The vocabulary as the parser asks for it.
struct Env {
    trie: TokTrie,
    vocabulary: SharedVocabulary,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            exact_ids(&*self.vocabulary, &self.trie, text)
                .unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }

    /// Keeps the parser from walking along whatever must come next, which has no limit: `ahead` does that.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}
