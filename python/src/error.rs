//! Exceptions, and what becomes one.

use kernmill::{Error, ErrorKind};
use kernmill_serve::{EndReason, Finish};
use pyo3::exceptions::{PyException, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};
use std::fmt::Display;

create_exception!(
    kernmill,
    InputError,
    PyValueError,
    "What was given is wrong: the message says what, where, and what was expected."
);
create_exception!(
    kernmill,
    Unsupported,
    PyNotImplementedError,
    "What was asked for is not wrong, but not done here."
);
create_exception!(
    kernmill,
    Overloaded,
    PyException,
    "There is too much to do: later the same call may be taken up."
);
create_exception!(
    kernmill,
    Defect,
    PyRuntimeError,
    "The work itself failed: a disk is full, say, or kernmill has a defect."
);

/// Why something was not done, which may be told on any thread.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An input is wrong.
    Input(String),
    /// Nothing here does it.
    Unsupported(String),
    /// There is too much to do.
    Overloaded(String),
    /// The work itself failed.
    Defect(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let text = error.to_string();
        match error.kind() {
            ErrorKind::Refused => Failure::Overloaded(text),
            ErrorKind::Work => Failure::Defect(text),
            _ => Failure::Input(text),
        }
    }
}

impl From<kernmill_serve::Error> for Failure {
    fn from(error: kernmill_serve::Error) -> Failure {
        Error::from(error).into()
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Input(text) => InputError::new_err(text),
            Failure::Unsupported(text) => Unsupported::new_err(text),
            Failure::Overloaded(text) => Overloaded::new_err(text),
            Failure::Defect(text) => Defect::new_err(text),
        }
    }
}

impl Failure {
    /// The error of a wrong input.
    pub fn input(error: impl Display) -> Failure {
        Failure::Input(error.to_string())
    }

    /// The work itself failed, as the error says.
    pub fn defect(error: impl Display) -> Failure {
        Failure::Defect(error.to_string())
    }

    /// The failure of a text that ended so; `None` if it stands.
    pub fn of(finish: &Finish) -> Option<Failure> {
        match finish {
            Finish::MaxTokens | Finish::Context | Finish::Ended(EndReason::Cancelled) => None,
            Finish::Token(_) | Finish::Text(_) | Finish::Complete => None,
            Finish::Ended(reason @ (EndReason::AdapterGone | EndReason::TooLarge)) => {
                Some(Failure::Input(reason.to_string()))
            }
            Finish::Ended(reason) => Some(Failure::Overloaded(reason.to_string())),
            Finish::Failed(why) => Some(Failure::Defect(why.clone())),
            Finish::Unavailable(why) => Some(Failure::Overloaded(why.clone())),
            Finish::Astray(why) => Some(Failure::Input(why.clone())),
        }
    }
}
