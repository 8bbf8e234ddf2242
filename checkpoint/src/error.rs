//! Errors of checkpoints: which file, which tensor, what was expected.

use crate::file_kind::FileKind;
use std::path::PathBuf;
use thiserror::Error;

/// Why a checkpoint cannot be used. Every variant is bad input, or asks for what is not supported.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Reason that the system gave.
        source: std::io::Error,
    },
    /// No checkpoint in the directory.
    #[error(
        "{path}: no checkpoint found: expected model.safetensors, or model.safetensors.index.json and its shards{found}"
    )]
    NoCheckpoint {
        /// Directory searched.
        path: PathBuf,
        /// The thing that is there instead, and advice; or nothing.
        found: String,
    },
    /// There is nothing at the path.
    #[error("{path}: no such file or directory")]
    NoSuchPath {
        /// Path as given.
        path: PathBuf,
    },
    /// A file of another kind.
    #[error("{path}: expected {expected}, but {}", .kind.describe())]
    Kind {
        /// File.
        path: PathBuf,
        /// The kind of file that is expected.
        expected: &'static str,
        /// The kind of file that was found.
        kind: FileKind,
    },
    /// A file that does not follow its format.
    #[error("{path}: corrupt: {what}")]
    Corrupt {
        /// File.
        path: PathBuf,
        /// The problem, and what was expected.
        what: String,
    },
    /// A file that follows its format but has something that kernmill lacks.
    #[error("{path}: not supported: {what}")]
    Unsupported {
        /// File.
        path: PathBuf,
        /// The unsupported thing, and what would be supported.
        what: String,
    },
    /// A file that follows its format but describes no model that can be loaded.
    #[error("{path}: {what}")]
    Model {
        /// File.
        path: PathBuf,
        /// The problem, what was expected, and what helps.
        what: String,
    },
    /// The index names a file that is not there.
    #[error("{index}: names shard `{shard}`, which does not exist beside it")]
    MissingShard {
        /// Index file.
        index: PathBuf,
        /// Shard file name.
        shard: String,
    },
    /// Two shards hold the same tensor.
    #[error("tensor `{name}` is in both {first} and {second}")]
    Duplicate {
        /// Checkpoint tensor.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A tensor of the model that the checkpoint lacks.
    #[error("{path}: tensor `{name}` is missing (the model's `{logical}`){near}")]
    Missing {
        /// Checkpoint.
        path: PathBuf,
        /// Checkpoint tensor.
        name: String,
        /// Tensor of the graph.
        logical: String,
        /// `, did you mean ...`, or what layout the checkpoint has instead and what helps, or nothing.
        near: String,
    },
    /// Tensors of the checkpoint that the model does not use.
    #[error("{path}: {count} tensor{s} that the model does not use: {names}", s = if *.count == 1 { "" } else { "s" })]
    Extra {
        /// Checkpoint.
        path: PathBuf,
        /// How many.
        count: usize,
        /// The first few, comma-separated.
        names: String,
    },
    /// A tensor whose dtype is not the one that the model states.
    #[error("{path}: tensor `{name}` is {found}, expected {expected} (the model's `{logical}`)")]
    Dtype {
        /// File.
        path: PathBuf,
        /// Checkpoint tensor.
        name: String,
        /// Tensor of the graph.
        logical: String,
        /// Element type of the checkpoint's tensor.
        found: Box<str>,
        /// Element types that fit.
        expected: Box<str>,
    },
    /// A tensor whose shape is not the one that the model states.
    #[error("{path}: tensor `{name}` has shape {found:?}, expected {expected:?} (the model's `{logical}`)")]
    Shape {
        /// File.
        path: PathBuf,
        /// Checkpoint tensor.
        name: String,
        /// Tensor of the graph.
        logical: String,
        /// Shape of the checkpoint's tensor.
        found: Box<[usize]>,
        /// The shape that fits.
        expected: Box<[usize]>,
    },
}

/// Result of checkpoint operations.
pub type Result<T> = std::result::Result<T, CheckpointError>;

impl CheckpointError {
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> CheckpointError + '_ {
        move |source| CheckpointError::Io { path: path.to_owned(), source }
    }

    pub(super) fn kind(path: &std::path::Path, expected: &'static str, kind: FileKind) -> CheckpointError {
        CheckpointError::Kind { path: path.to_owned(), expected, kind }
    }

    pub(super) fn corrupt(path: &std::path::Path, what: impl Into<String>) -> CheckpointError {
        CheckpointError::Corrupt { path: path.to_owned(), what: what.into() }
    }
}
