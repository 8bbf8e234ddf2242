//! Kinds of faults.

/// What kind of fault an error is, which decides a program's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is wrong: the message says what and where.
    BadInput,
    /// This host or engine cannot do what was asked: the message says what would be needed.
    Unsupported,
    /// A fault of kernmill: the message asks for a report.
    Bug,
}
