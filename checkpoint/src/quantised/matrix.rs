//! A quantised matrix: where its codes, scales and zeros are, and its rows.

use crate::encoding::Encoding;
use crate::mapped::Shard;
use half::{bf16, f16};
use kernmill_plan::format::{BLOCK, WeightFormat};
use safetensors::Dtype;
use std::ops::Range;

/// Where each of 8 columns is in a word of AWQ, in nibbles from the lowest.
const AWQ_NIBBLES: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// A stored tensor that is a part of a matrix.
#[derive(Debug)]
pub(super) struct StoredPiece {
    pub(super) shard: usize,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

/// How codes lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CodeLayout {
    /// Words along a row: `[rows, columns / codes in a word]`, the first code in the lowest bits.
    Along {
        /// Bits of a code.
        bits: usize,
    },
    /// Words along a column: `[columns / codes in a word, rows]`.
    Across {
        /// Bits of a code.
        bits: usize,
    },
    /// AWQ's words of eight rows: `[columns, rows / 8]`.
    Awq,
    /// Signed bytes `[rows, columns]`; their codes are 128 more.
    Bytes,
    /// Numbers of E4M3 `[rows, columns]`.
    E4m3,
}

/// Floats of which each is for some rows and columns.
#[derive(Debug)]
pub(super) struct GroupFloats {
    pub(super) tensor: StoredPiece,
    /// Rows and columns that have one.
    pub(super) of: [usize; 2],
    /// Elements from one to the next along rows and along columns.
    pub(super) stride: [usize; 2],
}

/// The numbers that are taken off codes.
#[derive(Debug)]
pub(super) enum Zeros {
    /// This, in all of the matrix.
    Same(u8),
    /// Codes like the matrix's own, in words `[groups, rows / codes in a word]`; `more` is added, and the
    /// sum is cut to their bits.
    Groups { tensor: StoredPiece, codes: CodeLayout, more: u8 },
    /// Words `[rows / codes in a word, groups]`.
    Rows { tensor: StoredPiece, bits: usize },
    /// Signed bytes `[rows, groups]`; of codes of so many bits, the zero is half of their range more.
    Bytes { tensor: StoredPiece, bits: usize },
    /// Nothing: biases are added to codes times scales.
    Biases(GroupFloats),
}

/// A matrix `[rows, columns]` in several stored tensors.
#[derive(Debug)]
pub(crate) struct Quantised {
    pub(super) columns: usize,
    pub(super) codes: CodeLayout,
    pub(super) scales: GroupFloats,
    pub(super) zeros: Zeros,
}

/// Bytes of a stored tensor.
pub(super) fn bytes_of<'a>(shards: &'a [Shard], tensor: &StoredPiece) -> &'a [u8] {
    &shards[tensor.shard].bytes[tensor.range.clone()]
}

/// The code of `bits` bits that is number `index` in words.
fn code(words: &[u8], bits: usize, word: usize, index: usize) -> u8 {
    let at = bits * index;
    words[4 * word + at / 8] >> (at % 8) & (0xff >> (8 - bits)) as u8
}

/// A float of the dtypes that factors have.
fn float(bytes: &[u8], dtype: Dtype, at: usize) -> f32 {
    let half = |at: usize| [bytes[2 * at], bytes[2 * at + 1]];
    match dtype {
        Dtype::F16 => f16::from_le_bytes(half(at)).to_f32(),
        Dtype::BF16 => bf16::from_le_bytes(half(at)).to_f32(),
        _ => f32::from_le_bytes(std::array::from_fn(|i| bytes[4 * at + i])),
    }
}

/// A number of E4M3: no infinities, and NaN for all ones.
pub(super) fn e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
    let size = match (exponent, byte & 127) {
        (_, 127) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    };
    if byte & 128 == 0 { size } else { -size }
}

impl CodeLayout {
    /// Bits of a code.
    pub(super) fn bits(self) -> usize {
        match self {
            CodeLayout::Along { bits } | CodeLayout::Across { bits } => bits,
            CodeLayout::Awq => 4,
            CodeLayout::Bytes | CodeLayout::E4m3 => 8,
        }
    }

    /// Codes in a word.
    pub(super) fn per_word(self) -> usize {
        32 / self.bits()
    }

    /// Whether a row is spread over the whole tensor.
    pub(super) fn are_across(self) -> bool {
        matches!(self, CodeLayout::Across { .. } | CodeLayout::Awq)
    }

    /// The codes of a row; a tensor that is words across rows has `width` words in a line.
    fn row(self, data: &[u8], width: usize, row: usize, codes: &mut [u8]) {
        let columns = codes.len();
        match self {
            CodeLayout::Along { bits } => {
                let per = 32 / bits;
                let words = &data[row * columns.div_ceil(per) * 4..];
                codes.iter_mut().enumerate().for_each(|(k, to)| *to = code(words, bits, k / per, k % per));
            }
            CodeLayout::Across { bits } => {
                for (line, codes) in codes.chunks_mut(32 / bits).enumerate() {
                    let word = line * width + row;
                    codes.iter_mut().enumerate().for_each(|(i, to)| *to = code(data, bits, word, i));
                }
            }
            CodeLayout::Awq => {
                for (k, to) in codes.iter_mut().enumerate() {
                    *to = code(data, 4, k * width + row / 8, AWQ_NIBBLES[row % 8]);
                }
            }
            CodeLayout::Bytes => {
                let bytes = &data[row * columns..(row + 1) * columns];
                codes.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte ^ 0x80);
            }
            CodeLayout::E4m3 => codes.copy_from_slice(&data[row * columns..(row + 1) * columns]),
        }
    }
}

impl GroupFloats {
    /// The number of a row and a column.
    fn at(&self, shards: &[Shard], row: usize, column: usize) -> f32 {
        let at = row / self.of[0] * self.stride[0] + column / self.of[1] * self.stride[1];
        float(bytes_of(shards, &self.tensor), self.tensor.dtype, at)
    }

    /// Whether each is an f16.
    pub(super) fn are_f16(&self, shards: &[Shard]) -> bool {
        let (bytes, dtype) = (bytes_of(shards, &self.tensor), self.tensor.dtype);
        let count = bytes.len() / (dtype.bitsize() / 8);
        dtype == Dtype::F16
            || (0..count).map(|at| float(bytes, dtype, at)).all(|x| f16::from_f32(x).to_f32() == x)
    }
}

impl Zeros {
    /// The zero of a row's group.
    fn at(&self, shards: &[Shard], row: usize, group: usize, groups: usize) -> u8 {
        match self {
            Zeros::Same(zero) => *zero,
            Zeros::Groups { tensor, codes, more } => {
                let (data, bits, per) = (bytes_of(shards, tensor), codes.bits(), codes.per_word());
                let place = if *codes == CodeLayout::Awq { AWQ_NIBBLES[row % 8] } else { row % per };
                let zero = code(data, bits, group * tensor.shape[1] + row / per, place);
                zero.wrapping_add(*more) & (0xff >> (8 - bits)) as u8
            }
            Zeros::Rows { tensor, bits } => {
                let per = 32 / bits;
                code(bytes_of(shards, tensor), *bits, row / per * groups + group, row % per)
            }
            Zeros::Bytes { tensor, bits } => {
                bytes_of(shards, tensor)[row * groups + group].wrapping_add(1 << (bits - 1))
            }
            Zeros::Biases(_) => 0,
        }
    }

    /// The tensor that has them.
    pub(super) fn tensor(&self) -> Option<&StoredPiece> {
        match self {
            Zeros::Same(_) => None,
            Zeros::Groups { tensor, .. } | Zeros::Rows { tensor, .. } | Zeros::Bytes { tensor, .. } => {
                Some(tensor)
            }
            Zeros::Biases(factors) => Some(&factors.tensor),
        }
    }
}

impl Quantised {
    /// Inputs that share a scale and a zero.
    pub(super) fn group(&self) -> usize {
        self.scales.of[1]
    }

    /// Bytes of the tensors beside the codes.
    pub(crate) fn bytes(&self) -> usize {
        self.scales.tensor.range.len() + self.zeros.tensor().map_or(0, |tensor| tensor.range.len())
    }

    /// Whether a row is spread over the whole tensor of codes.
    pub(crate) fn is_across(&self) -> bool {
        self.codes.are_across()
    }

    /// Whether another matrix's scales and zeros have the same bytes.
    pub(crate) fn has_factors_of(&self, shards: &[Shard], other: &Quantised) -> bool {
        let zeros = |of: &Quantised| of.zeros.tensor().map(|tensor| bytes_of(shards, tensor));
        let scales = |of: &Quantised| bytes_of(shards, &of.scales.tensor);
        scales(self) == scales(other) && zeros(self) == zeros(other)
    }

    /// Whether every zero is `zero`, in `rows` rows.
    pub(super) fn has_zero(&self, shards: &[Shard], rows: usize, zero: u8) -> bool {
        let groups = self.columns.div_ceil(self.group());
        match &self.zeros {
            Zeros::Same(same) => *same == zero,
            Zeros::Biases(_) => false,
            zeros => {
                let mut places = (0..rows).flat_map(|row| (0..groups).map(move |group| (row, group)));
                places.all(|(row, group)| zeros.at(shards, row, group, groups) == zero)
            }
        }
    }

    /// Appends a row as `encoding` has it: blocks of its format, or f32. `width` is what a line of the codes'
    /// tensor has, whose bytes `data` are.
    pub(crate) fn append_row(
        &self,
        shards: &[Shard],
        (data, width): (&[u8], usize),
        encoding: Encoding,
        row: usize,
        out: &mut Vec<u8>,
    ) {
        let mut codes = vec![0; self.columns];
        self.codes.row(data, width, row, &mut codes);
        let groups = self.columns.div_ceil(self.group());
        let zero = |column: usize| self.zeros.at(shards, row, column / self.group(), groups);
        let scale = |column: usize| self.scales.at(shards, row, column);
        let bias = |column: usize| match &self.zeros {
            Zeros::Biases(biases) => biases.at(shards, row, column),
            _ => 0.0,
        };
        match encoding {
            Encoding::Blocks(format) => {
                for (block, codes) in codes.as_chunks::<BLOCK>().0.iter().enumerate() {
                    let column = block * BLOCK;
                    out.extend_from_slice(&f16::from_f32(scale(column)).to_le_bytes());
                    match format {
                        WeightFormat::Int8 => out.extend(codes.iter().map(|code| code ^ 0x80)),
                        WeightFormat::Int4Zero => out.push(zero(column)),
                        WeightFormat::Q4_1 => {
                            out.extend_from_slice(&f16::from_f32(bias(column)).to_le_bytes());
                        }
                        _ => {}
                    }
                    if format != WeightFormat::Int8 {
                        let (low, high) = codes.split_at(BLOCK / 2);
                        out.extend(low.iter().zip(high).map(|(low, high)| low | high << 4));
                    }
                }
            }
            Encoding::Plain => {
                for (first, codes) in codes.chunks(self.group()).enumerate() {
                    let column = first * self.group();
                    let (scale, zero, bias) = (scale(column), i32::from(zero(column)), bias(column));
                    let number = |code: u8| match (self.codes, &self.zeros) {
                        (CodeLayout::E4m3, _) => e4m3(code) * scale,
                        (_, Zeros::Biases(_)) => f32::from(code).mul_add(scale, bias),
                        _ => (i32::from(code) - zero) as f32 * scale,
                    };
                    codes.iter().for_each(|code| out.extend_from_slice(&number(*code).to_le_bytes()));
                }
            }
        }
    }
}
