//! Kinds of faults.

/// The kind of an error, which decides a program's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is wrong: the message says what and where.
    BadInput,
    /// This host or engine cannot do what was asked: the message says what would be needed.
    Unsupported,
    /// A fault of kernmill: the message asks for a report.
    Bug,
}
