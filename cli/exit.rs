//! How the program ends when a command fails: what is shown, and the exit status.

use crate::failure::Failure;
use crate::{aside, output};
use clap::error::ErrorKind;
use kernmill_tools::terminal::errors_have_colours;
use kernmill_tools::{corrected, instead_of, interrupt::STATUS, message};
use std::process::ExitCode;

const BAD_INPUT: u8 = 2;
const WORK: u8 = 1;

impl Failure {
    /// Shows it on standard error; the exit status.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(message) => ended(&message, BAD_INPUT),
            #[cfg(feature = "compiler")]
            Failure::Spec(message) => {
                aside::styled(message);
                BAD_INPUT.into()
            }
            Failure::Work(message) => ended(&message, WORK),
            Failure::ReaderGone => WORK.into(),
            Failure::Interrupted => STATUS.into(),
        }
    }
}

/// Shows an error on one line; the exit status. On a terminal it begins in the colour that errors of the
/// command line have.
fn ended(text: &str, status: u8) -> ExitCode {
    let begins = if errors_have_colours() { "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m" } else { "error:" };
    aside::styled(format!("{begins} {}\n", message(text)));
    status.into()
}

/// Shows help, the version, or what is wrong with the command line; the exit status.
pub fn usage(error: clap::Error, program: &clap::Command) -> ExitCode {
    if !error.use_stderr() {
        let shown = output::open_stdout().and_then(|_| error.print().map_err(output::lost));
        return shown.map_or_else(Failure::report, |()| ExitCode::SUCCESS);
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(instead) = instead_of(&words).filter(|_| error.kind() == ErrorKind::InvalidSubcommand) {
        return Failure::BadInput(instead).report();
    }
    let error = corrected(error, program, &words);
    let plain = error.render().to_string();
    if message(&plain) == plain {
        // On a terminal it has colours. That it cannot be written changes nothing.
        let _ = error.print();
    } else {
        aside::styled(message(&plain));
    }
    BAD_INPUT.into()
}
