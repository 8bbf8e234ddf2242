//! The map of a `Precompiled` normalizer, as SentencePiece writes it: a trie of bytes as a double array, and
//! the texts that stand for what it finds.
//!
//! The library follows the trie of a file without looking where it leads. So every way through it is followed
//! here first: none leads out of the array or of the texts, and no text makes its input much longer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Bytes that a text has at most for each byte that it stands for. No normal form of Unicode has more: of
/// U+FDFA, 3 bytes, NFKC makes 33.
const MOST_GROWTH: usize = 11;

/// A unit of the double array: where it leads, which byte leads to it, and whether a value stands there.
#[derive(Clone, Copy)]
struct TrieUnit(u32);

impl TrieUnit {
    /// The bits in which the place of a child and that of its parent differ, but for the child's byte.
    fn offset(self) -> usize {
        ((self.0 >> 10) as usize) << if self.0 & 1 << 9 == 0 { 0 } else { 8 }
    }

    /// Whether it is the child by a byte.
    fn is_by(self, byte: u8) -> bool {
        self.0 & (1 << 31 | 0xff) == u32::from(byte)
    }

    fn has_value(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// The value, in a unit that is one.
    fn value(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }
}

/// Checks the map of a component.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(component: &Value) -> Result<(), String> {
    check_map(component).map_err(|what| format!("`normalizer` has a `precompiled_charsmap` {what}"))
}

fn check_map(component: &Value) -> Result<(), String> {
    let text = component.get("precompiled_charsmap").and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD.decode(text).map_err(|error| format!("that is no base64: {error}"))?;
    let (size, rest) = bytes.split_first_chunk().ok_or("without the size of its trie")?;
    let size = u32::from_le_bytes(*size) as usize;
    if size > rest.len() || size == 0 || !size.is_multiple_of(4) {
        let most = rest.len();
        return Err(format!("whose trie has {size} bytes, expected 4, 8 and so on up to {most}"));
    }
    let (trie, texts) = rest.split_at(size);
    let texts = str::from_utf8(texts).map_err(|_| "whose texts are no UTF-8")?;
    let unit = |bytes: &[u8; 4]| TrieUnit(u32::from_le_bytes(*bytes));
    let units: Vec<TrieUnit> = trie.as_chunks().0.iter().map(unit).collect();
    let outside = || "whose trie leads out of itself".to_owned();
    let mut seen = vec![false; units.len()];
    // Places whose children come next, the ones with the fewest bytes before them first.
    let mut places = vec![units[0].offset()];
    let mut bytes_before = 0;
    while !places.is_empty() {
        let mut next = Vec::new();
        for place in places {
            if place | 0xff >= units.len() {
                return Err(outside());
            }
            if std::mem::replace(&mut seen[place], true) {
                continue;
            }
            for byte in 1..=u8::MAX {
                let at = place ^ usize::from(byte);
                if !units[at].is_by(byte) {
                    continue;
                }
                let child = at ^ units[at].offset();
                if units[at].has_value() {
                    let value = units.get(child).ok_or_else(outside)?.value();
                    check_text(texts, value, bytes_before + 1)?;
                }
                next.push(child);
            }
        }
        bytes_before += 1;
        places = next;
    }
    Ok(())
}

/// Checks the text that begins at a value, and stands for so many bytes or more.
fn check_text(texts: &str, value: usize, bytes: usize) -> Result<(), String> {
    let text = texts.get(value..).ok_or("whose trie leads out of its texts")?;
    let length = text.bytes().take(MOST_GROWTH * bytes + 1).take_while(|byte| *byte != 0).count();
    match length > MOST_GROWTH * bytes {
        true => Err(format!("that makes more than {MOST_GROWTH} bytes of one")),
        false => Ok(()),
    }
}
