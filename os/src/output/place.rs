//! The kind of an output's path, and giving an open file a name.

use crate::files::is_same_file;
use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Links that are followed at most, as in the kernel.
const MAX_LINKS: usize = 40;

/// The kind of file that an output's path leads to.
#[derive(Debug)]
pub(super) enum OutputPath {
    /// A place for a file, links followed; and the file that is there.
    File { path: PathBuf, old: Option<Metadata> },
    /// A pipe or device, which can only be written through.
    Stream,
}

/// Finds out without opening anything.
///
/// # Errors
/// When nothing can be written there.
pub(super) fn find(path: &Path) -> io::Result<OutputPath> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(refused("it is the name of a directory, expected that of a file"));
    }
    let old = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        let kind = old.file_type();
        if kind.is_dir() {
            return Err(refused("it is a directory, expected a file to write"));
        } else if kind.is_socket() {
            return Err(refused("it is a socket, expected a file to write"));
        } else if kind.is_block_device() {
            return Err(refused("it is a disk, expected a file to write"));
        } else if !kind.is_file() {
            return Ok(OutputPath::Stream);
        }
    }
    let Some(path) = followed(path)? else { return Ok(OutputPath::Stream) };
    if path.file_name().is_none() {
        return Err(refused("it is not the name of a file"));
    }
    let Some(old) = old else { return Ok(OutputPath::File { path, old: None }) };
    replaceable(&path, &old)?;
    Ok(OutputPath::File { path, old: Some(old) })
}

/// In a directory with a sticky bit, such as /tmp, only the owner of a file or of the directory replaces it.
fn replaceable(path: &Path, old: &Metadata) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    // SAFETY: geteuid has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    let dir = fs::metadata(directory(path))?;
    if user == 0 || dir.mode() & STICKY == 0 || [old.uid(), dir.uid()].contains(&user) {
        return Ok(());
    }
    let owner = old.uid();
    let what = format!(
        "it belongs to user {owner}, who alone can replace it in this directory (its sticky bit is set): \
         expected another name"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// The path that links lead to; it need not exist. None for an open file's link in /proc: it leads to that
/// file, whatever its name, and who opened it may have written to it before.
fn followed(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(Some(path));
        }
        if fs::canonicalize(directory(&path))?.starts_with("/proc") {
            return Ok(None);
        }
        let link = fs::read_link(&path)?;
        path = directory(&path).join(link);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// An error of input.
pub(super) fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The directory that `path` is in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether [`link`] can name the file later: `proc` is there, as it is not in every container.
pub(super) fn can_be_named(file: &File, proc: &Path) -> bool {
    let shown = fs::metadata(proc.join("self/fd").join(file.as_raw_fd().to_string()));
    matches!((shown, file.metadata()), (Ok(shown), Ok(file)) if is_same_file(&shown, &file))
}

/// Names an open file.
pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let (at, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both names end with a NUL and live through the call.
    match unsafe { libc::linkat(at, from.as_ptr(), at, to.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
