//! The interface of Linux's `perf` for a process that makes code.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Nanoseconds of the clock that `perf record -k mono` uses.
pub fn monotonic_nanoseconds() -> u64 {
    // SAFETY: timespec is plain data, for which all zeros is a value.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is writable and lives through the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Maps the first page of a file as executable, for as long as the process lives: `perf record` notes such
/// mappings, and finds the file by them. Nothing is ever run or read there.
///
/// # Errors
/// The system's, such as where the file system forbids it.
pub fn show(file: &File) -> io::Result<()> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours, and nobody gets
    // its address.
    match unsafe { libc::mmap(std::ptr::null_mut(), 1, access, flags, file.as_raw_fd(), 0) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_shown_file_is_among_the_executable_mappings() {
        let path = std::env::temp_dir().join(format!("kernmill-shown-{}", std::process::id()));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        file.write_all(b"JiTD").unwrap();
        show(&file).unwrap();
        std::fs::remove_file(&path).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains(path.to_str().unwrap())).unwrap();
        assert!(line.contains(" r-xp 00000000 "), "{line}");
    }

    #[test]
    fn the_clock_is_that_of_the_system() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        // The time that the machine slept counts for one of them only.
        let (first, second) = (monotonic_nanoseconds(), monotonic_nanoseconds());
        assert!(0 < first && first <= second && second as f64 / 1e9 < seconds + 60.0);
    }
}
