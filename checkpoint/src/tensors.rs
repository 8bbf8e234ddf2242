//! The tensors of an opened checkpoint.
//!
//! Files are memory-mapped, never copied; a reader that has done with a tensor gives its pages back
//! ([`Checkpoint::release`]), so that the resident size stays small whatever the checkpoint's.

use crate::encoding::Encoding;
use crate::mapped::{FileBytes, Shard};
use crate::quantised::{Converted, Quantised};
use kernmill_os::memory;
use memmap2::{Advice, Mmap, UncheckedAdvice};
use safetensors::Dtype;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes that are read ahead with one request: the system cuts larger ones off.
const PREFETCH_BYTES: usize = 512 << 10;

/// A checkpoint, mapped and with every header checked.
#[derive(Debug)]
pub struct Checkpoint {
    pub(crate) path: PathBuf,
    pub(crate) shards: Vec<Shard>,
    pub(crate) tensors: BTreeMap<String, MappedTensor>,
    pub(crate) gguf: bool,
    pub(crate) converted: Vec<Converted>,
}

#[derive(Debug)]
pub(crate) struct MappedTensor {
    pub(crate) shard: usize,
    pub(crate) dtype: Dtype,
    pub(crate) encoding: Encoding,
    pub(crate) paired: Option<usize>,
    pub(crate) shape: Vec<usize>,
    pub(crate) range: Range<usize>,
    /// Scales and zeros of the codes, which `range` has, and how many words or bytes a line of these has.
    pub(crate) quantised: Option<Box<(Quantised, usize)>>,
}

/// A tensor of a GGUF file.
pub(crate) struct FileTensor {
    /// Which of the model's files holds it.
    pub(crate) part: usize,
    pub(crate) dtype: Dtype,
    pub(crate) encoding: Encoding,
    /// Order of the rows in heads, as [`TensorView`] has it.
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
    /// Rows of a head, if the rows come in heads of so many and each head has row `i` of its first half
    /// before row `i` of its second.
    pub paired: Option<usize>,
    /// Shape.
    pub shape: &'a [usize],
    /// Bytes of the tensor, little endian, row-major; of a quantised one, those of its codes.
    pub data: &'a [u8],
    /// File that holds it.
    pub path: &'a Path,
    /// Byte offset of `data` in that file.
    pub offset: usize,
    pub(crate) quantised: Option<(&'a Quantised, &'a [Shard])>,
    /// Words or bytes in a line of a quantised tensor's codes.
    pub(crate) width: usize,
}

impl Checkpoint {
    /// The checkpoint in the parts of a GGUF file, whose tensors have been checked; `path` is the first
    /// part's.
    pub(crate) fn from_gguf(
        path: PathBuf,
        parts: Vec<(PathBuf, FileBytes)>,
        tensors: Vec<(String, FileTensor)>,
    ) -> Checkpoint {
        let entry = |t: FileTensor| MappedTensor {
            shard: t.part,
            dtype: t.dtype,
            encoding: t.encoding,
            paired: t.paired,
            shape: t.shape,
            range: t.range,
            quantised: None,
        };
        let tensors = tensors.into_iter().map(|(name, t)| (name, entry(t))).collect();
        let shards = parts.into_iter().map(|(path, bytes)| Shard { path, bytes }).collect();
        Checkpoint { path, shards, tensors, gguf: true, converted: Vec::new() }
    }

    /// The files that its tensors are in; none if they are part of the program.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.shards
            .iter()
            .filter(|shard| matches!(shard.bytes, FileBytes::Mapped(_)))
            .map(|shard| &*shard.path)
    }

    /// The directory or file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the checkpoint is a GGUF file.
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

    /// Names of the tensors, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.tensors.keys().map(String::as_str)
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        let factors = |e: &MappedTensor| e.quantised.as_ref().map_or(0, |quantised| quantised.0.bytes());
        self.tensors.values().map(|e| (e.range.len() + factors(e)) as u64).sum()
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

    /// The mapping with bytes `range` of tensor `name`, and where they are in it; nothing if the tensor is in
    /// memory or the range is empty.
    fn mapped(&self, name: &str, range: Range<usize>) -> Option<(&Mmap, Range<usize>)> {
        let entry = self.tensors.get(name)?;
        let start = entry.range.start + range.start.min(entry.range.len());
        let end = entry.range.start + range.end.min(entry.range.len());
        match &self.shards[entry.shard].bytes {
            FileBytes::Mapped(file) if start < end => Some((&file.map, start..end)),
            _ => None,
        }
    }

    /// Gives back the memory behind bytes `range` of tensor `name`; reading them again maps them anew.
    pub fn release(&self, name: &str, range: Range<usize>) {
        let Some((map, range)) = self.mapped(name, range) else { return };
        let (start, end) = (range.start, range.end);
        // SAFETY: the mapping is read-only and backed by a file, so dropped pages are read from the file
        // again.
        let advised = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
        if let Err(error) = advised {
            tracing::debug!(%error, name, "pages not given back");
        }
    }

    /// Gives back what the system keeps of the files in memory; reading them again asks the disk.
    pub fn drop_cache(&self) {
        let files = self.shards.iter().filter_map(|shard| match &shard.bytes {
            FileBytes::Mapped(file) => Some((file, &shard.path)),
            _ => None,
        });
        for (file, path) in files {
            // Pages that are mapped stay.
            // SAFETY: the mapping is read-only and backed by a file, so dropped pages are read from the file
            // again.
            let unmapped = unsafe { file.map.unchecked_advise(UncheckedAdvice::DontNeed) };
            if let Err(error) = unmapped.and_then(|()| memory::drop_cache(&file.file)) {
                tracing::debug!(%error, path = %path.display(), "file stays in memory");
            }
        }
    }

    fn view<'a>(&'a self, name: &'a str, entry: &'a MappedTensor) -> TensorView<'a> {
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
            quantised: entry.quantised.as_ref().map(|quantised| (&quantised.0, self.shards.as_slice())),
            width: entry.quantised.as_ref().map_or(0, |quantised| quantised.1),
        }
    }

    pub(crate) fn empty(path: &Path) -> Checkpoint {
        let path = path.to_owned();
        Checkpoint { path, shards: Vec::new(), tensors: BTreeMap::new(), gguf: false, converted: Vec::new() }
    }
}
