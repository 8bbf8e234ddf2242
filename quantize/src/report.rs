//! The report of all tensors that `--report` writes.

use serde::Serialize;
use std::path::PathBuf;

/// A whole report.
#[derive(Serialize)]
pub(crate) struct SizeReport {
    /// Bits for each weight, over all tensors.
    pub(crate) bits_per_weight: f64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Divergences, where a model was run to choose the types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) divergence: Option<DivergenceReport>,
    pub(crate) tensors: Vec<TensorReport>,
}

/// The divergence from the model as it was, in nats a token.
#[derive(Serialize)]
pub(crate) struct DivergenceReport {
    /// The sum of what each tensor's type does by itself.
    pub(crate) predicted: f64,
    /// All of them together, as it was measured.
    pub(crate) measured: f64,
    /// Tokens that it was measured on.
    pub(crate) tokens: usize,
    /// The parts of the sum, in the order of the tensors.
    pub(crate) by_tensor: Vec<f64>,
}

impl DivergenceReport {
    /// Takes what making up for errors gained off the parts: a divergence goes with the square of an error.
    pub(crate) fn made_up(&mut self, tensors: &[TensorReport]) {
        for (part, tensor) in self.by_tensor.iter_mut().zip(tensors) {
            *part *= tensor.product_error.map_or(1.0, |error| error * error);
        }
        self.predicted = self.by_tensor.iter().sum();
    }
}

/// A tensor, and its new type.
#[derive(Serialize)]
pub(crate) struct TensorReport {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    /// Type that it had, and type that it has.
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) bytes: u64,
    /// Square root of the squared errors over the squares of the weights, both weighted by importance.
    pub(crate) relative_error: f64,
    /// The error of its products with the inputs of the calibration, as a part of what fitting each weight by
    /// itself leaves; where rounding makes up for errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) product_error: Option<f64>,
    /// Experts, or 0 for one matrix, that too few tokens of the calibration met to make up for errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fitted_plainly: Vec<usize>,
    /// Whether the importance of its columns is known.
    pub(crate) has_importance: bool,
    /// Experts that no token of the importance matrix reached, which are fitted plainly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreached_experts: Vec<usize>,
}

/// A file that was written.
#[derive(Debug)]
pub struct QuantizedModel {
    /// The file.
    pub path: PathBuf,
    /// Size and use of the file, in a few words.
    pub about: String,
}
