//! Why there is no constraint, or why it cannot go on.

/// Why a constraint cannot be made or followed. Every message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A rule has a mistake, or asks for what is not supported.
    #[error("{what}: {reason}")]
    Rule {
        /// The problem.
        what: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// A rule is too large.
    #[error("{what} has {found} {unit}, expected at most {limit}")]
    TooLarge {
        /// The thing that is too large.
        what: String,
        /// Size of it.
        found: usize,
        /// The unit of the count.
        unit: &'static str,
        /// The largest that is allowed.
        limit: usize,
    },
    /// The vocabulary cannot be used for constraints.
    #[error("constrained output is not supported for this vocabulary: {0}")]
    Vocabulary(String),
    /// A token may not come next.
    #[error("token {id} may not come here: the mask of allowed tokens does not have it")]
    NotAllowed {
        /// The token.
        id: u32,
    },
    /// The text is complete.
    #[error("token {id} comes after the end: the constrained text is complete")]
    AfterEnd {
        /// The token.
        id: u32,
    },
    /// Following the text is too much work, or the rule leaves no way on.
    #[error("the constraint cannot be followed any further: {0}; a simpler schema or grammar helps")]
    Stuck(String),
}

/// The first line of a message, not too long, without what follows it for debugging. The parser of regular
/// expressions draws a picture before it says what is wrong.
pub(crate) fn one_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("no reason is known");
    let line = match lines.find_map(|line| line.strip_prefix("error: ")).filter(|_| first.ends_with(':')) {
        Some(reason) => format!("{first} {reason}"),
        None => first.to_owned(),
    };
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
