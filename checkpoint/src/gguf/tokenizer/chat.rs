//! The chat templates of a GGUF file, and the tokens that its keys name for them.

use super::sentencepiece::DEFAULT_IDS;
use crate::chat_files;
use crate::error::Result;
use crate::gguf::Gguf;
use kernmill_os::text::shortened;
use kernmill_plan::chat::{ChatTemplate, ChatTemplates, ChatToken, DEFAULT, TokenName};

/// The key of the default template. Those of named ones have a point and the name behind it.
const KEY: &str = "tokenizer.chat_template";
/// How templates call tokens, and the keys that state their ids.
const TOKENS: [(&str, &str); 7] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    // The format spells it so.
    ("sep_token", "tokenizer.ggml.seperator_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
    ("cls_token", "tokenizer.ggml.cls_token_id"),
    ("mask_token", "tokenizer.ggml.mask_token_id"),
];

impl Gguf {
    /// The chat templates, and the tokens that templates write by name. [`ChatTemplates::fault`] names what
    /// cannot be read.
    pub fn chat_templates(&self) -> ChatTemplates {
        match self.read_templates() {
            Ok(templates) => templates,
            Err(error) => ChatTemplates { fault: Some(error.to_string()), ..ChatTemplates::default() },
        }
    }

    fn read_templates(&self) -> Result<ChatTemplates> {
        let mut templates = Vec::new();
        for key in self.keys() {
            let named = key.strip_prefix(KEY).and_then(|rest| rest.strip_prefix('.'));
            let name = if key == KEY { Some(DEFAULT) } else { named };
            if let Some(name) = name
                && let Some(text) = self.text(key)?
            {
                let place = format!("{}: key `{}`", self.path().display(), shortened(key));
                templates.push(ChatTemplate { name: name.to_owned(), place, text: text.to_owned() });
            }
        }
        chat_files::check(self.path(), &templates)?;
        let is_sentencepiece = self.text("tokenizer.ggml.model")? == Some("llama");
        let mut tokens = Vec::new();
        for (name, key) in TOKENS {
            let default = match name {
                "bos_token" if is_sentencepiece => DEFAULT_IDS.0,
                "eos_token" if is_sentencepiece => DEFAULT_IDS.1,
                _ => None,
            };
            // A value that is no id names no token.
            let id = self.token_id(key).ok().flatten().or(default.map(|id| id as u32));
            tokens.extend(id.map(|id| ChatToken { name: name.to_owned(), token: TokenName::Id(id) }));
        }
        Ok(ChatTemplates { templates, tokens, ..ChatTemplates::default() })
    }
}
