//! What all options have in common. Environment variables: every option has one, `KERNMILL_` and the option's name in capitals.

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};

/// What the variables begin with.
const PREFIX: &str = "KERNMILL_";

/// Lets every option take a number below 0, which its own range refuses if need be: `--temp -1` is no unknown option.
pub fn with_negative_numbers(command: Command) -> Command {
    let with = |arg: Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with).mut_subcommands(with_negative_numbers)
}

/// Gives every option of `command` and of its subcommands its variable. The command line goes before the variable, the variable
/// before the default. `shown` tells whether help names the variables.
pub fn named(command: Command, shown: bool) -> Command {
    command.mut_args(|arg| with_variable(arg, shown)).mut_subcommands(|command| named(command, shown))
}

/// The variable of an option; positional arguments but MODEL have none.
pub fn variable(arg: &Arg) -> Option<String> {
    let name = arg.get_long().or_else(|| (arg.get_id() == "model").then_some("model"))?;
    let is_built_in = matches!(name, "help" | "version");
    (!is_built_in).then(|| PREFIX.to_owned() + &name.to_uppercase().replace('-', "_"))
}

fn with_variable(arg: Arg, shown: bool) -> Arg {
    let Some(name) = variable(&arg) else { return arg };
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let arg = if is_flag { arg.value_parser(BoolishValueParser::new()) } else { arg };
    let value = std::env::var_os(&name);
    if value.is_some_and(|value| value.is_empty() || is_flag && is_false(&value)) {
        return arg;
    }
    arg.env(name).hide_env_values(true).hide_env(!shown)
}

/// Whether a flag's variable says that the flag is not given. Any other value is read as a boolean.
fn is_false(value: &OsStr) -> bool {
    ["0", "n", "no", "f", "false", "off"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether these arguments ask for the long form of help.
pub fn wants_long_help(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--help" || arg == "help")
}
