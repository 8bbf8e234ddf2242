//! Whole programs for `amx` on a CPU without tiles: every call of a micro-kernel that uses tiles goes to the
//! interpreter of machine code, which runs the micro-kernel's own bytes on copies of its operands; everything
//! else, the 512-bit micro-kernels too, runs on the CPU. And programs in which 128-bit code stands in for
//! tiles, on every CPU.

use super::{Case, assert_bits, engine, logits, options};
use crate::hostile::targets::small_model::{Mlp, ModelShape};
use crate::kernels::machine::{Machine, Memory, Region};
use kernmill_compiler::interp::RawTensor;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::select::Pick;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_tiles::{Strip, TileElement, TileShapes};
use kernmill_kernels_gen::ukernel::param::Param;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A micro-kernel that the interpreter runs.
struct Interpreted {
    ukernel: MicroKernel,
    code: Vec<u8>,
}

thread_local! {
    /// Each worker's CPU: tiles stay configured from one call to the next.
    static CPU: RefCell<Machine> = RefCell::new(Machine::new(Memory::default()));
}

/// Calls of micro-kernels, and among them products.
static CALLS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Where micro-kernels lie in the interpreter's memory, outside of what the process has.
const CODE: u64 = 0x1000;

/// Arguments behind the sixth. Where a micro-kernel has fewer, the rest is what its caller has there.
#[repr(C)]
struct Stacked([u64; 6]);

/// The function in place of a micro-kernel, with its arguments as they were, but for what `divert` has put
/// before those on the stack: the micro-kernel, and where its caller goes on.
unsafe extern "C" fn interpret(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    ukernel: *const Interpreted,
    _caller: u64,
    Stacked(stacked): Stacked,
) {
    // SAFETY: `divert` gives a micro-kernel that lives as long as the process.
    let Interpreted { ukernel, code } = unsafe { &*ukernel };
    let args = [&[a, b, c, d, e, f], &stacked[..]].concat();
    let args = &args[..ukernel.params()];
    CALLS[0].fetch_add(1, Relaxed);
    CALLS[1].fetch_add(
        u64::from(matches!(ukernel, MicroKernel::GemmBf16(_) | MicroKernel::GemmStrip(_))),
        Relaxed,
    );
    CPU.with_borrow_mut(|cpu| {
        let mut pieces = Vec::new();
        for (index, param) in ukernel.contract().iter().enumerate() {
            let (region, writable) = match param {
                Param::Read(region) => (region, false),
                Param::Update(region) | Param::Write(region) => (region, true),
                _ => continue,
            };
            pieces.extend(
                region
                    .pieces(args)
                    .into_iter()
                    .map(|(offset, bytes)| (args[index].wrapping_add_signed(offset), bytes, writable)),
            );
        }
        // So no tile loads what was stored a moment ago: weights are decoded a chunk before.
        let apart = |a: &(u64, usize, bool), b: &(u64, usize, bool)| {
            a.0 + a.1 as u64 <= b.0 || b.0 + b.1 as u64 <= a.0
        };
        let (written, read): (Vec<_>, Vec<_>) = pieces.iter().partition(|(_, _, writable)| *writable);
        assert!(written.iter().all(|piece| read.iter().all(|other| apart(piece, other))), "{ukernel}");
        cpu.memory = Memory::default();
        for (address, bytes, writable) in &pieces {
            // SAFETY: what the contract says that the micro-kernel may read is there.
            let bytes = unsafe { std::slice::from_raw_parts(*address as *const u8, *bytes) }.to_vec();
            cpu.memory.add(Region { address: *address, bytes, writable: *writable });
        }
        assert_eq!(cpu.has_tiles(), ukernel.tiles().before, "{ukernel}");
        cpu.call(code, CODE, args).unwrap_or_else(|fault| panic!("{ukernel}: {fault}"));
        assert_eq!(cpu.has_tiles(), ukernel.tiles().after, "{ukernel}");
        for (address, _, _) in pieces.iter().filter(|(_, _, writable)| *writable) {
            let bytes = &cpu.memory.region(*address).expect("it was added").bytes;
            // SAFETY: as above; the contract says that the micro-kernel may write here.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *address as *mut u8, bytes.len()) };
        }
    });
}

/// Makes every micro-kernel of the program that uses tiles a call of [`interpret`], so that a CPU with
/// AVX-512 can run the program.
fn divert(program: &mut Program, ukernels: &[MicroKernel]) {
    let code = &mut program.code;
    code.bytes.resize(code.bytes.len().next_multiple_of(64), 0xcc);
    for ukernel in ukernels {
        let symbol = code.symbols.iter_mut().find(|symbol| symbol.name == ukernel.to_string());
        let symbol = symbol.unwrap_or_else(|| panic!("{ukernel} is not in the program"));
        let place = symbol.offset as usize;
        let bytes = code.bytes[place..place + symbol.size as usize].to_vec();
        let interpreted = Box::leak(Box::new(Interpreted { ukernel: ukernel.clone(), code: bytes }));
        // mov rax, micro-kernel; push rax; mov rax, interpret; call rax; pop rcx; ret
        let mut calling = vec![0x48, 0xb8];
        calling.extend((&raw const *interpreted as u64).to_le_bytes());
        calling.extend([0x50, 0x48, 0xb8]);
        calling.extend((interpret as *const () as u64).to_le_bytes());
        calling.extend([0xff, 0xd0, 0x59, 0xc3]);
        // Functions start at separate lines.
        assert!(calling.len() <= 64);
        code.bytes[place..place + calling.len()].copy_from_slice(&calling);
        symbol.size = symbol.size.max(calling.len() as u64);
    }
    program.level = Level::V4Vnni;
}

/// The strip of that name.
fn strip(name: &str) -> Option<MicroKernel> {
    let mut parts = name.strip_prefix("gemm_strip_")?.rsplitn(5, '_');
    let mut number = |start: &str| parts.next()?.strip_prefix(start)?.parse().ok();
    let (gap, stride, k, tiles) = (number("g")?, number("s")?, number("k")?, number("")?);
    let format = parts.next()?;
    let format = WeightFormat::ALL.into_iter().find(|known| known.name() == format)?;
    Some(MicroKernel::GemmStrip(Strip { format, tiles, k, stride, gap }))
}

/// The micro-kernels of a compilation that use tiles.
fn tile_ukernels(program: &Program, stride_and_gap: &[(usize, usize, usize)]) -> Vec<MicroKernel> {
    let has =
        |ukernel: &MicroKernel| program.code.symbols.iter().any(|symbol| symbol.name == ukernel.to_string());
    let gemms = stride_and_gap.iter().flat_map(|&(tiles, stride, gap)| {
        use kernmill_kernels_gen::ukernel::gemm_bf16::Shape;
        [1, 2].map(|groups| MicroKernel::GemmBf16(Shape { tiles, groups, stride, gap }))
    });
    let strips = program.code.symbols.iter().filter_map(|symbol| strip(&symbol.name));
    let shapes = TileElement::ALL.map(TileShapes::Strip).into_iter().chain([TileShapes::Whole]);
    let others = shapes.map(MicroKernel::TilesOn).chain([MicroKernel::TilesOff]);
    let ukernels: Vec<MicroKernel> = gemms.chain(strips).chain(others).filter(has).collect();
    let all = program
        .code
        .symbols
        .iter()
        .filter(|s| ["gemm_bf16", "gemm_strip", "tiles"].iter().any(|stem| s.name.starts_with(stem)));
    assert_eq!(ukernels.len(), all.count(), "every micro-kernel with tiles is known");
    ukernels
}

/// Tiles, stride and gap of the gemms of gate and up in units of 32, of single and of paired tiles of down,
/// and of unfused matrices.
const GEMMS: [(usize, usize, usize); 3] = [(2, 256, 128), (1, 64, 0), (2, 128, 64)];

/// Runs a prompt in these pieces for `amx`, and compares with the graph interpreter: with bf16 activations,
/// and with those of preset `faithful`.
fn check(name: &str, shape: &ModelShape, length: usize, threads: usize, pieces: &[&[usize]], fuse: bool) {
    if !Level::V4Vnni.missing().is_empty() {
        // Straight to the stream, past what the test harness keeps of a test that passes.
        let text = format!("NOT RUN: {name} on tiles: what is not on tiles needs a CPU with AVX-512 VNNI\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
        return;
    }
    for preset in [Preset::Bf16, Preset::Faithful] {
        check_preset(name, &Case::new(shape, 3, length), preset, threads, pieces, fuse);
    }
}

fn check_preset(name: &str, case: &Case, preset: Preset, threads: usize, pieces: &[&[usize]], fuse: bool) {
    let expected = case.expected(preset);
    let kernels = Pick::Tiles;
    let mut compiled =
        case.compile(&CompilerOptions { fuse, kernels, chunk: 48, ..options(preset, Level::Amx) });
    let ukernels = tile_ukernels(&compiled.program, &GEMMS);
    // Experts in MXFP4 are on tiles of bf16 in both presets, other matrices on those of int8.
    let of_experts =
        if preset == Preset::Bf16 { TileShapes::Whole } else { TileShapes::Strip(TileElement::Bf16) };
    for shapes in [of_experts, TileShapes::Strip(TileElement::I8)] {
        assert!(ukernels.contains(&MicroKernel::TilesOn(shapes)), "{name}: no {shapes:?}");
    }
    divert(&mut compiled.program, &ukernels);
    let before = CALLS[1].load(Relaxed);
    let image = case.image(&compiled);
    let mut engine = engine(&image, threads, 1, None);
    for pieces in pieces {
        let actual = logits(&mut engine, &case.tokens, pieces);
        assert_bits(
            &actual,
            &expected,
            case.graph.vocab,
            &format!("{name}, {}, {pieces:?}, fuse {fuse}", preset.name()),
        );
    }
    assert!(
        CALLS[1].load(Relaxed) > before && CALLS[0].load(Relaxed) > 0,
        "{name}: products were interpreted"
    );
}

fn experts(experts: usize, top_k: u32, inner: usize) -> Mlp {
    Mlp::Experts { experts, top_k, inner, format: WeightFormat::Mxfp4 }
}

#[test]
fn programs_with_tiles_give_the_interpreters_bits() {
    let oss = ModelShape::mini_gpt_oss();
    check("mini gpt-oss", &oss, 45, 2, &[&[45], &[1], &[7], &[16, 17]], true);
    check("mini gpt-oss", &oss, 45, 1, &[&[45], &[1], &[13, 1, 20]], false);
    // Most experts get no token, or one.
    let many = ModelShape { hidden: 160, mlp: experts(16, 2, 96), ..oss };
    check("many experts", &many, 24, 2, &[&[24], &[1], &[3, 9]], true);
}

/// One expert gets all tokens: 1, 15, 16, 17, 31, 32, 33, 48.
#[test]
fn whole_and_broken_groups_of_rows_give_the_interpreters_bits() {
    let shape = ModelShape { layers: 1, mlp: experts(1, 1, 64), ..ModelShape::mini_gpt_oss() };
    let pieces: [&[usize]; 4] = [&[1, 15, 16, 17], &[31, 18], &[32, 17], &[33, 16]];
    check("one expert", &shape, 49, 1, &pieces, true);
    check("one expert", &shape, 48, 2, &[&[48]], true);
}

/// The widths of GPT-OSS-20B: six chunks of blocks.
#[test]
fn full_widths_give_the_interpreters_bits() {
    let oss = ModelShape::mini_gpt_oss();
    let wide = ModelShape { layers: 1, hidden: 2880, mlp: experts(2, 1, 32), ..oss.clone() };
    check("hidden 2880", &wide, 5, 2, &[&[5], &[1]], true);
    let deep = ModelShape { layers: 1, mlp: experts(2, 1, 2880), ..oss };
    check("inner 2880", &deep, 19, 2, &[&[19], &[1, 18]], true);
}

/// Programs on panels for tiles, with 128-bit code in their place, on every level of the host, fused or not.
/// `wanted` are beginnings of micro-kernels' names that have to be there.
fn check_on_every_host(what: &str, case: &Case, preset: Preset, pieces: &[&[usize]], wanted: &[&str]) {
    let expected = case.expected(preset);
    for level in Level::supported().into_iter().filter(|level| !level.has_tiles()) {
        for fuse in [true, false] {
            let kernels = Pick::Tiles;
            let options = CompilerOptions { fuse, kernels, chunk: 48, ..options(preset, level) };
            let compiled = case.compile(&options);
            let what = format!("{what}, {}, {}, fuse {fuse}", preset.name(), level.name());
            for start in wanted {
                let symbols = &compiled.program.code.symbols;
                assert!(symbols.iter().any(|symbol| symbol.name.starts_with(start)), "{what}: no {start}");
            }
            let image = case.image(&compiled);
            let mut engine = engine(&image, 2, 1, None);
            for pieces in pieces {
                let actual = logits(&mut engine, &case.tokens, pieces);
                assert_bits(&actual, &expected, case.graph.vocab, &format!("{what}, {pieces:?}"));
            }
        }
    }
}

/// Preset `faithful`, experts on tiles of bf16 and other matrices on those of int8. Some scales are so small
/// that tiles of bf16 would take products for zeros.
#[test]
fn panels_for_tiles_give_the_interpreters_bits_on_every_host() {
    let oss = ModelShape::mini_gpt_oss();
    let shapes = [
        (oss.clone(), 45),
        (ModelShape { hidden: 160, mlp: experts(16, 2, 96), ..oss.clone() }, 24),
        // Several chunks of blocks, the last whole or not, and one expert for all tokens.
        (ModelShape { layers: 1, hidden: 960, mlp: experts(3, 1, 1056), ..oss.clone() }, 40),
        (ModelShape { layers: 1, mlp: experts(1, 1, 64), ..oss }, 49),
    ];
    for (at, (shape, length)) in shapes.into_iter().enumerate() {
        let mut case = Case::new(&shape, 5, length);
        for raw in &mut case.weights.raw {
            if let RawTensor::Mxfp4 { scales, .. } = raw {
                scales.iter_mut().step_by(37).zip((0..4).cycle()).for_each(|(scale, byte)| *scale = byte);
            }
        }
        let pieces: [&[usize]; 3] = [&[length], &[1, 15, 16, 17], &[7, 33, 1]];
        let wanted = ["gemm_strip_mxfp4", "gemm_strip_int8"];
        check_on_every_host(&format!("shape {at}"), &case, Preset::Faithful, &pieces, &wanted);
    }
}

/// Dense MLPs and experts in int8, int4 beside int8 in one kernel, heads of an odd number of tiles, and every
/// number of rows from 1 to 17.
#[test]
fn panels_of_bytes_for_tiles_give_the_interpreters_bits_on_every_host() {
    let llama = ModelShape { layers: 1, ..ModelShape::mini_llama() };
    let heads = |head_dim| ModelShape { head_dim, v_head_dim: head_dim, ..llama.clone() };
    let plain = Mlp::Experts { experts: 3, top_k: 2, inner: 544, format: WeightFormat::Bf16 };
    let shapes = [
        llama.clone(),
        heads(48),
        heads(80),
        // Two chunks of blocks and a block, and a vocabulary of broken tiles.
        ModelShape { hidden: 992, vocab: 113, mlp: Mlp::Dense { inner: 512 }, ..llama.clone() },
        ModelShape { hidden: 544, mlp: plain, ..llama },
    ];
    let numbers: Vec<usize> = (1..=17).collect();
    for (at, shape) in shapes.into_iter().enumerate() {
        let every = at == 0;
        let case = Case::new(&shape, 11, if every { numbers.iter().sum() } else { 50 });
        let pieces: [&[usize]; 2] = [if every { &numbers } else { &[48] }, &[31, 2, 16]];
        for preset in [Preset::Faithful, Preset::Fast] {
            let format = if preset == Preset::Fast { "gemm_strip_int4" } else { "gemm_strip_int8" };
            let wanted = ["gemm_strip_int8", format];
            check_on_every_host(&format!("bytes, shape {at}"), &case, preset, &pieces, &wanted);
        }
    }
}
