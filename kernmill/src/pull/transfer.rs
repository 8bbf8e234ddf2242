//! One file from the hub to the cache: it goes on where it was cut, and appears when its sum is right.

use super::client::{HubClient, HubFault, HubResponse};
use super::list::HubFile;
use super::sum::RunningSum;
use crate::error::{Error, Result};
use crate::observe::{Observer, Progress};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries in a row that bring nothing, until the work is given up.
const TRIES: u32 = 6;
/// How long the first of them waits; each later one waits twice as long as the one before.
const WAIT: Duration = Duration::from_millis(500);
/// Bytes that are read at once.
const PIECE: usize = 1 << 18;

/// Where a file comes from and goes to.
pub(super) struct Transfer<'a> {
    /// The hub.
    pub(super) client: &'a HubClient,
    /// The model's name there.
    pub(super) repository: &'a str,
    /// The commit that the file is of.
    pub(super) commit: &'a str,
    /// The directory for files by their sums.
    pub(super) blobs: &'a Path,
    /// The directory for locks.
    pub(super) locks: &'a Path,
}

/// A file that is on its way.
struct PartialFile {
    file: File,
    path: PathBuf,
    sum: RunningSum,
    /// Bytes that are there.
    at: u64,
}

impl Transfer<'_> {
    /// Where a file is when it is whole.
    pub(super) fn blob(&self, file: &HubFile) -> PathBuf {
        self.blobs.join(file.sum.digits())
    }

    fn part(&self, file: &HubFile) -> PathBuf {
        self.blobs.join(format!("{}.incomplete", file.sum.digits()))
    }

    /// Bytes of a file that are there.
    pub(super) fn present(&self, file: &HubFile) -> u64 {
        let bytes = |path: PathBuf| path.metadata().map_or(0, |found| found.len());
        bytes(self.blob(file)).max(bytes(self.part(file))).min(file.bytes)
    }

    /// Brings a file into the cache, unless it is there.
    pub(super) fn fetch(
        &self,
        file: &HubFile,
        progress: &dyn Progress,
        observer: &dyn Observer,
    ) -> Result<()> {
        let blob = self.blob(file);
        let is_there = || blob.metadata().is_ok_and(|found| found.is_file() && found.len() == file.bytes);
        if is_there() {
            progress.advance(file.bytes);
            return Ok(());
        }
        let _lock = self.lock(file, observer)?;
        if is_there() {
            progress.advance(file.bytes);
            return Ok(());
        }
        let mut part = self.begin(file)?;
        progress.advance(part.at);
        let mut is_old = part.at > 0;
        loop {
            self.fill(&mut part, file, progress)?;
            let PartialFile { file: whole, path, sum, .. } = part;
            let found = sum.finish();
            if found == file.sum.digits() {
                whole.sync_all().and_then(|()| fs::rename(&path, &blob)).map_err(Error::write(&path))?;
                return Ok(());
            }
            fs::remove_file(&path).map_err(Error::write(&path))?;
            // The old part may have been of another file, or damaged.
            if !std::mem::take(&mut is_old) {
                return Err(Error::failed(self.client.says(format!(
                    "{}: its {} is {found}, expected {}: what came is not the file of the hub's list, and is not kept",
                    file.path,
                    file.sum.kind(),
                    file.sum.digits()
                ))));
            }
            part = self.begin(file)?;
        }
    }

    /// Keeps other programs from the same file.
    fn lock(&self, file: &HubFile, observer: &dyn Observer) -> Result<File> {
        let path = self.locks.join(format!("{}.lock", file.sum.digits()));
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::write(&path))?;
        // Where files cannot be locked, the sums tell when two have written to one.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            observer.note(&format!("{}: another program fetches it; this one waits for that", file.path));
            lock.lock().map_err(Error::write(&path))?;
        }
        Ok(lock)
    }

    /// Opens what is there of a file.
    fn begin(&self, file: &HubFile) -> Result<PartialFile> {
        let path = self.part(file);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut part = PartialFile {
            file: opened.map_err(Error::write(&path))?,
            path,
            sum: file.sum.begin(file.bytes),
            at: 0,
        };
        let mut buffer = vec![0; PIECE];
        loop {
            match part.file.read(&mut buffer).map_err(Error::read(&part.path))? {
                0 => return Ok(part),
                bytes => part.sum.add(&buffer[..bytes]),
            }
            part.at = part.file.stream_position().map_err(Error::read(&part.path))?;
            if part.at > file.bytes {
                self.empty(&mut part, file)?;
                return Ok(part);
            }
        }
    }

    /// Begins a file anew.
    fn empty(&self, part: &mut PartialFile, file: &HubFile) -> Result<()> {
        part.file
            .set_len(0)
            .and_then(|()| part.file.seek(SeekFrom::Start(0)))
            .map_err(Error::write(&part.path))?;
        (part.at, part.sum) = (0, file.sum.begin(file.bytes));
        Ok(())
    }

    /// Fetches what is missing, as often as the connection ends and something has come.
    fn fill(&self, part: &mut PartialFile, file: &HubFile, progress: &dyn Progress) -> Result<()> {
        let (mut idle, mut again, mut seen) = (0, 0, part.at);
        while part.at < file.bytes {
            let before = part.at;
            let answer = self.client.file(self.repository, self.commit, &file.path, part.at);
            let came = answer.and_then(|answer| self.take(part, file, answer, &mut again));
            // A file that begins anew counts when it passes the place where it was.
            progress.advance(part.at.saturating_sub(seen));
            let has_moved = part.at > before || part.at > seen;
            seen = seen.max(part.at);
            idle = if has_moved { 0 } else { idle + 1 };
            match came {
                Err(HubFault::Final(error)) => return Err(error),
                Err(HubFault::Lost(what)) if idle == TRIES => {
                    let what = format!(
                        "{what}; {} bytes of {} are kept, and the same command goes on there",
                        part.at, file.path
                    );
                    return Err(Error::failed(what));
                }
                Ok(()) if idle == TRIES => {
                    return Err(Error::failed(
                        self.client
                            .says(format!("{}: the hub sends nothing from byte {} on", file.path, part.at)),
                    ));
                }
                _ if has_moved => {}
                _ => std::thread::sleep(WAIT * 2u32.pow(idle - 1)),
            }
        }
        Ok(())
    }

    /// Appends what an answer brings.
    fn take(
        &self,
        part: &mut PartialFile,
        file: &HubFile,
        mut answer: HubResponse,
        again: &mut u32,
    ) -> std::result::Result<(), HubFault> {
        let goes_on = answer.status == 206
            && answer.range.as_ref().is_some_and(|range| range.starts_with(&format!("bytes {}-", part.at)));
        if !goes_on && (part.at > 0 || answer.status != 200) {
            *again += 1;
            if *again > 2 {
                let what = format!("{}: the hub does not send it from byte {} on", file.path, part.at);
                return Err(HubFault::Final(Error::failed(self.client.says(what))));
            }
            self.empty(part, file).map_err(HubFault::Final)?;
            if answer.status != 200 {
                return Ok(());
            }
        }
        let mut buffer = vec![0; PIECE];
        loop {
            let most = usize::try_from(file.bytes - part.at).unwrap_or(PIECE).min(PIECE);
            let bytes = match answer.body.read(&mut buffer[..most]) {
                Ok(0) => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(HubFault::Lost(self.client.says(format!("{}: {error}", file.path))));
                }
            };
            part.sum.add(&buffer[..bytes]);
            part.file
                .write_all(&buffer[..bytes])
                .map_err(|error| HubFault::Final(Error::write(&part.path)(error)))?;
            part.at += bytes as u64;
        }
    }
}
