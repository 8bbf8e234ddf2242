//! The interpreter of machine code against the CPU: the AVX-512 micro-kernels give the same memory on both.

use super::Code;
use super::fence::Flush;
use super::machine::{Machine, Memory, Region};
use super::operands::{Contents, Operand, call, operands};
use super::packed::{FIRST, columns};
use kernmill_kernels_gen::asm;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::gemm_bf16::Shape;
use kernmill_kernels_gen::ukernel::gemm_q8::{Decoded, Overlap};
use kernmill_kernels_gen::ukernel::gemm_tiles::{CHUNK_BLOCKS, Strip, TileElement};
use kernmill_kernels_gen::ukernel::param::Param;
use kernmill_kernels_gen::ukernel::{MicroKernel, QueryHeads, TileOrder};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::Level;

/// Copies of the operands' memory, at the same addresses.
pub fn memory(contract: &[Param], operands: &[Operand]) -> Memory {
    let mut memory = Memory::default();
    for (param, operand) in contract.iter().zip(operands) {
        let writable = matches!(param, Param::Write(_) | Param::Update(_));
        let own = operand.region.iter().map(|(memory, _)| (memory, writable));
        for (fenced, writable) in own.chain(operand.rows.iter().map(|row| (row, false))) {
            memory.add(Region { address: fenced.address(), bytes: fenced.bytes().to_vec(), writable });
        }
    }
    memory
}

/// Runs a micro-kernel both ways, on the CPU perhaps in another version, and compares everything that it may
/// have written.
fn replay([code, native]: [&Code; 2], ukernel: &MicroKernel, numbers: &[u64], contents: Contents) {
    let contract = ukernel.contract();
    let operands = operands(&contract, numbers, Flush::End, 0x33, contents);
    let mut machine = Machine::new(memory(&contract, &operands));
    let args: Vec<u64> = operands.iter().map(|operand| operand.value).collect();
    if let Err(fault) = machine.call(code.bytes(0), code.address(0) as u64, &args) {
        panic!("{ukernel} {numbers:?}: {fault}");
    }
    // SAFETY: operands are made from the micro-kernel's contract.
    unsafe { call(native.address(0), &operands) };
    for (param, operand) in contract.iter().zip(&operands) {
        let (Param::Write(_) | Param::Update(_), Some((fenced, _))) = (param, &operand.region) else {
            continue;
        };
        let Some(region) = machine.memory.region(fenced.address()) else { continue };
        let difference = region.bytes.iter().zip(fenced.bytes()).position(|(a, b)| a != b);
        if let Some(at) = difference {
            let at = at / 4 * 4;
            panic!(
                "{ukernel} {numbers:?} {contents:?}: at byte {at} the interpreter has {:x?}, the CPU {:x?}",
                &region.bytes[at..at + 4],
                &fenced.bytes()[at..at + 4]
            );
        }
    }
}

const LEVELS: [Level; 2] = [Level::V4, Level::V4Vnni];

/// A level's version of a micro-kernel.
fn code(ukernel: &MicroKernel, level: Level) -> Code {
    Code::new(
        generate_ukernels(std::slice::from_ref(ukernel), level, &|ukernel| asm::find(ukernel, level))
            .unwrap(),
    )
}

fn replay_all(ukernels: &[MicroKernel], numbers: &[&[u64]]) {
    for level in LEVELS.into_iter().filter(|level| level.missing().is_empty()) {
        for ukernel in ukernels.iter().filter(|ukernel| asm::find(ukernel, level).is_some()) {
            let code = code(ukernel, level);
            for numbers in numbers {
                for contents in [Contents::Random, Contents::Tame, Contents::Ones] {
                    replay([&code, &code], ukernel, numbers, contents);
                }
            }
        }
    }
}

/// Replays as [`replay_all`] does; and on a CPU that lacks a level against its own version of the
/// micro-kernel, so that no micro-kernel of these is tested on some hosts only. They are those whose operands
/// may be anything: others read sums of activations that random memory does not have. NaNs are left out, of
/// which versions keep different ones.
fn replay_on_any_host(ukernels: &[MicroKernel], numbers: &[&[u64]]) {
    replay_all(ukernels, numbers);
    let widest = Level::supported().into_iter().rfind(|level| !level.has_tiles()).expect("a level");
    for level in LEVELS.into_iter().filter(|level| !level.missing().is_empty()) {
        for ukernel in ukernels.iter().filter(|ukernel| asm::find(ukernel, level).is_some()) {
            let codes = [code(ukernel, level), code(ukernel, widest)];
            numbers.iter().for_each(|numbers| replay(codes.each_ref(), ukernel, numbers, Contents::Tame));
        }
    }
}

#[test]
fn dots_give_the_cpus_bits() {
    let all = |format: WeightFormat| match FIRST.contains(&format) {
        true => vec![32, 96, 2880],
        false => vec![columns(format)[0]],
    };
    let shapes =
        || WeightFormat::blocked().flat_map(|format| all(format).into_iter().map(move |k| (format, k)));
    let mut ukernels = Vec::new();
    for (format, k) in shapes() {
        ukernels.extend([1, 2, 3, 8].map(|tokens| MicroKernel::DotQ8 { format, k, tokens }));
    }
    replay_all(&ukernels, &[&[64], &[200]]);
    ukernels.clear();
    for format in [WeightFormat::Bf16, WeightFormat::F32] {
        for k in [1, 2, 3, 4, 50, 2880] {
            ukernels.extend([1, 2, 4].map(|tokens| MicroKernel::DotF32 { format, k, tokens }));
        }
    }
    for (format, k) in shapes() {
        ukernels.extend([1, 2, 4].map(|tokens| MicroKernel::DotF32 { format, k, tokens }));
    }
    replay_on_any_host(&ukernels, &[&[64], &[200]]);
    ukernels.clear();
    for (format, k) in shapes() {
        let orders = [
            (1, TileOrder::Straight),
            (2, TileOrder::Pairs),
            (1, TileOrder::Pairs),
            (2, TileOrder::Straight),
        ];
        let count = if FIRST.contains(&format) { 4 } else { 2 };
        let of = |(tokens, order)| MicroKernel::DotQ8x4 { format, k, tokens, order };
        ukernels.extend(orders.into_iter().take(count).map(of));
    }
    replay_all(&ukernels, &[&[256], &[400]]);
}

#[test]
fn decoding_and_gemms_give_the_cpus_bits() {
    for is_super in [false, true] {
        let formats = WeightFormat::blocked().filter(|format| format.parts().is_super() == is_super);
        let decode =
            formats.flat_map(|format| [MicroKernel::Decode { format }, MicroKernel::DecodeWords { format }]);
        // Whole units, where there are any.
        let blocks: &[&[u64]] = if is_super { &[&[0], &[8]] } else { &[&[0], &[1], &[7]] };
        replay_all(&decode.collect::<Vec<_>>(), blocks);
    }
    replay_all(&[MicroKernel::DecodeBf16], &[&[0], &[1], &[7]]);
    for weights in Decoded::all() {
        let is_first = weights.parts == 1 && !weights.minima;
        let tokens = if is_first { &[1, 2, 3, 4, 5, 6][..] } else { &[1, 4, 6] };
        let each =
            |tiles| tokens.iter().map(move |tokens| MicroKernel::GemmQ8 { weights, tiles, tokens: *tokens });
        let gemms: Vec<MicroKernel> = [1, 2].into_iter().flat_map(each).collect();
        let numbers: &[&[u64]] = match is_first {
            true => &[&[0, 128, 64], &[1, 64, 384], &[15, 200, 4000]],
            false => &[&[0, 128, 64], &[3, 200, 4000]],
        };
        replay_all(&gemms, numbers);
    }
    let overlaps = (1..=6).map(|tokens| MicroKernel::GemmDecode(Overlap { tokens, stride: 200, gap: 4000 }));
    replay_all(&overlaps.collect::<Vec<_>>(), &[&[]]);
}

/// Strips without rows, which use no tiles.
#[test]
fn decoding_for_tiles_gives_the_cpus_bits() {
    if !Level::V4.missing().is_empty() {
        return;
    }
    for format in WeightFormat::blocked().filter(|format| TileElement::serves(*format)) {
        for tiles in [1, 2] {
            let ukernel = MicroKernel::GemmStrip(Strip { format, tiles, k: 192, stride: 128, gap: 64 });
            let code = code(&ukernel, Level::Amx);
            // Blocks to decode, between the numbers of a strip.
            for count in [0, 1, CHUNK_BLOCKS as u64] {
                for contents in [Contents::Random, Contents::Tame, Contents::Ones] {
                    replay([&code, &code], &ukernel, &[0, 0, count, 8192, 4096], contents);
                }
            }
        }
    }
}

#[test]
fn bf16_gemms_give_the_cpus_bits() {
    for (groups, tokens) in [(1, [1, 9]), (2, [17, 32])] {
        for tiles in [1, 2] {
            let ukernel = MicroKernel::GemmBf16(Shape { tiles, groups, stride: 256, gap: 128 });
            replay_on_any_host(&[ukernel], &[&[0, tokens[0]], &[1, tokens[0]], &[3, tokens[1]]]);
        }
    }
}

#[test]
fn attention_gives_the_cpus_bits() {
    for elem in KvFormat::ALL {
        let multiple = elem.descriptor().head_multiple;
        let shapes = [(16usize, 1), (64, 8), (64, 3), (80, 5), (96, 11)];
        for (head_dim, group) in shapes.into_iter().filter(|(d, _)| d.is_multiple_of(multiple)) {
            let tokens = if group < 4 { 4 } else { 1 };
            let queries = QueryHeads { group, tokens, stride: group * head_dim * 4 + 64 };
            let score = MicroKernel::Score { elem, head_dim, queries, scale: 0.125f32.to_bits() };
            // Some versions start from the sums of queries that are in memory, and others do without.
            match elem.is_scaled() {
                true => replay_all(&[MicroKernel::IntegerScore { elem, head_dim, group }], &[&[1], &[4]]),
                false => replay_on_any_host(&[score], &[&[1], &[4]]),
            }
            let ranges: [&[u64]; 4] = [&[1, 0, 16], &[1, 3, 7], &[1, 5, 5], &[3, 15, 33]];
            match elem.is_scaled() {
                true => {
                    // Versions differ in what they have in memory meanwhile.
                    let stride = group * head_dim * 4 + 64;
                    let value = MicroKernel::IntegerValue { elem, head_dim, group, stride };
                    replay_all(&[value], &[&[1, 1], &[3, 2]]);
                    let numbers: [&[u64]; 3] = [&[1, 3, 7], &[5, 17, 64], &[64, 0, 1024]];
                    replay_on_any_host(&[MicroKernel::Weights { group }], &numbers);
                }
                false => replay_on_any_host(&[MicroKernel::Value { elem, head_dim, queries }], &ranges),
            }
            replay_on_any_host(&[MicroKernel::Combine { head_dim, group, sinks: true }], &[&[1], &[3]]);
            replay_on_any_host(
                &[MicroKernel::Combine { head_dim, group, sinks: false }],
                &[&[0, 1], &[0, 3]],
            );
        }
    }
    replay_on_any_host(&[MicroKernel::Softmax], &[&[1, 0, 16], &[1, 3, 7], &[2, 15, 17], &[5, 2, 66]]);
}

#[test]
fn the_interpreter_faults_where_the_cpu_would() {
    let run = |code: &[u8], memory: Memory| Machine::new(memory).call(code, 0x40_0000, &[0x1000, 0x2000]);
    let memory = |writable| {
        let mut memory = Memory::default();
        memory.add(Region { address: 0x1000, bytes: vec![0; 64], writable });
        memory
    };
    let refused = |code: &[u8], part: &str| {
        let fault = run(code, memory(false)).unwrap_err();
        assert!(fault.contains(part), "{fault}");
    };
    refused(&[0x8b, 0x47, 0x3d, 0xc3], "no 4 bytes at 0x103d"); // mov eax, [rdi + 61]
    refused(&[0x8b, 0x06, 0xc3], "no 4 bytes at 0x2000"); // mov eax, [rsi]
    refused(&[0x89, 0x07, 0xc3], "read-only"); // mov [rdi], eax
    refused(&[0x31, 0xdb, 0xc3], "RBX came back changed"); // xor ebx, ebx
    refused(&[0x74, 0x00, 0xc3], "undefined flag"); // je +0
    refused(&[0xeb, 0xfe], "does not end"); // jmp itself
    refused(&[0x0f, 0x31, 0xc3], "not modelled"); // rdtsc
    // mov eax, [rdi + 60]; vzeroupper; ret
    assert_eq!(run(&[0x8b, 0x47, 0x3c, 0xc5, 0xf8, 0x77, 0xc3], memory(false)), Ok(()));
}
