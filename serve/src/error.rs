//! Why a request is not taken up, or nothing can be served.

use kernmill_os::files::failed_by_system;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{EngineError, ErrorKind, LoadError};
use kernmill_scheduler::Refusal;
use std::error::Error as StdError;
use std::fmt::Display;
use std::path::Path;

/// Why a request is not taken up, or nothing can be served, as one line that says what, where, and what was
/// expected.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is wrong, or asks for what this machine or version cannot do.
    #[error("{0}")]
    BadInput(String),
    /// The scheduler does not take a request up: later it may.
    #[error("the request is refused: {0}")]
    Refused(Refusal),
    /// Another stage of the model cannot be reached: later it may.
    #[error("{0}")]
    Unavailable(String),
    /// The work itself failed: a disk is full, a thread cannot be made, or kernmill has a defect.
    #[error("{0}")]
    Work(String),
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Bad input at `path`.
    pub(crate) fn input(path: &Path, what: impl Display) -> Error {
        Error::BadInput(format!("{}: {what}", path.display()))
    }

    /// Reading a file failed: the input is wrong, or the system fails.
    pub(crate) fn read<E: StdError + 'static>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
        move |error| Error::of(&error, format!("{}: {error}", path.display()))
    }

    /// An error that says `message`: the input is wrong, or the system fails.
    fn of(error: &(dyn StdError + 'static), message: String) -> Error {
        if failed_by_system(error) { Error::Work(message) } else { Error::BadInput(message) }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        match (error.kind(), &error) {
            (_, EngineError::Stage(lost)) => Error::Unavailable(lost.to_string()),
            (ErrorKind::Bug, _) => {
                Error::Work(format!("{error} (this is a defect of kernmill: please report it)"))
            }
            (ErrorKind::BadInput, _) | (_, EngineError::Load(LoadError::Cpu { .. })) => {
                Error::of(&error, error.to_string())
            }
            (ErrorKind::Unsupported, _) => Error::Work(error.to_string()),
        }
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Error {
        match error {
            TokenizerError::Read { message, by_system: true } => Error::Work(message),
            _ => Error::BadInput(error.to_string()),
        }
    }
}
