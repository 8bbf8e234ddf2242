//! Another decoder of GGUF's blocks, by the loops of the format's own code, and a comparison of tiles with
//! it.

use crate::harness::Model;
use half::f16;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::format::{TILE_ROWS, unpack_tile};
use kernmill_plan::target::Level;

/// Appends the elements of a block.
type DecodeBlock = fn(&[u8], &mut Vec<f32>);

/// The elements of `bytes`, in blocks of the type with this number.
fn elements(kind: u32, bytes: &[u8]) -> Vec<f32> {
    let (size, decode): (usize, DecodeBlock) = match kind {
        0 => (4, |b, out| out.push(f32::from_le_bytes(b.try_into().unwrap()))),
        2 => (18, q4_0),
        6 => (22, q5_0),
        8 => (34, |b, out| out.extend(b[2..].iter().map(|&q| f32::from(q.cast_signed()) * number(b, 0)))),
        12 => (144, |b, out| q4_or_q5_k(b, None, &b[16..], out)),
        13 => (176, |b, out| q4_or_q5_k(b, Some(&b[16..48]), &b[48..], out)),
        14 => (210, q6_k),
        39 => (17, mxfp4),
        other => panic!("type {other}"),
    };
    let mut out = Vec::new();
    bytes.chunks_exact(size).for_each(|block| decode(block, &mut out));
    out
}

/// The f16 at `at`.
fn number(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn q4_0(block: &[u8], out: &mut Vec<f32>) {
    let code = |i: usize| block[2 + i % 16] >> (i / 16 * 4) & 15;
    out.extend((0..32).map(|i| (f32::from(code(i)) - 8.0) * number(block, 0)));
}

fn q5_0(block: &[u8], out: &mut Vec<f32>) {
    let high = u32::from_le_bytes(block[2..6].try_into().unwrap());
    let code = |i: usize| u32::from(block[6 + i % 16] >> (i / 16 * 4) & 15) | (high >> i & 1) << 4;
    out.extend((0..32).map(|i| (code(i) as f32 - 16.0) * number(block, 0)));
}

/// 64 elements at a time: 32 low nibbles, then 32 high ones, and the fifth bits if there are some.
fn q4_or_q5_k(block: &[u8], fifth: Option<&[u8]>, nibbles: &[u8], out: &mut Vec<f32>) {
    let (unit, minimum_unit, packed) = (number(block, 0), number(block, 2), &block[4..16]);
    for part in 0..8 {
        let (scale, minimum) = match part {
            0..4 => (packed[part] & 63, packed[part + 4] & 63),
            _ => (
                packed[part + 4] & 15 | packed[part - 4] >> 6 << 4,
                packed[part + 4] >> 4 | packed[part] >> 6 << 4,
            ),
        };
        for i in 0..32 {
            let nibble = nibbles[part / 2 * 32 + i] >> (part % 2 * 4) & 15;
            let code = nibble | fifth.map_or(0, |bits| (bits[i] >> part & 1) << 4);
            out.push(unit * f32::from(scale) * f32::from(code) - minimum_unit * f32::from(minimum));
        }
    }
}

fn q6_k(block: &[u8], out: &mut Vec<f32>) {
    for half in 0..2 {
        let (low, high) = (&block[64 * half..][..64], &block[128 + 32 * half..][..32]);
        let scales = &block[192 + 8 * half..][..8];
        for i in 0..128 {
            let nibble = low[i % 64] >> (i / 64 * 4) & 15;
            let code = nibble | (high[i % 32] >> (i / 32 * 2) & 3) << 4;
            let scale = number(block, 208) * f32::from(scales[i / 16].cast_signed());
            out.push(scale * (f32::from(code) - 32.0));
        }
    }
}

fn mxfp4(block: &[u8], out: &mut Vec<f32>) {
    const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let scale = 2f32.powi(i32::from(block[0]) - 127);
    for i in 0..32 {
        let code = block[1 + i % 16] >> (i / 16 * 4) & 15;
        let value = E2M1[usize::from(code & 7)] * scale;
        out.push(if code & 8 == 0 { value } else { -value });
    }
}

/// Bytes of what [`compare_tiles`] compared.
#[derive(Debug, Default)]
pub struct Compared {
    pub tensors: usize,
    pub elements: usize,
    /// Bytes of the matrices in the file, each once.
    pub file: u64,
    /// Bytes of the whole weight region.
    pub packed: u64,
}

/// Packs the matrices of `model`, whose weights are `gguf`'s, in preset `faithful`, and holds every element
/// of every tile to the other decoder, bit for bit. Rows of `paired` tensors lie in pairs in the file, by
/// heads of that many rows.
pub fn compare_tiles(model: &Model, gguf: &Gguf, paired: &dyn Fn(&str) -> Option<usize>) -> Compared {
    let level = *Level::supported().last().unwrap();
    let options = CompilerOptions { preset: Preset::Faithful, ..CompilerOptions::new(level) };
    let compiled = compile(&model.graph, &options).unwrap();
    let region = model.pack(&compiled);
    let mut compared = Compared { packed: compiled.layout.bytes, ..Compared::default() };
    let mut places = Vec::new();
    for (tensor, place) in compiled.fused.graph.tensors.iter().zip(&compiled.layout.placements) {
        let name = tensor.source.name.as_str();
        // Tied embeddings are two tensors in one place.
        if !tensor.is_tiled() || places.contains(&(name, place.offset)) {
            continue;
        }
        let info = gguf.info(name).unwrap();
        if !places.iter().any(|(other, _)| *other == name) {
            compared.file += gguf.data(info).len() as u64;
        }
        places.push((name, place.offset));
        let k = *tensor.shape.last().unwrap();
        let rows = tensor.shape[tensor.shape.len() - 2];
        let experts = tensor.shape[..tensor.shape.len() - 2].iter().product::<usize>();
        let row_bytes = gguf.data(info).len() / experts / rows;
        let in_file = |row: usize| match paired(name) {
            Some(head) => {
                let (first, i) = (row / head * head, row % head);
                first + 2 * (i % (head / 2)) + i / (head / 2)
            }
            None => row,
        };
        let mut columns = vec![[0f32; TILE_ROWS]; k];
        for (expert, tile) in (0..experts).flat_map(|e| (0..rows.div_ceil(TILE_ROWS)).map(move |t| (e, t))) {
            let at = place.offset + expert as u64 * place.expert_stride + tile as u64 * place.tile_stride;
            let bytes = &region.as_slice()[at as usize..][..tensor.format.tile(k).bytes()];
            unpack_tile(tensor.format, bytes, &mut columns);
            for row in tile * TILE_ROWS..rows.min((tile + 1) * TILE_ROWS) {
                let from = (expert * rows + in_file(row)) * row_bytes;
                let expected = elements(info.kind.number, &gguf.data(info)[from..][..row_bytes]);
                assert_eq!(expected.len(), k, "{name}");
                let same = |(column, value): (&[f32; TILE_ROWS], &f32)| {
                    column[row % TILE_ROWS].to_bits() == value.to_bits()
                };
                assert!(columns.iter().zip(&expected).all(same), "{name}, expert {expert}, row {row}");
                compared.elements += k;
            }
        }
        compared.tensors += 1;
    }
    compared
}
