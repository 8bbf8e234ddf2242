//! Executable memory: the one module that makes some.

use memmap2::{Mmap, MmapMut};

/// Why code could not be made executable.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The copy is not what was promised.
    #[error(
        "the code's hash is {found}, expected {expected}: the plan changed while it was loaded or is damaged"
    )]
    Hash {
        /// Hash of the copy.
        found: String,
        /// Hash in the plan.
        expected: String,
    },
    /// The system lets no memory become executable.
    #[error(
        "the system forbids this process to make generated code executable ({0}): MemoryDenyWriteExecute of \
         systemd, or execmem of SELinux, must allow it"
    )]
    Forbidden(#[source] std::io::Error),
    /// The system refused the memory.
    #[error("making {bytes} bytes of code executable: {source}")]
    Map {
        /// Size of the code.
        bytes: usize,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Machine code that can be called. It is never writable and executable at once.
pub(crate) struct ExecutableCode(Mmap);

impl ExecutableCode {
    /// Copies `bytes` to anonymous memory, checks that the *copy* has the expected hash (the source may be a
    /// file mapping that someone changes), and only then makes it executable.
    pub(crate) fn load(bytes: &[u8], expected: &blake3::Hash) -> Result<ExecutableCode, CodeError> {
        let refused = |source| CodeError::Map { bytes: bytes.len(), source };
        let mut copy = MmapMut::map_anon(bytes.len().max(1)).map_err(refused)?;
        copy[..bytes.len()].copy_from_slice(bytes);
        let found = blake3::hash(&copy[..bytes.len()]);
        if found != *expected {
            return Err(CodeError::Hash {
                found: found.to_hex().to_string(),
                expected: expected.to_hex().to_string(),
            });
        }
        copy.make_exec().map(ExecutableCode).map_err(|source| match source.kind() {
            std::io::ErrorKind::PermissionDenied => CodeError::Forbidden(source),
            _ => refused(source),
        })
    }

    /// Address of the code's byte at `offset`, which the caller has checked to be inside.
    pub(crate) fn address(&self, offset: usize) -> *const u8 {
        self.0[offset..].as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_and_a_changed_copy_is_refused() {
        // mov eax, 42; ret
        let bytes = [0xb8, 42, 0, 0, 0, 0xc3];
        let code = ExecutableCode::load(&bytes, &blake3::hash(&bytes)).unwrap();
        // SAFETY: the bytes above are a function of this type.
        let f = unsafe { std::mem::transmute::<*const u8, extern "C" fn() -> u32>(code.address(0)) };
        assert_eq!(f(), 42);
        let refused = ExecutableCode::load(&[0xc3], &blake3::hash(&bytes));
        assert!(matches!(refused, Err(CodeError::Hash { .. })));
    }
}
