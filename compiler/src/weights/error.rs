//! Why weights could not be read or rounded, with the place in the checkpoint.

use crate::ir::{Role, Tensor, of_expert};
use kernmill_plan::format::{PackError, Problem};
use thiserror::Error;

/// Why weights could not be packed.
#[derive(Debug, Error)]
pub enum PackWeightsError<E: std::error::Error + 'static> {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] E),
    /// A weight is not usable.
    #[error("checkpoint tensor {source_name} (for {tensor}), {}row {row}, k {k}: {problem}", in_expert(*.expert))]
    Weight {
        /// The checkpoint tensor; for an MXFP4 scale, the tensor of scales.
        source_name: String,
        /// Logical name.
        tensor: String,
        /// Expert, for tensors with experts.
        expert: Option<usize>,
        /// Row, counted in the logical tensor; element of a vector.
        row: usize,
        /// Element along k.
        k: usize,
        /// The problem of the weight.
        problem: Problem,
    },
}

fn in_expert(expert: Option<usize>) -> String {
    expert.map_or_else(String::new, |expert| format!("expert {expert}, "))
}

/// The error with its place in the checkpoint; `error` counts rows from `first_row`.
pub fn locate<E: std::error::Error>(
    tensor: &Tensor,
    expert: usize,
    first_row: usize,
    error: PackError,
) -> PackWeightsError<E> {
    let grouped = matches!(tensor.role, Role::ExpertMatrix | Role::ExpertVector);
    let scales = tensor.source.scales.as_ref().filter(|_| matches!(error.problem, Problem::ScaleByte(_)));
    PackWeightsError::Weight {
        source_name: of_expert(scales.unwrap_or(&tensor.source.name), expert).into_owned(),
        tensor: tensor.name.clone(),
        expert: grouped.then_some(expert),
        row: first_row + error.row,
        k: error.k,
        problem: error.problem,
    }
}
