//! The format of GPT-OSS: messages with a header, on channels. `docs/dev/harmony.md` describes it.

mod header;
mod message;
mod parse;
mod render;
mod sections;
mod tokens;
mod typescript;

pub use message::{Author, Channel, ContentType, HarmonyMessage, PromptOptions, messages};
pub use parse::HarmonyParser;
pub use render::{HarmonyError, prompt, prompt_with, render};
pub use sections::{SystemText, developer_text};
pub use tokens::{HarmonyTokens, NoToken};
