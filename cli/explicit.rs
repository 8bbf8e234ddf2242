//! Which options were given, and where: an option that does not apply is refused on the command line, and
//! noted in the environment.

use crate::aside::Aside;
use crate::environment::variable;
use crate::failure::{Failure, Result};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The options that were given; those with their defaults are not among them.
#[derive(Debug, Default)]
pub struct Explicit {
    given: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    /// Name of the option, such as `threads`; `MODEL` for the positional argument.
    name: String,
    /// Environment variable that gave the value, if one did.
    variable: Option<String>,
}

impl Explicit {
    /// The options among `matches` of `command`, or of the subcommand that was called.
    pub fn of(command: &Command, matches: &ArgMatches) -> Explicit {
        let below = |(name, matches)| Some(Explicit::of(command.find_subcommand(name)?, matches));
        let mut explicit = matches.subcommand().and_then(below).unwrap_or_default();
        for arg in command.get_arguments() {
            let variable = match matches.value_source(arg.get_id().as_str()) {
                Some(ValueSource::CommandLine) => None,
                Some(ValueSource::EnvVariable) => variable(arg),
                _ => continue,
            };
            let name = arg.get_long().unwrap_or("MODEL").to_owned();
            explicit.given.push(Given { name, variable });
        }
        explicit
    }

    /// Whether an option was given.
    pub fn has(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.name == option)
    }

    /// Refuses options that do not apply, `because` of something that the sentence says. Variables of the
    /// environment are defaults for many commands: one that does not apply is noted and passed over.
    pub fn refuse(&self, options: &[&str], because: &str) -> Result<()> {
        for given in self.given.iter().filter(|given| options.contains(&given.name.as_str())) {
            match &given.variable {
                None => return Err(Failure::BadInput(format!("--{}: {because}", given.name))),
                Some(variable) => self.note_unused(variable, because),
            }
        }
        Ok(())
    }

    /// Notes that a variable of the environment is not used, `because` of something that the sentence says.
    pub fn note_unused(&self, variable: &str, because: &str) {
        self.aside().note(format_args!("{variable} is not used: {because}"));
    }

    /// The sink of lines beside the result, by `--quiet`.
    pub fn aside(&self) -> Aside {
        Aside { quiet: self.has("quiet") }
    }

    /// Whether the option was given in the environment only.
    pub fn is_from_environment(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.name == option && given.variable.is_some())
    }
}
