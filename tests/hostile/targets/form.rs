//! Forms of texts that requests bring along: schemas, regular expressions and grammars.

use super::chat::Bytes;
use kernmill_constrain::{Constraint, Lexicon, Rule};
use std::sync::{Arc, LazyLock};

/// Ids of the vocabulary: bytes and special tokens.
const WIDTH: usize = 269;

static LEXICON: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::new(Arc::new(Bytes), WIDTH, &[263]).expect("a small vocabulary"));

/// A form, whose kind is the first byte: it is refused in one line, or a text is held to it, whatever sizes
/// and bounds it has.
pub fn form(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let rule = match kind {
        b'r' => Rule::Regex(text.to_owned()),
        b'l' => Rule::Lark(text.to_owned()),
        _ => match serde_json::from_str(text) {
            Ok(schema) => Rule::JsonSchema(schema),
            Err(_) => return,
        },
    };
    let mut constraint = match Constraint::new(&LEXICON, &rule) {
        Ok(constraint) => constraint,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    for _ in 0..40 {
        if constraint.is_done() {
            break;
        }
        let forced = constraint.forced();
        assert!(forced.iter().all(|id| (*id as usize) < WIDTH));
        let Ok(mask) = constraint.mask() else { break };
        let next = forced.first().copied().or_else(|| mask.ids().next());
        let Some(next) = next else { break };
        assert!(mask.allows(next), "a forced token is allowed");
        if constraint.accept(next).is_err() {
            break;
        }
    }
}
