//! The bounds of the product of experts' weights with panels, on a CPU with AVX-512 and VNNI.
//!
//! `cargo bench -p kernmill-kernels-gen --bench gemm` prints one JSON object per line:
//!
//! - `mix`: ns of a loop of 96 `vpdpbusd` of 512 bits, as many as two tiles by six tokens have per block of
//!   32 k, alone and with other instructions between them, everything in registers; the least of several
//!   runs. An instruction that adds time to the 96 alone shares their pipes.
//! - `unit`: ns per such block of whole units (two tiles of 2880 k by panels of six tokens), by two threads
//!   that read weights from memory as experts' are read: each chunk decoded before its product or beside the
//!   product before it, and fetched early or not. The ways take turns; least and median of all turns, since a
//!   shared machine's medians have its neighbours in them.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegisterZmm, CodeAssembler, rdi};
use kernmill_kernels_gen::asm::{self, ZMM};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::block::{data_lines, scale_bytes};
use kernmill_kernels_gen::ukernel::gemm_q8::{CHUNK_BLOCKS, Decoded, DecodedNumber, GROUP, Overlap};
use kernmill_os::region::WeightRegion;
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};
use std::sync::Barrier;
use std::time::Instant;

const LEVEL: Level = Level::V4Vnni;
const REPETITIONS: usize = 31;

fn main() {
    if LEVEL.missing().is_empty() {
        mixes();
        units();
    } else {
        eprintln!("this CPU has not all of {}", LEVEL.name());
    }
}

fn executable(bytes: &[u8]) -> Mmap {
    let mut map = MmapMut::map_anon(bytes.len()).expect("memory for code");
    map.copy_from_slice(bytes);
    map.make_exec().expect("executable memory")
}

/// Accumulators of the loop.
const SUMS: usize = 12;
/// Times that an iteration goes over them.
const ROUNDS: usize = 8;

/// An instruction on one of the registers beside the accumulators.
type Other = fn(&mut CodeAssembler, AsmRegisterZmm) -> Result<(), IcedError>;

/// A loop of so many iterations as rdi says, with `count` others spread between the products.
fn mix(count: usize, other: Other) -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let mut again = a.create_label();
    for register in ZMM {
        a.vpxord(register, register, register)?;
    }
    a.set_label(&mut again)?;
    let all = SUMS * ROUNDS;
    for i in 0..all {
        a.vpdpbusd(ZMM[i % SUMS], ZMM[30], ZMM[31])?;
        for n in i * count / all..(i + 1) * count / all {
            other(&mut a, ZMM[SUMS + n % SUMS])?;
        }
    }
    a.dec(rdi)?;
    a.jne(again)?;
    a.vzeroupper()?;
    a.ret()?;
    a.assemble(0)
}

fn mixes() {
    const ITERATIONS: u64 = 20_000;
    let fma: Other = |a, x| a.vfmadd231ps(x, ZMM[28], ZMM[29]);
    let add: Other = |a, x| a.vaddps(x, ZMM[28], ZMM[29]);
    let pairs: Other = |a, x| a.vpmaddubsw(x, ZMM[28], ZMM[29]);
    let look: Other = |a, x| a.vpshufb(x, ZMM[28], ZMM[29]);
    let cases = [
        ("nothing", 0, fma),
        ("vfmadd231ps", 12, fma),
        ("vfmadd231ps", 24, fma),
        ("vaddps", 12, add),
        ("vaddps", 24, add),
        ("vpmaddubsw", 16, pairs),
        ("vpmaddubsw", 32, pairs),
        ("vpmaddubsw", 48, pairs),
        ("vpshufb", 16, look),
        ("vpshufb", 32, look),
    ];
    for (name, count, other) in cases {
        let code = executable(&mix(count, other).expect("plain instructions assemble"));
        // SAFETY: the code is a function of one number that touches vector registers only.
        let run: unsafe extern "C" fn(u64) = unsafe { std::mem::transmute(code.as_ptr()) };
        let seconds = (0..REPETITIONS).map(|_| {
            let start = Instant::now();
            // SAFETY: as above.
            unsafe { run(ITERATIONS) };
            start.elapsed().as_secs_f64()
        });
        let ns = seconds.fold(f64::INFINITY, f64::min) * 1e9 / ITERATIONS as f64;
        println!("{{\"mix\": \"{name}\", \"beside_96_vpdpbusd\": {count}, \"ns\": {ns:.2}}}");
    }
}

type Decode = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64);
type Gemm = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64, u64);
type GemmDecode = unsafe extern "C" fn(*const u8, *const u8, *mut f32, *const u8, *const u8, *mut u8);
type Prefetch = unsafe extern "C" fn(*const u8, *const u8, u64);

const FORMAT: WeightFormat = WeightFormat::Mxfp4;
const WEIGHTS: Decoded = Decoded::plain(DecodedNumber::U8Max24Pow2);
const BLOCKS: usize = 2880 / BLOCK;
const CHUNKS: usize = BLOCKS / CHUNK_BLOCKS;
/// Groups of six tokens: an expert's share of a prompt of 512.
const GROUPS: usize = 11;
const STRIDE: usize = 2 * TILE_ROWS * 4;
const GAP: usize = TILE_ROWS * 4;
const STREAM: usize = 512 << 20;
const TURNS: usize = 200;
const UNITS: usize = 20;

/// How a unit is multiplied.
#[derive(Clone, Copy)]
struct Way {
    /// Decoding beside the product before.
    beside: bool,
    /// Fetching what is decoded next.
    fetch: bool,
}

struct MicroKernels {
    decode: Decode,
    gemm: Gemm,
    both: GemmDecode,
    prefetch: Prefetch,
    /// Code of the micro-kernels, kept mapped.
    _code: Vec<Mmap>,
}

impl MicroKernels {
    fn new() -> MicroKernels {
        let overlap = Overlap { tokens: GROUP, stride: STRIDE, gap: GAP };
        let gemm = MicroKernel::GemmQ8 { weights: WEIGHTS, tiles: 2, tokens: GROUP };
        let code = [
            MicroKernel::Decode { format: FORMAT },
            gemm,
            MicroKernel::GemmDecode(overlap),
            MicroKernel::Prefetch,
        ]
        .map(|ukernel| {
            // By additions, where there is such a version: it is the last.
            let blob = generate_ukernels(&[ukernel], LEVEL, &|ukernel| {
                asm::candidates(ukernel, LEVEL)
                    .filter(|wide| {
                        wide.name.starts_with("gemm_q8_avx512vnni") || !wide.name.starts_with("gemm")
                    })
                    .last()
            });
            executable(&blob.expect("micro-kernels generate").bytes)
        });
        let [decode, gemm, both, prefetch] = [0, 1, 2, 3].map(|i| code[i].as_ptr());
        // SAFETY: each is a function of its micro-kernel's contract.
        unsafe {
            MicroKernels {
                decode: std::mem::transmute::<*const u8, Decode>(decode),
                gemm: std::mem::transmute::<*const u8, Gemm>(gemm),
                both: std::mem::transmute::<*const u8, GemmDecode>(both),
                prefetch: std::mem::transmute::<*const u8, Prefetch>(prefetch),
                _code: code.into(),
            }
        }
    }

    /// Multiplies the unit whose two tiles lie at `unit`, with the unit behind it in memory; `scratch` has
    /// panels, sums and decoded chunks.
    ///
    /// # Safety
    /// Two units can be read at `unit`, and `scratch` has four MiB at a multiple of a line.
    unsafe fn unit(&self, unit: *const u8, scratch: *mut u8, way: Way) {
        let tile_bytes = FORMAT.tile(BLOCKS * BLOCK).bytes();
        let place = |chunk: usize, tile: usize| {
            let tile = unit.wrapping_add((chunk / CHUNKS * 2 + tile) * tile_bytes);
            let first = chunk % CHUNKS * CHUNK_BLOCKS;
            let data = FORMAT.tile(BLOCKS * BLOCK).scale_bytes + first * data_lines(FORMAT) * LINE;
            (tile.wrapping_add(first * scale_bytes(FORMAT)), tile.wrapping_add(data))
        };
        let (decoded_tile, panel_block) = (WEIGHTS.tile_bytes(), WEIGHTS.panel().block);
        let buffer = |n: usize| scratch.wrapping_add((2 << 20) + n * 2 * decoded_tile);
        let lines = (CHUNK_BLOCKS * data_lines(FORMAT)).div_ceil(GROUPS);
        for chunk in 0..CHUNKS {
            let (now, next) =
                if way.beside { (buffer(chunk % 2), buffer(1 - chunk % 2)) } else { (buffer(0), buffer(0)) };
            let ahead = [0, 1].map(|tile| place(chunk + 1 + usize::from(way.beside), tile));
            if way.fetch {
                // SAFETY: prefetching faults nowhere.
                unsafe {
                    (self.prefetch)(
                        ahead[0].0,
                        ahead[1].0,
                        (CHUNK_BLOCKS * scale_bytes(FORMAT)).div_ceil(LINE) as u64,
                    )
                };
            }
            for tile in (0..2).filter(|_| !way.beside) {
                let (scales, data) = place(chunk, tile);
                // SAFETY: a chunk of a tile of this unit, and room for it decoded.
                unsafe {
                    (self.decode)(scales, data, now.wrapping_add(tile * decoded_tile), CHUNK_BLOCKS as u64)
                };
            }
            for group in 0..GROUPS {
                if way.fetch {
                    let from = ahead.map(|place| place.1.wrapping_add(group * lines * LINE));
                    // SAFETY: prefetching faults nowhere.
                    unsafe { (self.prefetch)(from[0], from[1], lines as u64) };
                }
                let panel = scratch.wrapping_add((group * BLOCKS + chunk * CHUNK_BLOCKS) * panel_block);
                let sums = scratch.wrapping_add((1 << 20) + group * GROUP * STRIDE).cast::<f32>();
                // SAFETY: decoded tiles, panel, sums, a chunk of the next or of the unit behind, and room for
                // it decoded, as the contracts ask.
                unsafe {
                    if way.beside && group < 2 {
                        let (scales, data) = place(chunk + 1, group);
                        (self.both)(now, panel, sums, scales, data, next.wrapping_add(group * decoded_tile));
                    } else {
                        (self.gemm)(now, panel, sums, CHUNK_BLOCKS as u64, STRIDE as u64, GAP as u64);
                    }
                }
            }
        }
    }
}

/// Every way's ns per block, one thread's.
fn turns(ukernels: &MicroKernels, ways: &[Way], barrier: &Barrier) -> Vec<Vec<f64>> {
    // Scales and products are normal numbers.
    const FILL: u8 = 0x3c;
    let unit_bytes = 2 * FORMAT.tile(BLOCKS * BLOCK).bytes();
    let filled = |bytes: usize| {
        let mut region = WeightRegion::anonymous(bytes).expect("memory");
        region.as_mut_slice().fill(FILL);
        region
    };
    let (mut weights, mut scratch) = (filled(STREAM + 2 * unit_bytes), filled(4 << 20));
    let (weights, scratch) = (weights.as_mut_slice().as_mut_ptr(), scratch.as_mut_slice().as_mut_ptr());
    let mut at = 0;
    let mut times = vec![Vec::new(); ways.len()];
    for turn in 0..TURNS * ways.len() {
        barrier.wait();
        let start = Instant::now();
        for _ in 0..UNITS {
            at = (at + unit_bytes) % STREAM;
            // SAFETY: two units lie behind every place below STREAM; the scratch is as large as asked.
            unsafe { ukernels.unit(weights.wrapping_add(at), scratch, ways[turn % ways.len()]) };
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / (UNITS * BLOCKS * GROUPS) as f64;
        times[turn % ways.len()].push(ns);
    }
    times
}

fn units() {
    let ukernels = MicroKernels::new();
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    let ways = ways.map(|(beside, fetch)| Way { beside, fetch });
    let barrier = Barrier::new(2);
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| turns(&ukernels, &ways, &barrier));
        (turns(&ukernels, &ways, &barrier), other.join().expect("the other thread"))
    });
    for ((way, one), other) in ways.iter().zip(one).zip(other) {
        let mut all = [one, other].concat();
        all.sort_by(f64::total_cmp);
        println!(
            "{{\"unit\": \"decoded {}\", \"fetched\": {}, \"least_ns\": {:.2}, \"median_ns\": {:.2}}}",
            if way.beside { "beside" } else { "before" },
            way.fetch,
            all[0],
            all[all.len() / 2]
        );
    }
}
