//! A function's name before its arguments, where calls are no objects.

use super::format::CallFormat;
use super::parse::NAME_BYTES;

/// What a text is that begins with the name of a function.
#[derive(Debug, PartialEq)]
pub(super) enum Head {
    /// Nothing certain yet.
    Unfinished,
    /// No call.
    Other,
    /// A name, and the byte where its arguments begin; `None` where there are none.
    Name(String, Option<usize>),
}

/// Reads the name that a text begins with, up to the arguments.
pub(super) fn head(format: &CallFormat, text: &str) -> Head {
    let marks =
        || format.after_name.iter().copied().chain(["{", format.close]).filter(|mark| !mark.is_empty());
    let next = |from: usize| {
        let found = marks().filter_map(|mark| Some((from + text[from..].find(mark)?, mark)));
        found.min_by_key(|(at, _)| *at)
    };
    let line = text.find('\n').unwrap_or(usize::MAX).min(NAME_BYTES);
    let Some((at, mut mark)) = next(0).filter(|(at, _)| *at < line) else {
        // Marks are no longer than that.
        let is_certain = line < NAME_BYTES || text.len() >= NAME_BYTES + 16;
        return if is_certain { Head::Other } else { Head::Unfinished };
    };
    let name = text[..at].trim().to_owned();
    let mut end = at;
    // An identifier of the call may come before the arguments.
    while !["{", format.close].contains(&mark) {
        end += mark.len();
        let rest = text[end..].trim_start();
        let has_id = format.after_name.last() != Some(&mark);
        match next(end).filter(|(at, _)| *at < end + NAME_BYTES) {
            Some((at, next)) if has_id || text[end..at].trim().is_empty() => (end, mark) = (at, next),
            Some(_) => return Head::Other,
            None if has_id && text.len() < end + NAME_BYTES + 16 => return Head::Unfinished,
            None if !has_id && marks().any(|mark| mark.starts_with(rest)) => return Head::Unfinished,
            None => return Head::Other,
        }
    }
    Head::Name(name, (mark == "{").then_some(end))
}
