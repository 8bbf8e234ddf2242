//! Probes of the machine's limits: a loop of loads as wide as the level has them, and a loop of int8 dot
//! products on registers, in the instructions that the level's micro-kernels are made of.
//!
//! Without VNNI the fewest instructions are those for nibbles, whose products of a block add up in 16 bits
//! (`asm/gemm_q8_avx2_plain.rs`); bytes need twice the multiplications, and their micro-kernels stay as far
//! below the peak.
//!
//! The loads go through four parts of the memory at once and prefetch, as the micro-kernels that stream
//! weights do (`wide/dot_q8x4_avx512.rs`): on many CPUs a core has more requests to memory under way than
//! when it reads one place after the other. On some it has not. So there are [others](ReadWay) to choose
//! from, and those who measure take the fastest.

use crate::asm::{YMM, ZMM};
use crate::generate::GenerateError;
use iced_x86::IcedError;
use iced_x86::code_asm::asm_traits::{CodeAsmVpaddd, CodeAsmVpaddw, CodeAsmVpmaddubsw, CodeAsmVpmaddwd};
use iced_x86::code_asm::{
    AsmMemoryOperand, CodeAssembler, byte_ptr, eax, ptr, r8, r9, r10, r11, rdi, rsi, xmm0, ymmword_ptr,
    zmmword_ptr,
};
use kernmill_plan::format::LINE;
use kernmill_plan::probe::{MULTIPLY, Probe, READ, ReadWay};
use kernmill_plan::program::{CodeBlob, Symbol};
use kernmill_plan::target::{Features, Level};

/// Places that are read in turn.
const STREAMS: usize = 4;
/// Numbers of places that are tried.
const PLACES: [usize; 4] = [1, 2, STREAMS, 8];
/// Lines that one step reads, at least one of each place. With four places, one line of each gives some
/// percent more than two on a Zen 3 (`benches/runs/2026-11-22-zen3.md`), more than that far less.
const STEP_LINES: usize = 4;
/// Bytes of each place that prefetching is ahead.
const AHEAD: usize = 1024;
/// Distances of prefetching that are tried: from none to further than any micro-kernel's.
const DISTANCES: [usize; 7] = [0, 512, 1024, 2048, 4096, 6144, 8192];
/// Multiplications of an iteration: so many that the loop itself costs nothing.
const PRODUCTS: usize = 96;
/// Independent sums with VNNI: more than the latency of a dot product times the instructions issued per
/// cycle.
const SUMS: usize = 12;
/// Independent sums without VNNI: each has its own sum in 16 bits and a product, in registers that 256 bits
/// have.
const WORD_SUMS: usize = 4;
/// Products that one sum in 16 bits takes without VNNI: a block's.
const BLOCK_PRODUCTS: usize = 8;
/// Bytes of the operands: neither zero nor too large for the sums of any instruction below.
const OPERAND: u32 = 0x0305_0709;

/// The probes of a level.
///
/// # Errors
/// Never for the levels there are, which a test assembles; an error is a defect.
pub fn probe(level: Level) -> Result<Probe, GenerateError> {
    assemble(level).map_err(|error| GenerateError::Codegen {
        function: format!("probe for {}", level.name()),
        message: error.to_string(),
    })
}

/// The features that `vpdpbusd` of 512 bits needs.
const VNNI_512: Features = Features::AVX512.and(Features::AVX512_VNNI);

fn assemble(level: Level) -> Result<Probe, IcedError> {
    let features = level.features();
    let (load, multiply, lanes): (LineLoad, _, _) = if features.has(VNNI_512) {
        (load_512, dpbusd_512()?, 64)
    } else if features.has(Features::AVX512) {
        (load_512, multiplying(true, |a| maddubs(a, &ZMM))?, 64)
    } else if features.has(Features::AVX_VNNI) {
        (load_256, dpbusd_256()?, 32)
    } else {
        (load_256, multiplying(false, |a| maddubs(a, &YMM))?, 32)
    };
    let mut code = CodeBlob::default();
    let mut add = |name: &str, bytes: Vec<u8>| {
        // int3 between functions.
        code.bytes.resize(code.bytes.len().next_multiple_of(LINE), 0xcc);
        let (offset, size) = (code.bytes.len() as u64, bytes.len() as u64);
        code.symbols.push(Symbol { name: name.to_owned(), offset, size, contract: None });
        code.bytes.extend(bytes);
    };
    add(MULTIPLY, multiply);
    add(READ, reading(STREAMS, AHEAD, load)?);
    let mut reads = Vec::new();
    let ways = PLACES.into_iter().flat_map(|places| DISTANCES.map(|ahead| (places, ahead)));
    for (places, ahead) in ways {
        let symbol = format!("read_{places}_{ahead}");
        add(&symbol, reading(places, ahead, load)?);
        reads.push(ReadWay { symbol, step: step_lines(places) * LINE, places, ahead });
    }
    let (read_step, iteration_ops) = (step_lines(STREAMS) * LINE, PRODUCTS as u64 * lanes * 2);
    Ok(Probe { level, code, read_step, reads, iteration_ops })
}

/// Lines that one step reads of so many places together.
fn step_lines(places: usize) -> usize {
    STEP_LINES.max(places)
}

/// Loads a line to registers whose number follows from the line's.
type LineLoad = fn(&mut CodeAssembler, usize, AsmMemoryOperand) -> Result<(), IcedError>;

/// `read`: rdi is the address, rsi counts the steps.
fn reading(places: usize, ahead: usize, load: LineLoad) -> Result<Vec<u8>, IcedError> {
    let lines = step_lines(places) / places;
    let mut a = CodeAssembler::new(64)?;
    let (mut again, mut end) = (a.create_label(), a.create_label());
    a.test(rsi, rsi)?;
    a.jz(end)?;
    // Bytes of one part, and of three, five and seven.
    a.imul_3(r8, rsi, (lines * LINE) as i32)?;
    a.lea(r9, ptr(r8 + r8 * 2))?;
    a.lea(r10, ptr(r8 + r8 * 4))?;
    a.lea(r11, ptr(r9 + r8 * 4))?;
    let first = [rdi + 0, rdi + r8, rdi + r8 * 2, rdi + r9];
    let parts = first.into_iter().chain([rdi + r8 * 4, rdi + r10, rdi + r9 * 2, rdi + r11]);
    a.set_label(&mut again)?;
    for (n, place) in parts.take(places).enumerate() {
        for line in 0..lines {
            if ahead > 0 {
                a.prefetcht1(byte_ptr(place + (ahead + line * LINE)))?;
            }
            load(&mut a, n * lines + line, place + line * LINE)?;
        }
    }
    a.add(rdi, (lines * LINE) as i32)?;
    a.dec(rsi)?;
    a.jnz(again)?;
    a.set_label(&mut end)?;
    a.vzeroupper()?;
    a.ret()?;
    a.assemble(0)
}

fn load_256(a: &mut CodeAssembler, line: usize, place: AsmMemoryOperand) -> Result<(), IcedError> {
    a.vmovdqu(YMM[2 * line], ymmword_ptr(place))?;
    a.vmovdqu(YMM[2 * line + 1], ymmword_ptr(place + LINE / 2))
}

fn load_512(a: &mut CodeAssembler, line: usize, place: AsmMemoryOperand) -> Result<(), IcedError> {
    a.vmovdqu64(ZMM[line], zmmword_ptr(place))
}

/// `multiply`: rdi counts the iterations; register 0 holds the operand, register 1 sixteen-bit ones.
fn multiplying(
    wide: bool,
    products: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let (mut again, mut end) = (a.create_label(), a.create_label());
    a.test(rdi, rdi)?;
    a.jz(end)?;
    for (register, value) in [(1, 0x0001_0001), (0, OPERAND)] {
        a.mov(eax, value)?;
        a.vmovd(xmm0, eax)?;
        if wide {
            a.vpbroadcastd(ZMM[register], xmm0)?;
        } else {
            a.vpbroadcastd(YMM[register], xmm0)?;
        }
    }
    a.set_label(&mut again)?;
    products(&mut a)?;
    a.dec(rdi)?;
    a.jnz(again)?;
    a.set_label(&mut end)?;
    a.vzeroupper()?;
    a.ret()?;
    a.assemble(0)
}

fn dpbusd_512() -> Result<Vec<u8>, IcedError> {
    multiplying(true, |a| (0..PRODUCTS).try_for_each(|n| a.vpdpbusd(ZMM[2 + n % SUMS], ZMM[0], ZMM[0])))
}

fn dpbusd_256() -> Result<Vec<u8>, IcedError> {
    multiplying(false, |a| {
        (0..PRODUCTS).try_for_each(|n| a.vex().vpdpbusd(YMM[2 + n % SUMS], YMM[0], YMM[0]))
    })
}

/// Whole blocks without VNNI, [`WORD_SUMS`] at a time in turns, in registers of either width.
fn maddubs<R: Copy>(a: &mut CodeAssembler, registers: &[R]) -> Result<(), IcedError>
where
    CodeAssembler: CodeAsmVpmaddubsw<R, R, R>
        + CodeAsmVpmaddwd<R, R, R>
        + CodeAsmVpaddw<R, R, R>
        + CodeAsmVpaddd<R, R, R>,
{
    let (operand, ones) = (registers[0], registers[1]);
    let block = |n: usize| [0, 1, 2].map(|kind| registers[2 + kind * WORD_SUMS + n]);
    let blocks: [_; WORD_SUMS] = std::array::from_fn(block);
    for _ in 0..PRODUCTS / BLOCK_PRODUCTS / WORD_SUMS {
        for [_, words, _] in blocks {
            a.vpmaddubsw(words, operand, operand)?;
        }
        for _ in 1..BLOCK_PRODUCTS {
            for [_, _, product] in blocks {
                a.vpmaddubsw(product, operand, operand)?;
            }
            for [_, words, product] in blocks {
                a.vpaddw(words, words, product)?;
            }
        }
        for [_, words, _] in blocks {
            a.vpmaddwd(words, words, ones)?;
        }
        for [sum, words, _] in blocks {
            a.vpaddd(sum, sum, words)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disasm;

    #[test]
    fn every_level_has_its_own_instructions() {
        for level in Level::ALL {
            let probe = probe(level).unwrap();
            let text = disasm::blob(&probe.code);
            let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
            let vnni = matches!(level, Level::V3Vnni | Level::CascadeLake | Level::V4Vnni | Level::Amx);
            let wide = !matches!(level, Level::V3 | Level::V3Vnni);
            assert_eq!(count("vpdpbusd"), if vnni { PRODUCTS } else { 0 }, "{text}");
            assert_eq!(count("vpmaddubsw"), if vnni { 0 } else { PRODUCTS }, "{text}");
            let blocks = if vnni { 0 } else { PRODUCTS / BLOCK_PRODUCTS };
            assert_eq!((count("vpmaddwd"), count("vpaddd")), (blocks, blocks), "{text}");
            assert_eq!(count("vpaddw"), blocks * (BLOCK_PRODUCTS - 1), "{text}");
            assert_eq!(count("zmm") > 0, wide, "{text}");
            // Lines that steps of the chosen ways read, once for each distance, and those of `read`.
            let (ways, own): (usize, _) = (PLACES.into_iter().map(step_lines).sum(), step_lines(STREAMS));
            assert_eq!(probe.reads.len(), PLACES.len() * DISTANCES.len());
            // One of the distances is no prefetch.
            let fetched = ways * (DISTANCES.len() - 1) + own;
            assert_eq!(count("prefetcht1"), fetched, "{text}");
            let loads = (ways * DISTANCES.len() + own) * if wide { 1 } else { 2 };
            assert_eq!(count("[rdi"), fetched + loads, "{text}");
        }
    }
}
