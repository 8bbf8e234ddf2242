//! Files of `/proc`. They are not there in every container, so every reader does without: nothing that is
//! missing, cannot be read or makes no sense is an error.

use crate::files::read_named;
use std::ffi::{CStr, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};

/// Most bytes of a file: the list of a process's mappings has some megabytes at most.
const PROC_BYTES: u64 = 16 << 20;

/// The text of the file `name` in `/proc`, such as `self/status`; `None` if it is missing, cannot be read, or
/// never ends. Bytes that are no text, as in names of files, are replaced.
pub fn text(name: &str) -> Option<String> {
    text_in(Path::new("/proc"), name)
}

fn text_in(proc: &Path, name: &str) -> Option<String> {
    let bytes = read_named(&proc.join(name), PROC_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file of the program that this process runs.
///
/// # Errors
/// When neither `/proc` nor the system's auxiliary vector names it.
pub fn program_file() -> io::Result<PathBuf> {
    // Without /proc only the path by which the process was started is known.
    std::env::current_exe().or_else(|error| started_by().unwrap_or(Err(error)))
}

/// The path that this process was started by.
fn started_by() -> Option<io::Result<PathBuf>> {
    // SAFETY: asking has no preconditions.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if name.is_null() {
        return None;
    }
    // SAFETY: the system gives every process this string, which ends with a NUL and stays where it is.
    let name = unsafe { CStr::from_ptr(name) };
    Some(path::absolute(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_all_else_is_nothing() {
        let dir = std::env::temp_dir().join(format!("kernmill-proc-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("self/status")).unwrap();
        std::fs::write(dir.join("meminfo"), "MemAvailable: 5 kB\n").unwrap();
        std::fs::write(dir.join("self/smaps"), b"/models/gr\xfcn\n").unwrap();
        std::fs::write(dir.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.join("endless")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
        for (name, expected) in [
            ("meminfo", Some("MemAvailable: 5 kB\n")),
            ("self/smaps", Some("/models/gr\u{fffd}n\n")),
            ("empty", Some("")),
            ("cpuinfo", None),
            ("self/status", None),
            ("meminfo/status", None),
            ("endless", None),
            ("dangling", None),
        ] {
            assert_eq!(text_in(&dir, name).as_deref(), expected, "{name}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(text_in(&dir, "meminfo"), None);
        assert!(text("self/status").is_none_or(|text| text.contains("Pid:")));
    }

    #[test]
    fn the_program_knows_what_it_was_started_by() {
        let file = |path: PathBuf| std::fs::canonicalize(path).unwrap();
        assert_eq!(file(started_by().unwrap().unwrap()), file(std::env::current_exe().unwrap()));
        assert_eq!(file(program_file().unwrap()), file(std::env::current_exe().unwrap()));
    }
}
