//! Whether a checkpoint is the one that a graph describes: every tensor there, of the right dtype and shape, none left over.

use super::{Checkpoint, CheckpointError, Dtype, Encoding, Result, TensorView, layout};
use crate::graph::{Graph, Role, RowSelect, Tensor};
use crate::spec::near::nearest;
use kernmill_os::text::shortened;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeSet;

/// Ends of the names of buffers that some exporters write and that the graph computes itself.
const BUFFER_SUFFIXES: [&str; 8] = [
    ".rotary_emb.inv_freq",
    ".rotary_emb.original_inv_freq",
    ".rotary_emb.cos_cached",
    ".rotary_emb.sin_cached",
    ".masked_bias",
    ".attn.causal_mask",
    ".embeddings.position_ids",
    "rope_freqs.weight",
];
/// Element types that a file may have where the model states f32: each is widened without loss.
const WIDENED: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];
/// The embeddings' published name.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// The unembedding's published name.
pub(crate) const UNEMBEDDING: &str = "lm_head.weight";
/// Extra tensors named in an error.
const NAMED_EXTRAS: usize = 5;

/// Checks that `checkpoint` holds exactly the weights of `graph`.
///
/// # Errors
/// The first tensor that is missing, or has another dtype or shape; else the tensors that `graph` does not use.
pub fn bind(graph: &Graph, checkpoint: &Checkpoint) -> Result<()> {
    let mut used = BTreeSet::new();
    for tensor in &graph.tensors {
        let shape = stored_shape(tensor);
        match (tensor.stored, &tensor.source.scales) {
            (WeightFormat::Mxfp4, Some(scales)) if *scales == tensor.source.name => {
                let view = check(checkpoint, tensor, scales, &[Dtype::F32], &shape)?;
                if !view.encoding.is_mxfp4() {
                    return Err(misfit(tensor, &view, "MXFP4".into()));
                }
            }
            (WeightFormat::Mxfp4, Some(scales)) => {
                let (mut scale_shape, k) = (shape.clone(), shape[shape.len() - 1]);
                scale_shape[shape.len() - 1] = k / BLOCK;
                let block_shape = [scale_shape.as_slice(), &[BLOCK / 2]].concat();
                check(checkpoint, tensor, &tensor.source.name, &[Dtype::U8], &block_shape)?;
                check(checkpoint, tensor, scales, &[Dtype::U8], &scale_shape)?;
                used.insert(scales.as_str());
            }
            (WeightFormat::Bf16, _) => {
                check(checkpoint, tensor, &tensor.source.name, &[Dtype::BF16], &shape).map_err(as_f32)?;
            }
            (WeightFormat::F32, _) => {
                let view = check(checkpoint, tensor, &tensor.source.name, &WIDENED, &shape)?;
                let vector = matches!(tensor.role, Role::Vector | Role::ExpertVector);
                if (vector || tensor.source.transposed) && view.encoding != Encoding::Plain {
                    return Err(misfit(tensor, &view, "F32 or F16".into()));
                }
            }
            (format, _) => {
                return Err(CheckpointError::Format { logical: tensor.name.clone(), format: format.name() });
            }
        }
        used.insert(tensor.source.name.as_str());
    }
    check_extras(checkpoint, &used)
}

/// Shape in elements of the checkpoint tensor, before row selection.
pub(crate) fn stored_shape(t: &Tensor) -> Vec<usize> {
    let mut shape = row_shape(t);
    if t.source.transposed {
        let rank = shape.len();
        shape.swap(rank - 2, rank - 1);
    }
    shape
}

/// The same with the rows before the columns, whichever way the checkpoint stores them.
pub(crate) fn row_shape(t: &Tensor) -> Vec<usize> {
    let mut shape = t.shape.clone();
    if t.source.rows != RowSelect::All {
        let row_dim = match t.role {
            Role::Vector | Role::ExpertVector => shape.len() - 1,
            Role::Matrix | Role::ExpertMatrix | Role::Table => shape.len() - 2,
        };
        shape[row_dim] *= 2;
    }
    shape
}

fn check<'a>(
    checkpoint: &'a Checkpoint,
    tensor: &Tensor,
    name: &str,
    dtypes: &[Dtype],
    shape: &[usize],
) -> Result<TensorView<'a>> {
    let Some(view) = checkpoint.tensor(name) else {
        let names = || checkpoint.tensors.keys().map(String::as_str);
        let near = match (layout::other_layout(names()), nearest(name, names())) {
            (Some(layout), _) => format!("; {layout}"),
            (None, Some(near)) => format!(", did you mean `{near}`?"),
            (None, None) => String::new(),
        };
        return Err(CheckpointError::Missing {
            path: checkpoint.path().to_owned(),
            name: name.to_owned(),
            logical: tensor.name.clone(),
            near,
        });
    };
    if !dtypes.contains(&view.dtype) {
        let expected = dtypes.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join(" or ");
        return Err(misfit(tensor, &view, expected));
    }
    if view.shape != shape {
        return Err(CheckpointError::Shape {
            path: view.path.to_owned(),
            name: name.to_owned(),
            logical: tensor.name.clone(),
            found: view.shape.to_vec(),
            expected: shape.to_vec(),
        });
    }
    Ok(view)
}

/// What helps where a spec says bf16 of a tensor that has more bits.
fn as_f32(error: CheckpointError) -> CheckpointError {
    match error {
        CheckpointError::Dtype { path, name, logical, found, expected }
            if found == "F32" || found == "F16" =>
        {
            let expected = format!("{expected}, or format = \"f32\" in the spec");
            CheckpointError::Dtype { path, name, logical, found, expected }
        }
        other => other,
    }
}

fn misfit(tensor: &Tensor, view: &TensorView<'_>, expected: String) -> CheckpointError {
    let found = match view.encoding {
        Encoding::Plain => format!("{:?}", view.dtype),
        encoding => format!("{encoding:?}"),
    };
    CheckpointError::Dtype {
        path: view.path.to_owned(),
        name: view.name.to_owned(),
        logical: tensor.name.clone(),
        found,
        expected,
    }
}

/// Whether a tensor of this name is a buffer that the graph computes itself.
pub(super) fn is_buffer(name: &str) -> bool {
    BUFFER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) || BUFFER_SUFFIXES.contains(&name)
}

fn check_extras(checkpoint: &Checkpoint, used: &BTreeSet<&str>) -> Result<()> {
    let extras: Vec<&str> = checkpoint
        .tensors
        .keys()
        .map(String::as_str)
        .filter(|name| !used.contains(name) && !is_buffer(name) && !is_copy(checkpoint, used, name))
        .collect();
    if extras.is_empty() {
        return Ok(());
    }
    let mut names =
        extras[..extras.len().min(NAMED_EXTRAS)].iter().map(|n| shortened(n)).collect::<Vec<_>>().join(", ");
    if extras.len() > NAMED_EXTRAS {
        names.push_str(", ...");
    }
    Err(CheckpointError::Extra { path: checkpoint.path().to_owned(), count: extras.len(), names })
}

/// Whether `name` is the unembedding or embedding of a tied model, stored a second time: the bytes of the other, which is used.
fn is_copy(checkpoint: &Checkpoint, used: &BTreeSet<&str>, name: &str) -> bool {
    let other = match name {
        UNEMBEDDING => EMBEDDING,
        EMBEDDING => UNEMBEDDING,
        _ => return false,
    };
    let (Some(this), Some(other)) = (checkpoint.tensor(name), checkpoint.tensor(other)) else { return false };
    used.contains(other.name)
        && this.dtype == other.dtype
        && this.shape == other.shape
        && this.data == other.data
}
