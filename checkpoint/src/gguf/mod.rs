//! Reading GGUF files (versions 2 and 3, little endian): metadata, tensors, tokenizer; and writing them.
//!
//! The file, or every part of a model that is split, is memory-mapped. Opening it checks every length, offset
//! and count before use and reads nothing of the tensors' data; arrays of metadata stay in the file until
//! asked for. `docs/user/gguf.md` says what is supported and what is exact.
//!
//! Most files hold a language model. Others hold something that goes with one, and are refused by name.

mod cursor;
mod imatrix;
mod layout;
mod metadata;
mod split;
mod tokenizer;
mod value;
mod write;

use crate::blocks::TensorType;
use crate::error::{CheckpointError, Result};
use crate::file_kind::FileKind;
use crate::mapped::{FileBytes, map};
use crate::tensors::{Checkpoint, FileTensor};
pub use imatrix::{Imatrix, ImatrixEntry, OtherModel};
use kernmill_os::text::shortened;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use value::GgufMetadata;
pub use value::GgufTensor;
pub use write::{GgufValue, NewGguf, NewTensor};

/// A GGUF file, mapped and checked, or all parts of a model that is split into several. A copy shares the
/// mappings.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// The first has the metadata.
    parts: Vec<SplitFile>,
    metadata: GgufMetadata,
    /// By name.
    tensors: Vec<GgufTensor>,
}

/// One of a model's files.
#[derive(Clone, Debug)]
struct SplitFile {
    path: PathBuf,
    bytes: FileBytes,
}

/// Architectures whose files have the rows of q and k in another order than checkpoints do.
const PERMUTES: [&str; 5] = ["llama", "mistral3", "smollm3", "granite", "granitemoe"];
/// The tensors with these rows.
const PERMUTED: [&str; 4] = [".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"];

/// Whether the file at `path` begins as GGUF files do, or is called so.
pub fn is_gguf(path: &Path) -> bool {
    let begins = || matches!(FileKind::of_file(path), Ok(FileKind::Gguf));
    path.is_file() && (path.extension().is_some_and(|e| e == "gguf") || begins())
}

impl Gguf {
    /// Opens the file at `path`. Of a model in several files, any stands for all of them.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, is no model, or has tensors of types that are not supported; or if
    /// other parts are missing.
    pub fn open(path: &Path) -> Result<Gguf> {
        let gguf = Gguf::open_part(path)?;
        let gguf = match gguf.split()? {
            Some(split) => split::complete(gguf, split)?,
            None => gguf,
        };
        gguf.check_purpose()?;
        Ok(gguf)
    }

    /// The file whose contents are `bytes`; `name` stands for its path.
    ///
    /// # Errors
    /// As [`Gguf::open`]; also if it is one of several parts.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Gguf> {
        let gguf = Gguf::parse(name.into(), FileBytes::Owned(bytes))?;
        if let Some(split) = gguf.split()? {
            return gguf.bad(format!("it is one of {} parts: expected a whole file", split.count));
        }
        gguf.check_purpose()?;
        Ok(gguf)
    }

    fn open_part(path: &Path) -> Result<Gguf> {
        Gguf::parse(path.to_owned(), FileBytes::Mapped(Arc::new(map(path)?)))
    }

    fn parse(path: PathBuf, bytes: FileBytes) -> Result<Gguf> {
        let (metadata, tensors) = layout::read(&path, &bytes)?;
        Ok(Gguf { parts: vec![SplitFile { path, bytes }], metadata, tensors })
    }

    /// The file, or the first of several.
    pub fn path(&self) -> &Path {
        &self.parts[0].path
    }

    /// Type of the tensor called `name`.
    pub fn tensor_type(&self, name: &str) -> Option<TensorType> {
        self.info(name).map(|info| info.kind)
    }

    /// The file as a checkpoint, for binding and packing.
    ///
    /// # Errors
    /// If a llama file does not say how long its attention heads are.
    pub fn into_checkpoint(self) -> Result<Checkpoint> {
        let permuted_head = match PERMUTES.contains(&self.architecture()?) {
            true => Some(self.head_dim()?),
            false => None,
        };
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for info in &self.tensors {
            let paired = permuted_head.filter(|_| PERMUTED.iter().any(|suffix| info.name.ends_with(suffix)));
            if let Some(head_dim) = paired
                && (!head_dim.is_multiple_of(2) || !info.shape[0].is_multiple_of(head_dim))
            {
                let rows = info.shape[0];
                let what = format!("tensor `{}`: {rows} rows are not whole heads of {head_dim}", info.name);
                return self.bad(what);
            }
            let TensorType { dtype, encoding, .. } = info.kind;
            let (shape, range) = (info.shape.clone(), info.range.clone());
            let tensor = FileTensor { part: info.part, dtype, encoding, paired, shape, range };
            tensors.push((info.name.clone(), tensor));
        }
        let path = self.path().to_owned();
        let parts = self.parts.into_iter().map(|part| (part.path, part.bytes)).collect();
        Ok(Checkpoint::from_gguf(path, parts, tensors))
    }

    /// The model's architecture.
    ///
    /// # Errors
    /// If the file does not say.
    pub fn architecture(&self) -> Result<&str> {
        match self.text("general.architecture")? {
            Some(name) => Ok(name),
            None => self.bad("key `general.architecture` is missing: expected a string"),
        }
    }

    /// Elements of an attention head.
    pub fn head_dim(&self) -> Result<usize> {
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
            return self.bad(what);
        }
        Ok((hidden / heads) as usize)
    }

    /// Whether the file has a tokenizer and no tensors.
    pub fn is_vocabulary(&self) -> bool {
        self.tensors.is_empty() && self.has("tokenizer.ggml.tokens")
    }

    /// The tensor called `name`, as the file describes it.
    pub fn info(&self, name: &str) -> Option<&GgufTensor> {
        let index = self.tensors.binary_search_by(|info| info.name.as_str().cmp(name)).ok()?;
        Some(&self.tensors[index])
    }

    /// Every tensor, by name.
    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }

    /// Bytes of a tensor.
    pub fn data(&self, info: &GgufTensor) -> &[u8] {
        &self.parts[info.part].bytes[info.range.clone()]
    }

    /// The file breaks the format.
    pub fn corrupt<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Corrupt { path: self.path().to_owned(), what: what.into() })
    }

    /// The file describes no model that can be loaded.
    pub fn bad<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Model { path: self.path().to_owned(), what: what.into() })
    }

    /// The file has something that kernmill lacks.
    pub fn unsupported<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CheckpointError::Unsupported { path: self.path().to_owned(), what: what.into() })
    }
}

/// Architectures of encoders that turn images or sounds into embeddings.
const ENCODERS: [&str; 1] = ["clip"];
/// Version of the arithmetic of blocks; files from before there were versions have none.
const QUANTIZATION_VERSION: u64 = 2;

impl Gguf {
    /// Refuses files that hold no language model.
    fn check_purpose(&self) -> Result<()> {
        let purpose = self.text("general.type")?;
        let lora = self.has("adapter.type") || self.tensors.iter().any(|t| t.name.ends_with(".lora_a"));
        match purpose {
            Some("adapter") => return self.refuse_adapter(),
            _ if lora => return self.refuse_adapter(),
            Some("mmproj") => return self.refuse_encoder(),
            _ if self.text("general.architecture")?.is_some_and(|arch| ENCODERS.contains(&arch)) => {
                return self.refuse_encoder();
            }
            None | Some("model") => {}
            Some("imatrix") => {
                return self.bad(
                    "it is an importance matrix, which quantisers use, not a model: expected a model's GGUF file",
                );
            }
            Some(other) => {
                return self.unsupported(format!(
                    "key `general.type` is `{}`; supported is: model",
                    shortened(other)
                ));
            }
        }
        match self.whole("general.quantization_version")? {
            Some(version) if version != QUANTIZATION_VERSION => self.unsupported(format!(
                "key `general.quantization_version` is {version}; supported is: {QUANTIZATION_VERSION}"
            )),
            _ => Ok(()),
        }
    }

    fn refuse_adapter(&self) -> Result<()> {
        self.bad(
            "it is a LoRA adapter in GGUF form, not a model: give the model's own file, and the adapter with \
             --lora as the directory that PEFT wrote (adapter_config.json and adapter_model.safetensors)",
        )
    }

    fn refuse_encoder(&self) -> Result<()> {
        self.bad(
            "it is a model's encoder for images or sounds (mmproj), not a language model: give the GGUF file \
             of the language model",
        )
    }
}
