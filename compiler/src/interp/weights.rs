//! Weights as the interpreter reads them, made from checkpoint data independently of the packer.

use super::num::{fit_weights, quantize_weights};
use crate::graph::{Tensor, TensorId};
use kernmill_os::float_env::FloatEnv;
use kernmill_plan::format::mxfp4::{E2M1_TWICE, scale_value};
use kernmill_plan::format::{BLOCK, Quantise};

/// A decoded weight, row-major in the tensor's shape.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Elements in f32 (exact for bf16).
    Dense(Vec<f32>),
    /// Integers in blocks of 32 along the last dimension, with a scale per block.
    Blocks {
        /// One per element; for MXFP4 twice the value.
        ints: Vec<i8>,
        /// One per block.
        scales: Vec<f32>,
        /// Value of an integer step before the scale: 0.5 for MXFP4, 1 otherwise.
        base_scale: f32,
    },
}

/// A tensor's data as the checkpoint stores it, in the tensor's shape (rows already selected).
#[derive(Clone, Debug, PartialEq)]
pub enum RawTensor {
    /// f32 elements.
    F32(Vec<f32>),
    /// bf16 bits.
    Bf16(Vec<u16>),
    /// MXFP4: 16 bytes per block with the low nibble first, and a scale byte per block.
    Mxfp4 {
        /// Element codes.
        blocks: Vec<u8>,
        /// Scales.
        scales: Vec<u8>,
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
        }
    }

    /// Decodes to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            RawTensor::F32(x) => x.clone(),
            RawTensor::Bf16(x) => x.iter().map(|&bits| f32::from_bits(u32::from(bits) << 16)).collect(),
            RawTensor::Mxfp4 { .. } => self.decode_mxfp4().to_f32(),
        }
    }

    fn decode_mxfp4(&self) -> TensorData {
        let RawTensor::Mxfp4 { blocks, scales } = self else { return TensorData::Dense(self.to_f32()) };
        let codes = blocks.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        let ints = codes.map(|code| E2M1_TWICE[usize::from(code)]).collect();
        let scales = scales.iter().map(|scale| scale_value(*scale)).collect();
        TensorData::Blocks { ints, scales, base_scale: 0.5 }
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
            (Quantise::Stored, RawTensor::Mxfp4 { blocks, scales }) if blocks.len() == scales.len() * 16 => {
                Ok(self.decode_mxfp4())
            }
            (Quantise::Symmetric { levels }, _) => {
                Ok(TensorData::blocks(&self.to_f32(), |w, q| quantize_weights(w, levels, q)))
            }
            (Quantise::Fitted, _) => Ok(TensorData::blocks(&self.to_f32(), fit_weights)),
            (Quantise::Exact, RawTensor::F32(_) | RawTensor::Bf16(_)) => Ok(TensorData::Dense(self.to_f32())),
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
        TensorData::Blocks { ints, scales, base_scale: 1.0 }
    }

    /// Elements.
    pub fn elements(&self) -> usize {
        match self {
            TensorData::Dense(x) => x.len(),
            TensorData::Blocks { ints, .. } => ints.len(),
        }
    }

    /// Elements in f32: for blocks `f32(q) * scale`, one rounding (MXFP4: exact).
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            TensorData::Dense(x) => x.clone(),
            TensorData::Blocks { ints, scales, base_scale } => {
                let blocks = ints.chunks(BLOCK).zip(scales);
                blocks
                    .flat_map(|(q, scale)| q.iter().map(move |q| (f32::from(*q) * base_scale) * scale))
                    .collect()
            }
        }
    }
}
