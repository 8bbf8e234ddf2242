//! Blocks as GGUF files have them: what the readers of `kernmill_plan::format` take apart, put together.

use kernmill_plan::format::{BLOCK, FileBlock, WeightFormat};

/// Appends a block.
pub(super) fn write(format: WeightFormat, block: &FileBlock, out: &mut Vec<u8>) {
    let scale = block.scale.to_le_bytes();
    let minimum = block.minimum.to_le_bytes();
    let codes = &block.codes;
    match format {
        WeightFormat::Int4 | WeightFormat::Iq4Nl => {
            out.extend(scale);
            nibbles(codes, BLOCK / 2, out);
        }
        WeightFormat::Q4_1 => {
            out.extend(scale.into_iter().chain(minimum));
            nibbles(codes, BLOCK / 2, out);
        }
        WeightFormat::Q5_0 => {
            out.extend(scale);
            out.extend(fifth_bits(codes));
            nibbles(codes, BLOCK / 2, out);
        }
        WeightFormat::Q5_1 => {
            out.extend(scale.into_iter().chain(minimum));
            out.extend(fifth_bits(codes));
            nibbles(codes, BLOCK / 2, out);
        }
        WeightFormat::Int8 => {
            out.extend(scale);
            out.extend(codes[..BLOCK].iter().map(|code| code ^ 0x80));
        }
        WeightFormat::Mxfp4 => {
            out.push(block.scale as u8);
            nibbles(codes, BLOCK / 2, out);
        }
        WeightFormat::Q4K => {
            out.extend(scale.into_iter().chain(minimum).chain(six_bits(block)));
            codes.as_chunks::<64>().0.iter().for_each(|codes| nibbles(codes, BLOCK, out));
        }
        WeightFormat::Q5K => {
            out.extend(scale.into_iter().chain(minimum).chain(six_bits(block)));
            let fifths = |i: usize| (0..8).map(|part| (codes[32 * part + i] >> 4 & 1) << part).sum::<u8>();
            out.extend((0..32).map(fifths));
            codes.as_chunks::<64>().0.iter().for_each(|codes| nibbles(codes, BLOCK, out));
        }
        WeightFormat::Q6K => {
            for codes in codes.as_chunks::<128>().0 {
                nibbles(codes, 64, out);
            }
            for codes in codes.as_chunks::<128>().0 {
                let pairs = |i: usize| (0..4).map(|part| codes[32 * part + i] >> 4 << (2 * part)).sum::<u8>();
                out.extend((0..32).map(pairs));
            }
            out.extend(block.scales);
            out.extend(scale);
        }
        other => unreachable!("weights are not fitted to {}", other.name()),
    }
}

/// Lower four bits, of the first `count` codes in the lower half of the bytes and of as many behind them in
/// the upper one.
fn nibbles(codes: &[u8], count: usize, out: &mut Vec<u8>) {
    let (low, high) = codes[..2 * count].split_at(count);
    out.extend(low.iter().zip(high).map(|(low, high)| low & 15 | high << 4));
}

fn fifth_bits(codes: &[u8]) -> [u8; 4] {
    let bits = codes[..BLOCK].iter().enumerate().map(|(at, code)| u32::from(code >> 4 & 1) << at);
    bits.sum::<u32>().to_le_bytes()
}

/// Integers of eight scales and minima, as `plan/src/format/read.rs` takes them apart.
fn six_bits(block: &FileBlock) -> [u8; 12] {
    let (scales, minima) = (&block.scales, &block.minima);
    std::array::from_fn(|at| match at {
        0..4 => scales[at] & 63 | scales[at + 4] >> 4 << 6,
        4..8 => minima[at - 4] & 63 | minima[at] >> 4 << 6,
        _ => scales[at - 4] & 15 | (minima[at - 4] & 15) << 4,
    })
}
