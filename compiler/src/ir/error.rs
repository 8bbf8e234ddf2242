//! Why a graph is not legal.

/// A problem of a graph, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct GraphError {
    /// The node, tensor or rope, such as `%layers.0.q (linear)`.
    pub at: String,
    /// The problem, and what was expected.
    pub message: String,
}

impl GraphError {
    /// An error at a place.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> GraphError {
        GraphError { at: at.into(), message: message.into() }
    }
}
