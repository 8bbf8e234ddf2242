//! The format of GPT-OSS: messages with a header, on channels. `docs/dev/harmony.md` describes it.
//! [`HarmonyTokens`] are its special ones.

mod header;
mod message;
mod parse;
mod render;
mod sections;

use kernmill_text::Vocabulary;
pub use message::{Author, Channel, ContentType, HarmonyMessage, PromptOptions, messages};
pub use parse::HarmonyParser;
pub use render::{HarmonyError, prompt, prompt_with, render};
pub use sections::{SystemText, developer_text};

/// Ids of Harmony's special tokens in a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarmonyTokens {
    /// A message begins.
    pub start: u32,
    /// The header ends, the content begins.
    pub message: u32,
    /// The message ends.
    pub end: u32,
    /// The channel follows.
    pub channel: u32,
    /// A constrained content type follows.
    pub constrain: u32,
    /// The last message of a turn ends.
    pub return_: u32,
    /// A call of a tool ends.
    pub call: u32,
    /// The text ends, in training data.
    pub end_of_text: Option<u32>,
}

/// A vocabulary lacks a token of Harmony.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the vocabulary has no token `{0}`, which Harmony needs: is this a GPT-OSS model?")]
pub struct NoToken(pub &'static str);

impl HarmonyTokens {
    /// Looks the tokens up.
    ///
    /// # Errors
    /// When the vocabulary lacks one that is needed.
    pub fn of(vocabulary: &dyn Vocabulary) -> Result<HarmonyTokens, NoToken> {
        let added = vocabulary.added_tokens();
        let find = |name| added.iter().find(|token| token.text == name).map(|token| token.id);
        let need = |name| find(name).ok_or(NoToken(name));
        Ok(HarmonyTokens {
            start: need("<|start|>")?,
            message: need("<|message|>")?,
            end: need("<|end|>")?,
            channel: need("<|channel|>")?,
            constrain: need("<|constrain|>")?,
            return_: need("<|return|>")?,
            call: need("<|call|>")?,
            end_of_text: find("<|endoftext|>"),
        })
    }

    /// Ids after which generation stops. The end token does not stop it: more messages follow.
    pub fn stops(&self) -> Vec<u32> {
        [Some(self.return_), Some(self.call), self.end_of_text].into_iter().flatten().collect()
    }
}
