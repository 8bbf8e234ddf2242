//! Names and times of answers.

use std::time::{SystemTime, UNIX_EPOCH};

/// A new name that begins with `prefix`.
pub fn new(prefix: &str) -> String {
    format!("{prefix}{:016x}{:08x}", fastrand::u64(..), fastrand::u32(..))
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
