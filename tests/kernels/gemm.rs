//! `Decode`, `GemmQ8` and `GemmDecode` against scalar loops written from docs/dev/numerics.md and the
//! contract in their file.

use super::ukernels::{aligned, bytes_of, bytes_of_mut, integer, normal, random_tile};
use super::{Code, interpret, name, ukernel_code, versions_anywhere};
use fastrand::Rng;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::block::{bias, data_lines, scale_bytes};
use kernmill_kernels_gen::ukernel::gemm_q8::{
    CHUNK_BLOCKS, DECODED_BLOCK, DECODED_TILE, Decoded as Kind, DotStep, GROUP, MAGIC, Overlap,
};
use kernmill_plan::format;
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};

/// A packed tile; mxfp4 has scales from one end of their range to the other.
fn packed(rng: &mut Rng, format: WeightFormat, k: usize, extreme: bool) -> Vec<u8> {
    if !format.is_stored() {
        return random_tile(rng, format, k, extreme);
    }
    let mut blocks = vec![0; TILE_ROWS * k / 2];
    rng.fill(&mut blocks);
    if extreme {
        blocks.iter_mut().for_each(|byte| *byte = if *byte & 1 == 0 { 0x77 } else { 0xff });
    }
    let scales: Vec<u8> = (0..TILE_ROWS * k / BLOCK)
        .map(|i| match i % 5 {
            0 => rng.u8(0..3),
            1 => rng.u8(230..=232),
            _ => rng.u8(0..=232),
        })
        .collect();
    let mut tile = vec![0; format.tile(k).bytes()];
    format::mxfp4::pack_tile(k, &blocks, &scales, &mut tile).unwrap();
    tile
}

/// The contents of a decoded tile: per block, 16 scales, and `[32][16]` unsigned bytes.
#[derive(Clone)]
struct Decoded {
    scales: Vec<[f32; TILE_ROWS]>,
    bytes: Vec<[[u8; TILE_ROWS]; BLOCK]>,
    bias: i32,
}

impl Decoded {
    /// By the readers of the packed format.
    fn of(format: WeightFormat, k: usize, tile: &[u8]) -> Decoded {
        let mut decoded = Decoded { scales: Vec::new(), bytes: Vec::new(), bias: bias(format) };
        let unit = format.decode().block().expect("it has blocks").unit();
        for block in 0..k / BLOCK {
            let (mut scales, mut bytes) = ([0.0; TILE_ROWS], [[0; TILE_ROWS]; BLOCK]);
            for row in 0..TILE_ROWS {
                for (i, bytes) in bytes.iter_mut().enumerate() {
                    let (q, scale) = integer(format, k, tile, row, block * BLOCK + i);
                    bytes[row] = u8::try_from(q + decoded.bias).unwrap();
                    scales[row] = scale * unit;
                }
            }
            decoded.scales.push(scales);
            decoded.bytes.push(bytes);
        }
        decoded
    }

    /// Bytes that no packed format has, but the contract of `GemmQ8` allows.
    fn any(rng: &mut Rng, kind: Kind, extreme: bool) -> Decoded {
        let (low, high, bias) = if kind.is_small() { (0, 24, 12) } else { (1, 255, 128) };
        let mut byte = || match extreme {
            true if rng.bool() => low,
            true => high,
            false => rng.u8(low..=high),
        };
        let bytes = (0..CHUNK_BLOCKS).map(|_| [[0; TILE_ROWS]; BLOCK].map(|r| r.map(|_| byte()))).collect();
        let mut scale = || match kind {
            // In f64, which has the two lowest as normal numbers.
            Kind::U8Max24Pow2 if extreme => 2f64.powi([-128, -127, 103, 104][rng.usize(..4)]) as f32,
            Kind::U8Max24Pow2 => 2f64.powi(rng.i32(-128..=104)) as f32,
            _ => half::f16::from_f32(normal(rng)).to_f32(),
        };
        let scales = (0..CHUNK_BLOCKS).map(|_| [0.0; TILE_ROWS].map(|_: f32| scale())).collect();
        Decoded { scales, bytes, bias }
    }

    /// A block as micro-kernels have words: of each row two that are two apart, the even ones first.
    fn words(&self, block: usize) -> Vec<u8> {
        let mut memory: Vec<u8> = self.scales[block].iter().flat_map(|w| w.to_le_bytes()).collect();
        for first in 0..2 {
            for quad in self.bytes[block].chunks(4) {
                for row in 0..TILE_ROWS {
                    let two = [&quad[first], &quad[first + 2]];
                    let words = two.map(|bytes| i16::from(bytes[row]) - self.bias as i16);
                    memory.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                }
            }
        }
        memory
    }

    /// A block as the micro-kernels have it.
    fn block(&self, block: usize, kind: Kind) -> Vec<u8> {
        if kind == Kind::I16 {
            return self.words(block);
        }
        let scales = self.scales[block];
        let mut memory: Vec<u8> = scales.iter().flat_map(|w| w.to_le_bytes()).collect();
        memory.extend(scales.iter().flat_map(|w| (-MAGIC * w).to_le_bytes()));
        for quad in self.bytes[block].chunks(4) {
            for row in 0..TILE_ROWS {
                memory.extend(quad.iter().map(|bytes| bytes[row]));
            }
        }
        assert_eq!(memory.len(), DECODED_BLOCK);
        memory
    }
}

type Decode = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64);

/// Where the scales and the data of blocks from `first` on are.
fn places(tile: &[u8], format: WeightFormat, k: usize, first: usize) -> (*const u8, *const u8) {
    let data = format.tile(k).scale_bytes + first * data_lines(format) * LINE;
    (tile[first * scale_bytes(format)..].as_ptr(), tile[data..].as_ptr())
}

#[test]
fn decoding_matches_the_packed_format() {
    const FILL: u8 = 0xa5;
    let k = BLOCK * (CHUNK_BLOCKS + 2);
    for (level, version, interpreted) in versions_anywhere() {
        let words = WeightFormat::blocked().filter(|format| DotStep::K2.decoded(*format) == Kind::I16);
        let words = words.map(|format| (format, Kind::I16));
        for (format, kind) in WeightFormat::blocked().map(|format| (format, Kind::U8)).chain(words) {
            let ukernel = MicroKernel::decoding(kind, format);
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            for extreme in [false, true] {
                let mut rng = Rng::with_seed(5);
                let packed = packed(&mut rng, format, k, extreme);
                let expected = Decoded::of(format, k, &packed);
                let mut tile = aligned(packed.len());
                let tile = &mut bytes_of_mut(&mut tile)[..packed.len()];
                tile.copy_from_slice(&packed);
                for (first, blocks) in [(0, CHUNK_BLOCKS), (2, CHUNK_BLOCKS), (1, 1), (3, 0), (7, 6)] {
                    let mut out = aligned(kind.tile_bytes() + LINE);
                    let out = bytes_of_mut(&mut out);
                    out.fill(FILL);
                    let (scales, data) = places(tile, format, k, first);
                    if interpreted {
                        let args = [scales as u64, data as u64, out.as_mut_ptr() as u64, blocks as u64];
                        interpret(&code, &[tile], &mut [&mut *out], &args);
                    } else {
                        // SAFETY: the blocks lie within the tile's planes; `out` has room for a chunk of
                        // blocks.
                        unsafe {
                            let f: Decode = std::mem::transmute(code.address(0));
                            f(scales, data, out.as_mut_ptr(), blocks as u64);
                        }
                    }
                    let what =
                        format!("{} {ukernel} {first}+{blocks} extreme={extreme}", name(level, version));
                    for (i, block) in out.chunks(kind.block_bytes()).take(blocks).enumerate() {
                        assert_eq!(block, expected.block(first + i, kind), "{what}: block {i}");
                    }
                    assert!(
                        out[blocks * kind.block_bytes()..].iter().all(|b| *b == FILL),
                        "{what}: wrote past"
                    );
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
    fn random(rng: &mut Rng, tokens: usize, extreme: bool) -> Panel {
        let mut value = || match (extreme, rng.i8(..)) {
            // Only of values that are not finite, or next to 0.
            (true, ..-100) => -128,
            (true, ..0) => -127,
            (true, _) => 127,
            (_, q) => q,
        };
        let q = (0..tokens).map(|_| (0..CHUNK_BLOCKS * BLOCK).map(|_| value()).collect()).collect();
        let scales =
            (0..tokens).map(|_| (0..CHUNK_BLOCKS).map(|_| normal(rng).abs() / 127.0).collect()).collect();
        Panel { q, scales }
    }

    /// The panel's bytes as the micro-kernels have them; what belongs to tokens that it has not is not a
    /// number.
    fn memory(&self, kind: Kind, bias: i32) -> Vec<u8> {
        let layout = kind.panel();
        let mut memory = vec![0xff; CHUNK_BLOCKS * layout.block];
        for (block, memory) in memory.chunks_mut(layout.block).enumerate() {
            for (t, (q, scales)) in self.q.iter().zip(&self.scales).enumerate() {
                let q = &q[block * BLOCK..][..BLOCK];
                let sum = |of: &mut dyn Iterator<Item = &i8>| -> i32 { of.map(|q| i32::from(*q)).sum() };
                let (row, start) = match kind {
                    Kind::I16 => {
                        let halves = [0, 1].map(|first| q.iter().skip(first).step_by(2));
                        let words = halves.into_iter().flatten().flat_map(|q| i16::from(*q).to_le_bytes());
                        (words.collect(), [0xff; 4])
                    }
                    Kind::U8Pairwise => {
                        let half = |first: usize| {
                            let pairs = q.chunks(4).flat_map(|quad| &quad[first..first + 2]);
                            (-bias * sum(&mut pairs.into_iter())) as i16
                        };
                        let start = (half(0) as u16 as u32) | (half(2) as u16 as u32) << 16;
                        (q.iter().map(|q| *q as u8).collect(), start.to_le_bytes())
                    }
                    _ => {
                        let start = MAGIC.to_bits() as i32 - bias * sum(&mut q.iter());
                        (q.iter().map(|q| *q as u8).collect::<Vec<u8>>(), start.to_le_bytes())
                    }
                };
                memory[t * layout.row..][..row.len()].copy_from_slice(&row);
                memory[layout.scales + 4 * t..][..4].copy_from_slice(&scales[block].to_le_bytes());
                memory[layout.starts + 4 * t..][..4].copy_from_slice(&start);
            }
        }
        memory
    }
}

/// "blockdot", continued from `acc`.
fn blockdot(acc: f32, weights: &Decoded, row: usize, panel: &Panel, token: usize, blocks: usize) -> f32 {
    (0..blocks).fold(acc, |acc, block| {
        let q = &panel.q[token][block * BLOCK..][..BLOCK];
        let sum: i32 = weights.bytes[block]
            .iter()
            .zip(q)
            .map(|(bytes, q)| (i32::from(bytes[row]) - weights.bias) * i32::from(*q))
            .sum();
        (sum as f32 * weights.scales[block][row]).mul_add(panel.scales[token][block], acc)
    })
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
fn check_gemm(runs: Runs, kind: Kind, weights: &[&Decoded], panel: &Panel, blocks: usize, what: &str) {
    let Runs(code, interpreted) = runs;
    let [count, stride, gap] = [blocks, 4 * STRIDE, 4 * GAP].map(|number| number as u64);
    check_sums(kind, weights, panel, blocks, what, |weights, panel, sums| {
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

/// Compares what `call` makes of sums that lie scattered; what is between them must stay as it is.
fn check_sums(
    kind: Kind,
    weights: &[&Decoded],
    panel: &Panel,
    blocks: usize,
    what: &str,
    call: impl FnOnce(&[u8], &[u8], &mut [f32]),
) {
    let mut tiles = aligned(weights.len() * kind.tile_bytes());
    for (tile, decoded) in bytes_of_mut(&mut tiles).chunks_mut(kind.tile_bytes()).zip(weights) {
        for (block, memory) in tile.chunks_mut(kind.block_bytes()).enumerate() {
            memory.copy_from_slice(&decoded.block(block, kind));
        }
    }
    let activations = panel.memory(kind, weights[0].bias);
    let mut aligned_panel = aligned(activations.len());
    bytes_of_mut(&mut aligned_panel)[..activations.len()].copy_from_slice(&activations);
    let init: Vec<f32> = (0..GROUP * STRIDE).map(|i| i as f32 * 0.37 - 20.0).collect();
    let mut sums = init.clone();
    call(bytes_of(&tiles), bytes_of(&aligned_panel), &mut sums);
    let mut expected = init;
    for token in 0..panel.q.len() {
        for (tile, weights) in weights.iter().enumerate() {
            for row in 0..TILE_ROWS {
                let sum = &mut expected[token * STRIDE + tile * GAP + row];
                *sum = blockdot(*sum, weights, row, panel, token, blocks);
            }
        }
    }
    for (i, (a, e)) in sums.iter().zip(&expected).enumerate() {
        assert_eq!(a.to_bits(), e.to_bits(), "{what}: sum {i} is {a}, expected {e}");
    }
}

#[test]
fn gemm_matches_the_definition_bit_for_bit() {
    let k = BLOCK * CHUNK_BLOCKS;
    let mut rng = Rng::with_seed(11);
    // Two tiles of each kind: what micro-kernels may rely on, what it is, extreme or not, the tiles.
    let mut cases = Vec::new();
    for extreme in [false, true] {
        for format in WeightFormat::blocked() {
            let tiles = [0, 1].map(|_| Decoded::of(format, k, &packed(&mut rng, format, k, extreme)));
            for products in [DotStep::K4, DotStep::K2] {
                cases.push((products.decoded(format), format.name(), extreme, tiles.clone()));
            }
        }
        for kind in Kind::ALL {
            let tiles = [0, 1].map(|_| Decoded::any(&mut rng, kind, extreme));
            cases.push((kind, "bytes", extreme, tiles));
        }
    }
    for (level, version, interpreted) in versions_anywhere() {
        for (weights, tiles, tokens) in Kind::ALL
            .into_iter()
            .flat_map(|kind| (1..=2).flat_map(move |tiles| (1..=GROUP).map(move |t| (kind, tiles, t))))
        {
            let ukernel = MicroKernel::GemmQ8 { weights, tiles, tokens };
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            for (kind, name_of, extreme, decoded) in cases.iter().filter(|case| case.0 == weights) {
                let panel = Panel::random(&mut rng, tokens, *extreme);
                let weights: Vec<&Decoded> = decoded.iter().take(tiles).collect();
                for blocks in [0, 1, 2, CHUNK_BLOCKS] {
                    let what =
                        format!("{} {ukernel} {name_of} extreme={extreme} {blocks}", name(level, version));
                    check_gemm(Runs(&code, interpreted), *kind, &weights, &panel, blocks, &what);
                }
            }
        }
    }
}

/// Every sum of products, of however many, at one of its ends.
#[test]
fn gemm_is_exact_where_all_products_are_largest() {
    let mut rng = Rng::with_seed(13);
    for (level, version, interpreted) in versions_anywhere() {
        for (weights, tiles) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let tokens = GROUP;
            let ukernel = MicroKernel::GemmQ8 { weights, tiles, tokens };
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            let ends = if weights.is_small() { [0, 24] } else { [1, 255] };
            for (byte, q) in ends.into_iter().flat_map(|byte| [(byte, -128), (byte, 127)]) {
                let mut decoded = Decoded::any(&mut rng, weights, false);
                decoded.bytes.as_flattened_mut().as_flattened_mut().fill(byte);
                let mut panel = Panel::random(&mut rng, tokens, false);
                panel.q.iter_mut().for_each(|row| row.fill(q));
                let what = format!("{} {ukernel} {byte} times {q}", name(level, version));
                check_gemm(
                    Runs(&code, interpreted),
                    weights,
                    &[&decoded, &decoded][..tiles],
                    &panel,
                    CHUNK_BLOCKS,
                    &what,
                );
            }
        }
    }
}

/// Both halves of what it does, each as the micro-kernel that does it alone.
#[test]
fn decoding_beside_a_gemm_changes_neither() {
    let (format, k) = (WeightFormat::Mxfp4, BLOCK * (CHUNK_BLOCKS + 2));
    let mut rng = Rng::with_seed(17);
    for (level, version, interpreted) in versions_anywhere() {
        for (tokens, extreme) in (1..=GROUP).flat_map(|tokens| [(tokens, false), (tokens, true)]) {
            let ukernel = MicroKernel::GemmDecode(Overlap { tokens, stride: 4 * STRIDE, gap: 4 * GAP });
            let Some(code) = ukernel_code(&ukernel, level, version, interpreted) else { continue };
            let what = format!("{} {ukernel} extreme={extreme}", name(level, version));
            let weights = [0, 1].map(|_| Decoded::any(&mut rng, Kind::U8Max24Pow2, extreme));
            let panel = Panel::random(&mut rng, tokens, extreme);
            let first = rng.usize(..3);
            let packed = packed(&mut rng, format, k, extreme);
            let mut tile = aligned(packed.len());
            let tile = &mut bytes_of_mut(&mut tile)[..packed.len()];
            tile.copy_from_slice(&packed);
            let (scales, data) = places(tile, format, k, first);
            let mut out = aligned(DECODED_TILE);
            let out = bytes_of_mut(&mut out);
            let kind = Kind::U8Max24Pow2;
            check_sums(
                kind,
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
            let expected = Decoded::of(format, k, &packed);
            for (i, block) in out.chunks(DECODED_BLOCK).enumerate() {
                assert_eq!(block, expected.block(first + i, kind), "{what}: block {i}");
            }
        }
    }
}
