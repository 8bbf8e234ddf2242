//! Adapters, made from their data independently of the packer.

/// An adapter's data at one LoRA target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoraTargetAdapter {
    /// Rank.
    pub rank: usize,
    /// `[experts][rank][k]`.
    pub a: Vec<f32>,
    /// `[experts][rows][rank]`, rows as in the checkpoint's tensor.
    pub b: Vec<f32>,
    /// `[rank]` factor of every rank.
    pub scales: Vec<f32>,
    /// `[rows]` factor of every row, for DoRA.
    pub factors: Option<Vec<f32>>,
}
