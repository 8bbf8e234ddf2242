//! From tokens to text, token by token: the decoders that published tokenizers have, each as a step with a
//! small state.
//!
//! A step takes pieces and gives pieces; what it gives depends on the pieces before, and never on those to
//! come, except for a bounded piece of text that it holds back. The text of a whole sequence is what the
//! steps give for its tokens one after another, so that a stream shows the same text.

use super::bytes::{Replace, Utf8, fallback_byte, push_byte_level};
use tokenizers::decoders::wordpiece::cleanup;
use tokenizers::normalizers::replace::Replace as ReplaceText;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{Decoder, DecoderWrapper};

/// A decoder's step, with what it remembers of the pieces before.
#[derive(Clone, Debug)]
pub(super) enum DecodeStep {
    /// Tokens are bytes in the byte-level alphabet.
    ByteLevel(Utf8),
    /// Tokens such as `<0x0A>` are bytes.
    ByteFallback(Utf8),
    /// A text within a token becomes another one.
    Replace(ReplaceText),
    /// A character stands for the space before a word; those of the first token are dropped if `prepended`.
    Metaspace { space: char, prepended: bool, first: bool },
    /// Tokens without the prefix begin a word.
    WordPiece { prefix: String, cleanup: bool, first: bool },
    /// The suffix ends a word. The last token is held back: its suffix becomes nothing.
    Suffix { suffix: String, held: Option<String>, foreign: bool },
    /// Up to so many characters go from both ends of every token.
    StripToken { content: char, start: usize, stop: usize },
    /// Up to so many characters go from both ends of the text; those that may be at its end are held back.
    StripText { content: char, start: usize, stop: usize, held: usize },
    /// Tokens are words.
    Words { first: bool },
}

/// The steps of a tokenizer's decoder.
///
/// # Errors
/// When it has a decoder that texts of language models are not made by, or one that needs the whole text at
/// once.
pub(super) fn steps(decoder: Option<&DecoderWrapper>) -> Result<Vec<DecodeStep>, String> {
    let mut steps = Vec::new();
    match decoder {
        Some(decoder) => {
            let mut fused = false;
            add(decoder, &mut steps, &mut fused)?;
        }
        None => steps.push(DecodeStep::Words { first: true }),
    }
    Ok(steps)
}

/// Adds the steps of a decoder; `fused` says whether the pieces are those of one text.
fn add(decoder: &DecoderWrapper, steps: &mut Vec<DecodeStep>, fused: &mut bool) -> Result<(), String> {
    let step = match decoder {
        DecoderWrapper::Sequence(sequence) => {
            return sequence.get_decoders().iter().try_for_each(|decoder| add(decoder, steps, fused));
        }
        DecoderWrapper::Fuse(_) => {
            *fused = true;
            return Ok(());
        }
        DecoderWrapper::Strip(strip) => {
            let (content, start, stop) = (strip.content, strip.start, strip.stop);
            steps.push(match *fused {
                true => DecodeStep::StripText { content, start, stop, held: 0 },
                false => DecodeStep::StripToken { content, start, stop },
            });
            return Ok(());
        }
        _ if *fused => {
            return Err("a decoder follows one that joins the tokens, expected only Strip there".to_owned());
        }
        DecoderWrapper::ByteLevel(_) => {
            *fused = true;
            DecodeStep::ByteLevel(Utf8::new(Replace::Run))
        }
        DecoderWrapper::ByteFallback(_) => DecodeStep::ByteFallback(Utf8::new(Replace::Byte)),
        DecoderWrapper::Replace(replace) => DecodeStep::Replace(replace.clone()),
        DecoderWrapper::Metaspace(metaspace) => DecodeStep::Metaspace {
            space: metaspace.get_replacement(),
            prepended: metaspace.prepend_scheme != PrependScheme::Never,
            first: true,
        },
        DecoderWrapper::WordPiece(pieces) => {
            DecodeStep::WordPiece { prefix: pieces.prefix.clone(), cleanup: pieces.cleanup, first: true }
        }
        DecoderWrapper::BPE(bpe) if bpe.suffix.is_empty() => {
            return Err("the suffix of decoder BPEDecoder is empty".to_owned());
        }
        DecoderWrapper::BPE(bpe) => {
            DecodeStep::Suffix { suffix: bpe.suffix.clone(), held: None, foreign: false }
        }
        DecoderWrapper::CTC(_) => return Err("decoder CTC is not supported: it is one of speech".to_owned()),
    };
    steps.push(step);
    Ok(())
}

/// The text that a token adds.
///
/// # Errors
/// When the library fails.
pub(super) fn push(steps: &mut [DecodeStep], token: String) -> Result<String, String> {
    run(steps, vec![token], false)
}

/// Tells the steps that the tokens so far are a prompt's, whose text is not wanted.
pub(super) fn begin(steps: &mut [DecodeStep]) {
    // Bytes of a character that has begun come to the later steps with what follows them; to these, the text
    // has begun.
    let mut begun = false;
    for step in steps {
        match step {
            DecodeStep::ByteLevel(text) | DecodeStep::ByteFallback(text) => {
                text.begin();
                begun |= !text.is_empty();
            }
            DecodeStep::Suffix { held, foreign, .. } => *foreign = held.is_some(),
            DecodeStep::Metaspace { first, .. }
            | DecodeStep::WordPiece { first, .. }
            | DecodeStep::Words { first } => *first &= !begun,
            DecodeStep::StripText { start, .. } if begun => *start = 0,
            _ => {}
        }
    }
}

/// The text that is still held back.
///
/// # Errors
/// When the library fails.
pub(super) fn finish(steps: &mut [DecodeStep]) -> Result<String, String> {
    run(steps, Vec::new(), true)
}

fn run(steps: &mut [DecodeStep], mut pieces: Vec<String>, ends: bool) -> Result<String, String> {
    for step in steps {
        let mut next = Vec::with_capacity(pieces.len());
        for piece in pieces {
            step.push(piece, &mut next)?;
        }
        if ends {
            step.end(&mut next);
        }
        pieces = next;
    }
    match <[String; 1]>::try_from(pieces) {
        Ok([piece]) => Ok(piece),
        Err(pieces) => Ok(pieces.concat()),
    }
}

impl DecodeStep {
    fn push(&mut self, piece: String, out: &mut Vec<String>) -> Result<(), String> {
        let given = match self {
            DecodeStep::ByteLevel(text) => {
                push_byte_level(&piece, text.bytes());
                text.take()
            }
            DecodeStep::ByteFallback(text) => match fallback_byte(&piece) {
                Some(byte) => {
                    text.bytes().push(byte);
                    match text.take() {
                        whole if whole.is_empty() => return Ok(()),
                        whole => whole,
                    }
                }
                None => {
                    if !text.is_empty() {
                        out.push(text.finish());
                    }
                    piece
                }
            },
            DecodeStep::Replace(replace) => {
                replace.decode_chain(vec![piece]).map_err(|error| error.to_string())?.concat()
            }
            DecodeStep::Metaspace { space, prepended, first } => {
                let dropped = std::mem::take(first) && *prepended;
                let spaces = |c: char| match c == *space {
                    true => (!dropped).then_some(' '),
                    false => Some(c),
                };
                piece.chars().filter_map(spaces).collect()
            }
            DecodeStep::WordPiece { prefix, cleanup: cleans, first } => {
                let joined = match (std::mem::take(first), piece.strip_prefix(prefix.as_str())) {
                    (true, _) => piece,
                    (false, Some(rest)) => rest.to_owned(),
                    (false, None) => format!(" {piece}"),
                };
                if *cleans { cleanup(&joined) } else { joined }
            }
            DecodeStep::Suffix { suffix, held, foreign } => match held.replace(piece) {
                // Of a prompt's last token, what it would not have had at the end.
                Some(before) if std::mem::take(foreign) => {
                    let shown = before.replace(suffix.as_str(), "");
                    let all = before.replace(suffix.as_str(), " ");
                    all.strip_prefix(&shown).unwrap_or_default().to_owned()
                }
                Some(before) => before.replace(suffix.as_str(), " "),
                None => return Ok(()),
            },
            DecodeStep::StripToken { content, start, stop } => {
                strip(&piece, *content, *start, *stop).to_owned()
            }
            DecodeStep::StripText { content, start, stop, held } => {
                let rest = without_start(&piece, *content, start);
                if !rest.is_empty() {
                    *start = 0;
                }
                let shown = strip(rest, *content, 0, *stop);
                let ends = (rest.len() - shown.len()) / content.len_utf8();
                let (shown, count) = if shown.is_empty() {
                    // Nothing but the content: the first of what is held back are certain to be within the
                    // text.
                    let all = *held + ends;
                    let certain = all.saturating_sub(*stop);
                    (content.to_string().repeat(certain), all - certain)
                } else {
                    (content.to_string().repeat(*held) + shown, ends)
                };
                *held = count;
                shown
            }
            DecodeStep::Words { first } => match std::mem::take(first) {
                true => piece,
                false => format!(" {piece}"),
            },
        };
        out.push(given);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<String>) {
        match self {
            DecodeStep::ByteLevel(text) | DecodeStep::ByteFallback(text) => out.push(text.finish()),
            DecodeStep::Suffix { suffix, held, foreign } => {
                let last = held.take().filter(|_| !std::mem::take(foreign));
                out.extend(last.map(|last| last.replace(suffix.as_str(), "")));
            }
            _ => {}
        }
    }
}

/// A token without up to `start` and `stop` times the content at its ends.
fn strip(text: &str, content: char, mut start: usize, mut stop: usize) -> &str {
    let mut text = without_start(text, content, &mut start);
    while stop > 0
        && let Some(rest) = text.strip_suffix(content)
    {
        text = rest;
        stop -= 1;
    }
    text
}

/// A text without up to `count` times the content at its start; `count` is lowered.
fn without_start<'a>(mut text: &'a str, content: char, count: &mut usize) -> &'a str {
    while *count > 0
        && let Some(rest) = text.strip_prefix(content)
    {
        text = rest;
        *count -= 1;
    }
    text
}
