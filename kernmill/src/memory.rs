//! Whether there is memory enough, before any of it is taken.

use crate::error::{Error, Result};
use kernmill_os::memory::{available_memory, free_space};
use kernmill_os::output::NewFile;
use kernmill_plan::program::Program;
use kernmill_runtime::MemoryNeed;
use kernmill_runtime::kv::KvShape;
use std::path::Path;

/// Bytes of memory that compiling the smallest models takes. With less, the system reads the program's own
/// pages again and again.
#[cfg(feature = "compiler")]
const COMPILER_MEMORY: u64 = 20 << 20;

/// Checks that at least 20 MiB of memory are available, which compiling the smallest model takes.
///
/// # Errors
/// When less is available.
#[cfg(feature = "compiler")]
pub fn check_compiler_memory() -> Result<()> {
    enough_to_compile(available_memory())
}

#[cfg(feature = "compiler")]
fn enough_to_compile(available: Option<u64>) -> Result<()> {
    match available.filter(|available| *available < COMPILER_MEMORY) {
        Some(available) => Err(Error::Work(format!(
            "not enough memory: {available} bytes are available, compiling takes at least {COMPILER_MEMORY}: raise the \
             limit of the control group (memory.max), or compile a plan elsewhere"
        ))),
        None => Ok(()),
    }
}

/// Whether a model's weights take memory of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsIn {
    /// In memory of their own.
    Memory,
    /// In a mapped file, whose pages the system may drop and read again: what is in its cache already, or on
    /// a file system in memory, is not taken once more.
    File,
}

/// Checks that there is memory enough to run `program`: KV cache and working memory of `threads` workers, and
/// the weights unless they are mapped from a file. `limit` is a number of bytes that may not be exceeded;
/// mapped weights count for it too.
///
/// # Errors
/// When more is needed than is available, or than `limit`. The message says how much each part takes.
pub fn check_memory(
    program: &Program,
    shape: KvShape,
    threads: usize,
    limit: Option<u64>,
    weights: WeightsIn,
) -> Result<()> {
    if let Some(least) = shape.least_budget(&program.model.kv) {
        return Err(Error::BadInput(format!(
            "--kv-memory is too small: one sequence of {} tokens, {} of them at once, takes {:.3} GB: give more, or \
             lower --context or --chunk",
            shape.context,
            shape.chunk,
            least as f64 / 1e9
        )));
    }
    let need = MemoryNeed::of(program, shape, threads);
    let total = need.total().saturating_add(program.weight_bytes);
    let taken = if weights == WeightsIn::File { need.total() } else { total };
    let available = available_memory().unwrap_or(u64::MAX);
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let refused = |needed: u64, allowed: u64| {
        Err(Error::BadInput(format!(
            "not enough memory: {:.3} GB needed (weights {:.3}, KV cache {:.3}, working memory {:.3}), {:.3} GB allowed: lower \
             --context or --chunk, or take a smaller model",
            gb(needed),
            if needed == total { gb(program.weight_bytes) } else { 0.0 },
            gb(need.kv),
            gb(need.total() - need.kv),
            gb(allowed)
        )))
    };
    match limit {
        Some(limit) if total > limit => refused(total, limit),
        _ if taken > available => refused(taken, available),
        _ => Ok(()),
    }
}

/// Checks that the file system of `path` has room for a file of `bytes` bytes.
///
/// # Errors
/// When it has less room, or the directory of `path` cannot be looked at.
pub fn check_space(path: &Path, bytes: u64) -> Result<()> {
    let Some(dir) = &NewFile::directory_of(path).map_err(Error::read(path))? else { return Ok(()) };
    let free = free_space(dir).map_err(|error| Error::input(dir, error))?;
    if free >= bytes {
        return Ok(());
    }
    Err(Error::input(dir, format!("not enough disk space: {bytes} bytes needed, {free} free")))
}

/// A number of bytes, with K, M, G or T for powers of 1000.
///
/// # Errors
/// When the text is no such number.
pub fn size(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        Some((at, 'T' | 't')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number * factor) as u64),
        _ => Err("expected a number of bytes, such as 800M or 15G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "compiler")]
    #[test]
    fn memory_that_no_compilation_gets_by_with_is_refused() {
        for available in [None, Some(COMPILER_MEMORY), Some(u64::MAX)] {
            enough_to_compile(available).unwrap();
        }
        for available in [0, 1 << 20, 16 << 20, COMPILER_MEMORY - 1] {
            let error = enough_to_compile(Some(available)).unwrap_err().to_string();
            assert!(error.starts_with("not enough memory: ") && error.contains("memory.max"), "{error}");
        }
    }
}
