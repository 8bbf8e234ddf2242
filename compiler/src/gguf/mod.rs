//! Reading GGUF files (versions 2 and 3, little endian): metadata, tensors, tokenizer.
//!
//! The file is memory-mapped. Opening it checks every length, offset and count before use and reads nothing of the tensors' data;
//! arrays of metadata stay in the file until asked for. `docs/gguf.md` says what is supported and what is exact.

mod layout;
mod metadata;
mod tokenizer;
mod types;

use crate::checkpoint::{self, Bytes, Checkpoint, CheckpointError, Encoding, FileTensor, Result};
use metadata::Metadata;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
pub(crate) use types::Elements;
pub use types::{TYPES, TensorType};

/// A GGUF file, mapped and checked.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    bytes: Bytes,
    metadata: Metadata,
    /// By name.
    tensors: Vec<TensorInfo>,
}

/// A tensor as the file describes it.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) kind: &'static TensorType,
    /// Row-major: the file's dimensions in reverse.
    pub(crate) shape: Vec<usize>,
    /// Bytes in the file.
    range: Range<usize>,
}

const MAGIC: &[u8; 4] = b"GGUF";
/// Tensors whose rows llama files store in another order than checkpoints do.
const PERMUTED: [&str; 4] = [".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"];

/// Whether the file at `path` begins as GGUF files do, or is called so.
pub fn is_gguf(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let mut begins =
        || File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *MAGIC;
    path.is_file() && (path.extension().is_some_and(|e| e == "gguf") || begins())
}

impl Gguf {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or has tensors of types that are not supported.
    pub fn open(path: &Path) -> Result<Gguf> {
        Gguf::parse(path.to_owned(), Bytes::Mapped(checkpoint::map(path)?))
    }

    /// The file whose contents are `bytes`; `name` stands for its path.
    ///
    /// # Errors
    /// If it is damaged, or has tensors of types that are not supported.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Gguf> {
        Gguf::parse(name.into(), Bytes::Owned(bytes))
    }

    fn parse(path: PathBuf, bytes: Bytes) -> Result<Gguf> {
        let (metadata, tensors) = layout::read(&path, &bytes)?;
        let gguf = Gguf { path, bytes, metadata, tensors };
        match gguf.whole("split.count")? {
            Some(2..) => {
                gguf.unsupported("it is one of several parts: merge them with llama-gguf-split --merge")
            }
            _ => Ok(gguf),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Type of the tensor called `name`.
    pub fn tensor_type(&self, name: &str) -> Option<&'static TensorType> {
        self.info(name).map(|info| info.kind)
    }

    /// The file as a checkpoint, for binding and packing.
    ///
    /// # Errors
    /// If a llama file does not say how long its attention heads are.
    pub fn into_checkpoint(self) -> Result<Checkpoint> {
        let permuted_head = match self.architecture()? {
            "llama" => Some(self.head_dim()?),
            _ => None,
        };
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for info in &self.tensors {
            let paired = permuted_head.filter(|_| PERMUTED.iter().any(|suffix| info.name.ends_with(suffix)));
            if let Some(head_dim) = paired
                && (!head_dim.is_multiple_of(2) || !info.shape[0].is_multiple_of(head_dim))
            {
                let rows = info.shape[0];
                let what = format!("tensor `{}`: {rows} rows are not whole heads of {head_dim}", info.name);
                return self.corrupt(what);
            }
            let dtype = info.kind.dtype();
            let encoding = match info.kind.stored {
                Elements::Plain(_) => Encoding::Plain,
                Elements::Blocks(_) => Encoding::Blocks(info.kind),
            };
            let tensor =
                FileTensor { dtype, encoding, paired, shape: info.shape.clone(), range: info.range.clone() };
            tensors.push((info.name.clone(), tensor));
        }
        Ok(Checkpoint::from_gguf(self.path, self.bytes, tensors))
    }

    /// The model's architecture.
    ///
    /// # Errors
    /// If the file does not say.
    pub fn architecture(&self) -> Result<&str> {
        match self.text("general.architecture")? {
            Some(name) => Ok(name),
            None => self.corrupt("key `general.architecture` is missing: expected a string"),
        }
    }

    /// Elements of an attention head.
    pub(crate) fn head_dim(&self) -> Result<usize> {
        let arch = self.architecture()?;
        let key = |name: &str| format!("{arch}.{name}");
        if let Some(length) = self.whole(&key("attention.key_length"))?.filter(|&n| n > 0) {
            return Ok(length as usize);
        }
        let heads = self.require_whole(&key("attention.head_count"))?;
        let hidden = self.require_whole(&key("embedding_length"))?;
        if !hidden.is_multiple_of(heads) {
            let what = format!(
                "`{arch}.embedding_length` {hidden} does not divide among `{arch}.attention.head_count` {heads}"
            );
            return self.corrupt(what);
        }
        Ok((hidden / heads) as usize)
    }

    pub(crate) fn info(&self, name: &str) -> Option<&TensorInfo> {
        let index = self.tensors.binary_search_by(|info| info.name.as_str().cmp(name)).ok()?;
        Some(&self.tensors[index])
    }

    /// Bytes of a tensor.
    pub(crate) fn data(&self, info: &TensorInfo) -> &[u8] {
        &self.bytes[info.range.clone()]
    }

    pub(crate) fn corrupt<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Corrupt { path: self.path.clone(), what: what.into() })
    }

    pub(crate) fn unsupported<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Unsupported { path: self.path.clone(), what: what.into() })
    }
}
