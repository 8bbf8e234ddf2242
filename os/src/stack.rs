//! Stacks of this process's threads. Where they are too small, a program says so at its start, instead of
//! ending in the midst of its work.

use std::env::var_os;
use std::ffi::OsStr;

/// Bytes of stack that a thread needs: documents from elsewhere may be nested as deeply as their readers
/// allow.
const STACK: u64 = 1 << 20;

/// Whether the stacks of this process's threads are large enough.
///
/// # Errors
/// When they are not; the message says what limits them.
pub fn check() -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable and lives through the call.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    check_stack(told.then_some(limit.rlim_cur), var_os("RUST_MIN_STACK").as_deref())
}

/// `limit` is that of the first thread, `others` what the environment says of the others; without these there
/// is enough.
fn check_stack(limit: Option<u64>, others: Option<&OsStr>) -> Result<(), String> {
    if let Some(limit) = limit.filter(|limit| *limit < STACK) {
        return Err(format!(
            "the stack may have {limit} bytes, expected at least {STACK}: raise the limit (ulimit -s {})",
            STACK >> 10
        ));
    }
    // A value that is no number counts as nothing, as for the standard library.
    let others = others.and_then(OsStr::to_str).and_then(|text| text.parse::<u64>().ok());
    match others.filter(|bytes| *bytes < STACK) {
        Some(bytes) => {
            Err(format!("RUST_MIN_STACK is {bytes}, expected at least {STACK}, or no such variable"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_below_a_mebibyte_are_refused_by_what_limits_them() {
        let check = |limit, others: Option<&str>| check_stack(limit, others.map(OsStr::new));
        for (limit, others) in [
            (None, None),
            (Some(1 << 20), None),
            (Some(libc::RLIM_INFINITY), Some("1048576")),
            (Some(8 << 20), Some("many")),
            (None, Some("-1")),
        ] {
            assert_eq!(check(limit, others), Ok(()), "{limit:?} {others:?}");
        }
        for limit in [0, 65_536, (1 << 20) - 1] {
            assert!(check(Some(limit), None).unwrap_err().contains("ulimit -s 1024"));
        }
        for others in ["0", "4096", "1048575"] {
            let error = check(Some(8 << 20), Some(others)).unwrap_err();
            assert!(error.starts_with(&format!("RUST_MIN_STACK is {others}, expected")), "{error}");
        }
    }
}
