//! Bytes of single tokens.

use super::Tokenizer;
use super::bytes::{fallback_byte, push_byte_level};
use super::decode::DecodeStep;
use kernmill_text::AddedToken;
use tokenizers::Decoder;

impl Tokenizer {
    /// The added tokens that the model's vocabulary has, by their ids.
    pub fn added_tokens(&self) -> Vec<AddedToken> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        let token = |(id, token): (&u32, &tokenizers::AddedToken)| AddedToken {
            text: token.content.clone(),
            id: *id,
            is_special: token.special,
        };
        let mut tokens: Vec<AddedToken> =
            added.iter().map(token).filter(|token| token.id < self.vocab).collect();
        tokens.sort_by_key(|token| token.id);
        tokens
    }

    /// Bytes that a token stands for in the middle of a text; those of an added token are its text. `None`
    /// for an id without text.
    ///
    /// Unlike what [`super::TextStream`] gives, the space before a first word is kept, and spaces that some
    /// decoders take away between words are too.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        if let Some(token) = added.get(&id) {
            return Some(token.content.clone().into_bytes());
        }
        let mut text = self.token(id)?;
        let mut bytes = Vec::new();
        for step in &self.steps {
            match step {
                DecodeStep::ByteLevel(_) => {
                    push_byte_level(&text, &mut bytes);
                    return Some(bytes);
                }
                DecodeStep::ByteFallback(_) => {
                    if let Some(byte) = fallback_byte(&text) {
                        return Some(vec![byte]);
                    }
                }
                DecodeStep::Replace(replace) => text = replace.decode_chain(vec![text]).ok()?.concat(),
                DecodeStep::Metaspace { space, .. } => text = text.replace(*space, " "),
                DecodeStep::WordPiece { prefix, .. } => {
                    text =
                        text.strip_prefix(prefix.as_str()).map_or_else(|| format!(" {text}"), str::to_owned);
                }
                DecodeStep::Suffix { suffix, .. } => text = text.replace(suffix.as_str(), " "),
                DecodeStep::Words { .. } => text.insert(0, ' '),
                DecodeStep::StripToken { .. } | DecodeStep::StripText { .. } => {}
            }
        }
        Some(text.into_bytes())
    }
}
