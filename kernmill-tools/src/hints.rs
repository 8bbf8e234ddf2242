//! Words of a command line that are not known: the one that was meant, or that does what another program's
//! command does.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use kernmill::how_to_fetch;
use kernmill_os::suggest::nearest;

/// Words that are no commands here, and the sentence that says what is.
const INSTEAD: [(&str, &str); 9] = [
    (
        "convert",
        "nothing is converted first: every command takes a checkpoint's directory or a GGUF file as it is",
    ),
    (
        "create",
        "there are no model files: --system, --chat-template, --lora and the options of sampling do it",
    ),
    ("list", "models are files where you put them; `kernmill inspect MODEL` shows what is in one"),
    ("ls", "models are files where you put them; `kernmill inspect MODEL` shows what is in one"),
    (
        "models",
        "docs/user/fits.md lists models by the memory that they take; `kernmill inspect MODEL` shows one",
    ),
    ("ps", "a server has one model, which is named at its start; GET /api/ps tells it"),
    ("quantise", "`kernmill quantize MODEL -o FILE.gguf --type q4_k_m` does it, and --help says more"),
    ("show", "`kernmill explain MODEL` shows what a model computes, `kernmill inspect MODEL` what is in it"),
    ("version", "`kernmill --version` says it"),
];

/// The advice for a command line of these words, in place of an error; `None` where no other program's
/// command is meant.
pub fn instead_of(words: &[String]) -> Option<String> {
    let mut words = words.iter().filter(|word| !word.starts_with('-'));
    let command = words.next()?;
    if command == "pull" {
        // A program that has the command does not ask.
        let how = words.next().and_then(|name| how_to_fetch(name)).or_else(|| how_to_fetch("ORG/NAME"))?;
        return Some(format!("pull: {how}"));
    }
    let (_, instead) = INSTEAD.iter().find(|(word, _)| *word == command)?;
    Some(format!("{command}: no such command; {instead}"))
}

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
    let command =
        words.iter().fold(program, |command, word| command.find_subcommand(word).unwrap_or(command));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_other_programs_are_told_what_does_the_same() {
        let of = |words: &str| instead_of(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        for (words, part) in
            [("-v pull openai/gpt-oss-20b", "gpt-oss-20b"), ("pull", "ORG/NAME"), ("pull ';x'", "ORG/NAME")]
        {
            assert!(of(words).unwrap().contains(part), "{words}");
        }
        assert_eq!(of("version").unwrap(), "version: no such command; `kernmill --version` says it");
        for words in ["", "run pull", "help pull", "pulled x", "push x"] {
            assert_eq!(of(words), None, "{words}");
        }
    }
}
