//! How commands fail: what is shown, and the exit status.

#[cfg(feature = "compiler")]
mod compiler;

use crate::interrupt;
use crate::output;
use kernmill::Error;
use kernmill_os::text::message;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{EngineError, PlanError};
use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong, or asks for what this machine or version cannot do: exit status 2.
    BadInput(String),
    /// A spec is wrong: exit status 2. The message shows the source line.
    #[cfg(feature = "compiler")]
    Spec(String),
    /// The work itself failed: exit status 1.
    Work(String),
    /// The reader of the output has gone: silent, exit status 1.
    ReaderGone,
    /// Ctrl-C ended a text: silent, exit status 130.
    Interrupted,
}

/// Result of commands.
pub type Result<T> = std::result::Result<T, Failure>;

const BAD_INPUT: u8 = 2;
const WORK: u8 = 1;

impl Failure {
    /// Bad input at `path`.
    pub fn input(path: &Path, what: impl Display) -> Failure {
        Failure::BadInput(format!("{}: {what}", path.display()))
    }

    /// Reading an input file failed.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| Failure::input(path, error)
    }

    /// Writing a result failed.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Work(format!("{}: {error}", path.display())),
        }
    }

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
    let plain = error.render().to_string();
    if message(&plain) == plain {
        // On a terminal it has colours. That it cannot be written changes nothing.
        let _ = error.print();
    } else {
        output::styled(message(&plain));
    }
    BAD_INPUT.into()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            #[cfg(feature = "compiler")]
            Error::Spec(error) => compiler::spec(&error),
            Error::Work(message) => Failure::Work(message),
            error => Failure::BadInput(error.to_string()),
        }
    }
}

/// Errors that commands meet themselves fail as those of the library do.
macro_rules! as_in_library {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for $crate::failure::Failure {
            fn from(error: $error) -> $crate::failure::Failure {
                kernmill::Error::from(error).into()
            }
        }
    )*};
}
#[cfg(feature = "compiler")]
use as_in_library;

as_in_library!(TokenizerError, PlanError, EngineError);
