//! Whose machine code is run: one's own, and the system's.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Why a plan's machine code is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// Somebody else owns the file.
    Owner {
        /// Their user id.
        owner: u32,
        /// This process's.
        user: u32,
    },
    /// Others than its owner can write the file.
    Writable {
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::Owner { owner, user } => {
                write!(f, "the file belongs to user {owner}, expected {user} (who runs this) or root")
            }
            Distrust::Writable { mode } => {
                write!(
                    f,
                    "others than its owner can write the file (mode {mode:04o}), expected its owner alone"
                )
            }
        }
    }
}

const ROOT: u32 = 0;
/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;
const PERMISSIONS: u32 = 0o7777;

/// What speaks against the code of an open file.
pub(super) fn distrust(status: &Metadata) -> Option<Distrust> {
    // SAFETY: geteuid has no preconditions and cannot fail.
    rule(status.uid(), unsafe { libc::geteuid() }, status.mode() & PERMISSIONS)
}

fn rule(owner: u32, user: u32, mode: u32) -> Option<Distrust> {
    if owner != user && owner != ROOT {
        Some(Distrust::Owner { owner, user })
    } else if mode & OTHERS_WRITE != 0 {
        Some(Distrust::Writable { mode })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_and_roots_files_are_trusted_unless_others_can_write_them() {
        for (owner, user, mode) in [(1000, 1000, 0o644), (0, 1000, 0o755), (0, 0, 0o600)] {
            assert_eq!(rule(owner, user, mode), None);
        }
        assert_eq!(rule(1001, 1000, 0o644), Some(Distrust::Owner { owner: 1001, user: 1000 }));
        assert_eq!(rule(1000, 0, 0o600), Some(Distrust::Owner { owner: 1000, user: 0 }));
        for mode in [0o664, 0o646, 0o666, 0o777] {
            assert_eq!(rule(1000, 1000, mode), Some(Distrust::Writable { mode }));
        }
    }
}
