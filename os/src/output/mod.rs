//! Files that appear whole or not at all, even when the program is killed; and outputs that are no files,
//! which are written through.

mod leftover;
mod place;
#[cfg(test)]
mod tests;

pub use place::directory;

use crate::files::open_to_append;
use place::OutputPath;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A file that is being written, and gets its name when it is finished. If it is dropped before, it leaves
/// nothing behind.
///
/// - A place where nothing is, or a regular file: the file has no name while it is written, and then replaces
///   the old one in one step. It takes over the permissions of the old file, and as far as the system allows,
///   owner and group. A link stays a link: what it leads to is replaced. Where the file system has no unnamed
///   files, and for a moment when it replaces a file, the new one has a hidden temporary name. Only a kill
///   leaves one behind, which the next start of a file at the same place removes.
/// - A pipe, a terminal or another character device: it is never replaced. Bytes go through it as they are
///   written.
#[derive(Debug)]
pub struct NewFile {
    /// Path as it was given.
    path: PathBuf,
    file: File,
    state: OutputState,
}

#[derive(Debug)]
enum OutputState {
    /// A file without a name, that will be at this path.
    Unnamed(PathBuf),
    /// A file with a temporary name, and the path where it will be.
    Named { temporary: PathBuf, path: PathBuf },
    /// No file: bytes go through.
    Stream,
    /// A file that has its name.
    Done,
}

/// An output that goes on where it ended, instead of being replaced: what is at its place.
#[derive(Debug)]
pub enum GoneOnWith {
    /// Nothing yet: the path of the file to make, links followed.
    Nothing(PathBuf),
    /// A regular file. Writes go behind its end.
    File(File),
    /// A pipe or a character device: bytes go through it, and none come back.
    Stream(NewFile),
}

impl GoneOnWith {
    /// Opens what is at `path`. Nothing is made, changed or read. A pipe without a reader is waited for, as
    /// every writer does.
    ///
    /// # Errors
    /// When a new file could not be made there, or what is there can be neither read and gone on with nor
    /// written through.
    pub fn open(path: &Path) -> io::Result<GoneOnWith> {
        match place::find(path)? {
            OutputPath::Stream => NewFile::create(path).map(GoneOnWith::Stream),
            OutputPath::File { path, old: None } => {
                NewFile::check(&path)?;
                Ok(GoneOnWith::Nothing(path))
            }
            OutputPath::File { path, old: Some(_) } => open_to_append(&path).map(GoneOnWith::File),
        }
    }
}

impl NewFile {
    /// Starts a file that will be at `path`, and replace what is there; or opens what is there, if it is a
    /// pipe or a character device. A pipe without a reader is waited for, as every writer does.
    ///
    /// # Errors
    /// When the directory is missing or not writable, or when something is there that can be neither replaced
    /// nor written through.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        match place::find(path)? {
            OutputPath::Stream => {
                // After what is there, where an open file's name in /proc leads to a regular one.
                let file = OpenOptions::new().append(true).custom_flags(libc::O_NOCTTY).open(path)?;
                Ok(NewFile { path: path.to_owned(), file, state: OutputState::Stream })
            }
            OutputPath::File { path: target, old } => NewFile::start(path, target, old.as_ref()),
        }
    }

    /// Creates a file as [`NewFile::create`] does, for formats that are not written from front to back: what
    /// is no regular file is refused without being opened.
    ///
    /// # Errors
    /// As [`NewFile::create`]; also for pipes and devices.
    pub fn create_file(path: &Path) -> io::Result<NewFile> {
        match place::find(path)? {
            OutputPath::Stream => Err(place::refused(
                "it is a pipe or a device, which takes bytes in order only: expected the name of a file",
            )),
            OutputPath::File { path: target, old } => NewFile::start(path, target, old.as_ref()),
        }
    }

    /// Finds out whether [`NewFile::create`] would begin. Nothing is left there, and no pipe is opened.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn check(path: &Path) -> io::Result<()> {
        match place::find(path)? {
            OutputPath::Stream => Ok(()),
            OutputPath::File { path: target, old } => NewFile::start(path, target, old.as_ref()).map(drop),
        }
    }

    /// Writes through what is open already, such as standard output.
    ///
    /// # Errors
    /// When the system has no more file descriptors, or it is closed.
    pub fn through(open: impl AsFd, name: &Path) -> io::Result<NewFile> {
        let file = File::from(open.as_fd().try_clone_to_owned()?);
        Ok(NewFile { path: name.to_owned(), file, state: OutputState::Stream })
    }

    fn start(path: &Path, target: PathBuf, old: Option<&Metadata>) -> io::Result<NewFile> {
        leftover::remove_abandoned(&target);
        let unnamed = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o666)
            .open(directory(&target));
        // A file that cannot be named later is not begun.
        let unnamed = unnamed.ok().filter(|file| place::can_be_named(file, Path::new("/proc")));
        let (file, state) = match unnamed {
            Some(file) => (file, OutputState::Unnamed(target)),
            None => named(target)?,
        };
        let new = NewFile { path: path.to_owned(), file, state };
        if let Some(old) = old {
            keep_owner_and_mode(&new.file, old)?;
        }
        Ok(new)
    }

    /// Where to write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Path where the file will be, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory whose file system would take the bytes of an output; none if they would go through.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn directory_of(path: &Path) -> io::Result<Option<PathBuf>> {
        match place::find(path)? {
            OutputPath::Stream => Ok(None),
            OutputPath::File { path, .. } => Ok(Some(directory(&path).to_owned())),
        }
    }

    /// The directory whose file system takes the bytes; none if they go through.
    fn directory(&self) -> Option<&Path> {
        self.target().map(directory)
    }

    /// Where it will be, links followed.
    fn target(&self) -> Option<&Path> {
        match &self.state {
            OutputState::Unnamed(path) | OutputState::Named { path, .. } => Some(path),
            OutputState::Stream | OutputState::Done => None,
        }
    }

    /// Gives it its name once its contents are on the disk: after a power cut the name means the old file or
    /// the whole new one.
    ///
    /// # Errors
    /// As [`NewFile::finish`]; also when the disk fails.
    pub fn finish_synced(self) -> io::Result<()> {
        let Some(directory) = self.directory() else { return self.finish() };
        let directory = File::open(directory)?;
        self.file.sync_all()?;
        self.finish()?;
        directory.sync_all()
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// When the system refuses; nothing is left then.
    pub fn finish(mut self) -> io::Result<()> {
        if let OutputState::Unnamed(path) = &self.state {
            let path = path.clone();
            match place::link(&self.file, &path) {
                // A link replaces nothing, a renamed file does.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.state = self.linked_beside(path)?;
                }
                Err(_) => self.copy_to_named(path)?,
                Ok(()) => self.state = OutputState::Done,
            }
        }
        if let OutputState::Named { temporary, path } = &self.state {
            std::fs::rename(temporary, path)?;
            self.state = OutputState::Done;
        }
        Ok(())
    }

    /// Gives an unnamed file a temporary name beside `path`.
    fn linked_beside(&self, path: PathBuf) -> io::Result<OutputState> {
        let _ = self.file.try_lock();
        let temporary = leftover::with_new_name(&path, |temporary| place::link(&self.file, temporary))?;
        Ok(OutputState::Named { temporary: temporary.0, path })
    }

    /// Where the system refuses to name the file after all: its contents move to one with a name.
    fn copy_to_named(&mut self, path: PathBuf) -> io::Result<()> {
        let (file, state) = named(path)?;
        let mut unnamed = std::mem::replace(&mut self.file, file);
        self.state = state;
        self.file.set_permissions(unnamed.metadata()?.permissions())?;
        unnamed.seek(SeekFrom::Start(0))?;
        io::copy(&mut unnamed, &mut &self.file).map(drop)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let OutputState::Named { temporary, .. } = &self.state {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A file with a temporary name, that will be at `path`.
fn named(path: PathBuf) -> io::Result<(File, OutputState)> {
    let options = OpenOptions::new().read(true).write(true).create_new(true).mode(0o666).to_owned();
    let (temporary, file) = leftover::with_new_name(&path, |temporary| {
        let file = options.open(temporary)?;
        // The lock says that its owner lives. Another start that came between took the file for abandoned,
        // and removes it.
        let locked = match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => false,
            Ok(()) | Err(std::fs::TryLockError::Error(_)) => file.metadata()?.nlink() > 0,
        };
        if locked { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    })?;
    Ok((file, OutputState::Named { temporary, path }))
}

/// Permissions, and as far as the system allows owner and group, of the file that is replaced. Rights that
/// only its group has are not given to another group.
fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    const GROUP: u32 = 0o070;
    let new = file.metadata()?;
    if new.uid() != old.uid() {
        let _ = fchown(file, Some(old.uid()), None);
    }
    let mut mode = old.permissions().mode() & 0o777;
    if new.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
        mode &= !GROUP | (mode & 0o007) << 3;
    }
    // Some file systems have the same permissions for all files, and refuse to set any. A new owner may have
    // changed others.
    if file.metadata()?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(mode))
}
