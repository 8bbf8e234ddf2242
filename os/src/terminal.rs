//! Abilities of the terminal: colours, letters that are no ASCII, and how wide a line is; and questions to
//! the user. Everything that is printed for people asks here.

use crate::text::message;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Columns of a line where nothing says how many a terminal has.
const COLUMNS: usize = 100;
/// Columns of a line at most: longer ones are hard to read.
const MOST: usize = 140;

/// A variable's value, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

/// Whether the environment lets programs colour what they show on a terminal: NO_COLOR is not set, and TERM
/// is not `dumb`.
pub fn allows_colours() -> bool {
    colours_by(&variable)
}

fn colours_by(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_none() && !is_dumb(variable)
}

/// A dumb terminal takes no escape sequences at all.
fn is_dumb(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable("TERM").is_some_and(|term| term == "dumb")
}

/// Whether standard output is a terminal that takes colours.
pub fn output_has_colours() -> bool {
    io::stdout().is_terminal() && allows_colours()
}

/// Whether standard error is a terminal that takes colours.
pub fn errors_have_colours() -> bool {
    io::stderr().is_terminal() && allows_colours()
}

/// Whether a line on standard error can be drawn anew, as progress bars are.
pub fn can_redraw() -> bool {
    io::stderr().is_terminal() && !is_dumb(&variable)
}

/// Whether somebody reads standard error as it comes.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Whether letters that are no ASCII may be shown: the locale names no other encoding than UTF-8.
pub fn has_unicode() -> bool {
    unicode_by(&variable)
}

fn unicode_by(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    locale.is_none_or(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// Columns of a line of text: those of the terminal, or what COLUMNS says; up to 140.
pub fn columns() -> usize {
    let said = variable("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let of = |fd: i32| {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request writes one `winsize`, which `size` is.
        let done = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) } == 0;
        (done && size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    let shown = || of(io::stdout().as_raw_fd()).or_else(|| of(io::stderr().as_raw_fd()));
    shown().or(said).unwrap_or(COLUMNS).min(MOST)
}

/// Whether standard output was closed when the program began.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before the standard library does, which opens /dev/null in the place of a closed stream: a text
/// would be lost without a word.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_at_output;

extern "C" fn look_at_output() {
    // SAFETY: a system call that changes nothing.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the program began: what is written there would be lost.
pub fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn colours_are_left_out_where_the_environment_says_so() {
        assert!(colours_by(&with(&[("TERM", "xterm")])));
        assert!(!colours_by(&with(&[("TERM", "dumb")])));
        assert!(!colours_by(&with(&[("TERM", "xterm"), ("NO_COLOR", "1")])));
    }

    #[test]
    fn another_encoding_than_utf_8_gets_ascii() {
        assert!(unicode_by(&with(&[])));
        assert!(unicode_by(&with(&[("LANG", "C.UTF-8")])));
        assert!(unicode_by(&with(&[("LANG", "de_DE.utf8")])));
        assert!(!unicode_by(&with(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")])));
        assert!(!unicode_by(&with(&[("LC_CTYPE", "de_DE.ISO-8859-1")])));
    }
}
