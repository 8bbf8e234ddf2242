//! Random weights in the stored formats.

use super::Rng;
use crate::emit::pack::MemorySource;
use crate::interp::{RawTensor, TensorData};
use crate::ir::{Graph, Role, Tensor};
use half::f16;
use kernmill_plan::format::{BLOCK, CodeMap, Minimum, SUPERBLOCK, Scale, WeightFormat};

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
                    source.stored.insert(tensor.name.clone(), (blocks.clone(), scales.clone()));
                }
                RawTensor::Stored { bytes, .. } => {
                    source.stored.insert(tensor.name.clone(), (bytes.clone(), Vec::new()));
                }
                other => drop(source.f32.insert(tensor.name.clone(), other.to_f32())),
            }
        }
        source
    }
}

/// Random weights of a scale that keeps activations near 1. A matrix and a table of the same rows of blocks
/// have the same.
pub fn random_weights(graph: &Graph, seed: u64) -> RandomWeights {
    let mut rng = Rng::new(seed);
    let mut raw: Vec<RawTensor> = Vec::new();
    for tensor in &graph.tensors {
        let same = |other: &Tensor| {
            tensor.stored.is_blocked()
                && (&tensor.source, &tensor.shape, tensor.stored)
                    == (&other.source, &other.shape, other.stored)
        };
        let before = graph.tensors[..raw.len()].iter().position(same);
        raw.push(before.map_or_else(|| random(tensor, &mut rng), |at| raw[at].clone()));
    }
    RandomWeights { raw }
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
        WeightFormat::Mxfp4 if tensor.source.scales.is_some() => {
            // The largest code is 6: a scale of 2^-e makes the values at most 6 * 2^-e.
            let exponent = (spread / 4.0).log2().round() as i32;
            let blocks = (0..elements / 2).map(|_| rng.bits() as u8).collect();
            let scales =
                (0..elements / BLOCK).map(|_| (127 + exponent - rng.below(3) as i32) as u8).collect();
            RawTensor::Mxfp4 { blocks, scales }
        }
        format => RawTensor::Stored { format, bytes: random_blocks(format, elements, spread, rng) },
    }
}

/// Blocks of a file that a tile can hold, of `elements` elements of about that size: any codes and integer
/// scales, units of either sign.
pub fn random_blocks(format: WeightFormat, elements: usize, spread: f32, rng: &mut Rng) -> Vec<u8> {
    let (parts, file) =
        (format.parts(), format.descriptor().file.expect("every format with blocks has a file"));
    let mut bytes: Vec<u8> = (0..elements / file.elements * file.bytes).map(|_| rng.bits() as u8).collect();
    let largest = f32::from(parts.largest()) / 2.0;
    for block in bytes.chunks_mut(file.bytes) {
        let scale = spread / largest * (1.0 + 0.5 * rng.unit()) * rng.pick(&[1.0, -1.0]);
        // Scales are integers of so much, and their unit is as much smaller.
        let unit = match format {
            WeightFormat::Q2K => scale / 8.0,
            WeightFormat::Q3K | WeightFormat::Iq4Xs => scale / 18.0,
            WeightFormat::Q4K | WeightFormat::Q5K => scale / 36.0,
            WeightFormat::Q6K => scale / 74.0,
            _ => scale,
        };
        let mut store = |at: usize, number: f32| {
            block[at..at + 2].copy_from_slice(&f16::from_f32(number).to_le_bytes());
        };
        // Minima take unsigned codes to both sides of 0.
        let offset = largest * unit * (1.0 + 0.3 * rng.unit());
        match (parts.scale, parts.minimum) {
            (Scale::E8M0, _) => block[0] = 128u8.saturating_add_signed(scale.abs().log2().round() as i8),
            (Scale::E4M3, _) => {
                let exponent = (scale.abs() / 8.0).log2().floor() as i32 + 11;
                block[..4]
                    .iter_mut()
                    .for_each(|scale| *scale = *scale & 0x87 | (exponent.clamp(0, 14) as u8) << 3);
            }
            (Scale::F16, Minimum::F16) => {
                [(0, unit), (2, -offset)].into_iter().for_each(|(at, x)| store(at, x))
            }
            (Scale::F16, Minimum::Zero) => {
                store(0, unit);
                // Checkpoints have zeros of up to 16.
                block[2] %= 17;
            }
            (Scale::Super { .. }, Minimum::Super) => {
                [(0, unit), (2, offset)].into_iter().for_each(|(at, x)| store(at, x));
            }
            (Scale::Super { .. }, Minimum::SuperNibbles) => {
                [(80, unit), (82, offset)].into_iter().for_each(|(at, x)| store(at, x));
            }
            _ if file.elements == SUPERBLOCK && format != WeightFormat::Iq4Xs => store(file.bytes - 2, unit),
            _ => store(0, unit),
        }
        if parts.map == (CodeMap::Linear { bias: 128 }) {
            block[2..].iter_mut().filter(|q| **q == 0x80).for_each(|q| *q = 0x81);
        }
    }
    bytes
}
