//! `Decode`, `GemmQ8` and `GemmDecode` in 512 bits. `Decode` needs AVX-512 F and BW, the others VNNI too.
//!
//! Tile of the latter: one or two times 16 rows (the lanes) x up to 6 tokens, one int32 and one f32
//! accumulator each: 24 registers of accumulators, two lines of weights, two broadcast activations, three for
//! decoding meanwhile. An activation is broadcast to a register once for both tiles, so that loads stay well
//! below two a cycle; what bounds it is 8 `vpdpbusd` and 2 `fma` per block, row vector and token. Clobbers:
//! caller-saved registers and flags.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::decoder::{first_block, next_block};
use super::regs::{PARAMS, Regs, SCRATCH, ZMM};
use super::vector::{Address, Vector, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::gemm_q8::{CHUNK_BLOCKS, Decoded, DecodedNumber, DotStep, GROUP, MAGIC, Overlap};
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_bcst, dword_ptr, eax, qword_ptr, xmmword_ptr,
    zmmword_ptr,
};
use iced_x86::{IcedError, Register};
use kernmill_plan::format::mxfp4::E2M1_TWICE;
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Decode { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Decode { format } => decode(a, format),
        _ => Ok(()),
    },
};

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_q8_avx512vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| ukernel.is_gemm(DotStep::K4) || is_overlap(&ukernel),
    assemble: |a, ukernel| assemble(a, ukernel, AccumulatorScaling::Multiply),
};

/// Multiplying, where weight scales are powers of two: an accumulator starts at `MAGIC * w` instead of
/// `MAGIC`, and one addition makes it `isum * w`, exactly as the multiplication would. CPUs whose adders are
/// not their multipliers (Zen) have a tenth less to do for it; where one unit does both (Intel's), the second
/// addition costs more than the multiplication saved.
pub const GEMM_ADDS: AsmKernel = AsmKernel {
    name: "gemm_q8_avx512vnni_adds",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| {
        let powers = Decoded::plain(DecodedNumber::U8Max24Pow2);
        is_overlap(&ukernel)
            || ukernel.is_gemm(DotStep::K4)
                && matches!(ukernel, MicroKernel::GemmQ8 { weights, .. } if weights == powers)
    },
    assemble: |a, ukernel| assemble(a, ukernel, AccumulatorScaling::Add),
};

fn is_overlap(ukernel: &MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::GemmDecode(Overlap { tokens: 1..=6, .. }))
}

fn assemble(
    a: &mut CodeAssembler,
    ukernel: MicroKernel,
    scaling: AccumulatorScaling,
) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::GemmQ8 { weights, tiles, tokens } => gemm(a, weights, (tiles, tokens), scaling, None),
        MicroKernel::GemmDecode(overlap) => {
            let weights = Decoded::plain(DecodedNumber::U8Max24Pow2);
            gemm(a, weights, (2, overlap.tokens), scaling, Some(overlap))
        }
        _ => Ok(()),
    }
}

/// How an accumulator becomes `isum * w`.
#[derive(Clone, Copy, PartialEq)]
enum AccumulatorScaling {
    Multiply,
    Add,
}

/// Where the constants behind every micro-kernel here are.
const NEGATIVE_MAGIC: usize = 0;
const HALF: usize = 4;
const SMALLEST: usize = 8;
const MASK: usize = 12;
const EXPONENT: usize = 16;
const TABLE: usize = 32;

fn constants(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let exponent = 0x8000_0000u32.wrapping_sub(MAGIC.to_bits());
    a.dd(&[(-MAGIC).to_bits(), 0.5f32.to_bits(), 0x0040_0000, 0x0f0f_0f0f, exponent, 0, 0, 0])?;
    a.db(&E2M1_TWICE.map(|twice| (twice + 12) as u8))
}

fn decode(a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
    let (parts, decoded) = (format.parts(), DotStep::K4.decoded(format));
    let mut regs = Regs::with_params(4 + usize::from(parts.is_super()));
    let [scales, data, out] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let units = parts.is_super().then(|| [PARAMS[4], regs.general(), regs.general()]);
    let [w, negative, magic] = [(); 3].map(|()| regs.vector());
    let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, false);
    let bytes: Vec<Vector> = regs.several_numbered(Width::Full, 16);
    let mut pool = a.create_label();
    regs.save(a)?;
    a.mov(eax, (-MAGIC).to_bits())?;
    a.vpbroadcastd(magic, eax)?;
    a.lea(SCRATCH, qword_ptr(pool))?;
    decoder.prepare(a)?;
    if let Some([_, block, _]) = units {
        a.xor(block, block)?;
    }
    let labels = first_block(a)?;
    let address = |base: AsmRegister64| Address { base, index: None, offset: 0 };
    let mut places = ScaleAddress { scales: address(scales), units: address(scales) };
    if let Some([units, block, offset]) = units {
        unit_offset(a, format, offset, block)?;
        a.add(block, 4)?;
        places.units = Address { base: units, index: Some(offset), offset: 0 };
    }
    for part in 0..decoded.parts {
        decoder.scales(a, number(w), places, part, 0)?;
        a.vmulps(negative, w, magic)?;
        a.vmovups(zmmword_ptr(out + decoded.scales(part)), w)?;
        a.vmovups(zmmword_ptr(out + decoded.negatives(part)), negative)?;
        if decoded.minima {
            decoder.minima(a, number(w), places, part, 0)?;
            a.vmovups(zmmword_ptr(out + decoded.minima(part)), w)?;
        }
    }
    let chunks = decoder.chunks();
    for line in 0..parts.codes.low {
        let bytes = &bytes[line * chunks % bytes.len()..][..chunks];
        decoder.weights(a, bytes, address(data), line)?;
        for (i, bytes) in bytes.iter().enumerate() {
            let at = decoded.data() + (line * chunks + i) * LINE;
            a.vmovdqu64(zmmword_ptr(out + at), ZMM[*bytes])?;
        }
    }
    next_block(a, format, decoded.block_bytes(), labels)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut pool)?;
    decoder.emit_constants(a)
}

/// The number of a register.
fn number(register: AsmRegisterZmm) -> Vector {
    Register::from(register).number()
}

/// The extra parameters and registers of a micro-kernel that also decodes.
struct Meanwhile {
    scales: AsmRegister64,
    data: AsmRegister64,
    out: AsmRegister64,
    /// The 16 values of a code.
    table: AsmRegisterZmm,
    low: AsmRegisterZmm,
    high: AsmRegisterZmm,
}

/// One thing to do for it; each follows from the one before.
#[derive(Clone, Copy)]
enum DecodePiece {
    LoadLine(usize),
    Mask,
    Look,
    StoreLine(usize),
    LoadScales,
    Scale,
    StoreScales,
}

impl Meanwhile {
    /// The pieces of work for a block.
    fn pieces() -> Vec<DecodePiece> {
        let lines = (0..data_lines(WeightFormat::Mxfp4)).flat_map(|line| {
            [DecodePiece::LoadLine(line), DecodePiece::Mask, DecodePiece::Look, DecodePiece::StoreLine(line)]
        });
        lines.chain([DecodePiece::LoadScales, DecodePiece::Scale, DecodePiece::StoreScales]).collect()
    }

    /// `base` points to [`constants`].
    fn emit(&self, a: &mut CodeAssembler, piece: DecodePiece, base: AsmRegister64) -> Result<(), IcedError> {
        let Meanwhile { scales, data, out, table, low, high } = *self;
        let line = |index: usize| zmmword_ptr(out + ((2 * LINE) + index * LINE));
        match piece {
            DecodePiece::LoadLine(line) => {
                a.vmovdqu64(low, zmmword_ptr(data + line * LINE))?;
                a.vpsrlw(high, low, 4)
            }
            DecodePiece::Mask => {
                a.vpandd(low, low, dword_bcst(base + MASK))?;
                a.vpandd(high, high, dword_bcst(base + MASK))
            }
            DecodePiece::Look => {
                a.vpshufb(low, table, low)?;
                a.vpshufb(high, table, high)
            }
            DecodePiece::StoreLine(index) => {
                a.vmovdqu64(line(2 * index), low)?;
                a.vmovdqu64(line(2 * index + 1), high)
            }
            DecodePiece::LoadScales => {
                a.vpmovzxbd(low, xmmword_ptr(scales))?;
                a.vpslld(low, low, 23)
            }
            DecodePiece::Scale => {
                a.vpmaxud(low, low, dword_bcst(base + SMALLEST))?;
                a.vmulps(low, low, dword_bcst(base + HALF))?;
                a.vmulps(high, low, dword_bcst(base + NEGATIVE_MAGIC))
            }
            DecodePiece::StoreScales => {
                a.vmovups(zmmword_ptr(out), low)?;
                a.vmovups(zmmword_ptr(out + LINE), high)
            }
        }
    }
}

fn gemm(
    a: &mut CodeAssembler,
    decoded: Decoded,
    (tiles, tokens): (usize, usize),
    scaling: AccumulatorScaling,
    overlap: Option<Overlap>,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [weights, panel, sums] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let ints = regs.vectors(tiles * tokens);
    let floats = regs.vectors(tiles * tokens);
    let lines = regs.vectors(tiles);
    let broadcast = regs.vectors(2);
    let base = regs.general();
    let (blocks, stride, gap, meanwhile) = match overlap {
        None => (PARAMS[3], PARAMS[4], PARAMS[5], None),
        Some(_) => {
            let [blocks, stride, gap] = [(); 3].map(|()| regs.general());
            let [table, low, high] = [(); 3].map(|()| regs.vector());
            let [scales, data, out] = [PARAMS[3], PARAMS[4], PARAMS[5]];
            (blocks, stride, gap, Some(Meanwhile { scales, data, out, table, low, high }))
        }
    };
    let mut pool = a.create_label();
    regs.save(a)?;
    a.lea(base, qword_ptr(pool))?;
    if let (Some(overlap), Some(meanwhile)) = (overlap, &meanwhile) {
        a.mov(blocks, CHUNK_BLOCKS as u64)?;
        a.mov(stride, overlap.stride as u64)?;
        a.mov(gap, overlap.gap as u64)?;
        a.vbroadcasti32x4(meanwhile.table, xmmword_ptr(base + TABLE))?;
    }
    a.mov(SCRATCH, sums)?;
    for token in floats.chunks(tiles) {
        a.vmovups(token[0], zmmword_ptr(SCRATCH))?;
        if let Some(second) = token.get(1) {
            a.vmovups(*second, zmmword_ptr(SCRATCH + gap))?;
        }
        a.add(SCRATCH, stride)?;
    }
    let (mut again, mut done) = (a.create_label(), a.create_label());
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    let layout = decoded.panel();
    let at = |tile: usize, offset: usize| zmmword_ptr(weights + (tile * decoded.tile_bytes() + offset));
    let pieces = if meanwhile.is_some() { Meanwhile::pieces() } else { Vec::new() };
    for part in 0..decoded.parts {
        let place = |token: usize| 4 * (part * GROUP + token);
        if scaling == AccumulatorScaling::Add {
            // The bits of `-MAGIC * w` differ from the exponent of w only by a constant.
            for (tile, exponent) in lines.iter().enumerate() {
                a.vmovdqa64(*exponent, at(tile, decoded.negatives(part)))?;
                a.vpaddd(*exponent, *exponent, dword_bcst(base + EXPONENT))?;
            }
        }
        for (token, ints) in ints.chunks(tiles).enumerate() {
            let start = layout.starts + place(token);
            if scaling == AccumulatorScaling::Add {
                for (int, exponent) in ints.iter().zip(&lines) {
                    a.vpaddd(*int, *exponent, dword_bcst(panel + start))?;
                }
                continue;
            }
            a.vpbroadcastd(ints[0], dword_ptr(panel + start))?;
            if let Some(second) = ints.get(1) {
                a.vmovdqa64(*second, ints[0])?;
            }
        }
        let quads = BLOCK / 4 / decoded.parts;
        let slots = quads * tokens;
        for slot in 0..slots {
            let (quad, token) = (part * quads + slot / tokens, slot % tokens);
            if token == 0 {
                for (tile, line) in lines.iter().enumerate() {
                    a.vmovdqa64(*line, at(tile, decoded.data() + quad * LINE))?;
                }
            }
            let activations = broadcast[token % broadcast.len()];
            a.vpbroadcastd(activations, dword_ptr(panel + (token * layout.row + quad * 4)))?;
            for (int, line) in ints[token * tiles..][..tiles].iter().zip(&lines) {
                a.vpdpbusd(*int, *line, activations)?;
            }
            // Spread over the block.
            let share = slot * pieces.len() / slots..(slot + 1) * pieces.len() / slots;
            for piece in &pieces[share] {
                meanwhile.iter().try_for_each(|meanwhile| meanwhile.emit(a, *piece, base))?;
            }
        }
        if scaling == AccumulatorScaling::Multiply {
            for (tile, w) in lines.iter().enumerate() {
                a.vmovaps(*w, at(tile, decoded.scales(part)))?;
            }
        }
        for (token, (ints, floats)) in ints.chunks(tiles).zip(floats.chunks(tiles)).enumerate() {
            let scale = broadcast[token % broadcast.len()];
            a.vpbroadcastd(scale, dword_ptr(panel + (layout.scales + token * 4)))?;
            for (tile, ((int, float), w)) in ints.iter().zip(floats).zip(&lines).enumerate() {
                let negative = at(tile, decoded.negatives(part));
                match scaling {
                    AccumulatorScaling::Multiply => a.vfmadd213ps(*int, *w, negative)?,
                    AccumulatorScaling::Add => a.vaddps(*int, *int, negative)?,
                }
                a.vfmadd231ps(*float, *int, scale)?;
            }
        }
        if decoded.minima {
            for (tile, minima) in lines.iter().enumerate() {
                a.vmovaps(*minima, at(tile, decoded.minima(part)))?;
            }
            for (token, floats) in floats.chunks(tiles).enumerate() {
                for (float, minima) in floats.iter().zip(&lines) {
                    a.vfmadd231ps(*float, *minima, dword_bcst(panel + (layout.sums + place(token))))?;
                }
            }
        }
    }
    a.add(weights, decoded.block_bytes() as i32)?;
    a.add(panel, layout.block as i32)?;
    if let Some(Meanwhile { scales, data, out, .. }) = meanwhile {
        a.add(scales, scale_bytes(WeightFormat::Mxfp4) as i32)?;
        a.add(data, (data_lines(WeightFormat::Mxfp4) * LINE) as i32)?;
        a.add(out, decoded.block_bytes() as i32)?;
    }
    a.dec(blocks)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    a.mov(SCRATCH, sums)?;
    for token in floats.chunks(tiles) {
        a.vmovups(zmmword_ptr(SCRATCH), token[0])?;
        if let Some(second) = token.get(1) {
            a.vmovups(zmmword_ptr(SCRATCH + gap), *second)?;
        }
        a.add(SCRATCH, stride)?;
    }
    regs.restore_and_return(a)?;
    a.set_label(&mut pool)?;
    constants(a)
}
