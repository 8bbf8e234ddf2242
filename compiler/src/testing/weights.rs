//! Random weights in the stored formats.

use super::Rng;
use crate::graph::{Graph, Role, Tensor};
use crate::interp::{RawTensor, TensorData};
use crate::pack::MemorySource;
use kernmill_plan::format::{BLOCK, WeightFormat};

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
