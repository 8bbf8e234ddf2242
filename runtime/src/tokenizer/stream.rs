//! Text of tokens as they come.

use super::decode::{self, DecodeStep};
use super::{Tokenizer, TokenizerError};

/// Turns a stream of tokens into pieces of text that are whole characters. The pieces together are the text
/// of the whole sequence.
///
/// A piece comes as soon as its bytes are certain: at most 3 bytes of an unfinished character wait, however
/// many tokens they are, and with some decoders the space at an end that decoding takes away.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    /// The decoder's steps, from the first token on.
    steps: Option<Vec<DecodeStep>>,
    shows_special: bool,
}

impl TextStream {
    /// A stream from the beginning of a text; special tokens are left out.
    pub fn new() -> TextStream {
        TextStream::default()
    }

    /// This stream with special tokens as part of the text, as the vocabulary spells them.
    #[must_use]
    pub fn with_special(self) -> TextStream {
        TextStream { shows_special: true, ..self }
    }

    /// Takes tokens whose text is not wanted: those of a prompt that the stream continues. The stream's text
    /// then does not repeat the prompt, and keeps the space that decoding would take away at the beginning of
    /// a text.
    ///
    /// # Errors
    /// When the library fails.
    pub fn skip(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> Result<(), TokenizerError> {
        ids.iter().try_for_each(|id| self.push(tokenizer, *id).map(drop))?;
        decode::begin(self.steps.get_or_insert_with(|| tokenizer.steps.clone()));
        Ok(())
    }

    /// The text that `id` completes; empty while a character is unfinished, and for a token without text.
    ///
    /// # Errors
    /// When the library fails.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String, TokenizerError> {
        let steps = self.steps.get_or_insert_with(|| tokenizer.steps.clone());
        let Some(token) = tokenizer.shown(id, self.shows_special) else { return Ok(String::new()) };
        decode::push(steps, token).map_err(|message| TokenizerError::Decode { message })
    }

    /// The rest at the end, unfinished characters replaced.
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> Result<String, TokenizerError> {
        let steps = self.steps.get_or_insert_with(|| tokenizer.steps.clone());
        decode::finish(steps).map_err(|message| TokenizerError::Decode { message })
    }
}
