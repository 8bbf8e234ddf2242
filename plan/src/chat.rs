//! Files of a model that concern conversations: chat templates, and the tokens that templates write by name.

use crate::bounded;
use serde::{Deserialize, Serialize};

/// Chat templates of a model at most.
pub const TEMPLATES: usize = 16;
/// Bytes of a template's name at most.
pub const NAME_BYTES: usize = 256;
/// Tokens at most that a model's files name for templates.
pub const TOKENS: usize = 64;
/// Bytes of a named token's text at most.
pub const TOKEN_BYTES: usize = 1024;

/// Prompts of a model for vectors at most.
pub const PROMPTS: usize = 64;

/// Name of the template for all conversations that no other template is for.
pub const DEFAULT: &str = "default";
/// Name of the template for conversations with functions that the model may call.
pub const TOOL_USE: &str = "tool_use";

/// The chat templates that a model's files bring along, and the tokens that templates write by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatTemplates {
    /// The templates, the most [`TEMPLATES`]. None of their names comes twice.
    pub templates: Vec<ChatTemplate>,
    /// Tokens by the names of variables, such as `bos_token`.
    pub tokens: Vec<ChatToken>,
    /// Why the templates could not be read: one line that names the file.
    pub fault: Option<String>,
    /// Whether the user gave the template in place of the model's own.
    pub is_given: bool,
    /// Texts that a model for vectors has before others.
    pub prompts: TextPrompts,
}

/// Texts that a model for vectors has before others, for each purpose one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPrompts {
    /// Purposes, such as `query`, and the texts.
    #[serde(deserialize_with = "bounded::list::<_, _, PROMPTS>")]
    pub named: Vec<NamedTemplate>,
    /// Purpose of texts for which nobody says another; `None` has nothing before them.
    pub default: Option<String>,
}

impl TextPrompts {
    /// The text before those of a purpose, or of the default one.
    ///
    /// # Errors
    /// When the model has no such purpose.
    pub fn text(&self, purpose: Option<&str>) -> Result<&str, String> {
        let Some(name) = purpose.or(self.default.as_deref()) else { return Ok("") };
        let found = self.named.iter().find(|prompt| prompt.name == name);
        found.map(|prompt| prompt.text.as_str()).ok_or_else(|| {
            let names: Vec<&str> = self.named.iter().map(|prompt| prompt.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("there is no prompt `{name}`, the model has: {names}")
        })
    }

    /// The text before those of the first of these purposes that the model has, or of the default one.
    pub fn of_any(&self, purposes: &[&str]) -> &str {
        let found = purposes.iter().find_map(|purpose| self.text(Some(purpose)).ok());
        found.or_else(|| self.text(None).ok()).unwrap_or_default()
    }
}

/// A chat template (Jinja).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTemplate {
    /// Name of the template: [`DEFAULT`], [`TOOL_USE`] or another.
    pub name: String,
    /// Where the template is, as messages say it: a file, perhaps with a key in it.
    pub place: String,
    /// The template itself.
    pub text: String,
}

/// A token that templates write by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatToken {
    /// Name of the variable, such as `bos_token`.
    #[serde(deserialize_with = "bounded::text::<_, NAME_BYTES>")]
    pub name: String,
    /// The token.
    pub token: TokenName,
}

/// A token, as a file names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenName {
    /// By its text.
    Text(#[serde(deserialize_with = "bounded::text::<_, TOKEN_BYTES>")] String),
    /// By its id in the vocabulary.
    Id(u32),
}

impl ChatTemplates {
    /// The template for conversations without functions, and for those with functions if the model has none
    /// for these alone. `None` if there is no template. Where no template is called [`DEFAULT`], the first
    /// one is.
    pub fn default_template(&self) -> Option<&ChatTemplate> {
        self.named(DEFAULT).or(self.templates.first())
    }

    /// The template for conversations with functions that the model may call, if there is one for these.
    pub fn tool_template(&self) -> Option<&ChatTemplate> {
        self.named(TOOL_USE)
    }

    /// The template of that name, if there is one.
    pub fn named(&self, name: &str) -> Option<&ChatTemplate> {
        self.templates.iter().find(|template| template.name == name)
    }

    /// These with a template of the user's in place of the model's own. Tokens stay: they are the
    /// vocabulary's.
    #[must_use]
    pub fn with_given(self, template: ChatTemplate) -> ChatTemplates {
        ChatTemplates { templates: vec![template], fault: None, is_given: true, ..self }
    }
}

/// The part of [`ChatTemplates`] that a plan has besides the default template, serialised with postcard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatSection {
    /// Names and texts of the other templates.
    #[serde(deserialize_with = "bounded::list::<_, _, TEMPLATES>")]
    pub named: Vec<NamedTemplate>,
    /// Tokens by the names of variables.
    #[serde(deserialize_with = "bounded::list::<_, _, TOKENS>")]
    pub tokens: Vec<ChatToken>,
    /// Why the templates could not be read when the plan was written.
    pub fault: Option<String>,
    /// Whether the user gave the template in place of the model's own.
    pub is_given: bool,
    /// Texts that a model for vectors has before others.
    pub prompts: TextPrompts,
}

/// A chat template in a plan, or a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTemplate {
    /// The name.
    #[serde(deserialize_with = "bounded::text::<_, NAME_BYTES>")]
    pub name: String,
    /// The template or prompt itself.
    pub text: String,
}
