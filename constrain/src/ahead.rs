//! Tokens that must come next in a text.
//!
//! The parser's own way there walks to the end of what is forced, however far that is. Here a walk ends after
//! [`FORCED_BYTES`], and its work counts as that of a mask does.

use crate::limits::FORCED_BYTES;
use llguidance::TokenParser;
use llguidance::derivre::NextByte;
use llguidance::earley::{BiasComputer, ParserRecognizer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokEnv, TokTrie, TokenId};
use std::sync::Mutex;

/// The text that must come next.
#[derive(Default)]
pub(crate) struct ForcedTokens {
    /// Tokens that must come.
    pub ids: Vec<TokenId>,
    /// Whether a special token must follow them.
    pub is_before_special: bool,
}

/// Bytes that must come next.
#[derive(Default)]
struct Walked {
    bytes: Vec<u8>,
    /// Numbers of bytes after which the text might end.
    ends: Vec<usize>,
    is_before_special: bool,
}

/// The text that must come next behind the token `last`.
pub(crate) fn forced(parser: &mut TokenParser, last: Option<TokenId>) -> ForcedTokens {
    if parser.is_accepting() {
        return ForcedTokens::default();
    }
    let mut walked = within_limits(parser, walk);
    if let Some(end) = walked.ends.iter().copied().find(|end| ends(parser, &walked.bytes[..*end])) {
        walked.bytes.truncate(end);
        walked.is_before_special = false;
    }
    let Walked { bytes, is_before_special, .. } = walked;
    if bytes.is_empty() {
        return ForcedTokens { ids: Vec::new(), is_before_special };
    }
    let env = parser.token_env.clone();
    let (mut ids, fixed) = spelled(&env, &bytes, last);
    // Later text may be spelled together with the last tokens: the model chooses.
    let open = within_limits(parser, |text| {
        let is_there = bytes.iter().all(|byte| text.try_push_byte(*byte));
        let mut above = Above { text, bytes: 0 };
        is_there.then(|| env.tok_trie().chop_tokens(&mut above, &ids[fixed..]).0)
    });
    let open = open.unwrap_or(ids.len());
    ids.truncate(ids.len().saturating_sub(open));
    ForcedTokens { ids, is_before_special: is_before_special && open == 0 }
}

/// Walks along the bytes that must come next.
fn walk(text: &mut ParserRecognizer) -> Walked {
    let mut walked = Walked::default();
    while walked.bytes.len() < FORCED_BYTES {
        let Some(byte) = forced_byte(text) else { break };
        if byte == TokTrie::SPECIAL_TOKEN_MARKER {
            walked.is_before_special = true;
            break;
        }
        if !text.try_push_byte(byte) {
            break;
        }
        walked.bytes.push(byte);
        if might_end(text) {
            walked.ends.push(walked.bytes.len());
        }
    }
    walked
}

/// The only byte that may come next.
fn forced_byte(text: &mut ParserRecognizer) -> Option<u8> {
    let state = text.lexer_state();
    let guess = text.lexer_mut().next_byte(state);
    if let NextByte::ForcedByte(byte) = guess {
        return Some(byte);
    }
    // Bytes that the lexer thinks of come first: two of them are enough.
    let likely = guess.some_bytes().to_vec();
    let others = (0..=u8::MAX).map(|byte| byte.wrapping_add(b' ')).filter(|byte| !likely.contains(byte));
    let mut found = None;
    for byte in likely.iter().copied().chain(others) {
        if text.byte_allowed(byte) && found.replace(byte).is_some() {
            return None;
        }
    }
    found
}

/// Whether the text might end here, as far as the lexer knows: not within a lexeme that needs more.
fn might_end(text: &mut ParserRecognizer) -> bool {
    let state = text.lexer_state();
    if !matches!(text.lexer_mut().next_byte(state), NextByte::ForcedByte(_)) {
        return true;
    }
    let lexemes = text.lexer().possible_lexemes(state).clone();
    text.lexer_mut().start_state(&lexemes) == state
}

/// Whether the text may end after some bytes.
fn ends(parser: &mut TokenParser, bytes: &[u8]) -> bool {
    let trie = parser.token_env.tok_trie();
    let mut ids = trie.greedy_tokenize(bytes);
    if trie.decode_raw(&ids) != bytes {
        // No tokens spell them, so nothing behind them is forced either.
        return true;
    }
    ids.push(trie.eos_token());
    parser.parser.validate_tokens(&ids) == ids.len()
}

/// Tokens that spell bytes behind the token `last`, and how many of the first ones nothing can change.
fn spelled(env: &TokEnv, bytes: &[u8], last: Option<TokenId>) -> (Vec<TokenId>, usize) {
    if let Some(last) = last {
        let mut text = env.tok_trie().decode_raw(&[last]);
        text.extend_from_slice(bytes);
        let (mut ids, fixed) = env.tokenize_bytes_marker(&text);
        if ids.first() == Some(&last) {
            ids.remove(0);
            return (ids, fixed.saturating_sub(1));
        }
    }
    env.tokenize_bytes_marker(bytes)
}

/// Does something with the parser at the end of its text. Its work counts as that of a mask.
fn within_limits<T: Default + Send>(
    parser: &mut TokenParser,
    work: impl Fn(&mut ParserRecognizer) -> T + Send + Sync,
) -> T {
    let task = MaskTask { env: parser.token_env.clone(), work, result: Mutex::new(T::default()) };
    // With bytes before them, masks are not kept: what this one allows means nothing.
    parser.parser.compute_bias(&task, &[TokTrie::SPECIAL_TOKEN_MARKER]);
    task.result.into_inner().unwrap_or_default()
}

/// Work that poses as the making of a mask.
struct MaskTask<T, F> {
    env: TokEnv,
    work: F,
    result: Mutex<T>,
}

impl<T: Send, F: Fn(&mut ParserRecognizer) -> T + Send + Sync> BiasComputer for MaskTask<T, F> {
    fn compute_bias(&self, text: &mut ParserRecognizer<'_>, _start: &[u8]) -> SimpleVob {
        text.trie_started("ahead");
        let result = (self.work)(text);
        text.trie_finished();
        if let Ok(mut kept) = self.result.lock() {
            *kept = result;
        }
        self.trie().alloc_token_set()
    }

    fn trie(&self) -> &TokTrie {
        self.env.tok_trie()
    }
}

/// A text with bytes that were walked along, onto which others can be tried.
struct Above<'a, 'b> {
    text: &'a mut ParserRecognizer<'b>,
    /// How many were tried and are still there.
    bytes: usize,
}

impl Recognizer for Above<'_, '_> {
    fn pop_bytes(&mut self, count: usize) {
        self.bytes -= count;
        self.text.pop_bytes(count);
    }

    fn collapse(&mut self) {}

    fn trie_finished(&mut self) {
        self.pop_bytes(self.bytes);
    }

    fn try_push_byte(&mut self, byte: u8) -> bool {
        let may_come = self.text.try_push_byte(byte);
        self.bytes += usize::from(may_come);
        may_come
    }
}
