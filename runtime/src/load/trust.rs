//! Whose machine code is run: one's own, and the system's.

use kernmill_os::proc;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// Why a plan's machine code is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntrustedReason {
    /// Somebody else owns the file.
    Owner {
        /// User id of the owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// The owner is shown as this process's user, but may be anybody.
    Unmapped {
        /// The number by which this user namespace shows all users that it does not know.
        owner: u32,
    },
    /// Others than its owner can write the file.
    Writable {
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file system is mounted `noexec`.
    NoExec,
}

impl UntrustedReason {
    /// Why the machine code of a plan in this open file would not be run; `None` if it would be.
    ///
    /// # Errors
    /// When the system does not say whose the file is.
    pub fn of(file: &File) -> io::Result<Option<UntrustedReason>> {
        Ok(distrust(file, &file.metadata()?))
    }
}

impl fmt::Display for UntrustedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UntrustedReason::Owner { owner, user } => {
                write!(f, "the file belongs to user {owner}, expected {user} (who runs this) or root")
            }
            UntrustedReason::Unmapped { owner } => write!(
                f,
                "the file belongs to user {owner}, by which this user namespace shows all users that it does \
                 not know, expected a user that it knows"
            ),
            UntrustedReason::Writable { mode } => write!(
                f,
                "others than its owner can write the file (mode {mode:04o}), expected its owner alone"
            ),
            UntrustedReason::NoExec => {
                write!(f, "its file system is mounted noexec, expected one that programs are run from")
            }
        }
    }
}

const ROOT: u32 = 0;
/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;
const PERMISSIONS: u32 = 0o7777;
/// `/proc/sys/kernel/overflowuid`, unless it was changed.
const OVERFLOW: u32 = 65534;

/// The facts that speak for and against a file.
#[derive(Clone, Copy, Debug)]
struct FileOwnership {
    owner: u32,
    /// User id of this process.
    user: u32,
    mode: u32,
    /// Whether the owner's number may stand for any user.
    is_anybody: bool,
    /// Whether its file system is mounted `noexec`.
    no_exec: bool,
}

/// The reason to distrust the code of an open file.
pub(super) fn distrust(file: &File, status: &Metadata) -> Option<UntrustedReason> {
    let owner = status.uid();
    rule(FileOwnership {
        owner,
        // SAFETY: geteuid has no preconditions and cannot fail.
        user: unsafe { libc::geteuid() },
        mode: status.mode() & PERMISSIONS,
        is_anybody: is_anybody(owner, &text("sys/kernel/overflowuid"), &text("self/uid_map")),
        no_exec: is_no_exec(file),
    })
}

fn rule(facts: FileOwnership) -> Option<UntrustedReason> {
    let FileOwnership { owner, user, mode, is_anybody, no_exec } = facts;
    if owner != user && owner != ROOT {
        Some(UntrustedReason::Owner { owner, user })
    } else if is_anybody {
        Some(UntrustedReason::Unmapped { owner })
    } else if mode & OTHERS_WRITE != 0 {
        Some(UntrustedReason::Writable { mode })
    } else if no_exec {
        Some(UntrustedReason::NoExec)
    } else {
        None
    }
}

/// Whether `owner` is the number of all users that the user namespace does not know; `overflow` and `map` are
/// what the system says of these. A namespace that knows every number, as the initial one does, shows nobody
/// so but the user who has the number.
fn is_anybody(owner: u32, overflow: &str, map: &str) -> bool {
    let knows_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    owner == overflow.trim().parse().unwrap_or(OVERFLOW) && !knows_all
}

/// The text of a file of /proc; empty where it is missing.
fn text(name: &str) -> String {
    proc::text(name).unwrap_or_default()
}

/// An unanswered question is not held against the file.
fn is_no_exec(file: &File) -> bool {
    // SAFETY: statvfs is plain data, for which all zeros is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open and `stat` is writable; both live through the call.
    let told = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut stat) } == 0;
    told && stat.f_flag & libc::ST_NOEXEC != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(owner: u32, user: u32, mode: u32) -> FileOwnership {
        FileOwnership { owner, user, mode, is_anybody: false, no_exec: false }
    }

    #[test]
    fn ones_own_and_roots_files_are_trusted_unless_others_can_write_them() {
        for (owner, user, mode) in [(1000, 1000, 0o644), (0, 1000, 0o755), (0, 0, 0o600)] {
            assert_eq!(rule(of(owner, user, mode)), None);
        }
        assert_eq!(rule(of(1001, 1000, 0o644)), Some(UntrustedReason::Owner { owner: 1001, user: 1000 }));
        assert_eq!(rule(of(1000, 0, 0o600)), Some(UntrustedReason::Owner { owner: 1000, user: 0 }));
        for mode in [0o664, 0o646, 0o666, 0o777] {
            assert_eq!(rule(of(1000, 1000, mode)), Some(UntrustedReason::Writable { mode }));
        }
    }

    #[test]
    fn files_where_nothing_is_executed_are_not_trusted() {
        for (owner, user) in [(1000, 1000), (0, 1000), (0, 0)] {
            assert_eq!(
                rule(FileOwnership { no_exec: true, ..of(owner, user, 0o644) }),
                Some(UntrustedReason::NoExec)
            );
        }
        // The system's answers for each file system that has a file to ask about.
        for path in ["/proc/self/stat", "/proc/version", "/sys/kernel/notes", "/etc/passwd", "/bin/sh"] {
            let Ok(file) = File::open(path) else { continue };
            let mounts = text("self/mounts");
            let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let of_path = mount.filter(|mount| std::path::Path::new(path).starts_with(mount[1]));
            let Some(mount) = of_path.max_by_key(|mount| mount[1].len()) else { continue };
            assert_eq!(is_no_exec(&file), mount[3].split(',').any(|option| option == "noexec"), "{mount:?}");
        }
    }

    #[test]
    fn owners_that_may_be_anybody_are_not_trusted() {
        let initial = "         0          0 4294967295\n";
        for (owner, overflow, map, anybody) in [
            (65534, "65534\n", initial, false),
            (65534, "65534\n", "      1000       1000          1\n", true),
            (65534, "65534\n", "         0     100000      65536\n", true),
            (65534, "", "", true),
            (1000, "", "", false),
            // A value that makes no sense counts as missing.
            (65534, "nobody\n", "0 0 many", true),
            (65534, "-2", "0 0 4294967295 1000 0 1", true),
            (1000, "\u{fffd}", "\u{fffd}", false),
            (1000, "65534\n", "      1000       1000          1\n", false),
            (99, "99\n", "0 1000 1\n", true),
            (65534, "99\n", "0 1000 1\n", false),
        ] {
            assert_eq!(is_anybody(owner, overflow, map), anybody, "{owner} {overflow:?} {map:?}");
        }
        let facts = FileOwnership { is_anybody: true, ..of(65534, 65534, 0o600) };
        assert_eq!(rule(facts), Some(UntrustedReason::Unmapped { owner: 65534 }));
    }
}
