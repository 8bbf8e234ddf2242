//! The contents of a GGUF file: values by key, and tensors.

use crate::blocks::TensorType;
use std::collections::BTreeMap;
use std::ops::Range;

/// How a file begins.
pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// Values by key.
#[derive(Clone, Debug)]
pub(super) struct GgufMetadata {
    pub(super) values: BTreeMap<String, MetadataValue>,
}

/// A value; what is long stays in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MetadataValue {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    /// Bytes of the text in the file.
    Text(Range<usize>),
    Array {
        element: ValueType,
        count: usize,
        /// Bytes of the elements in the file.
        range: Range<usize>,
    },
}

/// Type of a value, by its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    /// In the order of their numbers.
    const ALL: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::String,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    pub(super) fn from_number(number: u32) -> Option<ValueType> {
        ValueType::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Bytes of a value, where all have the same.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }
}

impl MetadataValue {
    /// The scalar in `bytes`; `None` if a bool is neither 0 nor 1.
    pub(super) fn scalar(kind: ValueType, bytes: &[u8]) -> Option<MetadataValue> {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        let unused_bits = 64 - 8 * bytes.len() as u32;
        Some(match kind {
            ValueType::U8 | ValueType::U16 | ValueType::U32 | ValueType::U64 => {
                MetadataValue::Unsigned(unsigned)
            }
            ValueType::I8 | ValueType::I16 | ValueType::I32 | ValueType::I64 => {
                MetadataValue::Signed((unsigned << unused_bits).cast_signed() >> unused_bits)
            }
            ValueType::F32 => MetadataValue::Float(decimal(f32::from_bits(unsigned as u32))),
            ValueType::F64 => MetadataValue::Float(f64::from_bits(unsigned)),
            ValueType::Bool => MetadataValue::Bool(match unsigned {
                0 => false,
                1 => true,
                _ => return None,
            }),
            ValueType::String | ValueType::Array => return None,
        })
    }

    pub(super) fn whole(&self) -> Option<u64> {
        match *self {
            MetadataValue::Unsigned(n) => Some(n),
            MetadataValue::Signed(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    /// The value as errors quote it.
    pub(super) fn brief(&self) -> String {
        match self {
            MetadataValue::Unsigned(n) => n.to_string(),
            MetadataValue::Signed(n) => n.to_string(),
            MetadataValue::Float(x) => format!("{x:?}"),
            MetadataValue::Bool(b) => b.to_string(),
            MetadataValue::Text(_) => "a string".into(),
            MetadataValue::Array { count, .. } => format!("an array of {count}"),
        }
    }
}

/// The number that a person meant by `x`: 1e-5, not the f32 nearest to it.
fn decimal(x: f32) -> f64 {
    format!("{x:?}").parse().unwrap_or(f64::from(x))
}

/// A tensor as the file describes it.
#[derive(Clone, Debug)]
pub struct GgufTensor {
    /// Name of the tensor.
    pub name: String,
    /// How its elements are stored.
    pub kind: TensorType,
    /// Row-major: the file's dimensions in reverse.
    pub shape: Vec<usize>,
    /// Which of the model's files holds it.
    pub(super) part: usize,
    /// Bytes in that file.
    pub(super) range: Range<usize>,
}
