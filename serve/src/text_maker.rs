//! Text of generated tokens, up to a stop string.

use kernmill_runtime::tokenizer::{TextStream, Tokenizer, TokenizerError};
use kernmill_text::StopMatcher;

/// Turns generated tokens into text as they come: whole characters, and nothing that may belong to a stop
/// string. Without a tokenizer there is no text.
#[derive(Debug)]
pub struct TextMaker {
    stream: TextStream,
    stops: StopMatcher,
    /// Special tokens that stop strings are the text of.
    stop_tokens: Vec<(u32, String)>,
}

/// A piece of text, and the stop string that ends the text in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedText {
    /// The text that is certain now.
    pub text: String,
    /// The stop string that was found behind it.
    pub stop: Option<String>,
}

impl TextMaker {
    /// A text that continues a prompt and ends at any of the strings `stops`. A stop string that is exactly a
    /// special token's text also stands for that token. `shows_special` makes special tokens part of the
    /// text, as the vocabulary spells them.
    ///
    /// # Errors
    /// When the tokenizer cannot decode the prompt.
    pub fn new(
        tokenizer: Option<&Tokenizer>,
        prompt: &[u32],
        stops: &[String],
        shows_special: bool,
    ) -> Result<TextMaker, TokenizerError> {
        let mut stream = TextStream::new();
        if shows_special {
            stream = stream.with_special();
        }
        let mut stop_tokens = Vec::new();
        if let Some(tokenizer) = tokenizer {
            stream.skip(tokenizer, prompt)?;
            let special = |stop: &String| Some((tokenizer.special_token_id(stop)?, stop.clone()));
            stop_tokens = stops.iter().filter_map(special).collect();
        }
        Ok(TextMaker { stream, stops: StopMatcher::new(stops), stop_tokens })
    }

    /// The stop string that is the text of a special token.
    pub fn stop_of(&self, token: u32) -> Option<String> {
        self.stop_tokens.iter().find(|(id, _)| *id == token).map(|(_, stop)| stop.clone())
    }

    /// The text that a token releases.
    ///
    /// # Errors
    /// When the tokenizer cannot decode the token.
    pub fn push(&mut self, tokenizer: Option<&Tokenizer>, token: u32) -> Result<StoppedText, TokenizerError> {
        let piece = match tokenizer {
            Some(tokenizer) => self.stream.push(tokenizer, token)?,
            None => String::new(),
        };
        let released = self.stops.push(&piece);
        Ok(StoppedText { text: released.text, stop: released.stop })
    }

    /// The text that was held back, unless a stop string has ended the text already.
    ///
    /// # Errors
    /// When the tokenizer cannot decode the rest.
    pub fn finish(&mut self, tokenizer: Option<&Tokenizer>) -> Result<StoppedText, TokenizerError> {
        let Some(tokenizer) = tokenizer.filter(|_| !self.stops.is_spent()) else {
            return Ok(StoppedText::default());
        };
        let rest = self.stream.finish(tokenizer)?;
        let released = self.stops.push(&rest);
        let text = match released.stop {
            Some(_) => released.text,
            None => released.text + &self.stops.finish(),
        };
        Ok(StoppedText { text, stop: released.stop })
    }
}
