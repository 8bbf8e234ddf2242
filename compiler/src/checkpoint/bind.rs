//! Whether a checkpoint is the one that a graph describes: every tensor there, of the right dtype and shape, none left over.

use super::{Checkpoint, CheckpointError, Dtype, Result};
use crate::graph::{Graph, Role, RowSelect, Tensor};
use crate::spec::near::nearest;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeSet;

/// Buffers that some exporters write and that the graph computes itself.
const IGNORED_SUFFIXES: [&str; 2] = [".rotary_emb.inv_freq", ".masked_bias"];
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
                check(checkpoint, tensor, &tensor.source.name, &[Dtype::F32, Dtype::F16], &shape)?;
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

fn check(
    checkpoint: &Checkpoint,
    tensor: &Tensor,
    name: &str,
    dtypes: &[Dtype],
    shape: &[usize],
) -> Result<()> {
    let logical = tensor.name.clone();
    let Some(view) = checkpoint.tensor(name) else {
        let near = nearest(name, checkpoint.tensors.keys().map(String::as_str));
        return Err(CheckpointError::Missing {
            path: checkpoint.path().to_owned(),
            name: name.to_owned(),
            logical,
            near: near.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default(),
        });
    };
    let (path, name) = (view.path.to_owned(), name.to_owned());
    if !dtypes.contains(&view.dtype) {
        let found = format!("{:?}", view.dtype);
        let expected = dtypes.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join(" or ");
        return Err(CheckpointError::Dtype { path, name, logical, found, expected });
    }
    if view.shape != shape {
        let (found, expected) = (view.shape.to_vec(), shape.to_vec());
        return Err(CheckpointError::Shape { path, name, logical, found, expected });
    }
    Ok(())
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
