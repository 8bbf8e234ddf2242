//! A model's chat templates, ready to make prompts, and a template that the user gives in their place.

use crate::error::{Error, Result};
use kernmill_chat::{Format, Template, Templates, Vocabulary};
use kernmill_os::files::read_named_text;
use kernmill_plan::chat::{ChatTemplate, ChatTemplates, DEFAULT, TokenName};
use kernmill_plan::limit;
use kernmill_runtime::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;

/// Advice where a model's own template is of no use.
const HELP: &str = "--chat-template gives the model another one";

/// The format of conversations of a model with this tokenizer and the templates of its files. `end_tokens`
/// end its texts. A template that the user gave goes before Harmony.
///
/// # Errors
/// When the tokenizer fails.
pub fn format_of(tokenizer: &Tokenizer, templates: &ChatTemplates, end_tokens: &[u32]) -> Result<Format> {
    let begin = tokenizer.encode("", true)?;
    if !templates.is_given {
        let format = Format::of(tokenizer, None, begin.clone());
        if matches!(format, Format::Harmony) {
            return Ok(format);
        }
    }
    let tokens = named_tokens(tokenizer, templates, end_tokens)?;
    Ok(match all(tokenizer, templates, &tokens) {
        Ok(Some(templates)) => Format::Template(Box::new(templates)),
        Ok(None) => Format::of(tokenizer, None, begin),
        Err(why) => Format::Unusable(why),
    })
}

/// The templates of a model, ready to make prompts; `None` if it has none. The message of an error names the
/// template's file, and what helps.
fn all(
    tokenizer: &Tokenizer,
    templates: &ChatTemplates,
    tokens: &BTreeMap<String, String>,
) -> std::result::Result<Option<Templates>, String> {
    if let Some(fault) = &templates.fault {
        return Err(format!("{fault}; {HELP}"));
    }
    let Some(default) = templates.default_template() else { return Ok(None) };
    let made = |template| made(template, tokenizer, tokens);
    let tool_use = templates.tool_template().filter(|template| *template != default);
    Ok(Some(Templates { default: made(default)?, tool_use: tool_use.map(made).transpose()? }))
}

fn made(
    template: &ChatTemplate,
    vocabulary: &dyn Vocabulary,
    tokens: &BTreeMap<String, String>,
) -> std::result::Result<Template, String> {
    let made = Template::new(&template.text, vocabulary, tokens);
    made.map_err(|error| format!("{}: {error}; {HELP}", template.place))
}

/// The texts of the tokens that templates write by name, such as `bos_token`: those that the model's files
/// name. Where they name none, the start of a text is the token that the tokenizer puts there, and its end is
/// the first of `end_tokens`.
///
/// # Errors
/// When the tokenizer fails.
pub fn named_tokens(
    tokenizer: &Tokenizer,
    templates: &ChatTemplates,
    end_tokens: &[u32],
) -> Result<BTreeMap<String, String>> {
    let added = tokenizer.encode("", true)?;
    let guessed = [("bos_token", added.first()), ("eos_token", end_tokens.first())];
    let guessed = guessed.into_iter().filter_map(|(name, id)| Some((name, tokenizer.token(*id?)?)));
    let mut tokens: BTreeMap<String, String> = guessed.map(|(name, text)| (name.to_owned(), text)).collect();
    for named in &templates.tokens {
        let text = match &named.token {
            TokenName::Text(text) => Some(text.clone()),
            TokenName::Id(id) => tokenizer.token(*id),
        };
        tokens.extend(text.map(|text| (named.name.clone(), text)));
    }
    Ok(tokens)
}

/// The templates of a model that has `own`: the template in the file `given` (Jinja) in their place, if there
/// is one.
///
/// # Errors
/// When the file cannot be read, has more than 1 MiB, or is no template.
pub fn given_or(given: Option<&Path>, own: &ChatTemplates) -> Result<ChatTemplates> {
    let Some(path) = given else { return Ok(own.clone()) };
    let text = read_named_text(path, limit::TEMPLATE_BYTES).map_err(Error::read(path))?;
    Template::new(&text, &(), &BTreeMap::new()).map_err(|error| Error::input(path, error))?;
    let template = ChatTemplate { name: DEFAULT.to_owned(), place: path.display().to_string(), text };
    Ok(own.clone().with_given(template))
}

/// Why conversations with a model of these templates are refused, if they are: one sentence that names the
/// file.
pub fn fault(templates: &ChatTemplates) -> Option<String> {
    let fault = |template| made(template, &(), &BTreeMap::new()).err();
    let unread = templates.fault.as_ref().map(|fault| format!("{fault}; {HELP}"));
    unread
        .or_else(|| templates.default_template().and_then(fault))
        .or_else(|| templates.tool_template().and_then(fault))
}
