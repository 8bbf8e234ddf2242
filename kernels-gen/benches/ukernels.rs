//! The q8 and attention micro-kernels, 128-bit and wide, on every level of this machine. Dot micro-kernels,
//! in every version, against the memory: GB/s over pieces of a gigabyte, in turn with reads of as many bytes
//! by the code that `kernmill bench` reads with, by one and by two threads, and the median of the ratios to
//! these (`of_read`). The rate of every token count, of decoding, of the gemm micro-kernel and of attention's
//! micro-kernels on operands that stay in cache. Of row-wise work the nanoseconds per row.
//!
//! `cargo bench -p kernmill-kernels-gen --bench ukernels` prints one JSON object per line; medians of 60
//! turns from memory, of 7 from cache. With `-- dots`, `gemm`, `attention` or `rows` only these; with
//! `native` only the assembled micro-kernels of the best level.

#![allow(clippy::print_stdout)]

use kernmill_kernels_gen::asm::{self, AsmKernel};
use kernmill_kernels_gen::expr::{Binary, Expr, Unary};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::peak::probe;
use kernmill_kernels_gen::ukernel::gemm_q8::{DotStep, GROUP};
use kernmill_kernels_gen::ukernel::map::Map;
use kernmill_kernels_gen::ukernel::{
    BLOCKS_AHEAD, MicroKernel, QueryHeads, SCORE_STRIDE, TILES_PER_CALL, TileOrder, ValueScratch,
};
use kernmill_os::region::{RegionMut, WeightRegion};
use kernmill_plan::format::{BLOCK, Q8Row, WeightFormat};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use kernmill_plan::probe::READ;
use kernmill_plan::program::CodeBlob;
use kernmill_plan::target::Level;
use memmap2::{Mmap, MmapMut};
use std::time::Instant;

/// Columns of a row, or less where it is no whole units.
const K: usize = 2880;
const STREAM: usize = 1 << 30;
/// Bytes that are read, or gone through by a micro-kernel, in one turn.
const PIECE: usize = 128 << 20;
const PIECES: usize = STREAM / PIECE;
const TURNS: usize = 60;
const REPETITIONS: usize = 7;
/// Fills weights and activations: every scale it makes is a normal number, and so is every product (denormals
/// would be measured instead of the micro-kernel).
const FILL: u8 = 0x3c;

type Dot = unsafe extern "C" fn(*const u8, *const u64, *mut f32, u64);
type Read = unsafe extern "C" fn(*const u8, u64);
type Decode = unsafe extern "C" fn(*const u8, *const u8, *mut u8, u64, *const u8);
type Six = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);
type Gemm = unsafe extern "C" fn(*const u8, *const u8, *mut f32, u64, u64, u64);

fn columns(format: WeightFormat) -> usize {
    K / format.parts().columns() * format.parts().columns()
}

fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn median(mut run: impl FnMut()) -> f64 {
    middle((0..REPETITIONS).map(|_| timed(&mut run)).collect())
}

/// Calls `work(first, end)` on every thread's share of `count`.
fn shared(threads: usize, count: usize, work: impl Fn(usize, usize) + Sync) {
    std::thread::scope(|scope| {
        for i in 0..threads {
            let work = &work;
            scope.spawn(move || work(count * i / threads, count * (i + 1) / threads));
        }
    });
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if wanted("dots") {
        all_dots();
    }
    for (level, wide) in versions() {
        WeightFormat::blocked().filter(|_| wanted("gemm")).for_each(|format| gemm(level, wide, format));
        if wanted("attention") {
            attention(level, wide);
        }
        if wanted("rows") {
            row_wise(level, wide);
        }
    }
}

/// A gigabyte, and how the probe reads it.
struct Memory {
    region: RegionMut,
    /// The probe's code, its function that reads, and the bytes of one of its steps.
    code: Mmap,
    place: usize,
    step: usize,
}

impl Memory {
    fn new() -> Memory {
        let mut region = WeightRegion::anonymous(STREAM).expect("a gigabyte of memory");
        region.as_mut_slice().fill(FILL);
        let level = Level::native(false).expect("a CPU of the lowest level");
        let probe = probe(level).expect("a probe for every level");
        let place = probe.code.symbols.iter().find(|symbol| symbol.name == READ).expect("it reads").offset;
        Memory { region, code: runnable(&probe.code), place: place as usize, step: probe.read_step }
    }

    /// A piece of it.
    fn piece(&self, number: usize) -> &[u8] {
        &self.region.as_slice()[number % PIECES * PIECE..][..PIECE]
    }

    /// Reads a piece.
    fn read(&self, threads: usize, piece: usize) {
        // SAFETY: the function that reads is there.
        let read: Read = unsafe { std::mem::transmute(&raw const self.code[self.place]) };
        shared(threads, PIECE / self.step, |first, end| {
            let start = self.piece(piece)[first * self.step..].as_ptr();
            // SAFETY: so many steps lie in the piece.
            unsafe { read(start, (end - first) as u64) };
        });
    }
}

/// Dots of every format beside reads by the probe.
fn all_dots() {
    let memory = Memory::new();
    for (level, wide) in versions() {
        for format in WeightFormat::blocked() {
            for (ukernel, tokens, tiles) in dots_of(format) {
                let wide_ones = asm::candidates(&ukernel, level).map(Some);
                let all: Vec<_> = if wide { wide_ones.collect() } else { vec![None] };
                for version in all {
                    dots(&memory, (ukernel.clone(), tokens, tiles), level, version);
                }
            }
        }
    }
}

/// Levels, and whether assembled micro-kernels are wanted or those of 128 bits.
fn versions() -> Vec<(Level, bool)> {
    let levels = Level::supported();
    if std::env::args().any(|argument| argument == "native") {
        return levels.last().map(|level| (*level, true)).into_iter().collect();
    }
    levels.into_iter().flat_map(|level| [(level, false), (level, true)]).collect()
}

/// Which version of a micro-kernel is measured.
fn version(ukernel: &MicroKernel, level: Level, wide: bool) -> &'static str {
    asm::find(ukernel, level).filter(|_| wide).map_or("cranelift_128", |wide| wide.name)
}

/// Micro-kernels as code that can run, in order.
fn code(ukernels: &[MicroKernel], level: Level, wide: bool) -> (Mmap, Vec<usize>) {
    let blob = generate_ukernels(ukernels, level, &|ukernel| asm::find(ukernel, level).filter(|_| wide))
        .expect("micro-kernels generate");
    let offsets = blob.symbols.iter().map(|symbol| symbol.offset as usize).collect();
    (runnable(&blob), offsets)
}

fn runnable(blob: &CodeBlob) -> Mmap {
    let mut map = MmapMut::map_anon(blob.bytes.len()).expect("memory for code");
    map.copy_from_slice(&blob.bytes);
    map.make_exec().expect("executable memory")
}

/// Dot micro-kernels of every token count, and those of several tiles at once, with their tokens and tiles.
fn dots_of(format: WeightFormat) -> Vec<(MicroKernel, usize, usize)> {
    let k = columns(format);
    let single =
        MicroKernel::dot_tokens(true).iter().map(|t| (MicroKernel::DotQ8 { format, k, tokens: *t }, *t, 1));
    let several = [2, 1].map(|tokens| {
        let order = if format == WeightFormat::Mxfp4 { TileOrder::Pairs } else { TileOrder::Straight };
        (MicroKernel::DotQ8x4 { format, k, tokens, order }, tokens, TILES_PER_CALL)
    });
    single.chain(several).collect()
}

/// A dot micro-kernel from memory, in turn with reads, and in cache.
fn dots(
    memory: &Memory,
    (ukernel, tokens, tiles): (MicroKernel, usize, usize),
    level: Level,
    version: Option<&'static AsmKernel>,
) {
    let (MicroKernel::DotQ8 { format, .. } | MicroKernel::DotQ8x4 { format, .. }) = ukernel else { return };
    let blob = generate_ukernels(std::slice::from_ref(&ukernel), level, &|_| version)
        .expect("micro-kernels generate");
    let (map, offset) = (runnable(&blob), blob.symbols[0].offset as usize);
    let k = columns(format);
    let stride = Q8Row { k }.stride();
    let name = version.map_or("cranelift_128", |wide| wide.name);
    let head = format!("\"version\": \"{name}\", \"level\": \"{}\"", level.name());
    let bytes = tiles * format.tile(k).bytes();
    // SAFETY: the micro-kernel is at that offset.
    let dot: Dot = unsafe { std::mem::transmute(&raw const map[offset]) };
    let run = |piece: usize, first: usize, end: usize, places: usize| {
        let piece = memory.piece(piece);
        let rows = vec![FILL; stride * tokens];
        let list: Vec<u64> = (0..tokens).map(|t| rows.as_ptr() as u64 + (t * stride) as u64).collect();
        let mut out = vec![0f32; 16 * tiles * tokens];
        for number in first..end {
            // SAFETY: the tiles lie in the piece, rows and results are as large as the micro-kernel's
            // contract asks.
            unsafe {
                let weights = piece.as_ptr().add(number % places * bytes);
                dot(weights, list.as_ptr(), out.as_mut_ptr(), 64 * tiles as u64);
            }
        }
        std::hint::black_box(&out);
    };
    let all = PIECE / bytes;
    for threads in [1, 2] {
        let mut rates = Vec::new();
        let mut of_read = Vec::new();
        for turn in 0..TURNS {
            let read = timed(|| memory.read(threads, turn));
            // Far from what was just read, which may be in the cache still.
            let time = timed(|| shared(threads, all, |first, end| run(turn + PIECES / 2, first, end, all)));
            rates.push((all * bytes) as f64 / time / 1e9);
            of_read.push((all * bytes) as f64 / PIECE as f64 * read / time);
        }
        println!(
            "{{\"what\": \"{ukernel}\", {head}, \"threads\": {threads}, \"gb_per_second\": {:.1}, \"of_read\": {:.3}}}",
            middle(rates),
            middle(of_read)
        );
    }
    let calls = 40_000 / (8 + tokens) / tiles;
    let time = median(|| run(0, 0, calls, 2));
    println!(
        "{{\"what\": \"{ukernel} in cache\", {head}, \"gb_per_second\": {:.1}, \"tera_ops_per_second\": {:.3}}}",
        (calls * bytes) as f64 / time / 1e9,
        (calls * 16 * tiles * k * tokens * 2) as f64 / time / 1e12
    );
}

/// Decoding, and two tiles by a full panel, all in cache.
fn gemm(level: Level, wide: bool, format: WeightFormat) {
    let weights = DotStep::at(level).decoded(format);
    let ukernels =
        [MicroKernel::decoding(weights, format), MicroKernel::GemmQ8 { weights, tiles: 2, tokens: GROUP }];
    let (map, offsets) = code(&ukernels, level, wide);
    // SAFETY: symbol 0 is a decode micro-kernel.
    let decode: Decode = unsafe { std::mem::transmute(&raw const map[offsets[0]]) };
    // SAFETY: symbol 1 is a gemm micro-kernel.
    let gemm: Gemm = unsafe { std::mem::transmute(&raw const map[offsets[1]]) };
    let mut region = WeightRegion::anonymous(1 << 20).expect("a megabyte of memory");
    region.as_mut_slice().fill(FILL);
    let base = region.as_mut_slice().as_mut_ptr();
    let calls = 10_000;
    let chunk = weights.chunk_blocks(format);
    let blocks = chunk as u64;
    // Packed blocks, two decoded tiles, a panel, sums.
    let places = [0, 1 << 17, 1 << 18, 1 << 19];
    // SAFETY: each place has more room than a chunk of blocks, two decoded chunks, a panel, or the sums need.
    let [packed, decoded, panel, sums] = places.map(|place: usize| unsafe { base.add(place) });
    let time = median(|| {
        for tile in (0..calls).map(|call| call % 2) {
            // SAFETY: as above.
            unsafe {
                let out = decoded.add(tile * weights.tile_bytes());
                decode(packed, packed.add(4096), out, blocks, packed.add(2048));
            }
        }
    });
    let tile = format.tile(chunk * BLOCK).bytes();
    println!(
        "{{\"what\": \"{}\", \"version\": \"{}\", \"level\": \"{}\", \"gb_per_second\": {:.1}}}",
        ukernels[0],
        version(&ukernels[0], level, wide),
        level.name(),
        (calls * tile) as f64 / time / 1e9
    );
    let time = median(|| {
        for _ in 0..calls {
            // SAFETY: as above.
            unsafe { gemm(decoded, panel, sums.cast(), blocks, 128, 64) };
        }
    });
    println!(
        "{{\"what\": \"{}\", \"version\": \"{}\", \"level\": \"{}\", \"tera_ops_per_second\": {:.3}}}",
        ukernels[1],
        version(&ukernels[1], level, wide),
        level.name(),
        (calls * 2 * 16 * chunk * BLOCK * GROUP * 2) as f64 / time / 1e12
    );
}

/// Attention's micro-kernels for eight query heads of 64: scores and values of four blocks, a row of 1024
/// scores, four segments.
fn attention(level: Level, wide: bool) {
    KvFormat::ALL.into_iter().for_each(|elem| attention_in(elem, level, wide));
}

fn attention_in(elem: KvFormat, level: Level, wide: bool) {
    const BLOCKS: usize = 4;
    let (head_dim, group, segments) = (64, 8, 4);
    let queries = QueryHeads::of_token(group);
    let ukernels = [
        match elem.is_scaled() {
            true => MicroKernel::IntegerScore { elem, head_dim, group },
            false => MicroKernel::Score { elem, head_dim, queries, scale: 0.125f32.to_bits() },
        },
        match elem.is_scaled() {
            true => MicroKernel::IntegerValue { elem, head_dim, group, stride: group * head_dim * 4 },
            false => MicroKernel::Value { elem, head_dim, queries },
        },
        MicroKernel::Weights { group },
        MicroKernel::Softmax,
        MicroKernel::Combine { head_dim, group, sinks: true },
    ];
    let (map, offsets) = code(&ukernels, level, wide);
    let mut planes = vec![FILL; (BLOCKS + BLOCKS_AHEAD) * elem.plane_bytes(head_dim)];
    // Scales of 1: weights stay what they are.
    for plane in planes.chunks_mut(elem.plane_bytes(head_dim)) {
        let scales = plane[..elem.scales_bytes()].chunks_exact_mut(4);
        scales.for_each(|scale| scale.copy_from_slice(&1f32.to_le_bytes()));
    }
    let list: Vec<u64> = planes.chunks(elem.plane_bytes(head_dim)).map(|p| p.as_ptr() as u64).collect();
    let small = vec![0.01f32; segments * group * head_dim];
    let mut scores = vec![0.01f32; group * SCORE_STRIDE / 4];
    let mut out = vec![0f32; group * head_dim];
    let mut meanwhile = vec![0u8; ValueScratch::new(group).bytes];
    let segment: Vec<u64> = (0..ATTENTION_SEGMENT / 16 + BLOCKS_AHEAD).map(|_| list[0]).collect();
    let scales = segment.as_ptr() as u64;
    let (planes, small) = (list.as_ptr() as u64, small.as_ptr() as u64);
    let (scores, out) = (scores.as_mut_ptr() as u64, out.as_mut_ptr() as u64);
    let meanwhile = meanwhile.as_mut_ptr() as u64;
    let tokens = (BLOCKS * BLOCK_TOKENS) as u64;
    let products = BLOCKS * BLOCK_TOKENS * head_dim * group;
    let calls = [
        ([planes, small, scores, BLOCKS as u64, 0, 0], products, "multiply_adds"),
        match elem.is_scaled() {
            true => ([planes, scores, out, BLOCKS as u64, 1, meanwhile], products, "multiply_adds"),
            false => ([planes, scores, out, BLOCKS as u64, 0, tokens], products, "multiply_adds"),
        },
        (
            [scales, scores, ATTENTION_SEGMENT as u64 / 16, 0, ATTENTION_SEGMENT as u64, out],
            group * ATTENTION_SEGMENT,
            "weights",
        ),
        (
            [scores, ATTENTION_SEGMENT as u64 / 16, 0, ATTENTION_SEGMENT as u64, out, out + 4],
            ATTENTION_SEGMENT,
            "scores",
        ),
        ([small, small, small, small, out, segments as u64], group * head_dim, "results"),
    ];
    for ((ukernel, offset), ([a, b, c, d, e, f], amount, unit)) in ukernels.iter().zip(offsets).zip(calls) {
        // SAFETY: each symbol is a micro-kernel of up to six parameters.
        let function: Six = unsafe { std::mem::transmute(&raw const map[offset]) };
        let repetitions = 20_000_000 / amount;
        let time = median(|| {
            for _ in 0..repetitions {
                // SAFETY: the operands are as large as the micro-kernel's contract asks.
                unsafe { function(a, b, c, d, e, f) };
            }
        });
        println!(
            "{{\"what\": \"{ukernel}\", \"version\": \"{}\", \"level\": \"{}\", \"giga_{unit}_per_second\": {:.2}}}",
            version(ukernel, level, wide),
            level.name(),
            (repetitions * amount) as f64 / time / 1e9
        );
    }
}

/// `(clamp(y + w, -7, 7) + 1) * (min(x + z, 7) * sigmoid(1.702 * min(x + z, 7)))` of x, y, z, w.
fn clamped_glu() -> Expr {
    let binary = |op, a, b| Expr::Binary(op, Box::new(a), Box::new(b));
    let sum = |a, b| binary(Binary::Add, Expr::Var(a), Expr::Var(b));
    let up = binary(Binary::Max, sum(1, 3), Expr::Const(-7.0));
    let up = binary(Binary::Add, binary(Binary::Min, up, Expr::Const(7.0)), Expr::Const(1.0));
    let gate = binary(Binary::Min, sum(0, 2), Expr::Const(7.0));
    let scaled = binary(Binary::Mul, Expr::Const(1.702), gate.clone());
    let sigmoid = Expr::Unary(Unary::Sigmoid, Box::new(scaled));
    binary(Binary::Mul, up, binary(Binary::Mul, gate, sigmoid))
}

/// The work on rows between products: a GLU and a sum over a unit of 32 for 64 rows, weighted sums of as
/// many, and whole rows quantised and normed.
fn row_wise(level: Level, wide: bool) {
    const UNIT: usize = 32;
    const ROWS: usize = 64;
    let glu = clamped_glu();
    let pair = 2 * UNIT * 4;
    let ukernels = [
        MicroKernel::Map(Map::new(glu, UNIT, &[pair, pair, 0, 0], pair)),
        MicroKernel::Map(Map::add(UNIT, UNIT * 4, K * 4)),
        MicroKernel::AddWeighted { n: UNIT, bias: true },
        MicroKernel::Quantize,
        MicroKernel::RmsNorm { n: K, eps: 0 },
    ];
    let (map, offsets) = code(&ukernels, level, wide);
    let mut memory = vec![0.75f32; 2 * ROWS * K];
    let floats = memory.as_mut_ptr();
    let place = |row: usize| floats.wrapping_add(row * K) as u64;
    let targets: Vec<u64> = (0..ROWS).map(place).collect();
    let (low, high) = (place(0), place(ROWS));
    let rows = ROWS as u64;
    let calls: [(usize, [u64; 6]); 5] = [
        (ROWS, [high, high, high + 4 * UNIT as u64, low, low + 4 * UNIT as u64, rows]),
        (ROWS, [high, high, low, rows, 0, 0]),
        (ROWS, [high, low, low, targets.as_ptr() as u64, 0, rows]),
        (1, [low, high, high + K as u64, high + 2 * K as u64, (K / BLOCK) as u64, 0]),
        (1, [low, low, high, 0, 0, 0]),
    ];
    for ((ukernel, offset), (rows, args)) in ukernels.iter().zip(offsets).zip(calls) {
        type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64);
        // SAFETY: the symbol is that micro-kernel, whose arguments are integers and pointers.
        let function: Function = unsafe { std::mem::transmute(&raw const map[offset]) };
        let count = 20_000 / rows;
        let time = median(|| {
            for _ in 0..count {
                // SAFETY: every place has more room behind it than the micro-kernel's contract asks.
                unsafe { function(args[0], args[1], args[2], args[3], args[4], args[5]) };
            }
        });
        println!(
            "{{\"what\": \"{ukernel}\", \"version\": \"{}\", \"level\": \"{}\", \"ns_per_row\": {:.1}}}",
            version(ukernel, level, wide),
            level.name(),
            time / (count * rows) as f64 * 1e9
        );
    }
}
