//! Errors of plan files.

use crate::check::CheckError;
use crate::file::{MAX_SECTIONS, VERSION};

/// Why a file is not a plan that can be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system could not read the file.
    #[error("reading failed: {0}")]
    Read(#[source] std::io::Error),
    /// The file does not begin as plans do.
    #[error("it is not a kernmill plan: expected a file that `kernmill compile` wrote")]
    Magic,
    /// Another version of kernmill wrote the file.
    #[error(
        "it has plan format version {found}, this kernmill reads version {VERSION}: compile the model anew"
    )]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// The file is shorter or longer than it says.
    #[error("the file has {found} bytes, expected {expected}: it was cut off or something was added")]
    Length {
        /// Bytes.
        found: u64,
        /// Bytes according to the header, or at least those of the header.
        expected: u64,
    },
    /// The header is not what was written.
    #[error("the header is damaged: its hash does not fit")]
    HeaderHash,
    /// A field of the header has a value that it cannot have.
    #[error("the header is damaged: {what}")]
    Header {
        /// Which and what was expected.
        what: String,
    },
    /// The section table has too many or too few entries.
    #[error("the header is damaged: {found} sections, expected 4 to {MAX_SECTIONS}")]
    SectionCount {
        /// Entries.
        found: u32,
    },
    /// A section is not where it must be.
    #[error("section `{section}`: {what}")]
    Place {
        /// Name of the section.
        section: String,
        /// The problem.
        what: String,
    },
    /// A section's contents are not what was written.
    #[error("section `{section}` is damaged: its hash does not fit")]
    Hash {
        /// Name of the section.
        section: String,
    },
    /// A section does not hold what it should.
    #[error("section `{section}`: {what}")]
    Content {
        /// Name of the section.
        section: String,
        /// The problem.
        what: String,
    },
    /// There is no such target.
    #[error("there is no target {target}, the plan has {targets}")]
    Target {
        /// Index asked for.
        target: usize,
        /// How many there are.
        targets: usize,
    },
    /// The target is for CPUs that this version does not know.
    #[error("target {target} is for level `{level}`, which this kernmill does not know")]
    Level {
        /// Index.
        target: usize,
        /// Level.
        level: String,
    },
    /// A program refers to memory it does not have.
    #[error("the program of target {target} is not sound: {source}")]
    Program {
        /// Index.
        target: usize,
        /// The problem.
        source: CheckError,
    },
    /// Weights are not what was written.
    #[error(
        "weights are damaged: bytes {start} to {end} ({tensors}) do not have the hash they were written with"
    )]
    Weights {
        /// First byte, counted in the weights.
        start: u64,
        /// Byte after the last.
        end: u64,
        /// The tensors that they belong to.
        tensors: String,
    },
}
