//! Random checkpoints, GGUF files ([`write_gguf`]) and adapters ([`write_adapter`]) of a model's true shapes.
//! Checkpoints have the layout that the model's spec names.
//!
//! Weights are such that activations stay about unit variance, every expert gets tokens, and logits have
//! about unit variance, so that a synthetic model costs what a trained one does. The same seed gives the same
//! bytes.

mod adapter;
mod blocks;
mod fill;
mod gguf;
#[cfg(test)]
mod tests;
mod tokenizer;

pub use adapter::{AdapterShape, write_adapter};
pub use gguf::{GgufTypes, TypeMix, TypedTensor, write_gguf};
pub use tokenizer::{end_of_text, tokenizer_json};

use crate::ir::{Graph, Tensor, of_expert};
use crate::weights::{checkpoint_tensors, stored_shape};
use fill::{ByteFill, Scatter};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::{CheckpointError, INDEX_FILE, SINGLE_FILE};
use kernmill_os::float_env::FloatEnv;
use kernmill_os::output::NewFile;
use kernmill_os::threads::share;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use thiserror::Error;

/// The tokenizer's file.
const TOKENIZER_FILE: &str = "tokenizer.json";
/// Bytes of tensors per shard at most, unless one tensor alone has more.
const SHARD_BYTES: u64 = 4_500_000_000;
/// Free space asked for beyond the files' own size.
const SPACE_MARGIN: u64 = 64 << 20;
/// Threads that make data.
const THREADS: usize = 2;

/// Why no checkpoint was written.
#[derive(Debug, Error)]
pub enum SynthError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Reason that the system gave.
        source: io::Error,
    },
    /// Not enough room.
    #[error("{path}: {needed} bytes needed, {free} free")]
    Space {
        /// Directory.
        path: PathBuf,
        /// Bytes of the checkpoint.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The place is in use.
    #[error("{path}: already there; expected a new file, or a directory without a checkpoint")]
    Exists {
        /// The file found.
        path: PathBuf,
    },
    /// An adapter is asked for at what is no matrix.
    #[error("the model has no matrix `{target}`: expected some of {names}")]
    Target {
        /// The target that was asked for.
        target: String,
        /// Ends of the names of its modules.
        names: String,
    },
    /// An adapter is asked for, and PEFT knows none of the model's matrices.
    #[error(
        "no matrix of the model has a name that PEFT knows: expected tensors such as \
         `model.layers.0.self_attn.q_proj.weight` or, in a GGUF file, `blk.0.attn_q.weight`"
    )]
    Unpublished,
    /// A DoRA that PEFT cannot make.
    #[error("`{module}` can have no DoRA, which is for the matrices of attention and of dense layers")]
    Dora {
        /// The module.
        module: String,
    },
    /// Blocks that only GGUF files have: all but MXFP4's, and those that have their scales within.
    #[error(
        "tensor `{tensor}`: only GGUF files have such blocks of {format}; expected bf16, f16 or f32, or mxfp4 \
         with a tensor for `scales`"
    )]
    Blocks {
        /// Tensor of the graph.
        tensor: String,
        /// Stored format of the tensor.
        format: &'static str,
    },
    /// A tensor that GGUF files have no name for.
    #[error(
        "tensor `{tensor}`: GGUF files have no name for it; expected names as published checkpoints have them, \
         such as `model.layers.0.self_attn.q_proj.weight`, or as GGUF files do"
    )]
    Unnamed {
        /// Tensor of the checkpoint.
        tensor: String,
    },
    /// A model that no GGUF file describes.
    #[error(
        "no GGUF file describes such a model: expected what its keys can say of a `llama`, `qwen2`, `qwen3` or \
         `gpt-oss`; \
         an output that is a directory takes any model"
    )]
    NoArchitecture,
    /// Rows that are not whole blocks.
    #[error(
        "tensor `{tensor}` has rows of {cols} elements, and blocks of {} have {}; expected another type, such as \
         all:q8_0, or q4_k_m, which has narrower blocks where rows ask for them", kind.name, kind.elements
    )]
    Columns {
        /// Tensor of the file.
        tensor: String,
        /// Elements of a row.
        cols: usize,
        /// The type that was asked for.
        kind: TensorType,
    },
    /// The written checkpoint cannot be read again.
    #[error(transparent)]
    Checkpoint(Box<CheckpointError>),
}

/// The file that names the token which ends a text.
const GENERATION_FILE: &str = "generation_config.json";

type Result<T> = std::result::Result<T, SynthError>;

/// One tensor of the checkpoint to be.
struct PlannedTensor {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    bytes: u64,
    fill: ByteFill,
}

/// Writes a random checkpoint and a tokenizer for `graph` into `dir`, its spec (a file's name and text), by
/// which the directory is a model. `progress` gets bytes done and bytes in all.
///
/// # Errors
/// If there is not enough space (nothing has been written then), or writing fails (what was written is
/// removed).
pub fn write(
    graph: &Graph,
    spec: (&str, &str),
    dir: &Path,
    seed: u64,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    let _env = FloatEnv::standard();
    let planned = plan(graph)?;
    let total: u64 = planned.iter().map(|p| p.bytes).sum();
    for file in [SINGLE_FILE, INDEX_FILE, TOKENIZER_FILE, GENERATION_FILE, spec.0] {
        if dir.join(file).exists() {
            return Err(SynthError::Exists { path: dir.join(file) });
        }
    }
    check_space(NewDirs::existing(dir), total + SPACE_MARGIN)?;
    let made = NewDirs::create(dir)?;
    let shards = shards(&planned);
    let names: Vec<String> = match shards.len() {
        1 => vec![SINGLE_FILE.to_owned()],
        n => (1..=n).map(|i| format!("model-{i:05}-of-{n:05}.safetensors")).collect(),
    };
    let mut files = Vec::new();
    let done = AtomicU64::new(0);
    for (shard, name) in shards.iter().zip(&names) {
        let new = start(dir, name)?;
        write_shard(new.file(), shard, seed, &|bytes| {
            progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
        })
        .map_err(io_error(new.path()))?;
        files.push(new);
    }
    files.push(small_file(dir, TOKENIZER_FILE, &tokenizer_json(graph.vocab))?);
    files.push(small_file(dir, spec.0, spec.1)?);
    if let Some(end) = end_of_text(graph.vocab) {
        files.push(small_file(dir, GENERATION_FILE, &format!("{{\"eos_token_id\": {end}}}\n"))?);
    }
    if shards.len() > 1 {
        files.push(small_file(dir, INDEX_FILE, &index_json(&shards, &names, total))?);
    }
    for file in files {
        let path = file.path().to_owned();
        file.finish().map_err(io_error(&path))?;
    }
    made.keep();
    Ok(())
}

/// Starts a file that appears when it is finished.
fn start(dir: &Path, name: &str) -> Result<NewFile> {
    let path = dir.join(name);
    NewFile::create(&path).map_err(io_error(&path))
}

/// Writes a small file.
fn small_file(dir: &Path, name: &str, text: &str) -> Result<NewFile> {
    let file = start(dir, name)?;
    file.file().write_all(text.as_bytes()).map_err(io_error(file.path()))?;
    Ok(file)
}

/// Makes a directory and those above it; those made are removed again unless kept.
struct NewDirs(Vec<PathBuf>);

impl NewDirs {
    /// The nearest directory above `dir`, or itself, that exists.
    fn existing(dir: &Path) -> &Path {
        let found = dir.ancestors().find(|ancestor| ancestor.is_dir());
        found.unwrap_or(Path::new("."))
    }

    fn create(dir: &Path) -> Result<NewDirs> {
        let missing =
            dir.ancestors().take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
        let made = NewDirs(missing.map(Path::to_owned).collect());
        std::fs::create_dir_all(dir).map_err(io_error(dir))?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewDirs {
    fn drop(&mut self) {
        for dir in &self.0 {
            // One that others have put something into stays.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SynthError + '_ {
    move |source| SynthError::Io { path: path.to_owned(), source }
}

/// Every checkpoint tensor once, in the graph's order.
fn plan(graph: &Graph) -> Result<Vec<PlannedTensor>> {
    let scatters = fill::scatters(graph);
    let mut seen = BTreeSet::new();
    let mut planned = Vec::new();
    for (tensor, scatter) in graph.tensors.iter().zip(scatters) {
        if seen.insert(tensor.source.name.as_str()) {
            for expert in 0..checkpoint_tensors(tensor) {
                plan_tensor(tensor, expert, scatter, &mut planned)?;
            }
        }
    }
    Ok(planned)
}

/// The checkpoint tensors of a tensor, or of its expert where each has its own.
fn plan_tensor(
    tensor: &Tensor,
    expert: usize,
    scatter: Scatter,
    planned: &mut Vec<PlannedTensor>,
) -> Result<()> {
    let shape = stored_shape(tensor);
    let elements: u64 = shape.iter().map(|&d| d as u64).product();
    let name = of_expert(&tensor.source.name, expert);
    let plain = |dtype, size: u64, fill| PlannedTensor {
        name: name.clone().into_owned(),
        dtype,
        shape: shape.clone(),
        bytes: elements * size,
        fill,
    };
    match (tensor.stored, &tensor.source.scales) {
        (WeightFormat::Bf16, _) => planned.push(plain("BF16", 2, ByteFill::Bf16(scatter))),
        (WeightFormat::F32, _) => planned.push(plain("F32", 4, ByteFill::F32(scatter))),
        (WeightFormat::Mxfp4, Some(scales)) => {
            let mut scale_shape = shape.clone();
            scale_shape[shape.len() - 1] /= BLOCK;
            let block_shape = [scale_shape.as_slice(), &[BLOCK / 2]].concat();
            let (blocks, scale_bytes) = (ByteFill::Fp4Codes, ByteFill::Fp4Scales(scatter));
            let u8s = |name: &str, shape, bytes, fill| PlannedTensor {
                name: name.into(),
                dtype: "U8",
                shape,
                bytes,
                fill,
            };
            planned.push(u8s(&name, block_shape, elements / 2, blocks));
            planned.push(u8s(&of_expert(scales, expert), scale_shape, elements / BLOCK as u64, scale_bytes));
        }
        (format, _) => {
            return Err(SynthError::Blocks { tensor: tensor.name.clone(), format: format.name() });
        }
    }
    Ok(())
}

fn check_space(dir: &Path, needed: u64) -> Result<()> {
    let free = kernmill_os::memory::free_space(dir).map_err(io_error(dir))?;
    if free >= needed { Ok(()) } else { Err(SynthError::Space { path: dir.to_owned(), needed, free }) }
}

/// Consecutive tensors, as many as fit a shard.
fn shards(planned: &[PlannedTensor]) -> Vec<&[PlannedTensor]> {
    let mut shards = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (i, tensor) in planned.iter().enumerate() {
        if i > start && bytes + tensor.bytes > SHARD_BYTES {
            shards.push(&planned[start..i]);
            (start, bytes) = (i, 0);
        }
        bytes += tensor.bytes;
    }
    shards.push(&planned[start..]);
    shards
}

fn header(shard: &[PlannedTensor]) -> Vec<u8> {
    let mut map = serde_json::Map::new();
    let mut offset = 0;
    for tensor in shard {
        let offsets = [offset, offset + tensor.bytes];
        let entry =
            serde_json::json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets });
        map.insert(tensor.name.clone(), entry);
        offset += tensor.bytes;
    }
    let mut json = serde_json::Value::Object(map).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(64) + 56, b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}

fn index_json(shards: &[&[PlannedTensor]], names: &[String], total: u64) -> String {
    let mut map = serde_json::Map::new();
    for (shard, name) in shards.iter().zip(names) {
        map.extend(shard.iter().map(|t| (t.name.clone(), name.as_str().into())));
    }
    serde_json::json!({ "metadata": { "total_size": total }, "weight_map": map }).to_string()
}

/// One piece of a file: bytes `offset..offset + len` of a tensor, at `at` in the file.
struct Piece<'a> {
    tensor: &'a PlannedTensor,
    offset: u64,
    len: usize,
    at: u64,
}

fn write_shard(
    file: &File,
    shard: &[PlannedTensor],
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<()> {
    let header = header(shard);
    file.set_len(header.len() as u64 + shard.iter().map(|t| t.bytes).sum::<u64>())?;
    file.write_all_at(&header, 0)?;
    let mut end = header.len() as u64;
    let place = |tensor: &PlannedTensor| {
        end += tensor.bytes;
        end - tensor.bytes
    };
    let places: Vec<u64> = shard.iter().map(place).collect();
    write_tensors(file, shard, &places, seed, progress)
}

/// Writes random tensors, each at its place.
fn write_tensors(
    file: &File,
    tensors: &[PlannedTensor],
    places: &[u64],
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<()> {
    let mut pieces = Vec::new();
    for (tensor, at) in tensors.iter().zip(places) {
        let most = tensor.fill.piece();
        for offset in (0..tensor.bytes).step_by(most) {
            let len = (tensor.bytes - offset).min(most as u64) as usize;
            pieces.push(Piece { tensor, offset, len, at: at + offset });
        }
    }
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        let (mut maker, mut buffer) = (fill::Maker::new(seed), Vec::new());
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            buffer.resize(piece.len, 0);
            maker.fill(&piece.tensor.name, piece.tensor.fill, piece.offset, &mut buffer);
            file.write_all_at(&buffer, piece.at)?;
            progress(piece.len as u64);
        }
        Ok(())
    };
    let failure = Mutex::new(None);
    share(THREADS, || {
        if let Err(error) = work() {
            failure.lock().expect("no panic holds it").get_or_insert(error);
        }
    });
    failure.into_inner().expect("no panic holds it").map_or(Ok(()), Err)
}

/// A spec's text for a checkpoint of the model, where it is that of a GGUF file. There MXFP4 blocks have
/// their scales within, a checkpoint has them in a tensor by itself. Tensors in other blocks are bf16: a
/// checkpoint that is made here is not quantised otherwise. Inline tables count, which TOML has in one line.
pub fn of_checkpoint(spec: &str) -> String {
    let blocked = |name: &str| WeightFormat::from_name(name).is_some_and(WeightFormat::is_blocked);
    let changed = |line: &str| -> Option<String> {
        let from = line.split_once("from = \"")?.1.split_once('"')?.0;
        let value = line.split_once("format = ")?.1;
        let end =
            if value.starts_with('[') { value.find(']') } else { value[1..].find('"').map(|at| at + 1) };
        let value = &value[..=end?];
        let mut names = value.split('"').skip(1).step_by(2);
        let scales = format!("scales = \"{from}_scales\"");
        match names.any(blocked).then_some(value)? {
            "\"mxfp4\"" if line.contains("scales = ") => {
                Some(line.replace(&format!("scales = \"{from}\""), &scales))
            }
            "\"mxfp4\"" => Some(line.replacen("format = ", &format!("{scales}, format = "), 1)),
            value => Some(line.replacen(value, "\"bf16\"", 1)),
        }
    };
    let lines = spec.split_inclusive('\n').map(|line| changed(line).unwrap_or_else(|| line.to_owned()));
    lines.collect()
}
