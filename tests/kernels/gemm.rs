//! `Decode`, `GemmQ8` and `GemmDecode` against scalar loops written from docs/dev/numerics.md and the
//! contract in their file.

use super::packed::{Elements, FIRST, normal, random_tile};
use super::ukernels::{aligned, bytes_of, bytes_of_mut};
use super::{Code, interpret, name, ukernel_code, versions_anywhere};
use fastrand::Rng;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::block::{data_lines, scale_bytes};
use kernmill_kernels_gen::ukernel::gemm_q8::{
    CHUNK_BLOCKS, Decoded, DecodedNumber, DotStep, GROUP, MAGIC, Overlap,
};
use kernmill_plan::format::{BLOCK, LINE, SUPERBLOCK, TILE_ROWS, WeightFormat};

/// Elements that no packed format has, but the contract of `GemmQ8` allows.
fn any(rng: &mut Rng, layout: Decoded, extreme: bool) -> Elements {
    let (low, high, bias) = range(layout);
    let mut q = || match extreme {
        true if rng.bool() => low - bias,
        true => high - bias,
        false => rng.i32(low..=high) - bias,
    };
    let columns = layout.tile_blocks() * BLOCK;
    let q = (0..columns).map(|_| std::array::from_fn(|_| q())).collect();
    let mut scale = || match layout.number {
        // In f64, which has the two lowest as normal numbers.
        DecodedNumber::U8Max24Pow2 if extreme => 2f64.powi([-128, -127, 103, 104][rng.usize(..4)]) as f32,
        DecodedNumber::U8Max24Pow2 => 2f64.powi(rng.i32(-128..=104)) as f32,
        // As many significant bits as there may be.
        _ => half::f16::from_f32(normal(rng)).to_f32() * [1.0, -128.0, 255.0][rng.usize(..3)],
    };
    let mut each = |count: usize| (0..count).map(|_| std::array::from_fn(|_| scale())).collect();
    let factors = layout.tile_blocks() * layout.parts;
    let scales = each(factors);
    let minima = each(if layout.minima { factors } else { 0 });
    Elements { q, scales, minima, parts: layout.parts, bias }
}

/// The least and the largest unsigned number of a layout, and what they have more than integers.
fn range(layout: Decoded) -> (i32, i32, i32) {
    match layout.number {
        DecodedNumber::U8 | DecodedNumber::I16 => (1, 255, 128),
        DecodedNumber::U8Max63 if layout.minima => (0, 63, 0),
        DecodedNumber::U8Max63 => (0, 63, 32),
        // Products that are added in pairs are of integers up to 15.
        DecodedNumber::U8Pairwise if layout.minima => (0, 15, 0),
        DecodedNumber::U8Max24 if layout.minima => (0, 24, 0),
        DecodedNumber::U8Max24 | DecodedNumber::U8Max24Pow2 | DecodedNumber::U8Pairwise => (0, 24, 12),
    }
}

/// A block as decoded, field by field; where there is no field there are bytes of `fill`.
fn decoded_block(elements: &Elements, block: usize, layout: Decoded, fill: u8) -> Vec<u8> {
    let mut memory = vec![fill; layout.block_bytes()];
    let mut line = |at: usize, numbers: [f32; TILE_ROWS]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        memory[at..at + LINE].copy_from_slice(&bytes);
    };
    for part in 0..layout.parts {
        let number = block * layout.parts + part;
        line(layout.scales(part), elements.scales[number]);
        if layout.number != DecodedNumber::I16 {
            line(layout.negatives(part), elements.scales[number].map(|w| -MAGIC * w));
        }
        if layout.minima {
            line(layout.minima(part), elements.minima[number]);
        }
    }
    let quads = elements.q[block * BLOCK..][..BLOCK].as_chunks::<4>().0;
    let data = &mut memory[layout.data()..];
    for (number, quad) in quads.iter().enumerate() {
        for row in 0..TILE_ROWS {
            if layout.number != DecodedNumber::I16 {
                let bytes = quad.map(|q| u8::try_from(q[row] + elements.bias).unwrap());
                data[number * LINE + 4 * row..][..4].copy_from_slice(&bytes);
                continue;
            }
            // Of each row two that are two apart, those with even numbers first.
            for first in 0..2 {
                let words = [quad[first][row], quad[first + 2][row]].map(|q| (q as i16).to_le_bytes());
                data[(first * 8 + number) * LINE + 4 * row..][..4].copy_from_slice(&words.concat());
            }
        }
    }
    memory
}

type Decode = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *const u8);

/// Where the scales, the data and the units of blocks from `first` on are.
fn places(tile: &[u8], format: WeightFormat, k: usize, first: usize) -> [*const u8; 3] {
    let layout = format.tile(k);
    let data = layout.scale_bytes + first * data_lines(format) * LINE;
    let scales = layout.unit_bytes + first * scale_bytes(format);
    let units = first / (SUPERBLOCK / BLOCK) * format.parts().unit_bytes();
    [&tile[scales..], &tile[data..], &tile[units..]].map(|place| place.as_ptr())
}

/// A random tile in memory that begins on a line.
fn tile_in(memory: &mut Vec<super::ukernels::Line>, packed: &[u8]) {
    *memory = aligned(packed.len());
    bytes_of_mut(memory)[..packed.len()].copy_from_slice(packed);
}

#[test]
fn decoding_matches_the_packed_format() {
    const FILL: u8 = 0xa5;
    let of = |format: WeightFormat, ukernel: MicroKernel| (format, ukernel.decoded(format), ukernel);
    let words = WeightFormat::blocked()
        .filter(|format| DotStep::K2.decoded(*format).number == DecodedNumber::I16)
        .map(|format| of(format, MicroKernel::DecodeWords { format }));
    let bytes = WeightFormat::blocked().map(|format| of(format, MicroKernel::Decode { format }));
    for (format, layout, ukernel) in bytes.chain(words) {
        let is_super = format.parts().is_super();
        let k = if is_super { 3 * SUPERBLOCK } else { BLOCK * (CHUNK_BLOCKS + 2) };
        // Whole superblocks, where scales have units.
        let ranges = match is_super {
            true => &[(0, 16), (8, 8), (8, 16), (16, 0)][..],
            false => &[(0, CHUNK_BLOCKS), (2, CHUNK_BLOCKS), (1, 1), (3, 0), (7, 6)],
        };
        let tiles = [false, true].map(|extreme| {
            let packed = random_tile(&mut Rng::with_seed(5), format, k, extreme);
            let elements = Elements::of(format, k, &packed);
            (packed, elements)
        });
        for (level, version, interpreted) in versions_anywhere() {
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            for (packed, elements) in &tiles {
                let mut memory = Vec::new();
                tile_in(&mut memory, packed);
                let tile = &bytes_of(&memory)[..packed.len()];
                for (first, blocks) in ranges.iter().copied() {
                    let end = blocks * layout.block_bytes();
                    let mut out = aligned(end + LINE);
                    let out = bytes_of_mut(&mut out);
                    out.fill(FILL);
                    let [scales, data, units] = places(tile, format, k, first);
                    if interpreted {
                        let out_place = out.as_mut_ptr() as u64;
                        let args = [scales as u64, data as u64, out_place, blocks as u64, units as u64];
                        interpret(&code, &[tile], &mut [&mut *out], &args[..ukernel.params()]);
                    } else {
                        // SAFETY: the blocks lie within the tile's planes; `out` has room for them. A
                        // micro-kernel that takes no units does not look for them.
                        unsafe {
                            let f: Decode = std::mem::transmute(code.address(0));
                            f(scales, data, out.as_mut_ptr(), blocks as u64, units);
                        }
                    }
                    let what = format!("{} {ukernel} {first}+{blocks}", name(level, version));
                    for (i, block) in out.chunks(layout.block_bytes()).take(blocks).enumerate() {
                        let expected = decoded_block(elements, first + i, layout, FILL);
                        assert_eq!(block, expected, "{what}: block {i}");
                    }
                    assert!(out[end..].iter().all(|b| *b == FILL), "{what}: wrote past");
                }
            }
        }
    }
}

/// Activations: `[token][k]` values and `[token][block]` scales.
struct Panel {
    q: Vec<Vec<i8>>,
    scales: Vec<Vec<f32>>,
}

impl Panel {
    fn random(rng: &mut Rng, (tokens, blocks): (usize, usize), extreme: bool) -> Panel {
        let mut value = || match (extreme, rng.i8(..)) {
            // Only of values that are not finite, or next to 0.
            (true, ..-100) => -128,
            (true, ..0) => -127,
            (true, _) => 127,
            (_, q) => q,
        };
        let q = (0..tokens).map(|_| (0..blocks * BLOCK).map(|_| value()).collect()).collect();
        let scales = (0..tokens).map(|_| (0..blocks).map(|_| normal(rng).abs() / 127.0).collect()).collect();
        Panel { q, scales }
    }

    /// The panel's bytes as the micro-kernels have them; what belongs to tokens that it has not is not a
    /// number.
    fn memory(&self, weights: Decoded, bias: i32) -> Vec<u8> {
        let layout = weights.panel();
        let mut memory = vec![0xff; weights.tile_blocks() * layout.block];
        for (block, memory) in memory.chunks_mut(layout.block).enumerate() {
            for (t, (q, scales)) in self.q.iter().zip(&self.scales).enumerate() {
                let (q, scale) = (&q[block * BLOCK..][..BLOCK], scales[block]);
                let row: Vec<u8> = match weights.number {
                    DecodedNumber::I16 => {
                        let halves = [0, 1].map(|first| q.iter().skip(first).step_by(2));
                        halves.into_iter().flatten().flat_map(|q| i16::from(*q).to_le_bytes()).collect()
                    }
                    _ => q.iter().map(|q| q.cast_unsigned()).collect(),
                };
                memory[t * layout.row..][..row.len()].copy_from_slice(&row);
                memory[layout.scales + 4 * t..][..4].copy_from_slice(&scale.to_le_bytes());
                for (part, q) in q.chunks(BLOCK / weights.parts).enumerate() {
                    let place = 4 * (part * GROUP + t);
                    let sum = |of: &mut dyn Iterator<Item = &i8>| of.map(|q| i32::from(*q)).sum::<i32>();
                    let pairs = |first: usize| {
                        let of = q.chunks(4).flat_map(|quad| &quad[first..first + 2]);
                        (-bias * sum(&mut of.into_iter())) as i16
                    };
                    let start = match weights.number {
                        DecodedNumber::I16 => None,
                        DecodedNumber::U8Pairwise => {
                            Some(u32::from(pairs(0).cast_unsigned()) | (pairs(2) as u32) << 16)
                        }
                        _ => Some((MAGIC.to_bits() as i32 - bias * sum(&mut q.iter())) as u32),
                    };
                    if let Some(start) = start {
                        memory[layout.starts + place..][..4].copy_from_slice(&start.to_le_bytes());
                    }
                    if weights.minima {
                        let sum = sum(&mut q.iter()) as f32 * scale;
                        memory[layout.sums + place..][..4].copy_from_slice(&sum.to_le_bytes());
                    }
                }
            }
        }
        memory
    }
}

type Gemm = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64, u64);
type GemmDecode = unsafe extern "C" fn(*const u8, *const u8, *mut f32, *const u8, *const u8, *mut u8);

/// f32 from one tile's sums to the other's.
const GAP: usize = 24;
/// f32 from one token's sums to the next one's.
const STRIDE: usize = 2 * GAP + 8;

/// A gemm micro-kernel, and whether it runs in the interpreter.
#[derive(Clone, Copy)]
struct Runs<'a>(&'a Code, bool);

/// Calls a gemm micro-kernel and compares.
fn check_gemm(runs: Runs, layout: Decoded, weights: &[&Elements], panel: &Panel, blocks: usize, what: &str) {
    let Runs(code, interpreted) = runs;
    let [count, stride, gap] = [blocks, 4 * STRIDE, 4 * GAP].map(|number| number as u64);
    check_sums(layout, weights, panel, blocks, what, |weights, panel, sums| {
        if interpreted {
            let args =
                [weights.as_ptr() as u64, panel.as_ptr() as u64, sums.as_ptr() as u64, count, stride, gap];
            return interpret(code, &[weights, panel], &mut [bytes_of_mut(sums)], &args);
        }
        // SAFETY: the code is a gemm micro-kernel; its operands are as large as its contract asks.
        unsafe {
            let f: Gemm = std::mem::transmute(code.address(0));
            f(weights.as_ptr(), panel.as_ptr(), sums.as_mut_ptr(), count, stride, gap);
        }
    });
}

/// Compares what `call` makes of sums that lie scattered; what is between them must stay as it is. The
/// decoded tiles have the blocks that are asked for, and something else behind them.
fn check_sums(
    layout: Decoded,
    weights: &[&Elements],
    panel: &Panel,
    blocks: usize,
    what: &str,
    call: impl FnOnce(&[u8], &[u8], &mut [f32]),
) {
    let mut tiles = aligned(weights.len() * layout.tile_bytes());
    for (tile, elements) in bytes_of_mut(&mut tiles).chunks_mut(layout.tile_bytes()).zip(weights) {
        for (block, memory) in tile.chunks_mut(layout.block_bytes()).take(blocks).enumerate() {
            memory.copy_from_slice(&decoded_block(elements, block, layout, 0xff));
        }
    }
    let activations = panel.memory(layout, weights[0].bias);
    let mut aligned_panel = aligned(activations.len());
    bytes_of_mut(&mut aligned_panel)[..activations.len()].copy_from_slice(&activations);
    let init: Vec<f32> = (0..GROUP * STRIDE).map(|i| i as f32 * 0.37 - 20.0).collect();
    let mut sums = init.clone();
    call(bytes_of(&tiles), bytes_of(&aligned_panel), &mut sums);
    let mut expected = init;
    for (token, activations) in panel.q.iter().zip(&panel.scales).enumerate() {
        for (tile, weights) in weights.iter().enumerate() {
            let sums = &mut expected[token * STRIDE + tile * GAP..].as_chunks_mut::<TILE_ROWS>().0[0];
            *sums = weights.dots(*sums, (activations.0, activations.1), blocks);
        }
    }
    for (i, (a, e)) in sums.iter().zip(&expected).enumerate() {
        assert_eq!(a.to_bits(), e.to_bits(), "{what}: sum {i} is {a}, expected {e}");
    }
}

/// Whether every shape of micro-kernel for these weights is tested.
fn is_first(weights: Decoded) -> bool {
    FIRST.iter().any(|format| [DotStep::K4, DotStep::K2].iter().any(|step| step.decoded(*format) == weights))
}

#[test]
fn gemm_matches_the_definition_bit_for_bit() {
    let mut rng = Rng::with_seed(11);
    for weights in Decoded::all() {
        let most = weights.tile_blocks();
        let is_first = is_first(weights);
        // Two tiles of each kind: what they are, whether of everyday formats, extreme or not, the tiles.
        let mut cases = Vec::new();
        for extreme in [false, true] {
            let is_kind = |format: &WeightFormat| {
                [DotStep::K4, DotStep::K2].iter().any(|step| step.decoded(*format) == weights)
            };
            for format in WeightFormat::blocked().filter(is_kind) {
                let k = (most * BLOCK).next_multiple_of(format.parts().columns());
                let mut tile = || Elements::of(format, k, &random_tile(&mut rng, format, k, extreme));
                cases.push((format.name(), FIRST.contains(&format), extreme, [tile(), tile()]));
            }
            let tiles = [0, 1].map(|_| any(&mut rng, weights, extreme));
            cases.push(("bytes", true, extreme, tiles));
        }
        for (level, version, interpreted) in versions_anywhere() {
            let few = interpreted && !is_first;
            for (tiles, tokens) in (1..=2).flat_map(|tiles| (1..=GROUP).map(move |tokens| (tiles, tokens))) {
                if few && ![(1, 1), (1, 4), (2, 3), (2, GROUP)].contains(&(tiles, tokens)) {
                    continue;
                }
                let ukernel = MicroKernel::GemmQ8 { weights, tiles, tokens };
                let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
                for (name_of, often, extreme, elements) in &cases {
                    let counts = match (interpreted, *often) {
                        (true, false) => continue,
                        (true, true) if few => vec![2],
                        // Blocks are turns of a loop.
                        (true, true) => vec![0, 1, 2, 5],
                        (_, true) if is_first => vec![0, 1, 2, most],
                        (_, true) => vec![0, 3],
                        (false, false) => vec![most],
                    };
                    let panel = Panel::random(&mut rng, (tokens, most), *extreme);
                    let elements: Vec<&Elements> = elements.iter().take(tiles).collect();
                    for blocks in counts {
                        let what = format!(
                            "{} {ukernel} {name_of} extreme={extreme} {blocks}",
                            name(level, version)
                        );
                        check_gemm(Runs(&code, interpreted), weights, &elements, &panel, blocks, &what);
                    }
                }
            }
        }
    }
}

/// Every sum of products, of however many, at one of its ends.
#[test]
fn gemm_is_exact_where_all_products_are_largest() {
    let mut rng = Rng::with_seed(13);
    for (weights, tiles) in Decoded::all().into_iter().flat_map(|weights| [(weights, 1), (weights, 2)]) {
        let (low, high, bias) = range(weights);
        for (level, version, interpreted) in versions_anywhere() {
            if interpreted && !is_first(weights) {
                continue;
            }
            let tokens = GROUP;
            let ukernel = MicroKernel::GemmQ8 { weights, tiles, tokens };
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            for (byte, q) in [low, high].into_iter().flat_map(|byte| [(byte, -128), (byte, 127)]) {
                let mut elements = any(&mut rng, weights, false);
                elements.q.as_flattened_mut().fill(byte - bias);
                let mut panel = Panel::random(&mut rng, (tokens, weights.tile_blocks()), false);
                panel.q.iter_mut().for_each(|row| row.fill(q));
                let what = format!("{} {ukernel} {byte} times {q}", name(level, version));
                let elements = &[&elements, &elements][..tiles];
                let blocks = if interpreted { 3 } else { weights.tile_blocks() };
                check_gemm(Runs(&code, interpreted), weights, elements, &panel, blocks, &what);
            }
        }
    }
}

/// Both halves of what it does, each as the micro-kernel that does it alone.
#[test]
fn decoding_beside_a_gemm_changes_neither() {
    let (format, k) = (WeightFormat::Mxfp4, BLOCK * (CHUNK_BLOCKS + 2));
    let layout = DotStep::K4.decoded(format);
    let mut rng = Rng::with_seed(17);
    for (level, version, interpreted) in versions_anywhere() {
        for (tokens, extreme) in (1..=GROUP).flat_map(|tokens| [(tokens, false), (tokens, true)]) {
            let ukernel = MicroKernel::GemmDecode(Overlap { tokens, stride: 4 * STRIDE, gap: 4 * GAP });
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            let what = format!("{} {ukernel} extreme={extreme}", name(level, version));
            let weights = [0, 1].map(|_| any(&mut rng, layout, extreme));
            let panel = Panel::random(&mut rng, (tokens, CHUNK_BLOCKS), extreme);
            let first = rng.usize(..3);
            let packed = random_tile(&mut rng, format, k, extreme);
            let mut memory = Vec::new();
            tile_in(&mut memory, &packed);
            let tile = &bytes_of(&memory)[..packed.len()];
            let [scales, data, _] = places(tile, format, k, first);
            let mut out = aligned(layout.tile_bytes());
            let out = bytes_of_mut(&mut out);
            check_sums(
                layout,
                &[&weights[0], &weights[1]],
                &panel,
                CHUNK_BLOCKS,
                &what,
                |weights, panel, sums| {
                    if interpreted {
                        let read =
                            [weights.as_ptr(), panel.as_ptr(), sums.as_ptr().cast()].map(|at| at as u64);
                        let rest = [scales as u64, data as u64, out.as_ptr() as u64];
                        let args = [read, rest].concat();
                        let written = &mut [bytes_of_mut(sums), &mut *out];
                        return interpret(&code, &[weights, panel, tile], written, &args);
                    }
                    // SAFETY: a chunk from block `first` on lies in the tile's planes; `out` has room for a
                    // decoded one.
                    unsafe {
                        let f: GemmDecode = std::mem::transmute(code.address(0));
                        f(
                            weights.as_ptr(),
                            panel.as_ptr(),
                            sums.as_mut_ptr(),
                            scales,
                            data,
                            out.as_mut_ptr(),
                        );
                    }
                },
            );
            let expected = Elements::of(format, k, &packed);
            for (i, block) in out.chunks(layout.block_bytes()).enumerate() {
                assert_eq!(block, decoded_block(&expected, first + i, layout, 0), "{what}: block {i}");
            }
        }
    }
}
