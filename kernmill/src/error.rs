//! Why a model cannot be opened or run.

use kernmill_chat::{Refused, TurnError};
use kernmill_checkpoint::CheckpointError;
use kernmill_checkpoint::peft::PeftError;
use kernmill_os::files::failed_by_system;
use kernmill_plan::file::check::FileError;
use kernmill_runtime::sampler::SamplerError;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{AdapterError, EngineError, PlanError};
use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::path::Path;

/// The kind of an [`Error`], by which a program decides what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is wrong, or asks for what this machine or version cannot do.
    BadInput,
    /// The scheduler does not take a request up: later it may.
    Refused,
    /// Another stage of the model cannot be reached: later it may.
    Unavailable,
    /// The work itself failed: a disk is full, a thread cannot be made, or kernmill has a defect.
    Work,
}

/// Why a model cannot be opened or run, as one line that says what, where, and what was expected.
///
/// ```
/// use kernmill::{ErrorKind, Model};
/// use std::error::Error;
///
/// let error = Model::open("no-such-model").map(drop).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::BadInput);
/// assert!(error.to_string().starts_with("no-such-model: "));
/// // The error of the system or of a reader, if there is one.
/// let cause = error.source();
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Bad input: the message says what, where, and what was expected.
    pub fn bad_input(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::BadInput, message: message.into(), source: None }
    }

    /// The work failed: the message says why.
    pub fn failed(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Work, message: message.into(), source: None }
    }

    /// Bad input at `path`.
    pub fn input(path: &Path, what: impl Display) -> Error {
        Error::bad_input(format!("{}: {what}", path.display()))
    }

    /// Reading an input file failed: the input is wrong, or the system fails.
    pub fn read<E: StdError + Send + Sync + 'static>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
        move |error| Error::told(format!("{}: {error}", path.display()), error)
    }

    /// Writing a result failed.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |error| {
            let message = format!("{}: {error}", path.display());
            Error { kind: ErrorKind::Work, message, source: Some(Box::new(error)) }
        }
    }

    /// An error of a crate below, with its own message.
    pub(crate) fn because(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Error {
        Error { kind, message: error.to_string(), source: Some(Box::new(error)) }
    }

    /// An error of a crate below, with its own message: the input is wrong, or the system fails.
    pub(crate) fn of(error: impl StdError + Send + Sync + 'static) -> Error {
        Error::told(error.to_string(), error)
    }

    /// An error that says `message`: the input is wrong, or the system fails.
    pub(crate) fn told(message: String, error: impl StdError + Send + Sync + 'static) -> Error {
        let kind = if failed_by_system(&error) { ErrorKind::Work } else { ErrorKind::BadInput };
        Error { kind, message, source: Some(Box::new(error)) }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Refused> for Error {
    fn from(error: Refused) -> Error {
        Error::because(ErrorKind::BadInput, error)
    }
}

impl From<TurnError> for Error {
    fn from(error: TurnError) -> Error {
        Error::because(ErrorKind::BadInput, error)
    }
}

impl From<SamplerError> for Error {
    fn from(error: SamplerError) -> Error {
        EngineError::Sampler(error).into()
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Error {
        kernmill_serve::Error::from(error).into()
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Error {
        match error {
            PlanError::Map { .. } | PlanError::File { source: FileError::Read(_), .. } => {
                Error::because(ErrorKind::Work, error)
            }
            _ => Error::of(error),
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        kernmill_serve::Error::from(error).into()
    }
}

impl From<kernmill_serve::Error> for Error {
    fn from(error: kernmill_serve::Error) -> Error {
        let kind = match error {
            kernmill_serve::Error::BadInput(_) => ErrorKind::BadInput,
            kernmill_serve::Error::Refused(_) => ErrorKind::Refused,
            kernmill_serve::Error::Unavailable(_) => ErrorKind::Unavailable,
            _ => ErrorKind::Work,
        };
        Error::because(kind, error)
    }
}

impl From<AdapterError> for Error {
    fn from(error: AdapterError) -> Error {
        EngineError::Adapter(error).into()
    }
}

impl From<PeftError> for Error {
    fn from(error: PeftError) -> Error {
        AdapterError::from(error).into()
    }
}

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Error {
        Error::of(error)
    }
}
