//! Bytes of a text that arrive piece by piece, and the alphabet that stands for bytes in byte-level
//! vocabularies.

/// The character that stands for bytes that are no character.
pub(super) const REPLACEMENT: char = '\u{fffd}';

/// Characters of the byte-level alphabet end below this.
const ALPHABET_END: usize = 0x144;

/// By character: its byte, or 256 where a character stands for none.
const BYTES: [u16; ALPHABET_END] = {
    let mut bytes = [256; ALPHABET_END];
    let (mut byte, mut shifted) = (0, 0x100);
    while byte < 256 {
        let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let character = if printable { byte } else { shifted };
        bytes[character] = byte as u16;
        if !printable {
            shifted += 1;
        }
        byte += 1;
    }
    bytes
};

/// The byte that a character of the byte-level alphabet stands for.
fn byte_of(c: char) -> Option<u8> {
    BYTES.get(c as usize).and_then(|byte| u8::try_from(*byte).ok())
}

/// The characters of the byte-level alphabet.
pub(super) fn alphabet() -> impl Iterator<Item = char> {
    let end = char::from_u32(ALPHABET_END as u32).unwrap_or(REPLACEMENT);
    ('\0'..end).filter(|c| byte_of(*c).is_some())
}

/// Appends the bytes of a byte-level token. A token with a character outside of the alphabet stands for
/// itself, as added tokens do.
pub(super) fn push_byte_level(token: &str, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    for c in token.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => {
                bytes.truncate(start);
                bytes.extend_from_slice(token.as_bytes());
                return;
            }
        }
    }
}

/// The byte of a token such as `<0x0A>`, by which vocabularies of characters spell what they have no
/// character for.
pub(super) fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// How many U+FFFD stand for bytes that are no character.
#[derive(Clone, Copy, Debug)]
pub(super) enum Replace {
    /// One for each run of bytes that begins as a character does and is not one, as `String::from_utf8_lossy`
    /// counts.
    Run,
    /// One for each byte, as SentencePiece counts.
    Byte,
}

/// Text of bytes that arrive in pieces. It holds back at most 3 bytes: a character that has begun.
#[derive(Clone, Debug)]
pub(super) struct Utf8 {
    unfinished: Vec<u8>,
    replace: Replace,
    /// Bytes at the start of `unfinished` that are a prompt's: by themselves they are not shown.
    foreign: usize,
}

impl Utf8 {
    pub(super) fn new(replace: Replace) -> Utf8 {
        Utf8 { unfinished: Vec::new(), replace, foreign: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// The bytes to which the next piece is appended; [`Utf8::take`] follows.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.unfinished
    }

    /// Tells that what came so far is a prompt's: a character that the prompt began is shown only if it
    /// becomes whole.
    pub(super) fn begin(&mut self) {
        self.foreign = self.unfinished.len();
    }

    /// The part that is whole, or certain to be no character.
    pub(super) fn take(&mut self) -> String {
        let mut text = String::new();
        let mut at = 0;
        loop {
            let rest = &self.unfinished[at..];
            let error = match std::str::from_utf8(rest) {
                Ok(whole) => {
                    text.push_str(whole);
                    at = self.unfinished.len();
                    break;
                }
                Err(error) => error,
            };
            let (whole, _) = rest.split_at(error.valid_up_to());
            text.push_str(std::str::from_utf8(whole).unwrap_or_default());
            at += whole.len();
            let Some(length) = error.error_len() else { break };
            if at >= self.foreign {
                text.push(REPLACEMENT);
            }
            // A byte that is skipped alone may leave others that are no start of a character either.
            at += match self.replace {
                Replace::Run => length,
                Replace::Byte => 1,
            };
        }
        self.unfinished.drain(..at);
        self.foreign = self.foreign.saturating_sub(at);
        text
    }

    /// Takes the text as [`Utf8::take`] does, and replaces what is unfinished.
    pub(super) fn finish(&mut self) -> String {
        let mut text = self.take();
        let count = match self.replace {
            Replace::Run => usize::from(self.foreign == 0 && !self.unfinished.is_empty()),
            Replace::Byte => self.unfinished.len() - self.foreign,
        };
        text.extend(std::iter::repeat_n(REPLACEMENT, count));
        self.unfinished.clear();
        self.foreign = 0;
        text
    }
}
