//! The finished pieces of a work, in a directory: the same work goes on from there after it was stopped.
//!
//! Each piece is a file that appears whole. A piece that is damaged is made again.

use crate::rows::WeightedSquares;
use kernmill::{Error, Result};
use kernmill_checkpoint::gguf::{Imatrix, ImatrixEntry};
use kernmill_os::output::NewFile;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes of a hash, before the contents of a piece.
const HASH: usize = 32;
/// The file that says which work it is.
const WORK: &str = "work";

/// A directory with pieces of a work; without one, nothing is kept.
pub(crate) struct WorkState {
    dir: Option<PathBuf>,
}

/// All that decides on the file that a work makes.
pub(crate) struct WorkKey(blake3::Hasher);

impl WorkKey {
    /// The work of this program with these arguments.
    pub(crate) fn new(arguments: &str) -> WorkKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{} {arguments}", env!("CARGO_PKG_VERSION")).as_bytes());
        WorkKey(hasher)
    }

    /// The contents of a file that is read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn file(&mut self, path: &Path) -> Result<()> {
        let mut file = fs::File::open(path).map_err(Error::read(path))?;
        self.0.update(b"file");
        std::io::copy(&mut file, &mut self.0).map_err(Error::read(path))?;
        Ok(())
    }

    /// A model's file, by its length, its time and what stands before its weights: these are too many to be
    /// read for that alone.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn model(&mut self, path: &Path, head: &[u8]) -> Result<()> {
        let about = fs::metadata(path).map_err(Error::read(path))?;
        let changed = about.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        self.0.update(format!("model {} {changed:?}", about.len()).as_bytes());
        self.0.update(head);
        Ok(())
    }
}

impl WorkState {
    /// Nothing is kept.
    pub(crate) fn none() -> WorkState {
        WorkState { dir: None }
    }

    /// Goes on with the work in a directory, or begins it there.
    ///
    /// # Errors
    /// If the directory is one of another work, has other files, or cannot be written to.
    pub(crate) fn open(dir: &Path, key: &WorkKey) -> Result<WorkState> {
        fs::create_dir_all(dir).map_err(Error::write(dir))?;
        let state = WorkState { dir: Some(dir.to_owned()) };
        let key = *key.0.finalize().as_bytes();
        match state.piece(WORK) {
            Some(work) if work == key => return Ok(state),
            None if is_empty(dir)? => {}
            Some(_) => {
                let what = "--state: it is of another model, other arguments or texts, or another version: give \
                    an empty directory, or the same work";
                return Err(Error::input(dir, what));
            }
            None => {
                let what = "--state: it has files, and none that says what they are: give an empty directory";
                return Err(Error::input(dir, what));
            }
        }
        state.keep(WORK, &key)?;
        Ok(state)
    }

    /// A piece that was kept, if it is whole.
    pub(crate) fn piece(&self, name: &str) -> Option<Vec<u8>> {
        let all = fs::read(self.dir.as_ref()?.join(name)).ok()?;
        let (hash, contents) = all.split_at_checked(HASH)?;
        (hash_of(name, contents)[..] == *hash).then(|| contents.to_vec())
    }

    /// Keeps a piece.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn keep(&self, name: &str, contents: &[u8]) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let path = dir.join(name);
        let new = NewFile::create(&path).map_err(Error::read(&path))?;
        let parts =
            new.file().write_all(&hash_of(name, contents)).and_then(|()| new.file().write_all(contents));
        parts.and_then(|()| new.finish_synced()).map_err(Error::write(&path))
    }

    /// A piece as it was kept, or as `make` makes it now.
    ///
    /// # Errors
    /// If `make` fails, or the piece cannot be written.
    pub(crate) fn kept_or<T: StatePiece>(&self, name: &str, make: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(kept) = self.piece(name).and_then(|bytes| T::read(&mut PieceReader(&bytes))) {
            return Ok(kept);
        }
        let made = make()?;
        if self.dir.is_some() {
            let mut bytes = Vec::new();
            made.write(&mut bytes);
            self.keep(name, &bytes)?;
        }
        Ok(made)
    }
}

/// The hash of a piece and of what it is called.
fn hash_of(name: &str, contents: &[u8]) -> [u8; HASH] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(&[0]).update(contents);
    *hasher.finalize().as_bytes()
}

/// Whether a directory has nothing, but for files that were not finished.
fn is_empty(dir: &Path) -> Result<bool> {
    let mut entries = fs::read_dir(dir).map_err(Error::read(dir))?;
    let is_whole = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| !entry.file_name().to_string_lossy().ends_with(".unfinished"))
    };
    Ok(!entries.any(is_whole))
}

/// Bytes of a piece that are not read yet.
pub(crate) struct PieceReader<'a>(&'a [u8]);

/// Something that is kept bit for bit.
pub(crate) trait StatePiece: Sized {
    fn write(&self, out: &mut Vec<u8>);
    /// `None` if it is something else.
    fn read(from: &mut PieceReader<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl StatePiece for $number {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn read(from: &mut PieceReader<'_>) -> Option<Self> {
                let (number, rest) = from.0.split_first_chunk()?;
                from.0 = rest;
                Some(<$number>::from_le_bytes(*number))
            }
        }
    )*};
}

numbers!(u8, u32, u64, f64);

impl StatePiece for usize {
    fn write(&self, out: &mut Vec<u8>) {
        (*self as u64).write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<usize> {
        usize::try_from(u64::read(from)?).ok()
    }
}

impl<T: StatePiece> StatePiece for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|one| one.write(out));
    }

    fn read(from: &mut PieceReader<'_>) -> Option<Vec<T>> {
        let count = usize::read(from)?;
        // Each takes a byte at least.
        (count <= from.0.len()).then(|| (0..count).map(|_| T::read(from)).collect())?
    }
}

impl StatePiece for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<String> {
        String::from_utf8(Vec::read(from)?).ok()
    }
}

impl<A: StatePiece, B: StatePiece> StatePiece for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<(A, B)> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl StatePiece for Imatrix {
    fn write(&self, out: &mut Vec<u8>) {
        self.datasets.write(out);
        (self.chunks, self.chunk_size).write(out);
        let entry = |(name, entry): (&String, &ImatrixEntry)| {
            (name.clone(), (entry.sums.clone(), entry.counts.clone()))
        };
        self.entries.iter().map(entry).collect::<Vec<_>>().write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<Imatrix> {
        let datasets = Vec::read(from)?;
        let (chunks, chunk_size) = StatePiece::read(from)?;
        let mut entries = BTreeMap::new();
        for _ in 0..usize::read(from)? {
            let name = String::read(from)?;
            let (sums, counts) = StatePiece::read(from)?;
            entries.insert(name, ImatrixEntry { sums, counts });
        }
        Some(Imatrix { datasets, chunks, chunk_size, entries })
    }
}

impl StatePiece for WeightedSquares {
    fn write(&self, out: &mut Vec<u8>) {
        (self.error, self.weights).write(out);
    }

    fn read(from: &mut PieceReader<'_>) -> Option<WeightedSquares> {
        let (error, weights) = StatePiece::read(from)?;
        Some(WeightedSquares { error, weights })
    }
}
