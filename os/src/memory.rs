//! How much memory and disk space there is to take.

use crate::proc;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes that can be taken without swapping or being killed: the least of the system's `MemAvailable` and
/// what every control group above this process leaves. `None` when neither can be read.
pub fn available_memory() -> Option<u64> {
    let [system, groups] = ["meminfo", "self/cgroup"].map(|name| proc::text(name).unwrap_or_default());
    system_memory(&system).into_iter().chain(group_limits(&groups)).min()
}

/// The memory that `/proc/meminfo` reports.
fn system_memory(text: &str) -> Option<u64> {
    field(text, "MemAvailable:").map(|kib| kib.saturating_mul(1024))
}

/// Bytes that an ordinary user may still write to the file system of the directory `dir`.
///
/// # Errors
/// When the system does not say, as for a directory that does not exist.
pub fn free_space(dir: &Path) -> std::io::Result<u64> {
    let path = std::ffi::CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: statvfs is plain data, for which all zeros is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a NUL and `stat` is writable; both live through the call.
    match unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } {
        0 => Ok(stat.f_bavail.saturating_mul(stat.f_frsize)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Bytes that this process may lock in memory at once (`RLIMIT_MEMLOCK`); `None` when there is no limit for
/// it, or none that can be read.
pub fn lock_limit() -> Option<u64> {
    let status = proc::text("self/status").unwrap_or_default();
    if has_capability(&status, CAP_IPC_LOCK) {
        return None;
    }
    // SAFETY: rlimit is plain data, for which all zeros is a value.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is writable and lives through the call.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    (told && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Number of the capability to lock any memory, in the kernel's `capability.h`.
const CAP_IPC_LOCK: u32 = 14;

/// Whether `/proc/self/status` says that a capability is in effect.
fn has_capability(status: &str, number: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> number & 1 == 1)
}

/// Drops what the system keeps of a file in memory, as far as it is neither mapped nor still to be written.
///
/// # Errors
/// When the system refuses.
pub fn drop_cache(file: &File) -> std::io::Result<()> {
    // SAFETY: the file is open; advice about it changes nothing but speed.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

/// Whether the file's pages are memory that the system cannot drop: a file system in memory holds it.
pub fn lies_in_memory(file: &File) -> bool {
    // SAFETY: statfs is plain data, for which all zeros is a value.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open and `stat` is writable; both live through the call.
    let told = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut stat) } == 0;
    told && [libc::TMPFS_MAGIC, RAMFS_MAGIC].contains(&stat.f_type)
}

/// Type of a ramfs in the kernel's `magic.h`.
const RAMFS_MAGIC: libc::__fsword_t = 0x8584_58f6;

/// The memory that each group on the way to the root leaves, for both hierarchy versions.
fn group_limits(membership: &str) -> Vec<u64> {
    let mut left = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, files) = if controllers.is_empty() {
            ("/sys/fs/cgroup", ["memory.max", "memory.current"])
        } else if controllers.split(',').any(|c| c == "memory") {
            ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"])
        } else {
            continue;
        };
        let mut dir: PathBuf = Path::new(root).join(path.trim_start_matches('/'));
        while dir.starts_with(root) {
            left.extend(group_left(&dir, files));
            if !dir.pop() {
                break;
            }
        }
    }
    left
}

/// Limit less use, where page cache does not count as used: it is given up under pressure.
fn group_left(dir: &Path, [limit, usage]: [&str; 2]) -> Option<u64> {
    let number = |name: &str| read(dir.join(name))?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(limit)?, number(usage)?);
    let stat = read(dir.join("memory.stat")).unwrap_or_default();
    let sum = |names: [&str; 2]| {
        names.iter().try_fold(0u64, |bytes, name| Some(bytes.saturating_add(field(&stat, name)?)))
    };
    let cache = sum(["total_inactive_file", "total_active_file"])
        .or_else(|| sum(["inactive_file", "active_file"]))
        .unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        if words.next() == Some(name) { words.next()?.parse().ok() } else { None }
    })
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_take_some_of_the_machines_memory() {
        let available = available_memory().expect("/proc/meminfo is there");
        let all =
            field(&proc::text("meminfo").expect("it is there"), "MemTotal:").expect("it is said") * 1024;
        assert!(available > 0 && available < all, "{available} of {all}");
    }

    #[test]
    fn a_control_group_leaves_its_limit_less_what_is_used_besides_cache() {
        let dir = std::env::temp_dir().join(format!("kernmill-group-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("writable");
        let files = ["memory.max", "memory.current"];
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("writable");
        assert_eq!(group_left(&dir, files), None);
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        assert_eq!(group_left(&dir, files), Some(300));
        write("memory.stat", "anon 100\ninactive_file 150\nactive_file 50\n");
        assert_eq!(group_left(&dir, files), Some(500));
        write("memory.current", "1900\n");
        assert_eq!(group_left(&dir, files), Some(0));
        write("memory.stat", "inactive_file 18446744073709551615\nactive_file 50\n");
        assert_eq!(group_left(&dir, files), Some(1000));
        write("memory.stat", "inactive_file many\n");
        assert_eq!(group_left(&dir, files), Some(0));
        write("memory.max", "max\n");
        assert_eq!(group_left(&dir, files), None);
        std::fs::remove_dir_all(&dir).expect("writable");
    }

    #[test]
    fn what_the_system_does_not_say_or_says_wrongly_is_no_limit() {
        assert_eq!(system_memory("MemTotal: 9 kB\nMemAvailable:      7 kB\n"), Some(7 << 10));
        for text in [
            "",
            "MemAvailable:",
            "MemAvailable: lots",
            "MemAvailable: -7 kB",
            "XMemAvailable: 7 kB",
            "\u{fffd}\0",
        ] {
            assert_eq!(system_memory(text), None, "{text:?}");
        }
        assert_eq!(system_memory("MemAvailable: 18446744073709551615 kB"), Some(u64::MAX));
        for text in ["", "0", "0:", "0::", "::", "1:cpu:/x", "0::/no/such/group", "0::../..", "x:memory:\0"] {
            assert!(group_limits(text).iter().all(|left| *left > 0), "{text:?}");
        }
    }

    #[test]
    fn file_systems_have_space_or_none_and_directories_exist_or_not() {
        assert!(free_space(Path::new(".")).expect("it exists") < 1 << 60);
        assert_eq!(free_space(Path::new("/proc")).expect("it exists"), 0);
        assert!(free_space(Path::new("no such directory")).is_err());
    }

    #[test]
    fn files_of_proc_lie_on_no_file_system_in_memory() {
        assert!(!lies_in_memory(&File::open("/proc/self/stat").expect("it exists")));
        // Where there is shared memory, it is a tmpfs.
        if proc::text("mounts").is_some_and(|mounts| mounts.contains(" /dev/shm tmpfs ")) {
            assert!(lies_in_memory(&File::open("/dev/shm").expect("it exists")));
        }
    }

    #[test]
    fn capabilities_are_bits_of_a_mask() {
        let status = "CapPrm:\t0000000000000000\nCapEff:\t0000000000004001\n";
        assert!(has_capability(status, CAP_IPC_LOCK) && has_capability(status, 0));
        assert!(!has_capability(status, 1) && !has_capability(status, 15));
        for nothing in ["", "CapEff:", "CapEff:\tmany", "CapEff:\t11111111111111111"] {
            assert!(!has_capability(nothing, CAP_IPC_LOCK), "{nothing:?}");
        }
    }

    #[test]
    fn fields_match_whole_words() {
        let text = "total_inactive_file 5\ninactive_file 3\n";
        assert_eq!(field(text, "inactive_file"), Some(3));
        assert_eq!(field(text, "file"), None);
    }
}
