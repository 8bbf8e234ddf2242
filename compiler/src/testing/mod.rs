//! Random weights and adapters for small models: the same case runs on the interpreter, on fused graphs and
//! on compiled plans. The small models of tests are in `compiler/tests/support/`.
//!
//! A small generator of random numbers, the same on every machine.
//!
//! Random adapters, for the interpreter and packed.
//!
//! Random weights in the stored formats.

#[cfg(test)]
#[path = "../../tests/support/small_model.rs"]
mod small_model;

use crate::graph::{Graph, Role, Tensor};
use crate::interp::{LoraTargetAdapter, RawTensor, TensorData};
use crate::pack::MemorySource;
use kernmill_plan::adapter::{LoraTarget, LoraTargetLayout};
use kernmill_plan::format::{BLOCK, PackError, WeightFormat};
#[cfg(test)]
pub use small_model::{Mlp, ModelShape, Twist, build};

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of `items`.
    ///
    /// # Panics
    /// If there are no items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// An adapter of a LoRA target; with `factors`, rows of a dense matrix have some (DoRA).
pub fn random_adapter(
    lora_target: &LoraTarget,
    rank: usize,
    factors: bool,
    rng: &mut Rng,
) -> LoraTargetAdapter {
    let (k, rows, experts) =
        (lora_target.k as usize, lora_target.rows(), (lora_target.experts as usize).max(1));
    let mut numbers =
        |count: usize, spread: f32| -> Vec<f32> { (0..count).map(|_| rng.unit() * spread).collect() };
    let a = numbers(experts * rank * k, 1.7 / (k as f32).sqrt());
    let b = numbers(experts * rows * rank, 1.7 / (rank as f32).sqrt());
    let scales = numbers(rank, 0.5);
    let factors = (factors && lora_target.experts == 0)
        .then(|| numbers(rows, 0.2).into_iter().map(|factor| 1.0 + factor).collect());
    LoraTargetAdapter { rank, a, b, scales, factors }
}

/// Packs an adapter's data of a LoRA target into the adapter's `bytes`.
///
/// # Errors
/// An element that cannot be packed.
pub fn pack_adapter(
    lora_target: &LoraTarget,
    data: &LoraTargetAdapter,
    layout: &LoraTargetLayout,
    bytes: &mut [u8],
) -> Result<(), PackError> {
    let experts = (lora_target.experts as usize).max(1);
    let (a, b) = (data.a.len() / experts, data.b.len() / experts);
    for expert in 0..experts {
        layout.pack_a(expert, &data.a[expert * a..][..a], bytes)?;
        layout.pack_b(expert, &data.b[expert * b..][..b], bytes)?;
    }
    layout.pack_scales(&data.scales, bytes);
    if let Some(factors) = &data.factors {
        layout.pack_factors(factors, bytes);
    }
    Ok(())
}

/// Checkpoint data of every tensor of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomWeights {
    /// By tensor, in the graph's order; each in its tensor's shape.
    pub raw: Vec<RawTensor>,
}

impl RandomWeights {
    /// The data in the graph's plan formats, for the interpreter. `graph` may be a quantised form of the
    /// graph that they were made for.
    ///
    /// # Panics
    /// When `graph` has other tensors.
    pub fn for_graph(&self, graph: &Graph) -> Vec<TensorData> {
        assert_eq!(graph.tensors.len(), self.raw.len());
        let pairs = self.raw.iter().zip(&graph.tensors);
        pairs.map(|(raw, tensor)| raw.convert(tensor).unwrap_or_else(|error| panic!("{error}"))).collect()
    }
}

impl RandomWeights {
    /// The data as the packer reads it. `graph` is the one that they were made for.
    pub fn source(&self, graph: &Graph) -> MemorySource {
        let mut source = MemorySource::default();
        for (tensor, raw) in graph.tensors.iter().zip(&self.raw) {
            match raw {
                RawTensor::Mxfp4 { blocks, scales } => {
                    source.mxfp4.insert(tensor.name.clone(), (blocks.clone(), scales.clone()));
                }
                other => drop(source.f32.insert(tensor.name.clone(), other.to_f32())),
            }
        }
        source
    }
}

/// Random weights of a scale that keeps activations near 1.
pub fn random_weights(graph: &Graph, seed: u64) -> RandomWeights {
    let mut rng = Rng::new(seed);
    RandomWeights { raw: graph.tensors.iter().map(|tensor| random(tensor, &mut rng)).collect() }
}

fn random(tensor: &Tensor, rng: &mut Rng) -> RawTensor {
    let elements: usize = tensor.shape.iter().product();
    let k = *tensor.shape.last().unwrap_or(&1) as f32;
    let (centre, spread) = match tensor.role {
        Role::Matrix | Role::ExpertMatrix => (0.0, 1.7 / k.sqrt()),
        Role::Vector if tensor.name.ends_with("norm.weight") => (1.0, 0.3),
        Role::Vector | Role::ExpertVector => (0.0, 0.3),
        Role::Table => (0.0, 1.0),
    };
    let mut element = || centre + spread * rng.unit();
    match tensor.stored {
        WeightFormat::F32 => RawTensor::F32((0..elements).map(|_| element()).collect()),
        WeightFormat::Bf16 => {
            RawTensor::Bf16((0..elements).map(|_| (element().to_bits() >> 16) as u16).collect())
        }
        WeightFormat::Mxfp4 => {
            // The largest code is 6: a scale of 2^-e makes the values at most 6 * 2^-e.
            let exponent = (spread / 4.0).log2().round() as i32;
            let blocks = (0..elements / 2).map(|_| rng.bits() as u8).collect();
            let scales =
                (0..elements / BLOCK).map(|_| (127 + exponent - rng.below(3) as i32) as u8).collect();
            RawTensor::Mxfp4 { blocks, scales }
        }
        // Formats that no checkpoint has.
        _ => RawTensor::F32((0..elements).map(|_| element()).collect()),
    }
}
