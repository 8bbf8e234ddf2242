//! Why a PEFT directory is refused: what, where, what was expected.

use std::path::{Path, PathBuf};

/// Why an adapter's files cannot be read, or do not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum PeftError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Reason that the system gave.
        source: std::io::Error,
    },
    /// A file that does not follow its format, or an adapter that does not fit the model.
    #[error("{path}: {what}")]
    Malformed {
        /// File.
        path: PathBuf,
        /// The problem, its place, and what was expected.
        what: String,
    },
    /// An adapter that PEFT knows and kernmill does not.
    #[error("{path}: not supported: {what}")]
    Unsupported {
        /// File.
        path: PathBuf,
        /// The unsupported thing, and what would be supported.
        what: String,
    },
    /// The plan's own list of matrices that take adapters cannot be right.
    #[error("the plan contradicts itself: {0}")]
    LoraTargets(String),
}

impl PeftError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> PeftError + '_ {
        move |source| PeftError::Io { path: path.to_owned(), source }
    }

    pub(super) fn malformed(path: &Path, what: impl Into<String>) -> PeftError {
        PeftError::Malformed { path: path.to_owned(), what: what.into() }
    }

    pub(super) fn unsupported(path: &Path, what: impl Into<String>) -> PeftError {
        PeftError::Unsupported { path: path.to_owned(), what: what.into() }
    }
}
