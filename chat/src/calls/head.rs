//! A function's name before its arguments, where calls are no objects.

use super::format::{CallFormat, NAME_BYTES};

/// The result of reading a text that begins with the name of a function.
#[derive(Debug, PartialEq)]
pub(super) enum CallHead {
    /// Nothing certain yet.
    Unfinished,
    /// No call.
    Other,
    /// The name.
    Name {
        name: String,
        /// The byte where the arguments begin, or what ends the call.
        end: usize,
        has_arguments: bool,
    },
}

/// Reads the name that a text begins with, up to the arguments.
pub(super) fn head(format: &CallFormat, text: &str) -> CallHead {
    let skipped = match text.strip_prefix(format.before_name) {
        Some(_) => format.before_name.len(),
        None if format.before_name.starts_with(text) => return CallHead::Unfinished,
        None => 0,
    };
    let (begin, end_of_call) = format.pairs().map_or(("{", ""), |pairs| (pairs.before_key, pairs.end));
    let ends = || [begin, end_of_call, format.close].into_iter().filter(|mark| !mark.is_empty());
    let marks = || format.after_name.iter().copied().chain(ends());
    let next = |from: usize| {
        let found = marks().filter_map(|mark| Some((from + text[from..].find(mark)?, mark)));
        found.min_by_key(|(at, _)| *at)
    };
    let line = text.find('\n').unwrap_or(usize::MAX).min(NAME_BYTES);
    let Some((at, mut mark)) = next(skipped).filter(|(at, _)| *at <= line) else {
        // Marks are no longer than that.
        let is_broken = line < NAME_BYTES && !marks().any(|mark| mark.starts_with(&text[line..]));
        return if is_broken || text.len() >= NAME_BYTES + 64 {
            CallHead::Other
        } else {
            CallHead::Unfinished
        };
    };
    let name = text[skipped..at].trim().to_owned();
    let mut end = at;
    // An identifier of the call may come before the arguments.
    while !ends().any(|end| end == mark) {
        end += mark.len();
        let rest = text[end..].trim_start();
        let has_id = format.after_name.last() != Some(&mark);
        match next(end).filter(|(at, _)| *at < end + NAME_BYTES) {
            Some((at, next)) if has_id || text[end..at].trim().is_empty() => (end, mark) = (at, next),
            Some(_) => return CallHead::Other,
            None if has_id && text.len() < end + NAME_BYTES + 64 => return CallHead::Unfinished,
            None if !has_id && marks().any(|mark| mark.starts_with(rest)) => return CallHead::Unfinished,
            None => return CallHead::Other,
        }
    }
    CallHead::Name { name, end, has_arguments: mark == begin }
}
