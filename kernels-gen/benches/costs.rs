//! Costs of a block in every version of every q8 and bf16 micro-kernel, its data in cache: the numbers of
//! `compiler/src/passes/select/`.
//!
//! `cargo bench -p kernmill-kernels-gen --bench costs` prints one JSON object per line: ns per block of 32 k
//! and 16 rows (of each tile, for two tiles; of each 16 tokens, for strips), the least of several runs. With
//! names of versions or of formats, only theirs: `-- gemm_q8_avx2`, `-- q4_k`. A dot is held against the
//! definition of docs/dev/numerics.md first, so that no wrong one is measured.

#![allow(clippy::print_stdout)]

use kernmill_kernels_gen::asm::{self, AsmKernel};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_bf16::{self, Shape};
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, DecodedNumber, DotStep, GROUP};
use kernmill_kernels_gen::ukernel::gemm_tiles::{self, PANEL_ROWS, Strip, TileElement, TileShapes};
use kernmill_os::region::WeightRegion;
use kernmill_os::tiles;
use kernmill_plan::format::{self, BLOCK, Q8Row, Scale, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};
use std::time::Instant;

/// Columns of a row, or less where it is no whole units.
const K: usize = 2880;
const REPETITIONS: usize = 15;
/// Panels of a strip: the rows of an expert in a prompt of 512 tokens.
const PANELS: usize = 4;
/// Fills weights and activations: every scale it makes is a normal number, and so is every product.
const FILL: u8 = 0x3c;

type Dot = unsafe extern "C" fn(*const u8, *const u64, *mut f32, u64);
type Decode = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *const u8);
type DecodeBf16 = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *const u8);
type Gemm = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64, u64);
type GemmStrip = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *mut f32,
    u64,
    u64,
    *mut u8,
    *const u8,
    *const u8,
    *mut u8,
    u64,
    u64,
    u64,
);
type GemmBf16 = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64);

fn columns(format: WeightFormat) -> usize {
    K / format.parts().columns() * format.parts().columns()
}

fn least(mut run: impl FnMut()) -> f64 {
    let times = (0..REPETITIONS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// A micro-kernel as code that can run.
fn code(ukernel: &MicroKernel, level: Level, version: Option<&'static AsmKernel>) -> Mmap {
    let blob = generate_ukernels(std::slice::from_ref(ukernel), level, &|_| version)
        .expect("micro-kernels generate");
    let mut map = MmapMut::map_anon(blob.bytes.len()).expect("memory for code");
    map.copy_from_slice(&blob.bytes);
    assert_eq!(blob.symbols[0].offset, 0);
    map.make_exec().expect("executable memory")
}

fn main() {
    let mut ukernels = Vec::new();
    for format in WeightFormat::blocked() {
        ukernels.extend(MicroKernel::dot_tokens(true).iter().map(|t| MicroKernel::DotQ8 {
            format,
            k: columns(format),
            tokens: *t,
        }));
        ukernels.push(MicroKernel::Decode { format });
        if DotStep::K2.decoded(format).number == DecodedNumber::I16 {
            ukernels.push(MicroKernel::DecodeWords { format });
        }
    }
    for weights in Decoded::all() {
        for tiles in [1, 2] {
            ukernels.extend((1..=GROUP).map(|tokens| MicroKernel::GemmQ8 { weights, tiles, tokens }));
        }
    }
    ukernels.push(MicroKernel::DecodeBf16);
    for (tiles, groups) in [(1, 1), (2, 1), (2, 2)] {
        ukernels.push(MicroKernel::GemmBf16(Shape { tiles, groups, stride: 128, gap: 64 }));
    }
    for format in WeightFormat::blocked().filter(|format| TileElement::serves(*format)) {
        let k = gemm_tiles::CHUNK_BLOCKS * BLOCK;
        let strip = Strip { format, tiles: 2, k, stride: 128, gap: 64 };
        ukernels.push(MicroKernel::GemmStrip(strip));
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut bench = Bench::new();
    let has_tiles = Level::Amx.missing().is_empty() && tiles::request().is_ok();
    for level in Level::supported().into_iter().filter(|level| !level.has_tiles() || has_tiles) {
        for ukernel in &ukernels {
            let versions = asm::candidates(ukernel, level).map(Some).chain([None]);
            for version in versions {
                let name = version.map_or("cranelift_128", |wide| wide.name);
                let of = ukernel.format().map_or("", WeightFormat::name);
                let is_wanted = named.is_empty() || named.iter().any(|wanted| wanted == name || wanted == of);
                // A micro-kernel without tiles belongs to the level below.
                let is_new = !level.has_tiles() || name.ends_with("_amx");
                if !is_wanted || !is_new {
                    continue;
                }
                let mut measure = || bench.ns_per_block(ukernel, &code(ukernel, level, version));
                let ns = if level.has_tiles() { with_tiles(ukernel, measure) } else { measure() };
                println!(
                    "{{\"leaf\": \"{ukernel}\", \"level\": \"{}\", \"version\": \"{name}\", \
                     \"ns_per_block\": {ns:.2}}}",
                    level.name(),
                );
            }
        }
    }
}

/// Whether a dot micro-kernel gives the bits of its definition for a tile and rows made of `seed`.
fn is_defined_dot(dot: Dot, format: WeightFormat, tokens: usize, seed: u32) -> bool {
    let (k, parts) = (columns(format), format.parts());
    let (row, of_part) = (Q8Row { k }, BLOCK / parts.parts());
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut region = WeightRegion::anonymous(1 << 20).expect("a megabyte of memory");
    let (tile, rows) = region.as_mut_slice().split_at_mut(1 << 19);
    let tile = &mut tile[..format.tile(k).bytes()];
    // Every byte is that of a scale near 1, of either sign if it may have one.
    let bits = if parts.scale == Scale::E4M3 { 0x3f } else { 0xbf };
    tile.iter_mut().for_each(|byte| *byte = next() & bits | 0x20);
    let rows = &mut rows[..tokens * row.stride()];
    for row_bytes in rows.chunks_exact_mut(row.stride()) {
        row_bytes[..k].iter_mut().for_each(|q| *q = next().max(129).wrapping_add(next()) | 1);
        for block in 0..k / BLOCK {
            row_bytes[row.scales() + 4 * block..][..4].copy_from_slice(&f32::from(next()).to_le_bytes());
            for half in 0..2 {
                let q = &row_bytes[BLOCK * block + BLOCK / 2 * half..][..BLOCK / 2];
                let sum: i16 = q.iter().map(|q| i16::from(q.cast_signed())).sum();
                row_bytes[row.sums() + 4 * block + 2 * half..][..2].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
    let mut results = vec![0f32; tokens * TILE_ROWS];
    let list: Vec<u64> = rows.chunks_exact(row.stride()).map(|row| row.as_ptr() as u64).collect();
    // SAFETY: tile, rows and results are as large as the micro-kernel's contract asks.
    unsafe { dot(tile.as_ptr(), list.as_ptr(), results.as_mut_ptr(), 4 * TILE_ROWS as u64) };
    let defined = |activations: &[u8], i: usize| {
        (0..k).step_by(of_part).fold(0f32, |sum, first| {
            let elements = (first..first + of_part).map(|at| format::element(format, k, tile, i, at));
            let q = activations[first..][..of_part].iter().map(|q| i32::from(q.cast_signed()));
            let product: i32 = elements.zip(q.clone()).map(|(element, q)| element.q * q).sum();
            let at = row.scales() + first / BLOCK * 4;
            let scale = f32::from_le_bytes(*activations[at..].first_chunk().expect("four bytes"));
            let element = format::element(format, k, tile, i, first);
            let sum = (product as f32 * element.scale).mul_add(scale, sum);
            match parts.has_minimum() {
                true => element.minimum.mul_add(q.sum::<i32>() as f32 * scale, sum),
                false => sum,
            }
        })
    };
    rows.chunks_exact(row.stride()).zip(results.chunks_exact(TILE_ROWS)).all(|(activations, results)| {
        (0..TILE_ROWS).all(|i| results[i].to_bits() == defined(activations, i).to_bits())
    })
}

/// The result of `run` while tiles are configured for a micro-kernel.
fn with_tiles(ukernel: &MicroKernel, run: impl FnOnce() -> f64) -> f64 {
    let shapes = match ukernel {
        MicroKernel::GemmStrip(strip) => TileShapes::Strip(TileElement::of(strip.format)),
        _ => TileShapes::Whole,
    };
    let [on, off] = [MicroKernel::TilesOn(shapes), MicroKernel::TilesOff]
        .map(|ukernel| code(&ukernel, Level::Amx, asm::candidates(&ukernel, Level::Amx).next()));
    // SAFETY: the code takes nothing and returns nothing; the CPU has tiles and the system permits them.
    let call =
        |code: &Mmap| unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn()>(code.as_ptr())() };
    call(&on);
    let result = run();
    call(&off);
    result
}

/// Memory for all micro-kernels.
struct Bench {
    region: kernmill_os::region::RegionMut,
}

impl Bench {
    fn new() -> Bench {
        Bench { region: WeightRegion::anonymous(1 << 20).expect("a megabyte of memory") }
    }

    fn ns_per_block(&mut self, ukernel: &MicroKernel, code: &Mmap) -> f64 {
        // Numbers that other micro-kernels have left there may be denormals.
        self.region.as_mut_slice().fill(FILL);
        let base = self.region.as_mut_slice().as_mut_ptr();
        // Packed weights, decoded tiles, activations, results: each has more room than a micro-kernel here
        // needs.
        // SAFETY: all places lie in the region.
        let [packed, decoded, rows, results] =
            [0, 1 << 17, 1 << 18, 1 << 19].map(|place: usize| unsafe { base.add(place) });
        let entry = code.as_ptr();
        let (calls, blocks) = match *ukernel {
            MicroKernel::DotQ8 { k, .. } => (100, k / BLOCK),
            MicroKernel::DecodeBf16 | MicroKernel::GemmBf16(_) => (100, gemm_bf16::CHUNK_BLOCKS),
            // By so many panels and two tiles, decoding included.
            MicroKernel::GemmStrip(_) => (100, 2 * PANELS * gemm_tiles::CHUNK_BLOCKS),
            MicroKernel::Decode { format } | MicroKernel::DecodeWords { format } => {
                (1000, ukernel.decoded(format).chunk_blocks(format))
            }
            MicroKernel::GemmQ8 { weights, .. } => (1000, weights.tile_blocks()),
            _ => unreachable!("only q8 and bf16 micro-kernels are measured"),
        };
        let seconds = match *ukernel {
            MicroKernel::DotQ8 { format, k, tokens } => {
                let stride = Q8Row { k }.stride();
                let list: Vec<u64> = (0..tokens).map(|t| rows as u64 + (t * stride) as u64).collect();
                // SAFETY: the code is a dot micro-kernel; its memory is as large as its contract asks.
                let dot: Dot = unsafe { std::mem::transmute(entry) };
                let is_right = (1..=3).all(|seed| is_defined_dot(dot, format, tokens, seed));
                assert!(is_right, "{ukernel} differs from its definition");
                least(|| {
                    // SAFETY: as above.
                    (0..calls).for_each(|_| unsafe { dot(packed, list.as_ptr(), results.cast(), 64) });
                })
            }
            MicroKernel::Decode { .. } | MicroKernel::DecodeWords { .. } => {
                // SAFETY: as above, a decode micro-kernel.
                let decode: Decode = unsafe { std::mem::transmute(entry) };
                least(|| {
                    for call in 0..calls {
                        // SAFETY: as above.
                        let out = unsafe { decoded.add(call % 2 * gemm_bf16::DECODED_TILE) };
                        // SAFETY: as above.
                        unsafe { decode(packed, packed.add(4096), out, blocks as u64, packed.add(2048)) };
                    }
                })
            }
            MicroKernel::DecodeBf16 => {
                // SAFETY: as above, a micro-kernel that decodes for tiles of bf16.
                let decode: DecodeBf16 = unsafe { std::mem::transmute(entry) };
                least(|| {
                    for call in 0..calls {
                        // SAFETY: as above.
                        let out = unsafe { decoded.add(call % 2 * gemm_bf16::DECODED_TILE) };
                        // SAFETY: as above.
                        unsafe { decode(packed, packed.add(4096), out, blocks as u64, packed) };
                    }
                })
            }
            MicroKernel::GemmQ8 { .. } => {
                // SAFETY: as above, a gemm micro-kernel.
                let gemm: Gemm = unsafe { std::mem::transmute(entry) };
                let chunk = blocks as u64;
                least(|| {
                    // SAFETY: as above.
                    (0..calls).for_each(|_| unsafe { gemm(decoded, rows, results.cast(), chunk, 128, 64) });
                })
            }
            MicroKernel::GemmBf16(Shape { groups, .. }) => {
                // SAFETY: as above, a gemm micro-kernel of bf16 rows.
                let gemm: GemmBf16 = unsafe { std::mem::transmute(entry) };
                let tokens = (groups * gemm_bf16::GROUP) as u64;
                let chunk = blocks as u64;
                least(|| {
                    // SAFETY: as above.
                    (0..calls).for_each(|_| unsafe { gemm(decoded, rows, results.cast(), chunk, tokens) });
                })
            }
            MicroKernel::GemmStrip(strip) => {
                // SAFETY: as above, a gemm micro-kernel on tiles.
                let gemm: GemmStrip = unsafe { std::mem::transmute(entry) };
                let (element, chunk) = (TileElement::of(strip.format), gemm_tiles::CHUNK_BLOCKS);
                for block in 0..2 * chunk {
                    let factors = block * element.decoded_block() + element.decoded_factors();
                    // SAFETY: a line of the decoded tiles.
                    unsafe { decoded.add(factors).cast::<[f32; 16]>().write_unaligned([1.0; 16]) };
                }
                // SAFETY: behind the results, with room for the products.
                let (count, products) = ((PANELS * PANEL_ROWS) as u64, unsafe { results.add(1 << 16) });
                // SAFETY: behind the scales, and behind the decoded tiles.
                let (data, out) = unsafe { (packed.add(4096), decoded.add(1 << 16)) };
                let (sums, chunk) = (results.cast(), chunk as u64);
                least(|| {
                    for _ in 0..calls {
                        // SAFETY: as above.
                        unsafe {
                            gemm(
                                decoded,
                                rows,
                                sums,
                                count,
                                chunk,
                                products,
                                packed,
                                data,
                                out,
                                chunk,
                                1 << 14,
                                0,
                            );
                        }
                    }
                })
            }
            _ => unreachable!("only q8 and bf16 micro-kernels are measured"),
        };
        seconds * 1e9 / (calls * blocks) as f64
    }
}
