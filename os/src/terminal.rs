//! The streams of a program: what was closed when it began, and questions to who is at the terminal.

use crate::text::message;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when the program began.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before the standard library does, which opens /dev/null in the place of a closed stream: a text
/// would be lost without a word.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    // SAFETY: a system call that changes nothing.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the program began.
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

/// Asks a question, whose answer is yes or no. Where standard input or standard error is no terminal, nobody
/// is asked, and the answer is no.
pub fn asks(question: &str) -> bool {
    let mut line = String::new();
    let (input, mut output) = (io::stdin(), io::stderr());
    input.is_terminal()
        && output.is_terminal()
        && write!(output, "{} [y/N] ", message(question)).and_then(|()| output.flush()).is_ok()
        && input.read_line(&mut line).is_ok()
        && ["y", "yes"].iter().any(|yes| line.trim().eq_ignore_ascii_case(yes))
}
