//! The types of GGUF tensors: elements by themselves, and blocks that a weight format keeps.
//! `kernmill_plan::format` says what a block holds.

mod refused;

use crate::encoding::Encoding;
use kernmill_plan::format::WeightFormat;
pub(crate) use refused::refused;
use safetensors::Dtype;
use std::fmt;

/// How a tensor of a GGUF file is stored.
#[derive(Clone, Copy)]
pub struct TensorType {
    /// Name by which tools call it, such as `Q4_K`.
    pub name: &'static str,
    /// Number of the type in files.
    pub number: u32,
    /// Elements of a block, neighbours in a row; 1 where elements stand by themselves.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// How elements are read.
    pub encoding: Encoding,
    /// The type that the elements are read as.
    pub(crate) dtype: Dtype,
}

/// Types whose elements stand by themselves.
const PLAIN: [TensorType; 3] =
    [plain("F32", 0, 4, Dtype::F32), plain("F16", 1, 2, Dtype::F16), plain("BF16", 30, 2, Dtype::BF16)];

const fn plain(name: &'static str, number: u32, bytes: usize, dtype: Dtype) -> TensorType {
    TensorType { name, number, elements: 1, bytes, encoding: Encoding::Plain, dtype }
}

/// The type whose blocks `format` keeps, if a file has such.
fn blocks(format: WeightFormat) -> Option<TensorType> {
    let file = format.descriptor().file?;
    let encoding = Encoding::Blocks(format);
    let (name, number) = (file.name, file.number?);
    Some(TensorType { name, number, elements: file.elements, bytes: file.bytes, encoding, dtype: Dtype::F32 })
}

impl TensorType {
    /// Every type that is read, by number.
    pub fn all() -> Vec<TensorType> {
        let mut all: Vec<TensorType> =
            PLAIN.into_iter().chain(WeightFormat::ALL.into_iter().filter_map(blocks)).collect();
        all.sort_by_key(|kind| kind.number);
        all
    }

    /// The type that has `number` in files.
    pub fn from_number(number: u32) -> Option<TensorType> {
        let plain = PLAIN.into_iter().find(|kind| kind.number == number);
        plain.or_else(|| blocks(WeightFormat::of_file(number)?))
    }

    /// The type of that name, in letters of either case.
    pub fn from_name(name: &str) -> Option<TensorType> {
        TensorType::all().into_iter().find(|kind| kind.name.eq_ignore_ascii_case(name))
    }

    /// Names of all types, for errors.
    pub fn names() -> String {
        TensorType::all().iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
    }

    /// Bytes of a row of `cols` elements; `None` if it is not whole blocks or does not fit into memory.
    pub fn row_bytes(&self, cols: usize) -> Option<usize> {
        self.encoding.row_bytes(self.dtype, cols)
    }
}

impl PartialEq for TensorType {
    fn eq(&self, other: &TensorType) -> bool {
        self.number == other.number
    }
}

impl Eq for TensorType {}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
