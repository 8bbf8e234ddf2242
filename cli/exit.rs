//! How the program ends when a command fails: what is shown, and the exit status.

use crate::failure::Failure;
use crate::output;
use clap::error::ErrorKind;
use kernmill::{hub, interrupt};
use kernmill_os::text::message;
use std::io::IsTerminal;
use std::process::ExitCode;

const BAD_INPUT: u8 = 2;
const WORK: u8 = 1;

impl Failure {
    /// Shows it on standard error; the exit status.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(message) => {
                error_line(&message);
                BAD_INPUT.into()
            }
            #[cfg(feature = "compiler")]
            Failure::Spec(message) => {
                output::styled(message);
                BAD_INPUT.into()
            }
            Failure::Work(message) => {
                error_line(&message);
                WORK.into()
            }
            Failure::ReaderGone => WORK.into(),
            Failure::Interrupted => interrupt::STATUS.into(),
        }
    }
}

/// Shows an error on one line. On a terminal it begins in the colour that errors of the command line have.
fn error_line(text: &str) {
    let is_plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
    let begins = if is_plain { "error:" } else { "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m" };
    output::styled(format!("{begins} {}\n", message(text)));
}

/// Shows help, the version, or what is wrong with the command line; the exit status.
pub fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let shown = output::open_stdout().and_then(|_| error.print().map_err(output::lost));
        return shown.map_or_else(Failure::report, |()| ExitCode::SUCCESS);
    }
    let others = hub::instead_of(std::env::args_os().skip(1));
    if let Some(instead) = others.filter(|_| error.kind() == ErrorKind::InvalidSubcommand) {
        return Failure::BadInput(instead).report();
    }
    let plain = error.render().to_string();
    if message(&plain) == plain {
        // On a terminal it has colours. That it cannot be written changes nothing.
        let _ = error.print();
    } else {
        output::styled(message(&plain));
    }
    BAD_INPUT.into()
}
