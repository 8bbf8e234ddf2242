//! Reads, multiply-adds and times of an engine's runs, for `kernmill bench` and its like.

use std::ops::AddAssign;

/// How much is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Bytes and multiply-adds only; no step is timed.
    Totals,
    /// Every step is timed as well, which costs two looks at the clock per step and worker.
    Steps,
}

/// Bytes read and multiply-adds done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Packed weights: dense ones once per run, experts once per run that chose them.
    pub weight_bytes: u64,
    /// Cached keys and values in view of any token of a run, once per run.
    pub cache_bytes: u64,
    /// Multiply-adds of matrices (attention's are not counted).
    pub macs: u64,
}

impl WorkDone {
    /// Weights and cache.
    pub fn bytes(&self) -> u64 {
        self.weight_bytes.saturating_add(self.cache_bytes)
    }
}

impl AddAssign for WorkDone {
    fn add_assign(&mut self, other: WorkDone) {
        self.weight_bytes = self.weight_bytes.saturating_add(other.weight_bytes);
        self.cache_bytes = self.cache_bytes.saturating_add(other.cache_bytes);
        self.macs = self.macs.saturating_add(other.macs);
    }
}

/// The measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Batches run.
    pub runs: u64,
    /// Tokens of all batches.
    pub tokens: u64,
    /// Work of all batches.
    pub total: WorkDone,
    /// The times of each kind of step, in order of appearance; empty unless [`Detail::Steps`].
    pub steps: Vec<StepProfile>,
    /// The times of each layer's steps, whatever their kind, in order of appearance; empty unless
    /// [`Detail::Steps`].
    pub layers: Vec<StepProfile>,
}

/// All steps of one kind, or all of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProfile {
    /// The steps' label without the layer; or the layer as labels begin with it, such as `layers.3`, and
    /// `others` for what is in no layer.
    pub name: String,
    /// How many of these steps were run.
    pub calls: u64,
    /// Seconds on worker 0, from a step's start to the end of the barrier behind it.
    pub seconds: f64,
    /// Seconds of each worker inside the kernels.
    pub busy: Vec<f64>,
    /// Work of all these steps.
    pub work: WorkDone,
}

impl StepProfile {
    pub(crate) fn new(name: &str, workers: usize) -> StepProfile {
        StepProfile {
            name: name.to_owned(),
            calls: 0,
            seconds: 0.0,
            busy: vec![0.0; workers],
            work: WorkDone::default(),
        }
    }
}

/// Name of all steps that are in no layer.
const OTHERS: &str = "others";

/// A step's label without its layer: `layers.3.qkv` is a `qkv`.
pub fn kind(label: &str) -> &str {
    split(label).map_or(label, |(_, kind)| kind)
}

/// The layer of a step by its label: `layers.3.qkv` is in `layers.3`, and `logits` in `others`.
pub fn layer(label: &str) -> &str {
    split(label).map_or(OTHERS, |(layer, _)| layer)
}

/// Layer and kind of a step that is in a layer.
fn split(label: &str) -> Option<(&str, &str)> {
    let (number, kind) = label.strip_prefix("layers.")?.split_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| (&label[..label.len() - kind.len() - 1], kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lose_their_layer() {
        for (label, of, expected) in [
            ("layers.3.qkv", "layers.3", "qkv"),
            ("layers.23.moe.down", "layers.23", "moe.down"),
            ("logits", "others", "logits"),
            ("layers.x.qkv", "others", "layers.x.qkv"),
            ("layers..qkv", "others", "layers..qkv"),
            ("layers.4", "others", "layers.4"),
        ] {
            assert_eq!((layer(label), kind(label)), (of, expected));
        }
    }
}
