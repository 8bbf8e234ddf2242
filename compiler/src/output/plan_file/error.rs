//! Why a plan is not written.

use crate::weights::PackWeightsError;
use std::io;

/// Why a plan was not written.
#[derive(Debug, thiserror::Error)]
pub enum PlanWriteError<E: std::error::Error + 'static> {
    /// A weight is unusable, or the source failed.
    #[error(transparent)]
    Pack(#[from] PackWeightsError<E>),
    /// The system refused to write.
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// Why parts do not make a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanPartsError {
    /// There is nothing to run.
    #[error("a plan needs at least one target")]
    NoTarget,
    /// The parts were not compiled from one graph.
    #[error("the targets' weights lie in different places (please report this)")]
    Layouts,
    /// The format has no room for it.
    #[error("{section} has {bytes} bytes, a plan holds at most {most}")]
    Large {
        /// Which section.
        section: &'static str,
        /// Size of the section.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// More targets than the section table holds.
    #[error("{found} sections, a plan holds at most {most}")]
    Sections {
        /// Sections that would be needed.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A program could not be serialised.
    #[error("serialising the {0} failed: {1} (please report this)")]
    Serialise(&'static str, postcard::Error),
}
