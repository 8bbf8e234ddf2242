//! The surroundings of an interpreted op: the graph, its weights, the sequences so far, and the values of the
//! run at hand.

use super::lora::LoraTargetAdapter;
use super::weights::BlockData;
use crate::ir::{Graph, LoraTargetNode, TensorId, ValueId};
use kernmill_plan::abi::ChosenExpert;
use kernmill_plan::format::BLOCK;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of the last run, rows one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Token ids.
    Ids(Vec<u32>),
    /// f32, also for f16 and bf16 values, which are rounded to it.
    F32(Vec<f32>),
    /// Keys or values of a format with scales.
    Scaled {
        /// Elements before the scale.
        values: Vec<f32>,
        /// One per head.
        scales: Vec<f32>,
    },
    /// Blocks of 32.
    Q8 {
        /// Elements.
        q: Vec<i8>,
        /// One per block.
        scales: Vec<f32>,
        /// Sum of each block's elements.
        sums: Vec<i32>,
    },
    /// `top_k` per token, in order of choice.
    Routing(Vec<ChosenExpert>),
}

/// One token to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchToken {
    /// Sequence number; sequences exist from their first token on.
    pub sequence: usize,
    /// Token id.
    pub token: u32,
    /// Position in the sequence: the number of tokens before it.
    pub position: usize,
}

/// A weight in the forms that its ops need.
pub struct Weight {
    /// Row-major f32.
    pub dense: Vec<f32>,
    /// Integers with scales and minima.
    pub blocks: Option<BlockData>,
}

/// Keys and values of one layer of one sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerKv {
    /// Keys.
    pub k: CachedRows,
    /// Values.
    pub v: CachedRows,
}

/// Keys, or values, of one layer of one sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CachedRows {
    /// Elements before the scale, `[positions, kv_heads * head_dim]`.
    pub values: Vec<f32>,
    /// Scales `[positions, kv_heads]`; none of formats without.
    pub scales: Vec<f32>,
}

/// One sequence's history, by attention layer.
pub type SequenceKv = Vec<LayerKv>;

/// The inputs of an op, and the keys and values that it writes.
pub struct OpState {
    /// The graph.
    pub graph: Arc<Graph>,
    /// By tensor.
    pub weights: Vec<Weight>,
    /// Keys and values of each sequence.
    pub sequences: Vec<SequenceKv>,
    /// Values of the run at hand, as far as they are computed.
    pub values: Vec<Option<Data>>,
    /// Tokens of the run at hand.
    pub batch: Vec<BatchToken>,
    /// Rows of the batch whose logits are wanted.
    pub wanted: Vec<usize>,
    /// Frequencies and factor of each rope.
    pub rope_tables: Vec<(Vec<f32>, f64)>,
    /// LoRA targets of the graph.
    pub lora_targets: Vec<LoraTargetNode>,
    /// By slot and LoRA target; slot 0 has no adapter.
    pub adapters: Vec<Vec<Option<LoraTargetAdapter>>>,
    /// Slot of each sequence that has one.
    pub slots: BTreeMap<usize, usize>,
}

impl OpState {
    /// Columns of a value.
    pub fn cols(&self, value: ValueId) -> usize {
        self.graph.value(value).ty.cols()
    }

    /// Integers of a row in q8, of all its terms.
    pub fn q8_row(&self, value: ValueId) -> usize {
        self.cols(value) * self.graph.value(value).ty.q8_terms()
    }

    /// Rows of a value that has been computed.
    pub fn rows(&self, value: ValueId) -> usize {
        match &self.values[value.0 as usize] {
            Some(Data::F32(x)) => x.len() / self.cols(value),
            Some(Data::Q8 { scales, .. }) => scales.len() * BLOCK / self.q8_row(value),
            _ => 0,
        }
    }

    /// Elements of a value; none of one that is not f32.
    pub fn f32s(&self, value: ValueId) -> &[f32] {
        match &self.values[value.0 as usize] {
            Some(Data::F32(x)) => x,
            _ => &[],
        }
    }

    /// Keys or values as the cache has them: elements before the scale, and the scales of heads, none of
    /// formats without.
    pub fn cached(&self, value: ValueId) -> (&[f32], &[f32]) {
        match &self.values[value.0 as usize] {
            Some(Data::F32(x)) => (x, &[]),
            Some(Data::Scaled { values, scales }) => (values, scales),
            _ => (&[], &[]),
        }
    }

    /// Routes of a routing; none of another value.
    pub fn routing(&self, value: ValueId) -> &[ChosenExpert] {
        match &self.values[value.0 as usize] {
            Some(Data::Routing(x)) => x,
            _ => &[],
        }
    }

    /// Elements of a tensor.
    pub fn dense(&self, tensor: TensorId) -> &[f32] {
        &self.weights[tensor.0 as usize].dense
    }

    /// The adapter that a token has at a LoRA target.
    pub fn adapter(&self, token: &BatchToken, lora_target: u32) -> Option<&LoraTargetAdapter> {
        let slot = self.slots.get(&token.sequence).copied().unwrap_or(0);
        self.adapters.get(slot)?.get(lora_target as usize)?.as_ref()
    }
}
