//! How commands fail.

use kernmill::{Error, ErrorKind};
#[cfg(feature = "compiler")]
use kernmill_tools::{BuildError, CheckpointError, CompileError, ImportError, PlanPartsError, SpecError};
use kernmill_tools::{EngineError, PlanError, TokenizerError};
use std::path::Path;

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

impl Failure {
    /// Reading an input file failed.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| Error::read(path)(error).into()
    }

    /// Writing a result failed.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Work(format!("{}: {error}", path.display())),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        #[cfg(feature = "compiler")]
        if let Some(excerpt) = kernmill_tools::excerpt(&error) {
            return Failure::Spec(excerpt);
        }
        match error.kind() {
            ErrorKind::Work => Failure::Work(error.to_string()),
            _ => Failure::BadInput(error.to_string()),
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

as_in_library!(TokenizerError, PlanError, EngineError, kernmill_tools::serve::Error);
#[cfg(feature = "compiler")]
as_in_library!(SpecError, CheckpointError, ImportError, CompileError, BuildError<CheckpointError>);
#[cfg(feature = "compiler")]
as_in_library!(PlanPartsError);
