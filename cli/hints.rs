//! A command line with a word that is not known: which one was meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use kernmill_tools::nearest;

/// The error with the command or option that is nearest to the unknown one, and without tips that lead to
/// the next error.
pub fn corrected(mut error: Error, program: &Command, words: &[String]) -> Error {
    let text = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    if let Some(word) = text(&error, ContextKind::InvalidSubcommand) {
        let known = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let near = nearest(&word, known).map(|near| ContextValue::Strings(vec![near.to_owned()]));
        replace(&mut error, ContextKind::SuggestedSubcommand, near);
    }
    let unknown =
        text(&error, ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    let Some(word) = unknown else { return error };
    let command = words.iter().find_map(|word| program.find_subcommand(word)).unwrap_or(program);
    let known = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    let name = word.strip_prefix("--").and_then(|word| word.split('=').next());
    let near = name.and_then(|name| nearest(name, known)).map(|near| format!("--{near}"));
    replace(&mut error, ContextKind::SuggestedArg, near.map(ContextValue::String));
    // A text may begin with a hyphen; an option that is not there is no text.
    if !word.starts_with('-') && command.get_positionals().count() > 1 {
        let tip = vec!["several words are one text between quotes: 'Once upon a time'".into()];
        replace(&mut error, ContextKind::Suggested, Some(ContextValue::StyledStrs(tip)));
    } else if !word.contains(' ') {
        replace(&mut error, ContextKind::Suggested, None);
    }
    error
}

fn replace(error: &mut Error, kind: ContextKind, value: Option<ContextValue>) {
    error.remove(kind);
    value.and_then(|value| error.insert(kind, value));
}
