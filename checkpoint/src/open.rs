//! Opening checkpoints: one `model.safetensors`, or shards with a `model.safetensors.index.json`, or a GGUF
//! file.

use crate::encoding::Encoding;
use crate::error::{CheckpointError, Result};
use crate::file_kind::{FileKind, KIND_BYTES};
use crate::gguf::{self, Gguf};
use crate::layout::{self, is_buffer};
use crate::mapped::{FileBytes, Shard, map};
use crate::tensor_file::{self, TensorEntry};
use crate::tensors::{Checkpoint, MappedTensor};
use kernmill_os::files::read_regular;
use kernmill_os::output::directory;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File name of a checkpoint in one file.
pub const SINGLE_FILE: &str = "model.safetensors";
/// File name of a sharded checkpoint's index.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// Name of a spec that lies in a checkpoint's directory. It is for models that no `config.json` can describe.
pub const SPEC_FILE: &str = "kernmill.toml";

/// The index file of a sharded checkpoint.
#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens the checkpoint at `path`: a directory, a safetensors file, an index file, or a GGUF file. In a
    /// directory a whole `model.safetensors` goes before an index, which may be left over; a shard stands for
    /// all that its index names. Matrices are quantised if the `config.json` beside says so.
    ///
    /// # Errors
    /// If there is no checkpoint, or a file of it is missing, corrupt or truncated.
    pub fn open(path: &Path) -> Result<Checkpoint> {
        if path.is_dir() {
            let (single, index) = (path.join(SINGLE_FILE), path.join(INDEX_FILE));
            let checkpoint = match (single.exists(), index.exists()) {
                (true, _) => Checkpoint::open_files(path, vec![single]),
                (false, true) => Checkpoint::open_index(path, &index),
                (false, false) => Err(layout::no_checkpoint(path)),
            };
            return checkpoint?.with_config_in(path);
        }
        if !path.exists() {
            return Err(CheckpointError::NoSuchPath { path: path.to_owned() });
        }
        let dir = directory(path);
        if gguf::is_gguf(path) {
            return Gguf::open(path)?.into_checkpoint();
        }
        let checkpoint = match FileKind::of_file(path).map_err(CheckpointError::io(path))? {
            FileKind::Json => Checkpoint::open_index(dir, path),
            FileKind::Safetensors if layout::is_shard(path) && dir.join(INDEX_FILE).exists() => {
                Checkpoint::open_index(dir, &dir.join(INDEX_FILE))
            }
            _ => Checkpoint::open_files(path, vec![path.to_owned()]),
        };
        checkpoint?.with_config_in(dir)
    }

    /// The checkpoint in `bytes`, the contents of a safetensors file that is part of the program; `name`
    /// stands for its path.
    ///
    /// # Errors
    /// If the bytes are corrupt or truncated.
    pub fn from_static(name: &str, bytes: &'static [u8]) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::empty(Path::new(name));
        checkpoint.add(name.into(), FileBytes::Static(bytes))?;
        Ok(checkpoint)
    }

    /// The checkpoint in `bytes`, the contents of a safetensors file; `name` stands for its path.
    ///
    /// # Errors
    /// If the bytes are corrupt or truncated.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::empty(Path::new(name));
        checkpoint.add(name.into(), FileBytes::Owned(bytes))?;
        Ok(checkpoint)
    }

    /// Opens the shards that an index names. The shards' contents count, not those that the index states:
    /// indexes outlive conversions of their shards. A tensor that the model needs and no shard has is missed
    /// when the model is bound.
    fn open_index(dir: &Path, index_path: &Path) -> Result<Checkpoint> {
        let text = read_regular(index_path, limit::INDEX_BYTES).map_err(CheckpointError::io(index_path))?;
        let index: ShardIndex = serde_json::from_slice(&text).map_err(|e| match FileKind::of(&text) {
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
            checkpoint.add(file, FileBytes::Mapped(Arc::new(map)))?;
        }
        Ok(checkpoint)
    }

    fn add(&mut self, path: PathBuf, bytes: FileBytes) -> Result<()> {
        let shard = self.shards.len();
        for TensorEntry { name, info, range } in header(&path, &bytes)? {
            if let Some(other) = self.tensors.get(&name) {
                if is_buffer(&name) {
                    continue;
                }
                let first = self.shards[other.shard].path.clone();
                return Err(CheckpointError::Duplicate { name, first, second: path });
            }
            let (dtype, shape) = (info.dtype, info.shape);
            let entry = MappedTensor {
                shard,
                dtype,
                encoding: Encoding::Plain,
                paired: None,
                shape,
                range,
                quantised: None,
            };
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
