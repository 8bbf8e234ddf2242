//! Whether a checkpoint is the one that a graph describes: every tensor there, of the right dtype and shape,
//! none left over.

use crate::ir::{Graph, Role, RowSelect, Tensor, of_expert};
use kernmill_checkpoint::{
    Checkpoint, CheckpointError, Dtype, Encoding, Result, TensorView, is_buffer, other_layout,
};
use kernmill_os::suggest::nearest;
use kernmill_os::text::shortened;
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeSet;

/// Element types that a file may have where the model states f32: each is widened without loss.
const WIDENED: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];
/// The embeddings' published name.
pub const EMBEDDING: &str = "model.embed_tokens.weight";
/// The unembedding's published name.
pub const UNEMBEDDING: &str = "lm_head.weight";
/// Tensors that models for vectors may have and do not use, in safetensors and in GGUF files.
const OF_LOGITS: [&str; 4] = [UNEMBEDDING, "lm_head.bias", "output.weight", "output.bias"];
/// Rows of the unembedding of a reranker, which its GGUF file has once more.
const RANKS: &str = "cls.output.weight";
/// Extra tensors named in an error.
const NAMED_EXTRAS: usize = 5;

/// Checks that `checkpoint` holds exactly the weights of `graph`, and at most those besides that the graph
/// leaves out.
///
/// # Errors
/// The first tensor that is missing, or has another dtype or shape; else the tensors that `graph` does not
/// use.
pub fn bind(graph: &Graph, checkpoint: &Checkpoint) -> Result<()> {
    let mut used = BTreeSet::new();
    for tensor in &graph.tensors {
        for expert in 0..checkpoint_tensors(tensor) {
            used.extend(bind_tensor(tensor, expert, checkpoint)?);
        }
    }
    check_extras(graph, checkpoint, &used)
}

/// Checks the data of a tensor, or of its expert where each has a checkpoint tensor; the views that hold it,
/// by name.
fn bind_tensor<'c>(tensor: &Tensor, expert: usize, checkpoint: &'c Checkpoint) -> Result<[&'c str; 2]> {
    let name = &of_expert(&tensor.source.name, expert);
    let shape = stored_shape(tensor);
    match (tensor.stored, &tensor.source.scales) {
        (WeightFormat::Mxfp4, Some(scales)) => {
            let (mut scale_shape, k) = (shape.clone(), shape[shape.len() - 1]);
            scale_shape[shape.len() - 1] = k / BLOCK;
            let block_shape = [scale_shape.as_slice(), &[BLOCK / 2]].concat();
            let scales = &of_expert(scales, expert);
            let blocks = check(checkpoint, tensor, name, &[Dtype::U8], &block_shape)?.name;
            Ok([blocks, check(checkpoint, tensor, scales, &[Dtype::U8], &scale_shape)?.name])
        }
        (WeightFormat::Bf16, _) => {
            let view = find(checkpoint, tensor, name)?;
            if view.dtype != Dtype::BF16 {
                return Err(misfit(tensor, &view, in_spec("BF16", &view)));
            }
            check_shape(tensor, &view, &shape)?;
            Ok([view.name; 2])
        }
        (WeightFormat::F32, _) => {
            let view = check(checkpoint, tensor, name, &WIDENED, &shape)?;
            let vector = matches!(tensor.role, Role::Vector | Role::ExpertVector);
            let is_plain = view.encoding == Encoding::Plain && !view.is_quantised();
            if (vector || tensor.source.transposed) && !is_plain {
                return Err(misfit(tensor, &view, "F32 or F16".into()));
            }
            Ok([view.name; 2])
        }
        (format, _) => {
            let view = find(checkpoint, tensor, name)?;
            if view.encoding.format() != Some(format) {
                let expected = format!("{:?}", Encoding::Blocks(format));
                return Err(misfit(tensor, &view, in_spec(&expected, &view)));
            }
            check_shape(tensor, &view, &shape)?;
            Ok([view.name; 2])
        }
    }
}

/// Checkpoint tensors that hold a tensor's data: one, or one for each expert.
pub fn checkpoint_tensors(t: &Tensor) -> usize {
    if t.source.is_gathered() { t.shape[0] } else { 1 }
}

/// Shape in elements of the checkpoint tensor, before row selection: of an expert's where each has its own.
pub fn stored_shape(t: &Tensor) -> Vec<usize> {
    let mut shape = row_shape(t);
    if t.source.is_gathered() {
        shape.remove(0);
    }
    if t.source.transposed {
        let rank = shape.len();
        shape.swap(rank - 2, rank - 1);
    }
    shape
}

/// Shape in elements of the checkpoint tensor, with the rows before the columns whichever way the checkpoint
/// stores them.
pub fn row_shape(t: &Tensor) -> Vec<usize> {
    let mut shape = t.shape.clone();
    let rows = &mut shape[t.row_dim()];
    *rows = t.source.rows.stored(*rows).expect("who made the tensor has checked its rows");
    shape
}

fn check<'a>(
    checkpoint: &'a Checkpoint,
    tensor: &Tensor,
    name: &str,
    dtypes: &[Dtype],
    shape: &[usize],
) -> Result<TensorView<'a>> {
    let view = find(checkpoint, tensor, name)?;
    if !dtypes.contains(&view.dtype) {
        let expected = dtypes.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join(" or ");
        return Err(misfit(tensor, &view, expected));
    }
    check_shape(tensor, &view, shape)?;
    Ok(view)
}

fn find<'a>(checkpoint: &'a Checkpoint, tensor: &Tensor, name: &str) -> Result<TensorView<'a>> {
    checkpoint.tensor(name).ok_or_else(|| {
        let names = || checkpoint.names();
        let near = match (other_layout(names()), nearest(name, names())) {
            (Some(layout), _) => format!("; {layout}"),
            (None, Some(near)) => format!(", did you mean `{near}`?"),
            (None, None) => String::new(),
        };
        CheckpointError::Missing {
            path: checkpoint.path().to_owned(),
            name: name.to_owned(),
            logical: tensor.name.clone(),
            near,
        }
    })
}

fn check_shape(tensor: &Tensor, view: &TensorView<'_>, shape: &[usize]) -> Result<()> {
    // A vector may be stored as a matrix of one row, and be some rows of a larger one.
    let takes_rows = tensor.source.rows != RowSelect::ALL || view.shape.first() == Some(&1);
    let by_rows = tensor.role == Role::Vector && view.shape.len() == 2 && takes_rows;
    let elements = view.shape.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    if view.shape == shape || by_rows && elements == Some(shape[0]) {
        return Ok(());
    }
    Err(CheckpointError::Shape {
        path: view.path.to_owned(),
        name: view.name.to_owned(),
        logical: tensor.name.clone(),
        found: view.shape.into(),
        expected: shape.into(),
    })
}

/// Advice where a spec says a format of a tensor that is stored in another one.
fn in_spec(expected: &str, view: &TensorView<'_>) -> String {
    let fits = match (view.encoding.format(), view.dtype) {
        (Some(format), _) => format.name(),
        (None, Dtype::F32 | Dtype::F16) => "f32",
        (None, Dtype::BF16) => "bf16",
        _ => return expected.to_owned(),
    };
    format!("{expected}, or format = \"{fits}\" in the spec")
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
        found: found.into(),
        expected: expected.into(),
    }
}

fn check_extras(graph: &Graph, checkpoint: &Checkpoint, used: &BTreeSet<&str>) -> Result<()> {
    let is_left = |name: &str| {
        graph.left_out.iter().any(|start| name.starts_with(start))
            || graph.vectors.is_some() && OF_LOGITS.contains(&name)
            || name == RANKS
    };
    let extras: Vec<&str> = checkpoint
        .names()
        .filter(|name| !used.contains(name) && !is_buffer(name) && !is_copy(checkpoint, used, name))
        .filter(|name| !is_left(name))
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

/// Whether `name` is the unembedding or embedding of a tied model, stored a second time: the bytes of the
/// other, which is used.
fn is_copy(checkpoint: &Checkpoint, used: &BTreeSet<&str>, name: &str) -> bool {
    let other = match name {
        UNEMBEDDING => EMBEDDING,
        EMBEDDING => UNEMBEDDING,
        _ => return false,
    };
    let (Some(this), Some(other)) = (checkpoint.tensor(name), checkpoint.tensor(other)) else { return false };
    used.contains(other.name) && this.is_same(&other)
}
