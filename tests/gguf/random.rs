//! Random blocks and small models of every type, as `tools/gguf/fixtures.py` makes them.

use super::writer::{F32, Writer};
use half::{bf16, f16};

/// A type of tensor, described apart from the reader.
pub struct Kind {
    pub name: &'static str,
    pub number: u32,
    /// Elements and bytes of a block.
    pub elements: usize,
    pub bytes: usize,
    /// Where its f16 scales are; of BF16 and F32, where the exponent is.
    fields: &'static [usize],
}

const fn kind(
    name: &'static str,
    number: u32,
    elements: usize,
    bytes: usize,
    fields: &'static [usize],
) -> Kind {
    Kind { name, number, elements, bytes, fields }
}

/// Every supported type, in the order of the script.
pub const KINDS: [Kind; 19] = [
    kind("Q4_0", 2, 32, 18, &[0]),
    kind("Q4_1", 3, 32, 20, &[0, 2]),
    kind("Q5_0", 6, 32, 22, &[0]),
    kind("Q5_1", 7, 32, 24, &[0, 2]),
    kind("Q8_0", 8, 32, 34, &[0]),
    kind("Q2_K", 10, 256, 84, &[80, 82]),
    kind("Q3_K", 11, 256, 110, &[108]),
    kind("Q4_K", 12, 256, 144, &[0, 2]),
    kind("Q5_K", 13, 256, 176, &[0, 2]),
    kind("Q6_K", 14, 256, 210, &[208]),
    kind("IQ4_NL", 20, 32, 18, &[0]),
    kind("IQ4_XS", 23, 256, 136, &[0]),
    kind("MXFP4", 39, 32, 17, &[]),
    kind("F16", 1, 1, 2, &[0]),
    kind("BF16", 30, 1, 2, &[0]),
    kind("F32", 0, 1, 4, &[2]),
    kind("NVFP4", 40, 64, 36, &[]),
    kind("TQ1_0", 34, 256, 54, &[52]),
    kind("TQ2_0", 35, 256, 66, &[64]),
];

const EDGES: [u16; 7] = [0x0000, 0x8000, 0x0001, 0x03ff, 0x8001, 0x0400, 0x7bff];

pub fn named(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap()
}

/// The generator SplitMix64.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// The next `size` bytes, which begin with a new word.
    fn bytes(&mut self, size: usize) -> Vec<u8> {
        let words = size.div_ceil(8);
        let mut bytes: Vec<u8> = (0..words).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(size);
        bytes
    }
}

/// Blocks of any bits whose scales are finite; 7 of 16 have scales from `EDGES`.
pub fn blocks(kind: &Kind, seed: u64, count: usize) -> Vec<u8> {
    let mut words = Words(seed);
    let exponent = if matches!(kind.name, "BF16" | "F32") { 0x7f80 } else { 0x7c00 };
    let block = |index: usize| {
        let mut block = words.bytes(kind.bytes);
        for (number, &at) in kind.fields.iter().enumerate() {
            let mut field = u16::from_le_bytes([block[at], block[at + 1]]);
            if field & exponent == exponent {
                field &= !0x4000;
            }
            if kind.elements > 1 && index % 16 < 7 {
                field = EDGES[(index % 16 + 3 * number) % 7];
            }
            block[at..at + 2].copy_from_slice(&field.to_le_bytes());
        }
        if kind.name == "MXFP4" && block[0] > 252 {
            block[0] = 127;
        }
        if kind.name == "NVFP4" {
            // Codes of NaN become others.
            block[..4].iter_mut().filter(|scale| **scale & 127 == 127).for_each(|scale| *scale ^= 64);
        }
        block
    };
    (0..count).flat_map(block).collect()
}

const HIDDEN: usize = 256;
const INNER: usize = 512;
const KV: usize = 128;
pub const VOCAB: usize = 64;
const LAYERS: usize = 2;

/// Name, rows, columns, in the order of their seeds.
fn matrices() -> Vec<(String, usize, usize)> {
    let mut matrices = vec![("token_embd".into(), VOCAB, HIDDEN), ("output".into(), VOCAB, HIDDEN)];
    for layer in 0..LAYERS {
        for (name, rows, cols) in [
            ("attn_q", HIDDEN, HIDDEN),
            ("attn_k", KV, HIDDEN),
            ("attn_v", KV, HIDDEN),
            ("attn_output", HIDDEN, HIDDEN),
            ("ffn_gate", INNER, HIDDEN),
            ("ffn_up", INNER, HIDDEN),
            ("ffn_down", HIDDEN, INNER),
        ] {
            matrices.push((format!("blk.{layer}.{name}"), rows, cols));
        }
    }
    matrices
}

/// Type of a matrix of the model that has several.
pub fn mixed(matrix: &str) -> &'static Kind {
    named(match matrix {
        "blk.0.ffn_up" => "MXFP4",
        "blk.1.ffn_up" => "Q8_0",
        "blk.0.ffn_gate" => "BF16",
        "blk.1.ffn_gate" => "Q3_K",
        "output" | "blk.0.attn_v" | "blk.0.ffn_down" => "Q6_K",
        _ => "Q4_K",
    })
}

/// Model `number` of the script, whose matrix m has `scales[2 * m..][..2]`.
pub fn model(number: usize, type_of: &dyn Fn(&str) -> &'static Kind, scales: &[i32]) -> Writer {
    let mut writer = Writer::default();
    writer.set("general.architecture", "llama");
    for (key, value) in [
        ("context_length", 64),
        ("embedding_length", HIDDEN as u32),
        ("block_count", LAYERS as u32),
        ("feed_forward_length", INNER as u32),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("rope.dimension_count", 64),
        ("vocab_size", VOCAB as u32),
    ] {
        writer.set(&format!("llama.{key}"), value);
    }
    writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
    writer.set("llama.rope.freq_base", 10000f32);
    let seed = 1000 * (number as u64 + 1);
    for (index, (name, rows, cols)) in matrices().into_iter().enumerate() {
        let kind = type_of(&name);
        let data = weights(kind, seed + index as u64, rows * cols, &scales[2 * index..][..2]);
        writer.add(&format!("{name}.weight"), &[cols as u64, rows as u64], kind.number, data);
    }
    let layers = (0..LAYERS).flat_map(|i| ["attn_norm", "ffn_norm"].map(|norm| format!("blk.{i}.{norm}")));
    for (index, name) in ["output_norm".to_owned()].into_iter().chain(layers).enumerate() {
        let mut words = Words(seed + 500 + index as u64);
        let values = (0..HIDDEN).map(|_| 1.0 + (f32::from(words.next() as u8) - 128.0) / 512.0);
        writer.add(
            &format!("{name}.weight"),
            &[HIDDEN as u64],
            F32,
            values.flat_map(f32::to_le_bytes).collect(),
        );
    }
    writer
}

/// Random elements in `kind`; `scales` are the blocks' fields, or the exponent of plain elements.
fn weights(kind: &Kind, seed: u64, elements: usize, scales: &[i32]) -> Vec<u8> {
    let mut words = Words(seed);
    if kind.elements == 1 {
        let unit = 2f32.powi(-scales[0]);
        let element = |_| {
            let x = (f32::from(words.next() as u8) - 128.0) * unit;
            match kind.name {
                "F16" => f16::from_f32(x).to_le_bytes().to_vec(),
                "BF16" => bf16::from_f32(x).to_le_bytes().to_vec(),
                _ => x.to_le_bytes().to_vec(),
            }
        };
        return (0..elements).flat_map(element).collect();
    }
    let block = |_| {
        let mut block = words.bytes(kind.bytes);
        for (&at, &scale) in kind.fields.iter().zip(scales) {
            block[at..at + 2].copy_from_slice(&(scale as u16).to_le_bytes());
        }
        if kind.name == "Q8_0" {
            // As quantisers do, without -128.
            block[2..].iter_mut().filter(|q| **q == 0x80).for_each(|q| *q = 0x81);
        }
        if kind.name == "MXFP4" {
            block[0] = scales[0] as u8;
        }
        if kind.name == "NVFP4" {
            (0..4).for_each(|part| block[part] = scales[0] as u8 + part as u8);
        }
        block
    };
    (0..elements / kind.elements).flat_map(block).collect()
}
