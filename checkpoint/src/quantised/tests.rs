//! Layouts against a second, plain description of each: bits of one long number.

mod faults;

use super::matrix::e4m3;
use crate::encoding::Encoding;
use crate::tensors::Checkpoint;
use half::{bf16, f16};
use kernmill_plan::format::WeightFormat;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::path::Path;

/// Name, type, shape and bytes.
type Stored = (String, Dtype, Vec<usize>, Vec<u8>);

/// Rows and columns of the matrix of these tests.
const SIZE: [usize; 2] = [24, 128];

fn stored(name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Stored {
    (format!("m.{name}"), dtype, shape.to_vec(), bytes)
}

fn file(tensors: &[Stored]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (name.clone(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

fn open(tensors: &[Stored], config: &str) -> Result<Checkpoint, String> {
    let checkpoint = Checkpoint::from_bytes("m.safetensors", file(tensors)).unwrap();
    checkpoint.with_config(Path::new("config.json"), config.as_bytes()).map_err(|error| error.to_string())
}

/// The numbers of the matrix, and the format that keeps them.
fn read(checkpoint: &Checkpoint) -> (Vec<f32>, Option<WeightFormat>) {
    let view = checkpoint.tensor("m.weight").unwrap();
    assert_eq!(view.shape, SIZE);
    let (row_bytes, mut bytes) = (view.encoding.row_bytes(view.dtype, SIZE[1]).unwrap(), Vec::new());
    (0..SIZE[0]).for_each(|row| view.append_row(row, row_bytes, &mut bytes));
    assert_eq!(bytes.len(), SIZE[0] * row_bytes);
    let mut numbers = Vec::new();
    view.encoding.decode(view.dtype, &bytes, &mut numbers);
    let format = match view.encoding {
        Encoding::Plain => None,
        Encoding::Blocks(format) => Some(format),
    };
    (numbers, format)
}

/// A matrix that is known: codes, and by row and group scales and zeros.
struct Known {
    bits: usize,
    group: usize,
    codes: Vec<u8>,
    scales: Vec<f32>,
    zeros: Vec<u8>,
}

impl Known {
    fn new(bits: usize, group: usize, zero: Option<u8>) -> Known {
        let (groups, mut state) = (SIZE[1] / group, 77u32);
        let mut next = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 20) as usize
        };
        let top = (1usize << bits) - 1;
        Known {
            bits,
            group,
            codes: (0..SIZE[0] * SIZE[1]).map(|_| (next() % top + 1) as u8).collect(),
            scales: (0..SIZE[0] * groups).map(|_| (next() % 250 + 1) as f32 / 4096.0).collect(),
            zeros: (0..SIZE[0] * groups).map(|_| zero.unwrap_or((next() & top) as u8)).collect(),
        }
    }

    fn groups(&self) -> usize {
        SIZE[1] / self.group
    }

    fn code(&self, row: usize, column: usize) -> u8 {
        self.codes[row * SIZE[1] + column]
    }

    fn of(&self, row: usize, column: usize) -> usize {
        row * self.groups() + column / self.group
    }

    fn numbers(&self) -> Vec<f32> {
        let places = (0..SIZE[0]).flat_map(|row| (0..SIZE[1]).map(move |column| (row, column)));
        let number = |(row, column)| {
            let of = self.of(row, column);
            f32::from(i16::from(self.code(row, column)) - i16::from(self.zeros[of])) * self.scales[of]
        };
        places.map(number).collect()
    }

    /// Numbers of so many bits as little-endian words, the first in the lowest bits.
    fn words(&self, numbers: impl Iterator<Item = u8>) -> Vec<u8> {
        let numbers: Vec<u8> = numbers.collect();
        let word = |numbers: &[u8]| {
            let shifted = numbers.iter().enumerate().map(|(i, number)| u32::from(*number) << (i * self.bits));
            shifted.fold(0, |word, bits| word | bits)
        };
        numbers.chunks(32 / self.bits).flat_map(|numbers| word(numbers).to_le_bytes()).collect()
    }

    /// Words `[columns / per, rows]`, one for so many columns of a row.
    fn words_across(&self) -> Vec<u8> {
        let per = 32 / self.bits;
        let lines = (0..SIZE[1] / per).flat_map(|line| (0..SIZE[0]).map(move |row| (line, row)));
        lines
            .flat_map(|(line, row)| self.words((line * per..(line + 1) * per).map(|k| self.code(row, k))))
            .collect()
    }

    /// Scales by group, then row.
    fn scales_across(&self, bytes: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
        let places = (0..self.groups()).flat_map(|group| (0..SIZE[0]).map(move |row| (group, row)));
        places.flat_map(|(group, row)| bytes(self.scales[row * self.groups() + group])).collect()
    }

    fn gptq(&self, less: u8) -> Vec<Stored> {
        let (groups, per) = (self.groups(), 32 / self.bits);
        let mask = (0xff >> (8 - self.bits)) as u8;
        let zeros = (0..groups).flat_map(|group| (0..SIZE[0]).map(move |row| row * groups + group));
        let zeros = zeros.map(|of| self.zeros[of].wrapping_sub(less) & mask);
        let order = (0..SIZE[1]).flat_map(|k| ((k / self.group) as u32).to_le_bytes()).collect();
        vec![
            stored("qweight", Dtype::I32, &[SIZE[1] / per, SIZE[0]], self.words_across()),
            stored("scales", Dtype::F16, &[groups, SIZE[0]], self.scales_across(half_bytes)),
            stored("qzeros", Dtype::I32, &[groups, SIZE[0] / per], self.words(zeros)),
            stored("g_idx", Dtype::I32, &[SIZE[1]], order),
        ]
    }

    fn awq(&self) -> Vec<Stored> {
        let groups = self.groups();
        let eights = |line: usize, of: &dyn Fn(usize, usize) -> u8| {
            let rows = (0..SIZE[0]).map(|at| at / 8 * 8 + [0, 2, 4, 6, 1, 3, 5, 7][at % 8]);
            self.words(rows.map(|row| of(line, row)))
        };
        let codes = (0..SIZE[1]).flat_map(|k| eights(k, &|k, row| self.code(row, k))).collect();
        let zeros = |group, row| self.zeros[row * groups + group];
        let zeros = (0..groups).flat_map(|group| eights(group, &zeros)).collect();
        vec![
            stored("qweight", Dtype::I32, &[SIZE[1], SIZE[0] / 8], codes),
            stored("scales", Dtype::F16, &[groups, SIZE[0]], self.scales_across(half_bytes)),
            stored("qzeros", Dtype::I32, &[groups, SIZE[0] / 8], zeros),
        ]
    }

    fn packed(&self, with_zeros: bool, dtype: Dtype) -> Vec<Stored> {
        let (groups, per) = (self.groups(), 32 / self.bits);
        let shape = SIZE.iter().flat_map(|side| (*side as u64).to_le_bytes()).collect();
        let scales = self.scales.iter().flat_map(|scale| match dtype {
            Dtype::BF16 => bf16::from_f32(*scale).to_le_bytes().to_vec(),
            _ => scale.to_le_bytes().to_vec(),
        });
        let mut tensors = vec![
            stored(
                "weight_packed",
                Dtype::I32,
                &[SIZE[0], SIZE[1] / per],
                self.words(self.codes.iter().copied()),
            ),
            stored("weight_scale", dtype, &[SIZE[0], groups], scales.collect()),
            stored("weight_shape", Dtype::I64, &[2], shape),
        ];
        if with_zeros {
            let lines = (0..SIZE[0] / per).flat_map(|line| (0..groups).map(move |group| (line, group)));
            let zero = |(line, group): (usize, usize)| {
                self.words((line * per..(line + 1) * per).map(|row| self.zeros[row * groups + group]))
            };
            let zeros = lines.flat_map(zero).collect();
            tensors.push(stored("weight_zero_point", Dtype::I32, &[SIZE[0] / per, groups], zeros));
        }
        tensors
    }

    fn bytes(&self) -> Vec<Stored> {
        let codes = self.codes.iter().map(|code| code ^ 0x80).collect();
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        vec![
            stored("weight", Dtype::I8, &SIZE, codes),
            stored("weight_scale", Dtype::F32, &[SIZE[0], self.groups()], scales),
        ]
    }

    /// Biases are minus a zero times a scale, which f16 holds of few bits.
    fn mlx(&self) -> Vec<Stored> {
        let (groups, per) = (self.groups(), 32 / self.bits);
        let halves = |numbers: Vec<f32>| numbers.into_iter().flat_map(half_bytes).collect();
        let biases = self.scales.iter().zip(&self.zeros).map(|(scale, zero)| -scale * f32::from(*zero));
        vec![
            stored("weight", Dtype::U32, &[SIZE[0], SIZE[1] / per], self.words(self.codes.iter().copied())),
            stored("scales", Dtype::F16, &[SIZE[0], groups], halves(self.scales.clone())),
            stored("biases", Dtype::F16, &[SIZE[0], groups], halves(biases.collect())),
        ]
    }
}

fn half_bytes(number: f32) -> Vec<u8> {
    f16::from_f32(number).to_le_bytes().to_vec()
}

fn gptq_config(more: &str) -> String {
    format!(r#"{{"quantization_config": {{"quant_method": "gptq", {more}}}}}"#)
}

const COMPRESSED: &str = r#"{"quantization_config": {"quant_method": "compressed-tensors"}}"#;

#[test]
fn gptq_and_awq_are_the_numbers_of_their_bits() {
    for group in [32, 64, 128] {
        for (zero, format) in [(Some(8), WeightFormat::Int4), (None, WeightFormat::Int4Zero)] {
            let known = Known::new(4, group, zero);
            let stated = if group == SIZE[1] { -1 } else { group as i64 };
            let first = gptq_config(&format!(r#""bits": 4, "group_size": {stated}"#));
            let second =
                gptq_config(&format!(r#""bits": 4, "group_size": {group}, "checkpoint_format": "gptq_v2""#));
            let groups = format!(r#""bits": 4, "group_size": {group}, "version": "GEMM""#);
            let awq = gptq_config(&groups).replace("gptq", "awq");
            for (tensors, config) in [(known.gptq(1), first), (known.gptq(0), second), (known.awq(), awq)] {
                let checkpoint = open(&tensors, &config).unwrap();
                assert_eq!(read(&checkpoint), (known.numbers(), Some(format)), "{config}");
                assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["m.weight"]);
                assert_eq!(checkpoint.converted(), []);
                let bytes: usize = tensors.iter().map(|tensor| tensor.3.len()).sum();
                let order = tensors.get(3).map_or(0, |order| order.3.len());
                assert_eq!(checkpoint.bytes() as usize, bytes - order);
            }
        }
    }
}

#[test]
fn eight_bits_are_kept_if_their_zero_is_in_the_middle() {
    let config = gptq_config(r#""bits": 8, "group_size": 32"#);
    let known = Known::new(8, 32, Some(128));
    assert_eq!(read(&open(&known.gptq(1), &config).unwrap()), (known.numbers(), Some(WeightFormat::Int8)));
    let known = Known::new(8, 32, None);
    let checkpoint = open(&known.gptq(1), &config).unwrap();
    assert_eq!(read(&checkpoint), (known.numbers(), None));
    assert_eq!(
        (checkpoint.converted()[0].what, checkpoint.converted()[0].count),
        ("with zeros in 8 bits", 1)
    );
}

#[test]
fn compressed_tensors_are_the_numbers_of_their_bits() {
    for group in [32, 64, 128] {
        for (zero, bits, format) in [
            (Some(8), 4, WeightFormat::Int4),
            (None, 4, WeightFormat::Int4Zero),
            (Some(128), 8, WeightFormat::Int8),
        ] {
            let known = Known::new(bits, group, zero);
            for dtype in [Dtype::BF16, Dtype::F32] {
                let checkpoint = open(&known.packed(zero.is_none(), dtype), COMPRESSED).unwrap();
                assert_eq!(read(&checkpoint), (known.numbers(), Some(format)), "{bits} bits, {group}");
            }
            let mut tensors = known.packed(false, Dtype::BF16);
            if bits == 4 {
                let zeros = known.zeros.iter().map(|zero| zero.wrapping_sub(8)).collect();
                let shape = [SIZE[0], known.groups()];
                tensors.push(stored("weight_zero_point", Dtype::I8, &shape, zeros));
                assert_eq!(read(&open(&tensors, COMPRESSED).unwrap()), (known.numbers(), Some(format)));
            } else {
                let checkpoint = open(&known.bytes(), COMPRESSED).unwrap();
                assert_eq!(read(&checkpoint), (known.numbers(), Some(format)));
            }
        }
    }
}

#[test]
fn mlx_is_the_numbers_of_its_bits() {
    for (bits, group, format) in
        [(4, 32, Some(WeightFormat::Q4_1)), (4, 128, Some(WeightFormat::Q4_1)), (8, 64, None)]
    {
        let known = Known::new(bits, group, Some(8));
        let own = format!(r#""m": {{"bits": {bits}, "group_size": {group}}}"#);
        let config = format!(r#"{{"quantization": {{"bits": 4, "group_size": 64, {own}}}}}"#);
        assert_eq!(read(&open(&known.mlx(), &config).unwrap()), (known.numbers(), format), "{config}");
    }
}

#[test]
fn numbers_that_no_format_holds_are_f32() {
    let mut known = Known::new(4, 32, Some(8));
    known.scales[3] = 1e-7;
    let checkpoint = open(&known.packed(false, Dtype::F32), COMPRESSED).unwrap();
    assert_eq!(read(&checkpoint), (known.numbers(), None));
    assert_eq!(checkpoint.converted()[0].what, "with scales that are no f16");
    let known = Known::new(4, 16, None);
    let checkpoint = open(&known.packed(true, Dtype::F32), COMPRESSED).unwrap();
    assert_eq!(read(&checkpoint), (known.numbers(), None));
    assert_eq!(checkpoint.converted()[0].what, "with groups that are no multiple of 32");
    let mut known = Known::new(8, 128, Some(128));
    known.codes[99] = 0;
    let checkpoint = open(&known.bytes(), COMPRESSED).unwrap();
    assert_eq!(read(&checkpoint), (known.numbers(), None));
    assert_eq!(checkpoint.converted()[0].first, "m.weight");
    assert_eq!(checkpoint.converted()[0].what, "with the integer -128");
}

#[test]
fn numbers_of_e4m3_are_those_of_its_table() {
    let [one, largest, smallest, normal] = [0x38, 0x7e, 0x01, 0x08].map(e4m3);
    assert_eq!([one, largest, smallest, normal], [1.0, 448.0, 2f32.powi(-9), 2f32.powi(-6)]);
    assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
    for byte in 0..0x7f {
        assert!(byte == 0 || e4m3(byte) > e4m3(byte - 1));
        assert_eq!(e4m3(byte | 0x80), -e4m3(byte));
    }
}

/// Scales of FP8: one, one of each row, and those of blocks of which the last are cut off.
#[test]
fn fp8_is_its_numbers_times_scales() {
    let codes: Vec<u8> = (0..SIZE[0] * SIZE[1]).map(|i| (i * 37 % 127) as u8 | (i as u8 & 1) << 7).collect();
    let config = |more: &str| format!(r#"{{"quantization_config": {{"quant_method": "fp8"{more}}}}}"#);
    let blocks = config(r#", "weight_block_size": [16, 48]"#);
    for (name, shape, config, of) in [
        ("weight_scale", vec![], config(""), SIZE),
        ("weight_scale", vec![24], config(""), [1, 128]),
        ("weight_scale", vec![24, 1], COMPRESSED.to_owned(), [1, 128]),
        ("weight_scale_inv", vec![2, 3], blocks, [16, 48]),
    ] {
        let scales: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| 0.01 + i as f32).collect();
        let wide = SIZE[1].div_ceil(of[1]);
        let number = |at: usize| {
            let (row, column) = (at / SIZE[1], at % SIZE[1]);
            e4m3(codes[at]) * scales[row / of[0] * wide + column / of[1]]
        };
        let expected: Vec<f32> = (0..codes.len()).map(number).collect();
        let bytes = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let tensors = [
            stored("weight", Dtype::F8_E4M3, &SIZE, codes.clone()),
            stored(name, Dtype::F32, &shape, bytes),
            stored("input_scale", Dtype::F32, &[], vec![0; 4]),
        ];
        let checkpoint = open(&tensors, &config).unwrap();
        assert_eq!(read(&checkpoint), (expected, None), "{name} {shape:?}");
        assert_eq!(checkpoint.converted()[0].what, "in FP8");
        let file = &tensors[..1];
        let error = open(file, &config).unwrap_err();
        assert!(error.contains("tensor `m.weight_scale` is missing: its matrix is in FP8"), "{error}");
    }
}
