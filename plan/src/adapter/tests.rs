//! Layouts, read back element by element.

use super::{Adapters, LoraTarget, LoraTargetEntry, LoraTargetShape, LoraTargetSlice, PackedAt};
use crate::format::value;
use crate::format::{LINE, TILE_ROWS, WeightFormat};

fn lora_target(k: u32, experts: u32, outs: &[(u32, u32, u32)]) -> LoraTarget {
    let weights = PackedAt { format: WeightFormat::Int8, offset: 0, tile_stride: 0, expert_stride: 0 };
    let out = |(rows, first, step): &(u32, u32, u32)| LoraTargetSlice {
        name: "w".into(),
        rows: *rows,
        first: *first,
        step: *step,
        weights,
    };
    LoraTarget { name: "s".into(), tensor: "t".into(), k, experts, outs: outs.iter().map(out).collect() }
}

/// Small numbers that bf16 has exactly.
fn number(i: usize) -> f32 {
    (i * 37 % 255) as f32 - 127.0
}

/// Element `[row, index]` of tiles that start at `start`.
fn element(format: WeightFormat, k: usize, bytes: &[u8], start: usize, row: usize, index: usize) -> f32 {
    let tile = format.tile(k).bytes();
    let at = start + row / TILE_ROWS * tile;
    value(format, k, &bytes[at..at + tile], row % TILE_ROWS, index)
}

#[test]
fn parts_lie_where_the_entry_says() {
    // A dense matrix whose last tile is short, and experts whose gate and up rows alternate.
    let lora_targets = vec![
        lora_target(20, 0, &[(40, 0, 1)]),
        lora_target(8, 3, &[(5, 0, 2), (5, 1, 2)]),
        lora_target(8, 0, &[(16, 0, 1)]),
    ];
    for format in [WeightFormat::F32, WeightFormat::Bf16] {
        let adapters = Adapters { format, lora_targets: lora_targets.clone() };
        for rank in [1, 4, 18, 256] {
            let shapes = [
                Some(LoraTargetShape { rank, factors: true }),
                Some(LoraTargetShape { rank: rank.min(7), factors: false }),
                None,
            ];
            let (layouts, bytes) = adapters.layout(&shapes);
            assert!(layouts[2].is_none());
            let mut memory = vec![0xee; bytes];
            for (lora_target, layout) in lora_targets.iter().zip(&layouts) {
                let Some(layout) = layout else { continue };
                check_lora_target(lora_target, format, layout, &mut memory);
            }
        }
    }
}

fn check_lora_target(
    lora_target: &LoraTarget,
    format: WeightFormat,
    layout: &super::LoraTargetLayout,
    memory: &mut [u8],
) {
    assert!(
        layout.fits(lora_target, format)
            && !layout.fits(&LoraTarget { k: lora_target.k + 4, ..lora_target.clone() }, format)
    );
    let (rank, k, rows) = (layout.rank(), lora_target.k as usize, lora_target.rows());
    let experts = (lora_target.experts as usize).max(1);
    for expert in 0..experts {
        let a: Vec<f32> = (0..rank * k).map(|i| number(i + expert)).collect();
        let b: Vec<f32> = (0..rows * rank).map(|i| number(i + 7 * expert)).collect();
        layout.pack_a(expert, &a, memory).unwrap();
        layout.pack_b(expert, &b, memory).unwrap();
    }
    layout.pack_scales(&(0..rank).map(number).collect::<Vec<_>>(), memory);
    if layout.has_factors() {
        layout.pack_factors(&(0..rows).map(number).collect::<Vec<_>>(), memory);
    }
    let entry = layout.entry(std::ptr::null());
    let (a, b, ranks) = (entry.a as usize, entry.b as usize, entry.ranks as usize);
    assert_eq!((ranks, [a, b, entry.scale as usize].map(|at| at % LINE)), (rank.next_multiple_of(4), [0; 3]));
    let float = |at: usize| f32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
    for expert in 0..experts {
        let (a, b) = (a + expert * entry.a_expert as usize, b + expert * entry.b_expert as usize);
        for r in 0..rank.next_multiple_of(TILE_ROWS) {
            for i in 0..k {
                let expected = if r < rank { number(r * k + i + expert) } else { 0.0 };
                assert_eq!(element(format, k, memory, a, r, i), expected, "A of {expert} at [{r}, {i}]");
            }
        }
        let mut start = b;
        for (o, out) in lora_target.outs.iter().enumerate() {
            for row in 0..out.rows.next_multiple_of(16) as usize {
                for r in 0..ranks {
                    let source = out.first as usize + row * out.step as usize;
                    let inside = row < out.rows as usize && r < rank;
                    let expected = if inside { number(source * rank + r + 7 * expert) } else { 0.0 };
                    assert_eq!(
                        element(format, ranks, memory, start, row, r),
                        expected,
                        "B of {expert}, out {o}"
                    );
                }
            }
            start += (out.rows as usize).div_ceil(TILE_ROWS) * format.tile(ranks).bytes();
        }
    }
    for r in 0..rank.next_multiple_of(TILE_ROWS) {
        assert_eq!(float(entry.scale as usize + 4 * r), if r < rank { number(r) } else { 0.0 });
    }
    if layout.has_factors() {
        for row in 0..rows {
            assert_eq!(float(entry.factor as usize + 4 * row), number(row));
        }
    } else {
        assert!(entry.factor.is_null());
    }
}

#[test]
fn elements_are_rounded_to_the_format_and_must_be_finite() {
    let adapters =
        Adapters { format: WeightFormat::Bf16, lora_targets: vec![lora_target(4, 0, &[(1, 0, 1)])] };
    let (layouts, bytes) = adapters.layout(&[Some(LoraTargetShape { rank: 1, factors: false })]);
    let layout = layouts[0].as_ref().unwrap();
    let mut memory = vec![0; bytes];
    layout.pack_a(0, &[1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 0.1, 3e-39], &mut memory).unwrap();
    let read: Vec<f32> = (0..4).map(|i| element(WeightFormat::Bf16, 4, &memory, 0, 0, i)).collect();
    assert_eq!(read[..2], [1.0, 1.0 + 4.0 / 256.0], "to nearest even");
    assert_eq!(read[2..], [0.1f32, 3e-39].map(|x| half::bf16::from_f32(x).to_f32()));
    let error = layout.pack_b(0, &[f32::NAN], &mut memory).unwrap_err();
    assert_eq!(error.to_string(), "row 0, k 0: the weight is NaN, expected a finite number");
    layout.pack_a(0, &[f32::MAX; 4], &mut memory).unwrap_err();
    assert_eq!(size_of::<LoraTargetEntry>(), LINE);
}
