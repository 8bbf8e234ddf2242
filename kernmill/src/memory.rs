//! Whether there is memory enough, before any of it is taken.

use crate::error::{Error, Result};
use kernmill_os::memory::{free_space, lock_limit};
use kernmill_os::output::NewFile;
use kernmill_os::region::WeightRegion;
use kernmill_os::text::size;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use std::path::Path;

/// Tokens that a sequence may have, if the caller asks for `asked` or else wants room for `wanted`; never
/// more than `longest`, the model's longest.
///
/// # Errors
/// When more is asked for, or none.
pub fn context(longest: u32, asked: Option<u32>, wanted: usize) -> Result<u32> {
    match asked {
        Some(context) if !(1..=longest).contains(&context) => {
            let what = format!("--context is {context}, expected 1 to {longest}, the model's longest");
            Err(Error::bad_input(what))
        }
        Some(context) => Ok(context),
        None => Ok((wanted.min(longest as usize) as u32).max(DEFAULT_CONTEXT.min(longest))),
    }
}

/// Checks that a process like this one may lock `bytes` bytes of weights in memory.
pub(crate) fn check_lock(bytes: u64) -> Result<()> {
    match lock_limit() {
        Some(limit) if limit < bytes => {
            Err(not_locked(bytes, &format!("the limit (RLIMIT_MEMLOCK) is {limit} bytes")))
        }
        _ => Ok(()),
    }
}

/// Locks weights in memory.
pub(crate) fn lock(weights: &WeightRegion) -> Result<()> {
    weights.lock().map_err(|error| not_locked(weights.len() as u64, &error.to_string()))
}

fn not_locked(bytes: u64, because: &str) -> Error {
    Error::bad_input(format!(
        "--mlock: {bytes} bytes of weights cannot be locked in memory: {because}: raise the limit (ulimit -l \
         unlimited, LimitMEMLOCK=infinity of systemd, --ulimit memlock=-1 of containers), or leave out --mlock"
    ))
}

/// Checks that the file system of `path` has room for a file of `bytes` bytes.
///
/// # Errors
/// When it has less room, or the directory of `path` cannot be looked at.
pub fn check_space(path: &Path, bytes: u64) -> Result<()> {
    let Some(dir) = &NewFile::directory_of(path).map_err(Error::read(path))? else { return Ok(()) };
    let free = free_space(dir).map_err(Error::read(dir))?;
    if free >= bytes {
        return Ok(());
    }
    Err(Error::input(dir, format!("not enough disk space: {} needed, {} free", size(bytes), size(free))))
}
