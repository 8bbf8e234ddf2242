//! Rows that are moved together lie in buffers that live from before the step to it.

use crate::program::{TokenClass, TokenRows, WantedOnly};

/// Checks from where on a class only has to do with wanted rows. An error names its step.
pub(super) fn check_wanted_only(class: &TokenClass) -> Result<(), (String, String)> {
    let Some(WantedOnly { step, rows }) = &class.wanted_only else { return Ok(()) };
    let name = || class.steps.get(*step as usize).map_or_else(|| step.to_string(), |step| step.label.clone());
    if !(1..class.steps.len()).contains(&(*step as usize)) {
        let message = format!("is to be the first for wanted rows alone, of {} steps", class.steps.len());
        return Err((name(), message));
    }
    for TokenRows { buffer, bytes } in rows {
        let Some(of) = class.buffers.get(*buffer as usize) else {
            return Err((name(), format!("moves rows of buffer {buffer} of {}", class.buffers.len())));
        };
        let fits = bytes.checked_mul(class.max_tokens.into()).is_some_and(|all| all <= of.bytes);
        if !fits || of.first >= *step || of.last < *step {
            let message = format!(
                "moves rows of {bytes} bytes in `{}`, {} bytes that live over steps {}..={}",
                of.name, of.bytes, of.first, of.last
            );
            return Err((name(), message));
        }
    }
    Ok(())
}
