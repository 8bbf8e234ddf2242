//! Names and times of answers.

use kernmill_chat::Date;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A new name that begins with `prefix`.
pub fn new(prefix: &str) -> String {
    format!("{prefix}{:016x}{:08x}", fastrand::u64(..), fastrand::u32(..))
}

/// Seconds since 1970.
pub fn now() -> u64 {
    since_1970().as_secs()
}

/// The time since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A time since 1970 as RFC 3339 has it, in UTC.
pub fn timestamp(time: Duration) -> String {
    let seconds = time.as_secs();
    let (year, month, day) =
        Date::from_unix_days((seconds / 86_400) as u32).map_or((1970, 1, 1), Date::parts);
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    let micros = time.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::timestamp;
    use std::time::Duration;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_000_007, "2000-02-28T23:59:59.000007Z"),
            (951_782_400_500_000, "2000-02-29T00:00:00.500000Z"),
            (1_796_083_385_000_000, "2026-12-01T00:03:05.000000Z"),
        ] {
            assert_eq!(timestamp(Duration::from_micros(micros)), expected);
        }
    }
}
