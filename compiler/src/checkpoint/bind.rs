//! Whether a checkpoint is the one that a graph describes: every tensor there, of the right dtype and shape, none left over.

use super::{Checkpoint, CheckpointError, Dtype, Encoding, Result, TensorView};
use crate::graph::{Graph, Role, RowSelect, Tensor};
use crate::spec::near::nearest;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeSet;

/// Buffers that some exporters write and that the graph computes itself.
const IGNORED_SUFFIXES: [&str; 3] = [".rotary_emb.inv_freq", ".masked_bias", "rope_freqs.weight"];
/// Element types that a file may have where the model states f32.
const WIDENED: [Dtype; 2] = [Dtype::F32, Dtype::F16];
/// The same for files whose importer states one format for all layers.
const WIDENED_GGUF: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];
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
                check(checkpoint, tensor, &tensor.source.name, &[Dtype::BF16], &shape)?;
            }
            (WeightFormat::F32, _) => {
                let dtypes = if checkpoint.is_gguf() { &WIDENED_GGUF[..] } else { &WIDENED[..] };
                let view = check(checkpoint, tensor, &tensor.source.name, dtypes, &shape)?;
                let vector = matches!(tensor.role, Role::Vector | Role::ExpertVector);
                if vector && view.encoding != Encoding::Plain {
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
        let near = nearest(name, checkpoint.tensors.keys().map(String::as_str));
        return Err(CheckpointError::Missing {
            path: checkpoint.path().to_owned(),
            name: name.to_owned(),
            logical: tensor.name.clone(),
            near: near.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default(),
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

fn check_extras(checkpoint: &Checkpoint, used: &BTreeSet<&str>) -> Result<()> {
    let ignored = |name: &str| IGNORED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    let extras: Vec<&str> = checkpoint
        .tensors
        .keys()
        .map(String::as_str)
        .filter(|name| !used.contains(name) && !ignored(name))
        .collect();
    if extras.is_empty() {
        return Ok(());
    }
    let mut names = extras[..extras.len().min(NAMED_EXTRAS)].join(", ");
    if extras.len() > NAMED_EXTRAS {
        names.push_str(", ...");
    }
    Err(CheckpointError::Extra { path: checkpoint.path().to_owned(), count: extras.len(), names })
}
