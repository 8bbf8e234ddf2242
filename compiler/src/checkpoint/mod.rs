//! Reading checkpoints: one `model.safetensors`, or shards with a `model.safetensors.index.json`, or a GGUF file
//! (`crate::gguf`).
//!
//! Files are memory-mapped, never copied; a reader that has done with a tensor gives its pages back
//! ([`Checkpoint::release`]), so that the resident size stays small whatever the checkpoint's.

mod bind;
mod encoding;
mod error;
mod layout;
mod rows;
#[cfg(test)]
mod tests;

pub use bind::bind;
pub(crate) use bind::{EMBEDDING, UNEMBEDDING, row_shape, stored_shape};
pub use encoding::Encoding;
pub use error::{CheckpointError, Result};
pub(crate) use layout::no_such_path;
pub use rows::{FP4_VALUES, Weights, e8m0};
pub use safetensors::Dtype;

use crate::gguf::{self, Gguf};
use kernmill_os::bus::BusGuard;
use kernmill_os::files::{open_regular, read_regular};
use kernmill_os::memory;
use kernmill_os::output::directory;
use kernmill_os::text::shortened;
use kernmill_plan::file_kind::{FileKind, KIND_BYTES};
use kernmill_plan::limit;
use kernmill_plan::tensor_file::{self, TensorEntry};
use memmap2::{Advice, Mmap, UncheckedAdvice};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read ahead with one request: the system cuts larger ones off.
const PREFETCH_BYTES: usize = 512 << 10;

/// What to do about a checkpoint that lost bytes while it was mapped.
const ADVICE: &str = "nothing was written; start again when the checkpoint is whole and nothing writes to it";

/// File name of a checkpoint in one file.
pub const SINGLE_FILE: &str = "model.safetensors";
/// File name of a sharded checkpoint's index.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// A checkpoint, mapped and with every header checked.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
    gguf: bool,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    bytes: Bytes,
}

/// A file's contents; a copy of a mapping is the mapping.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    Mapped(Arc<MappedFile>),
    /// Part of the program.
    Static(&'static [u8]),
    /// In memory.
    Owned(Vec<u8>),
}

/// A mapping of a whole file.
#[derive(Debug)]
pub(crate) struct MappedFile {
    // Ends before the mapping does, so that it never guards an address that is something else by then.
    _guard: BusGuard,
    map: Mmap,
    file: File,
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(file) => &file.map,
            Bytes::Static(bytes) => bytes,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Entry {
    shard: usize,
    dtype: Dtype,
    encoding: Encoding,
    paired: Option<usize>,
    shape: Vec<usize>,
    range: Range<usize>,
}

/// A tensor of a GGUF file.
pub(crate) struct FileTensor {
    /// Which of the model's files holds it.
    pub(crate) part: usize,
    pub(crate) dtype: Dtype,
    pub(crate) encoding: Encoding,
    /// As in [`TensorView`].
    pub(crate) paired: Option<usize>,
    pub(crate) shape: Vec<usize>,
    /// Bytes in the file.
    pub(crate) range: Range<usize>,
}

/// A tensor of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Name in the checkpoint.
    pub name: &'a str,
    /// Element type; of blocks, what their elements are read as.
    pub dtype: Dtype,
    /// How the elements are stored.
    pub encoding: Encoding,
    /// If the rows come in heads of so many, and each head has row `i` of its first half before row `i` of its second.
    pub paired: Option<usize>,
    /// Shape.
    pub shape: &'a [usize],
    /// Its bytes, little endian, row-major.
    pub data: &'a [u8],
    /// File that holds it.
    pub path: &'a Path,
    /// Byte offset of `data` in that file.
    pub offset: usize,
}

/// The index file of a sharded checkpoint.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens the checkpoint at `path`: a directory, a safetensors file, an index file, or a GGUF file. In a directory a whole
    /// `model.safetensors` goes before an index, which may be left over; a shard stands for all that its index names.
    ///
    /// # Errors
    /// If there is none, or a file of it is missing, corrupt or truncated.
    pub fn open(path: &Path) -> Result<Checkpoint> {
        if path.is_dir() {
            let (single, index) = (path.join(SINGLE_FILE), path.join(INDEX_FILE));
            return match (single.exists(), index.exists()) {
                (true, _) => Checkpoint::open_files(path, vec![single]),
                (false, true) => Checkpoint::open_index(path, &index),
                (false, false) => Err(layout::no_checkpoint(path)),
            };
        }
        if !path.exists() {
            return Err(no_such_path(path));
        }
        let dir = directory(path);
        match FileKind::of_file(path).map_err(CheckpointError::io(path))? {
            _ if gguf::is_gguf(path) => Gguf::open(path)?.into_checkpoint(),
            FileKind::Json => Checkpoint::open_index(dir, path),
            FileKind::Safetensors if layout::is_shard(path) && dir.join(INDEX_FILE).exists() => {
                Checkpoint::open_index(dir, &dir.join(INDEX_FILE))
            }
            _ => Checkpoint::open_files(path, vec![path.to_owned()]),
        }
    }

    /// The checkpoint in `bytes`, the contents of a safetensors file that is part of the program; `name` stands for its path.
    ///
    /// # Errors
    /// If the bytes are corrupt or truncated.
    pub fn from_static(name: &str, bytes: &'static [u8]) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::empty(Path::new(name));
        checkpoint.add(name.into(), Bytes::Static(bytes))?;
        Ok(checkpoint)
    }

    /// The checkpoint in `bytes`, the contents of a safetensors file; `name` stands for its path.
    ///
    /// # Errors
    /// If the bytes are corrupt or truncated.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::empty(Path::new(name));
        checkpoint.add(name.into(), Bytes::Owned(bytes))?;
        Ok(checkpoint)
    }

    /// The checkpoint in the parts of a GGUF file, whose tensors have been checked; `path` is the first part's.
    pub(crate) fn from_gguf(
        path: PathBuf,
        parts: Vec<(PathBuf, Bytes)>,
        tensors: Vec<(String, FileTensor)>,
    ) -> Checkpoint {
        let entry = |t: FileTensor| Entry {
            shard: t.part,
            dtype: t.dtype,
            encoding: t.encoding,
            paired: t.paired,
            shape: t.shape,
            range: t.range,
        };
        let tensors = tensors.into_iter().map(|(name, t)| (name, entry(t))).collect();
        let shards = parts.into_iter().map(|(path, bytes)| Shard { path, bytes }).collect();
        Checkpoint { path, shards, tensors, gguf: true }
    }

    /// The directory or file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a GGUF file.
    pub fn is_gguf(&self) -> bool {
        self.gguf
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let (name, entry) = self.tensors.get_key_value(name)?;
        Some(self.view(name, entry))
    }

    /// Every tensor, by name.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'_>> {
        self.tensors.iter().map(|(name, entry)| self.view(name, entry))
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.values().map(|e| e.range.len() as u64).sum()
    }

    /// Asks the system to read bytes `range` of tensor `name` from the disk, without waiting for it.
    pub fn prefetch(&self, name: &str, range: Range<usize>) {
        let Some((map, range)) = self.mapped(name, range) else { return };
        for start in range.clone().step_by(PREFETCH_BYTES) {
            let bytes = PREFETCH_BYTES.min(range.end - start);
            if let Err(error) = map.advise_range(Advice::WillNeed, start, bytes) {
                tracing::debug!(%error, name, "pages not read ahead");
                return;
            }
        }
    }

    /// The mapping with bytes `range` of tensor `name`, and where they are in it; nothing if they are in memory or there are none.
    fn mapped(&self, name: &str, range: Range<usize>) -> Option<(&Mmap, Range<usize>)> {
        let entry = self.tensors.get(name)?;
        let start = entry.range.start + range.start.min(entry.range.len());
        let end = entry.range.start + range.end.min(entry.range.len());
        match &self.shards[entry.shard].bytes {
            Bytes::Mapped(file) if start < end => Some((&file.map, start..end)),
            _ => None,
        }
    }

    /// Gives back the memory behind bytes `range` of tensor `name`; reading them again maps them anew.
    pub fn release(&self, name: &str, range: Range<usize>) {
        let Some((map, range)) = self.mapped(name, range) else { return };
        let (start, end) = (range.start, range.end);
        // SAFETY: the mapping is read-only and backed by a file, so dropped pages are read from the file again.
        let advised = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
        if let Err(error) = advised {
            tracing::debug!(%error, name, "pages not given back");
        }
    }

    /// Gives back what the system keeps of the files in memory; reading them again asks the disk.
    pub fn drop_cache(&self) {
        let files = self.shards.iter().filter_map(|shard| match &shard.bytes {
            Bytes::Mapped(file) => Some((file, &shard.path)),
            _ => None,
        });
        for (file, path) in files {
            // Pages that are mapped stay.
            // SAFETY: the mapping is read-only and backed by a file, so dropped pages are read from the file again.
            let unmapped = unsafe { file.map.unchecked_advise(UncheckedAdvice::DontNeed) };
            if let Err(error) = unmapped.and_then(|()| memory::drop_cache(&file.file)) {
                tracing::debug!(%error, path = %path.display(), "file stays in memory");
            }
        }
    }

    fn view<'a>(&'a self, name: &'a str, entry: &'a Entry) -> TensorView<'a> {
        let shard = &self.shards[entry.shard];
        TensorView {
            name,
            dtype: entry.dtype,
            encoding: entry.encoding,
            paired: entry.paired,
            shape: &entry.shape,
            data: &shard.bytes[entry.range.clone()],
            path: &shard.path,
            offset: entry.range.start,
        }
    }

    /// Opens the shards that an index names. What the shards hold counts, not what the index says that they hold: indexes outlive
    /// conversions of their shards. A tensor that the model needs and no shard has is missed when the model is bound.
    fn open_index(dir: &Path, index_path: &Path) -> Result<Checkpoint> {
        let text = read_regular(index_path, limit::INDEX_BYTES).map_err(CheckpointError::io(index_path))?;
        let index: Index = serde_json::from_slice(&text).map_err(|e| match FileKind::of(&text) {
            FileKind::Json | FileKind::Text => {
                CheckpointError::corrupt(index_path, format!("not an index: {e}"))
            }
            kind => CheckpointError::kind(index_path, "an index", kind),
        })?;
        let mut paths = Vec::new();
        for shard in index.weight_map.values().collect::<BTreeSet<_>>() {
            if Path::new(shard).file_name().is_none_or(|name| name != shard.as_str()) {
                let what = format!("shard `{}` is not a plain file name", shortened(shard));
                return Err(CheckpointError::corrupt(index_path, what));
            }
            if !dir.join(shard).exists() {
                return Err(CheckpointError::MissingShard {
                    index: index_path.to_owned(),
                    shard: shard.clone(),
                });
            }
            paths.push(dir.join(shard));
        }
        Checkpoint::open_files(dir, paths)
    }

    fn open_files(path: &Path, files: Vec<PathBuf>) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::empty(path);
        for file in files {
            let map = map(&file)?;
            checkpoint.add(file, Bytes::Mapped(Arc::new(map)))?;
        }
        Ok(checkpoint)
    }

    fn empty(path: &Path) -> Checkpoint {
        Checkpoint { path: path.to_owned(), shards: Vec::new(), tensors: BTreeMap::new(), gguf: false }
    }

    fn add(&mut self, path: PathBuf, bytes: Bytes) -> Result<()> {
        let shard = self.shards.len();
        for TensorEntry { name, info, range } in header(&path, &bytes)? {
            if let Some(other) = self.tensors.get(&name) {
                if bind::is_buffer(&name) {
                    continue;
                }
                let first = self.shards[other.shard].path.clone();
                return Err(CheckpointError::Duplicate { name, first, second: path });
            }
            let (dtype, shape) = (info.dtype, info.shape);
            let entry = Entry { shard, dtype, encoding: Encoding::Plain, paired: None, shape, range };
            self.tensors.insert(name, entry);
        }
        self.shards.push(Shard { path, bytes });
        Ok(())
    }
}

/// The tensors of `file`, the whole of the safetensors file at `path`; they ascend by offset.
fn header(path: &Path, file: &[u8]) -> Result<Vec<TensorEntry>> {
    let json = tensor_file::header_range(file, file.len(), limit::HEADER_BYTES);
    let entries = json.and_then(|range| tensor_file::read_header(&file[range], file.len()));
    entries.map_err(|error| match FileKind::of(&file[..file.len().min(KIND_BYTES)]) {
        FileKind::Safetensors | FileKind::Unknown => CheckpointError::corrupt(path, error.to_string()),
        kind => CheckpointError::kind(path, "a safetensors file", kind),
    })
}

/// Maps a whole file. If somebody shortens it meanwhile, reading the lost part ends the process with a message that names it.
pub(crate) fn map(path: &Path) -> Result<MappedFile> {
    let file = open_regular(path).map_err(CheckpointError::io(path))?;
    // SAFETY: the mapping is read-only, and nobody is to write to a checkpoint while it is read (docs/security.md). Should another process do
    // so, weights change, which are plain numbers and are checked or bounded where they are used; what the header said is held in
    // memory. When the file is shortened, the guard ends the process with a message.
    let map = unsafe { Mmap::map(&file) }.map_err(CheckpointError::io(path))?;
    let name = path.display().to_string();
    Ok(MappedFile { _guard: BusGuard::new(map.as_ptr() as usize, map.len(), &name, ADVICE), map, file })
}
