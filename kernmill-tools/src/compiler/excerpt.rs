//! Errors of specs with the lines that they are about.

use kernmill::Error;
use kernmill_compiler::front::spec::SpecError;
use kernmill_os::terminal::errors_have_colours;
use kernmill_os::text::message;
use std::borrow::Cow;
use std::error::Error as _;

/// The message of an error that a spec has, with its place in the text; `None` of other errors.
pub fn excerpt(error: &Error) -> Option<String> {
    let error: &SpecError = error.source()?.downcast_ref()?;
    // A spec that has control characters itself is shown without them, and without colours.
    let plain = error.excerpt(false);
    Some(match message(&plain) {
        Cow::Owned(cleaned) => cleaned,
        Cow::Borrowed(_) => error.excerpt(errors_have_colours()),
    })
}
