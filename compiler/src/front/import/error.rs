//! Why a published model cannot be imported.

use crate::front::spec;
use kernmill_checkpoint::CheckpointError;
use kernmill_checkpoint::file_kind::FileKind;
use std::path::PathBuf;
use thiserror::Error;

/// Why a `config.json` cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file is not what it should be.
    #[error("config.json: {what}")]
    Bad {
        /// The problem, and what was expected.
        what: String,
    },
    /// The file is right but the model has something that kernmill lacks.
    #[error("config.json: not supported: {what}")]
    Unsupported {
        /// The unsupported thing, and what would be supported.
        what: String,
    },
    /// There is nothing at the path.
    #[error(transparent)]
    Path(Box<CheckpointError>),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// File.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no such file.
    #[error(
        "{dir}: no config.json found: expected the directory of a published model, or a spec beside its weights{found}"
    )]
    Missing {
        /// Directory searched.
        dir: PathBuf,
        /// The thing that is there instead, and advice; or nothing.
        found: String,
    },
    /// A file of another kind.
    #[error("{path}: expected a model's config.json, but {}", .kind.describe())]
    Kind {
        /// File.
        path: PathBuf,
        /// The kind of the file.
        kind: FileKind,
    },
    /// The dims do not make a model.
    #[error("config.json describes a model that does not fit together: {0:?}")]
    Inconsistent(spec::SpecError),
}

/// Result of imports.
pub type Result<T> = std::result::Result<T, ImportError>;
