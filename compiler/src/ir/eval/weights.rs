//! Weights as the interpreter reads them, made from checkpoint data independently of the packer.

use super::num::{fit_weights, quantize_weights};
use crate::ir::{Tensor, TensorId};
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::format::mxfp4::{E2M1_TWICE, scale_value};
use kernmill_plan::format::{BLOCK, Quantise, SUPERBLOCK, WeightFormat, each_stored};

/// A decoded weight, row-major in the tensor's shape.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Elements in f32 (exact for bf16).
    Dense(Vec<f32>),
    /// Integers in blocks of 32 along the last dimension.
    Blocks(BlockData),
}

/// Elements in blocks of 32: `integer * scale + minimum`.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockData {
    /// One per element; for MXFP4 twice the value.
    pub ints: Vec<i8>,
    /// Scales of a block: 1, or 2 for its halves.
    pub parts: usize,
    /// One per part of a block; for MXFP4 half the scale.
    pub scales: Vec<f32>,
    /// One per scale; none at all in formats without minima.
    pub minima: Vec<f32>,
}

/// A tensor's data as the checkpoint stores it, in the tensor's shape (rows already selected).
#[derive(Clone, Debug, PartialEq)]
pub enum RawTensor {
    /// f32 elements.
    F32(Vec<f32>),
    /// bf16 bits.
    Bf16(Vec<u16>),
    /// MXFP4 in two tensors: 16 bytes per block with the low nibble first, and a scale byte per block.
    Mxfp4 {
        /// Element codes.
        blocks: Vec<u8>,
        /// Scales.
        scales: Vec<u8>,
    },
    /// Blocks as GGUF files have them.
    Stored {
        /// The format that keeps them.
        format: WeightFormat,
        /// The blocks.
        bytes: Vec<u8>,
    },
}

/// Where the interpreter gets its weights.
pub trait Weights {
    /// The data of a tensor of the graph, in its plan format.
    fn tensor(&self, id: TensorId) -> &TensorData;
}

impl Weights for Vec<TensorData> {
    fn tensor(&self, id: TensorId) -> &TensorData {
        &self[id.0 as usize]
    }
}

impl RawTensor {
    /// Elements.
    pub fn elements(&self) -> usize {
        match self {
            RawTensor::F32(x) => x.len(),
            RawTensor::Bf16(x) => x.len(),
            RawTensor::Mxfp4 { blocks, .. } => blocks.len() * 2,
            RawTensor::Stored { format, bytes } => bytes.len() * SUPERBLOCK / format.stored_bytes(SUPERBLOCK),
        }
    }

    /// Decodes to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            RawTensor::F32(x) => x.clone(),
            RawTensor::Bf16(x) => x.iter().map(|&bits| f32::from_bits(u32::from(bits) << 16)).collect(),
            RawTensor::Mxfp4 { blocks, scales } => decode_mxfp4(blocks, scales).to_f32(),
            RawTensor::Stored { format, bytes } => decode_stored(*format, bytes).to_f32(),
        }
    }

    /// The data in the plan format of `tensor`.
    ///
    /// # Errors
    /// When the sizes do not fit or the format cannot be made from this one.
    pub fn convert(&self, tensor: &Tensor) -> Result<TensorData, String> {
        let _env = FloatEnv::standard();
        let (name, format) = (&tensor.name, tensor.format);
        let elements: usize = tensor.shape.iter().product();
        if self.elements() != elements {
            return Err(format!("@{name}: {} elements, its shape has {elements}", self.elements()));
        }
        match (format.descriptor().quantise, self) {
            (_, RawTensor::Stored { format: own, bytes }) if *own == format => {
                Ok(TensorData::Blocks(decode_stored(format, bytes)))
            }
            (Quantise::Stored, RawTensor::Mxfp4 { blocks, scales })
                if format == WeightFormat::Mxfp4 && blocks.len() == scales.len() * 16 =>
            {
                Ok(TensorData::Blocks(decode_mxfp4(blocks, scales)))
            }
            (Quantise::Symmetric { levels }, _) => {
                Ok(TensorData::blocks(&self.to_f32(), |w, q| quantize_weights(w, levels, q)))
            }
            (Quantise::Fitted, _) => Ok(TensorData::blocks(&self.to_f32(), fit_weights)),
            (Quantise::Exact, RawTensor::F32(_) | RawTensor::Bf16(_)) => {
                let mut elements = self.to_f32();
                if tensor.plus != 0.0 {
                    elements.iter_mut().for_each(|x| *x += tensor.plus);
                }
                Ok(TensorData::Dense(elements))
            }
            (Quantise::Stored | Quantise::Exact, _) => {
                Err(format!("@{name}: its data cannot be made {}", format.name()))
            }
        }
    }
}

impl TensorData {
    /// Each block's integers and scale by `quantise`.
    fn blocks(elements: &[f32], quantise: impl Fn(&[f32], &mut [i8]) -> f32) -> TensorData {
        let mut ints = vec![0; elements.len()];
        let blocks = elements.chunks(BLOCK).zip(ints.chunks_mut(BLOCK));
        let scales = blocks.map(|(w, q)| quantise(w, q)).collect();
        TensorData::Blocks(BlockData { ints, parts: 1, scales, minima: Vec::new() })
    }

    /// Elements.
    pub fn elements(&self) -> usize {
        match self {
            TensorData::Dense(x) => x.len(),
            TensorData::Blocks(blocks) => blocks.ints.len(),
        }
    }

    /// Elements in f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            TensorData::Dense(x) => x.clone(),
            TensorData::Blocks(blocks) => blocks.to_f32(),
        }
    }
}

impl BlockData {
    /// Elements in f32: `f32(q) * scale`, or `fma(f32(q), scale, minimum)`, one rounding (MXFP4: exact).
    pub fn to_f32(&self) -> Vec<f32> {
        let parts = self.ints.chunks(BLOCK / self.parts).zip(&self.scales).enumerate();
        let element = |(part, (ints, scale)): (usize, (&[i8], &f32))| -> Vec<f32> {
            let ints = ints.iter().map(|q| f32::from(*q));
            match self.minima.get(part) {
                Some(minimum) => ints.map(|q| q.mul_add(*scale, *minimum)).collect(),
                None => ints.map(|q| q * scale).collect(),
            }
        };
        parts.flat_map(element).collect()
    }

    /// An error if scales or minima are not as many as the integers need.
    pub(crate) fn fault(&self) -> Option<String> {
        let parts = self.ints.len() / BLOCK * self.parts;
        let fits = self.scales.len() == parts && (self.minima.is_empty() || self.minima.len() == parts);
        (!fits).then(|| {
            let (scales, minima) = (self.scales.len(), self.minima.len());
            format!("{scales} scales and {minima} minima for {} elements", self.ints.len())
        })
    }
}

fn decode_mxfp4(blocks: &[u8], scales: &[u8]) -> BlockData {
    let codes = blocks.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    let ints = codes.map(|code| E2M1_TWICE[usize::from(code)]).collect();
    let scales = scales.iter().map(|scale| 0.5 * scale_value(*scale)).collect();
    BlockData { ints, parts: 1, scales, minima: Vec::new() }
}

fn decode_stored(format: WeightFormat, bytes: &[u8]) -> BlockData {
    let parts = format.parts().parts();
    let mut data = BlockData { ints: Vec::new(), parts, scales: Vec::new(), minima: Vec::new() };
    each_stored(format, bytes, |element| {
        if data.ints.len().is_multiple_of(BLOCK / parts) {
            data.scales.push(element.scale);
            if format.parts().has_minimum() {
                data.minima.push(element.minimum);
            }
        }
        data.ints.push(element.q as i8);
    });
    data
}
