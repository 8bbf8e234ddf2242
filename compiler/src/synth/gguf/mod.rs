//! Random GGUF files: one file with weights, tokenizer and metadata, whose matrices have the types that the
//! spec names, or those of a file that people know by its name.
//!
//! Metadata and names are guessed from the graph, and then proved before the data is written: what the
//! importer makes of the file must compute what the graph does. Rows of q and k, which llama files have in
//! another order than checkpoints, are random in either.

mod metadata;
mod names;
mod types;

pub use types::{GgufTypes, TypeMix, TypedTensor};

use super::blocks::RandomBlocks;
use super::fill::{self, ByteFill, Scatter};
use super::{PlannedTensor, Result, SPACE_MARGIN, SynthError, check_space, io_error, write_tensors};
use crate::front::import::from_gguf;
use crate::front::spec::{self, Spec};
use crate::ir::Graph;
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, NewGguf};
use kernmill_os::float_env::FloatEnv;
use kernmill_os::output::{NewFile, directory};
use names::{EMBEDDINGS, TensorNames, UNEMBEDDING};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The tensor of the divisors of RoPE's frequencies.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// A random tensor of the file, and its type.
struct Planned {
    tensor: PlannedTensor,
    kind: TensorType,
}

/// Writes a random GGUF file of `graph` to `path`, with a tokenizer; `progress` gets bytes done and bytes in
/// all. The same seed gives the same bytes.
///
/// # Errors
/// If no GGUF file describes such a model, rows are not whole blocks of their type, something is at `path`
/// already, there is not enough space, or writing fails. Nothing is left at `path` then.
pub fn write_gguf(
    graph: &Graph,
    path: &Path,
    types: GgufTypes,
    seed: u64,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    let _env = FloatEnv::standard();
    let planned = plan(graph, types)?;
    let mut file = metadata::metadata(graph, types.number()).ok_or(SynthError::NoArchitecture)?;
    for Planned { tensor, kind } in &planned {
        let dims: Vec<u64> = tensor.shape.iter().rev().map(|&dim| dim as u64).collect();
        file.add(&tensor.name, &dims, kind.number, tensor.bytes);
    }
    let factors = metadata::rope_factors(graph);
    if let Some(factors) = &factors {
        file.add(ROPE_FACTORS, &[factors.len() as u64], 0, 4 * factors.len() as u64);
    }
    if path.exists() {
        return Err(SynthError::Exists { path: path.to_owned() });
    }
    let offsets = file.offsets();
    let head = file.head(&offsets);
    let start = head.len() as u64;
    check_space(directory(path), start + file.data_bytes() + SPACE_MARGIN)?;
    let new = NewFile::create_file(path).map_err(io_error(path))?;
    let placed: Vec<u64> = offsets.iter().map(|offset| start + offset).collect();
    begin(&new, &file, &head).map_err(io_error(path))?;
    if let (Some(factors), Some(at)) = (factors, placed.last()) {
        let bytes: Vec<u8> = factors.into_iter().flat_map(f32::to_le_bytes).collect();
        new.file().write_all_at(&bytes, *at).map_err(io_error(path))?;
    }
    prove(&new, graph)?;
    let tensors: Vec<PlannedTensor> = planned.into_iter().map(|planned| planned.tensor).collect();
    let total = tensors.iter().map(|tensor| tensor.bytes).sum();
    let done = AtomicU64::new(0);
    let count = |bytes| progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
    write_tensors(new.file(), &tensors, &placed, seed, &count).map_err(io_error(path))?;
    new.finish().map_err(io_error(path))
}

/// Gives the file its size and all that stands before the data.
fn begin(new: &NewFile, file: &NewGguf, head: &[u8]) -> std::io::Result<()> {
    new.file().set_len(head.len() as u64 + file.data_bytes())?;
    new.file().write_all_at(head, 0)
}

/// An error unless the importer reads from the file what `graph` computes.
fn prove(new: &NewFile, graph: &Graph) -> Result<()> {
    // It has no name yet.
    let path = PathBuf::from(format!("/proc/self/fd/{}", new.file().as_raw_fd()));
    let gguf = Gguf::open(&path).map_err(|error| SynthError::Checkpoint(Box::new(error)))?;
    let read = from_gguf(&graph.name, &gguf).ok().and_then(|text| Spec::parse("spec", &text).ok());
    match read.and_then(|spec| spec::lower(&spec).ok()) {
        Some(read) if metadata::is_same(graph, &read) => Ok(()),
        _ => Err(SynthError::NoArchitecture),
    }
}

/// Every tensor of the file once, in the graph's order.
fn plan(graph: &Graph, types: GgufTypes) -> Result<Vec<Planned>> {
    let names = TensorNames::of(graph).ok_or(SynthError::NoArchitecture)?;
    let layers = graph.nodes.iter().filter(|node| node.op.attention().is_some()).count();
    let mut named = Vec::new();
    for (tensor, mut scatter) in graph.tensors.iter().zip(fill::scatters(graph)) {
        // Files have norms of 1 + w as the sums.
        scatter.mean += tensor.plus;
        let unnamed = || SynthError::Unnamed { tensor: tensor.source.name.clone() };
        let (name, layer) = names.get(tensor).ok_or_else(unnamed)?;
        named.push((name, layer, tensor, scatter));
    }
    // Where the embeddings serve as the unembedding, they are typed as such.
    let has_output = named.iter().any(|(name, ..)| name == UNEMBEDDING);
    let output = if has_output { UNEMBEDDING } else { EMBEDDINGS };
    let mut seen = BTreeSet::new();
    let mut planned = Vec::new();
    for (name, layer, tensor, scatter) in named {
        if !seen.insert(name.clone()) {
            continue;
        }
        let layer = layer.map(|layer| (layer, layers));
        let cols = tensor.shape[tensor.shape.len() - 1];
        let is_output = name == output;
        let typed = TypedTensor { name: &name, cols, role: tensor.role, layer, is_output };
        let kind = types.of(&typed, tensor.stored)?;
        let elements: usize = tensor.shape.iter().product();
        planned.push(Planned {
            tensor: PlannedTensor {
                name,
                dtype: kind.name,
                shape: tensor.shape.clone(),
                bytes: (elements / kind.elements * kind.bytes) as u64,
                fill: random(kind, scatter),
            },
            kind,
        });
    }
    Ok(planned)
}

/// How random data of a type is made.
fn random(kind: TensorType, scatter: Scatter) -> ByteFill {
    match (kind.encoding.format(), kind.name) {
        (Some(format), _) => ByteFill::Blocks(RandomBlocks::new(format, scatter.std)),
        (None, "BF16") => ByteFill::Bf16(scatter),
        (None, "F16") => ByteFill::F16(scatter),
        (None, _) => ByteFill::F32(scatter),
    }
}
