//! Environment variables of all options: every option has one, `KERNMILL_` and the option's name in capitals.
//! One that does not go together with the command line gives way to it.

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ColorChoice, Command};
use kernmill_tools::terminal;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

/// The prefix of the variables.
const PREFIX: &str = "KERNMILL_";

/// Lets every option take a number below 0, which its own range refuses if need be: `--temp -1` is no unknown
/// option.
pub fn with_negative_numbers(command: Command) -> Command {
    let with = |arg: Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with).mut_subcommands(with_negative_numbers)
}

/// Lets help and errors have the terminal's width and colours, as everything else that is shown.
pub fn on_terminal(command: Command) -> Command {
    let colours = if terminal::allows_colours() { ColorChoice::Auto } else { ColorChoice::Never };
    command.term_width(terminal::columns()).color(colours)
}

/// Gives every option of `command` and of its subcommands its variable. The command line goes before the
/// variable, the variable before the default. Help names the variables if `shown`. A variable for which
/// `used` answers `false` counts as not set.
pub fn named(command: Command, shown: bool, used: &dyn Fn(&str) -> bool) -> Command {
    command
        .mut_args(|arg| with_variable(arg, shown, used))
        .mut_subcommands(|command| named(command, shown, used))
}

/// The variable of an option; positional arguments but MODEL have none, nor have other names for an option.
pub fn variable(arg: &Arg) -> Option<String> {
    if arg.is_hide_set() {
        return None;
    }
    let name = arg.get_long().or_else(|| (arg.get_id() == "model").then_some("model"))?;
    let is_built_in = matches!(name, "help" | "version");
    (!is_built_in).then(|| PREFIX.to_owned() + &name.to_uppercase().replace('-', "_"))
}

fn with_variable(arg: Arg, shown: bool, used: &dyn Fn(&str) -> bool) -> Arg {
    let Some(name) = variable(&arg) else { return arg };
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let arg = if is_flag { arg.value_parser(BoolishValueParser::new()) } else { arg };
    if !used(&name) || value(&arg, &name).is_none() && std::env::var_os(&name).is_some() {
        return arg;
    }
    arg.env(name).hide_env_values(true).hide_env(!shown)
}

/// The value that the variable `name` gives an option, if any: not an empty text, nor that a flag is off.
fn value(arg: &Arg, name: &str) -> Option<OsString> {
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    std::env::var_os(name).filter(|value| !(value.is_empty() || is_flag && is_false(value)))
}

/// Whether a flag's variable says that the flag is not given. Any other value is read as a boolean.
fn is_false(value: &OsStr) -> bool {
    ["0", "n", "no", "f", "false", "off"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether these arguments ask for the long form of help.
pub fn wants_long_help(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--help" || arg == "help")
}

/// A variable that is set, and gives way to the command line.
#[derive(Debug)]
pub struct Unused {
    /// The variable's name.
    pub variable: String,
    /// Why it is not used, as the end of a sentence.
    pub because: String,
}

/// The variables that do not go together with the command line `args`: those whose option conflicts with one
/// that is given there, and those whose option needs another one that is not given at all. Conflicts among
/// variables alone are left as they are.
pub fn unused(command: &Command, args: &[OsString]) -> Vec<Unused> {
    let mut set = BTreeSet::new();
    collect_set(command, &mut set);
    let mut unused = Vec::new();
    if set.is_empty() {
        return unused;
    }
    let attempt = |used: &dyn Fn(&str) -> bool| {
        let mut command = named(command.clone(), false, used);
        command.try_get_matches_from_mut(args).err()
    };
    let without = attempt(&|_| false);
    // One that gives way may be what another one needs.
    while let Some(found) = set.iter().find_map(|variable| {
        let with = attempt(&|other| other == variable)?;
        let because = reason(&with, without.as_ref(), variable, &set)?;
        Some(Unused { variable: variable.clone(), because })
    }) {
        set.remove(&found.variable);
        unused.push(found);
    }
    unused
}

/// `error`, which the command line `args` has with the variables that are `used`. An option whose value at
/// fault comes from a variable is named together with it.
pub fn blamed(
    mut error: clap::Error,
    command: &Command,
    args: &[OsString],
    used: &dyn Fn(&str) -> bool,
) -> clap::Error {
    let before = error.render().to_string();
    let blame = |shown: &str| {
        let variable = variable_of(shown);
        if !used(&variable) || std::env::var_os(&variable).is_none() {
            return shown.to_owned();
        }
        let mut without = named(command.clone(), false, &|other| used(other) && other != variable);
        match without.try_get_matches_from_mut(args) {
            Err(other) if other.render().to_string() == before => shown.to_owned(),
            _ => format!("{variable} ({shown})"),
        }
    };
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        let value = match error.get(kind) {
            Some(ContextValue::String(shown)) => ContextValue::String(blame(shown)),
            Some(ContextValue::Strings(shown)) => {
                ContextValue::Strings(shown.iter().map(|shown| blame(shown)).collect())
            }
            _ => continue,
        };
        error.insert(kind, value);
    }
    error
}

/// The variables that are set, of all options.
fn collect_set(command: &Command, set: &mut BTreeSet<String>) {
    for arg in command.get_arguments() {
        set.extend(variable(arg).filter(|name| value(arg, name).is_some()));
    }
    command.get_subcommands().for_each(|command| collect_set(command, set));
}

/// Why a variable gives way: with it the command line has the error `with`, and without any `without`.
fn reason(
    with: &clap::Error,
    without: Option<&clap::Error>,
    variable: &str,
    set: &BTreeSet<String>,
) -> Option<String> {
    let own = |shown: &String| variable_of(shown) == variable;
    match with.kind() {
        ErrorKind::ArgumentConflict if without.is_none_or(|error| error.kind() != with.kind()) => {
            let named = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| texts(with, kind));
            let other = named.into_iter().flatten().find(|shown| !own(shown))?;
            Some(format!("{} is given", option(&other)))
        }
        ErrorKind::MissingRequiredArgument => {
            let before = without.filter(|error| error.kind() == with.kind());
            let before = before.map_or_else(Vec::new, |error| texts(error, ContextKind::InvalidArg));
            let missing = texts(with, ContextKind::InvalidArg)
                .into_iter()
                .find(|shown| !before.contains(shown) && !set.contains(&variable_of(shown)))?;
            Some(format!("it goes with {}, which is not given", option(&missing)))
        }
        _ => None,
    }
}

/// Arguments that an error names, as it shows them: `--lora <RANK>`.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// The option of an argument as errors show it.
fn option(shown: &str) -> &str {
    shown.split([' ', '=']).next().unwrap_or(shown)
}

/// The variable of an argument as errors show it.
fn variable_of(shown: &str) -> String {
    let name = option(shown).trim_matches(['-', '<', '>', '[', ']', '.']);
    PREFIX.to_owned() + &name.to_uppercase().replace('-', "_")
}
