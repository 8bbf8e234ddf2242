//! `Decode`, `DecodeWords` and `GemmQ8` in 256 bits. All need AVX2, decoding F16C too, `GemmQ8` FMA and
//! AVX-VNNI.
//!
//! Tile of a pass of `GemmQ8`: 16 rows (the lanes, eight to a vector) x up to 3 tokens; an int32 and a f32
//! accumulator per vector and token. An activation is broadcast once for both vectors, so that loads stay
//! below the multiplications.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::decoder::{first_block, next_block};
use super::regs::{PARAMS, Regs, SCRATCH, YMM, constants_here};
use super::vector::{Address, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::decode::CHUNKS;
use crate::ukernel::gemm_q8::{Decoded, DecodedNumber, DotStep, GROUP, MAGIC};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterYmm, CodeAssembler, dword_ptr, eax, qword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};
use kernmill_plan::target::Features;
use std::ops::Range;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Decode { .. } | MicroKernel::DecodeWords { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Decode { format } | MicroKernel::DecodeWords { format } => {
            decode(a, format, ukernel.decoded(format))
        }
        _ => Ok(()),
    },
};

/// Multiplying with `vpdpbusd`, VEX-encoded.
pub const VNNI: AsmKernel = AsmKernel {
    name: "gemm_q8_avx2vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| ukernel.is_gemm(DotStep::K4),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmQ8 { weights, tiles, tokens } => GemmQ8Avx2::new(weights).emit(a, tiles, tokens),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of rows in a pass.
const VECTORS: usize = 2;
/// Tokens of a pass at most.
const TOKENS: usize = 3;

/// Decodes blocks to unsigned bytes, or to words of integers.
fn decode(a: &mut CodeAssembler, format: WeightFormat, decoded: Decoded) -> Result<(), IcedError> {
    let (parts, words) = (format.parts(), decoded.number == DecodedNumber::I16);
    let mut regs = Regs::with_params(4 + usize::from(parts.is_super()));
    let [scales, data, out] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let (base, block) = (regs.general(), regs.general());
    let decoder = BlockDecoder::new(&mut regs, format, Width::Half, base, false);
    let signed = words && parts.bias() == 128;
    let decoder = if signed { decoder.of_integers(&mut regs) } else { decoder };
    let [w, negative, odd] = [(); 3].map(|()| regs.half());
    let bytes = regs.halves(4);
    let magic = if words { negative } else { regs.half() };
    let bias = if words && !signed && parts.bias() > 0 { regs.half() } else { magic };
    let mut constants = a.create_label();
    regs.save(a)?;
    if !words {
        a.mov(eax, (-MAGIC).to_bits())?;
        Vectors { a, width: Width::Half }.spread(number(magic), SCRATCH)?;
    }
    if bias != magic {
        a.mov(eax, u32::from_le_bytes([parts.bias() as u8; 4]))?;
        Vectors { a, width: Width::Half }.spread(number(bias), SCRATCH)?;
    }
    a.lea(base, qword_ptr(constants))?;
    decoder.prepare(a)?;
    a.xor(block, block)?;
    let labels = first_block(a)?;
    let address = |base: AsmRegister64, offset: usize| Address { base, index: None, offset };
    let mut places = ScaleAddress { scales: address(scales, 0), units: address(scales, 0) };
    if parts.is_super() {
        unit_offset(a, format, SCRATCH, block)?;
        a.add(block, 4)?;
        places.units = Address { base: PARAMS[4], index: Some(SCRATCH), offset: 0 };
    }
    for (part, half) in (0..decoded.parts).flat_map(|part| [(part, 0), (part, 1)]) {
        let place = |offset: usize| ymmword_ptr(out + (offset + half * BYTES));
        decoder.scales(a, number(w), places, part, half)?;
        a.vmovups(place(decoded.scales(part)), w)?;
        if !words {
            a.vmulps(negative, w, magic)?;
            a.vmovups(place(decoded.negatives(part)), negative)?;
        }
        if decoded.minima {
            decoder.minima(a, number(w), places, part, half)?;
            a.vmovups(place(decoded.minima(part)), w)?;
        }
    }
    for (chunk, half) in (0..CHUNKS).flat_map(|chunk| [(chunk, 0), (chunk, 1)]) {
        let place = |line: usize| ymmword_ptr(out + (decoded.data() + line * LINE + half * BYTES));
        let bytes = bytes[(2 * chunk + half) % bytes.len()];
        decoder.chunk(a, number(bytes), address(data, half * BYTES), chunk)?;
        if !words {
            a.vmovdqu(place(chunk), bytes)?;
            continue;
        }
        if bias != magic {
            a.vpsubb(bytes, bytes, bias)?;
        }
        a.vpsraw(odd, bytes, 8)?;
        a.vpsllw(bytes, bytes, 8)?;
        a.vpsraw(bytes, bytes, 8)?;
        a.vmovdqu(place(chunk), bytes)?;
        a.vmovdqu(place(CHUNKS + chunk), odd)?;
    }
    next_block(a, format, decoded.block_bytes(), labels)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    decoder.emit_constants(a)
}

/// The number of a register.
fn number(register: AsmRegisterYmm) -> Vector {
    YMM.iter().position(|known| *known == register).expect("one of sixteen")
}

struct GemmQ8Avx2 {
    decoded: Decoded,
    regs: Regs,
    /// Weights of one pass, advancing, as are the next two.
    weights: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// A line of weights.
    line: [AsmRegisterYmm; VECTORS],
    activations: AsmRegisterYmm,
    /// `[token][row vector]`, of one pass.
    ints: Vec<AsmRegisterYmm>,
    /// Sums in f32, laid out as `ints`.
    floats: Vec<AsmRegisterYmm>,
}

impl GemmQ8Avx2 {
    fn new(decoded: Decoded) -> GemmQ8Avx2 {
        let mut regs = Regs::with_params(6);
        GemmQ8Avx2 {
            decoded,
            weights: regs.general(),
            panel: regs.general(),
            blocks: regs.general(),
            line: [regs.half(), regs.half()],
            activations: regs.half(),
            ints: regs.halves(VECTORS * TOKENS),
            floats: regs.halves(VECTORS * TOKENS),
            regs,
        }
    }

    fn emit(self, a: &mut CodeAssembler, tiles: usize, tokens: usize) -> Result<(), IcedError> {
        let blocks = PARAMS[3];
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        // Passes of nearly equal numbers of tokens.
        let passes = tokens.div_ceil(TOKENS);
        for pass in 0..passes {
            let (first, end) = (tokens * pass / passes, tokens * (pass + 1) / passes);
            (0..tiles).try_for_each(|tile| self.pass(a, tile, first, end - first))?;
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)
    }

    /// All blocks of `count` tokens from `first` by a tile.
    fn pass(&self, a: &mut CodeAssembler, tile: usize, first: usize, count: usize) -> Result<(), IcedError> {
        let [weights, panel, blocks] = [PARAMS[0], PARAMS[1], PARAMS[3]];
        let floats = &self.floats[..count * VECTORS];
        self.sums(a, tile, first)?;
        for floats in floats.chunks(VECTORS) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(*float, ymmword_ptr(SCRATCH + i * BYTES))?;
            }
            a.add(SCRATCH, PARAMS[4])?;
        }
        a.lea(self.weights, qword_ptr(weights + tile * self.decoded.tile_bytes()))?;
        a.mov(self.panel, panel)?;
        a.mov(self.blocks, blocks)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, first, count)?;
        a.add(self.weights, self.decoded.block_bytes() as i32)?;
        a.add(self.panel, self.decoded.panel().block as i32)?;
        a.dec(self.blocks)?;
        a.jne(again)?;
        self.sums(a, tile, first)?;
        for floats in floats.chunks(VECTORS) {
            for (i, float) in floats.iter().enumerate() {
                a.vmovups(ymmword_ptr(SCRATCH + i * BYTES), *float)?;
            }
            a.add(SCRATCH, PARAMS[4])?;
        }
        Ok(())
    }

    /// Where a tile's sums of a token are, in the scratch register.
    fn sums(&self, a: &mut CodeAssembler, tile: usize, token: usize) -> Result<(), IcedError> {
        let [sums, stride, gap] = [PARAMS[2], PARAMS[4], PARAMS[5]];
        a.mov(SCRATCH, sums)?;
        for _ in 0..tile {
            a.add(SCRATCH, gap)?;
        }
        (0..token).try_for_each(|_| a.add(SCRATCH, stride))
    }

    fn one_block(&self, a: &mut CodeAssembler, first: usize, count: usize) -> Result<(), IcedError> {
        (0..self.decoded.parts).try_for_each(|part| self.one_part(a, first..first + count, part))
    }

    fn one_part(&self, a: &mut CodeAssembler, tokens: Range<usize>, part: usize) -> Result<(), IcedError> {
        let (decoded, layout) = (self.decoded, self.decoded.panel());
        let (ints, floats) = (&self.ints[..tokens.len() * VECTORS], &self.floats[..tokens.len() * VECTORS]);
        let place = |token: usize| 4 * (part * GROUP + token);
        let at = |offset: usize, vector: usize| ymmword_ptr(self.weights + (offset + vector * BYTES));
        for (token, ints) in tokens.clone().zip(ints.chunks(VECTORS)) {
            for int in ints {
                a.vpbroadcastd(*int, dword_ptr(self.panel + (layout.starts + place(token))))?;
            }
        }
        let quads = BLOCK / 4 / decoded.parts;
        for quad in part * quads..(part + 1) * quads {
            for (i, line) in self.line.iter().enumerate() {
                a.vmovdqu(*line, at(decoded.data() + quad * LINE, i))?;
            }
            for (token, ints) in tokens.clone().zip(ints.chunks(VECTORS)) {
                a.vpbroadcastd(self.activations, dword_ptr(self.panel + (token * layout.row + quad * 4)))?;
                for (int, line) in ints.iter().zip(&self.line) {
                    a.vpdpbusd(*int, *line, self.activations)?;
                }
            }
        }
        for (i, w) in self.line.iter().enumerate() {
            a.vmovups(*w, at(decoded.scales(part), i))?;
        }
        let a_scale = self.activations;
        for (token, (ints, floats)) in tokens.clone().zip(ints.chunks(VECTORS).zip(floats.chunks(VECTORS))) {
            a.vbroadcastss(a_scale, dword_ptr(self.panel + (layout.scales + token * 4)))?;
            for (i, ((int, float), w)) in ints.iter().zip(floats).zip(&self.line).enumerate() {
                a.vfmadd213ps(*int, *w, at(decoded.negatives(part), i))?;
                a.vfmadd231ps(*float, *int, a_scale)?;
            }
        }
        if !decoded.minima {
            return Ok(());
        }
        for (token, floats) in tokens.zip(floats.chunks(VECTORS)) {
            a.vbroadcastss(a_scale, dword_ptr(self.panel + (layout.sums + place(token))))?;
            for (i, float) in floats.iter().enumerate() {
                a.vfmadd231ps(*float, a_scale, at(decoded.minima(part), i))?;
            }
        }
        Ok(())
    }
}
