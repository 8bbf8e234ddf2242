//! Whether there is memory enough to compile.

use crate::error::{Error, Result};
use kernmill_os::memory::available_memory;

/// Bytes of memory that compiling the smallest models takes. With less, the system reads the program's own
/// pages again and again.
const COMPILER_MEMORY: u64 = 20 << 20;

/// Checks that at least 20 MiB of memory are available, which compiling the smallest model takes.
///
/// # Errors
/// When less is available.
pub(super) fn check_compiler_memory() -> Result<()> {
    enough_to_compile(available_memory())
}

fn enough_to_compile(available: Option<u64>) -> Result<()> {
    match available.filter(|available| *available < COMPILER_MEMORY) {
        Some(available) => Err(Error::failed(format!(
            "not enough memory: {available} bytes are available, compiling takes at least {COMPILER_MEMORY}: raise the \
             limit of the control group (memory.max), or compile a plan elsewhere"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
