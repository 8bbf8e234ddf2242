//! `DotF32` in 256 bits (AVX2, FMA, F16C) and in 512 bits (AVX-512 F and BW).
//!
//! Tile: the lanes of a vector are rows, with four accumulators per vector and token for the "dot4" order:
//! one token by all 16 rows in one pass over the tile; two and four tokens too in 512 bits, and two by one
//! half of the rows a pass in 256. bf16 and f32 weights go four columns a turn, formats with blocks a block
//! of 32.
//!
//! An unsigned byte c of a block is put into the mantissa of 256, where it makes 256 + c = q + 256 + bias.
//! Without a minimum the element is `fma(256 + c, scale, -(256 + bias) * scale)`: that is q times scale
//! exactly, because a scale has at most 19 significant bits, and 256 + bias no more than are left to 24;
//! neither product rounds. With a minimum q is made first, by a subtraction, and the element is
//! `fma(q, scale, minimum)`. Clobbers: caller-saved registers and flags; callee-saved ones are pushed and
//! popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::constants::Constants;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::loop_shape::prefetch_distance;
use super::regs::{PARAMS, Regs, constants_here};
use super::stored::is_bf16;
use super::vector::{Address, Fma, Lanes, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::per_line;
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::decode::CHUNKS;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, qword_ptr};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "dot_f32_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotF32 { tokens: 1 | 2, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "dot_f32_avx512",
    needs: Features::AVX512,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotF32 { tokens: 1 | 2 | 4, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, Width::Full),
    ..AVX2
};

/// Where a code lies in the mantissa of 256: bits 15 to 22.
const PLACE: i32 = 15;
const MASK: u32 = 0xff << PLACE;
const BASE: f32 = 256.0;

struct DotF32 {
    format: WeightFormat,
    k: usize,
    /// Data, advancing.
    data: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Byte offset in the rows.
    index: AsmRegister64,
    constants: Constants,
    blocks: Option<Blocks>,
    /// A column of each vector of the pass; of blocks a chunk's bytes.
    weights: Vec<Vector>,
    activation: Vector,
    /// `[token][vector of the pass][k mod 4]`.
    sums: Vec<Vector>,
}

/// The registers that blocks need besides.
struct Blocks {
    decoder: BlockDecoder,
    /// Where the decoder's constants are.
    base: AsmRegister64,
    label: CodeLabel,
    /// Scales, advancing.
    scales: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    /// How far behind the tile's first the units of the block are.
    unit: AsmRegister64,
    /// The distance of the prefetch, in front of the tile's bytes, scales and data alike; where the tile is
    /// read once.
    ahead: Option<AsmRegister64>,
    /// By vector of the pass.
    row_scales: Vec<Vector>,
    /// Addends of a byte's product: minima, or scales times the excess of the byte.
    offsets: Vec<Vector>,
    element: Vector,
}

fn assemble(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::DotF32 { format, k, tokens } = ukernel else { return Ok(()) };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(4);
    let vectors = TILE_ROWS / width.lanes();
    // Vectors of rows in a pass.
    let together = if vectors * tokens > 2 { 1 } else { vectors };
    let (data, index) = (regs.general(), regs.general());
    // The last takes the place of the list, which is read no more.
    let rows = (1..tokens).map(|_| regs.general()).chain([PARAMS[1]]).collect();
    let activation = regs.numbered(width);
    let parts = format.decode().block().copied();
    let bits = match parts {
        Some(parts) => vec![MASK, BASE.to_bits(), (-BASE - parts.bias() as f32).to_bits()],
        None if is_bf16(format) => vec![0xffff_0000],
        None => Vec::new(),
    };
    let constants = Constants::new(v, &mut regs, bits);
    let blocks = parts.map(|_| {
        let [base, scales, block, unit] = [(); 4].map(|()| regs.general());
        let ahead = (together == vectors).then(|| regs.general());
        Blocks {
            decoder: BlockDecoder::sharing(&mut regs, format, width, base, Some(activation)),
            base,
            label: v.a.create_label(),
            scales,
            block,
            unit,
            ahead,
            row_scales: regs.several_numbered(width, together),
            offsets: regs.several_numbered(width, together),
            element: regs.numbered(width),
        }
    });
    let weights = regs.several_numbered(width, if parts.is_some() { 1 } else { together });
    let sums = regs.several_numbered(width, 4 * together * tokens);
    let mut dot = DotF32 { format, k, data, rows, index, constants, blocks, weights, activation, sums };
    regs.save(v.a)?;
    for (t, row) in dot.rows.iter().enumerate() {
        v.a.mov(*row, qword_ptr(PARAMS[1] + 8 * t))?;
    }
    dot.constants.load(v)?;
    if let Some(blocks) = &dot.blocks {
        v.a.lea(blocks.base, qword_ptr(blocks.label))?;
        blocks.decoder.prepare(v.a)?;
        if let Some(ahead) = blocks.ahead {
            v.a.lea(ahead, qword_ptr(PARAMS[0] + prefetch_distance(PREFETCH_DISTANCE, format.tile(k))))?;
        }
    }
    let all: Vec<usize> = (0..vectors).collect();
    all.chunks(together).try_for_each(|vectors| dot.pass(v, vectors))?;
    regs.restore_and_return(v.a)?;
    dot.constants.finish(v)?;
    match &mut dot.blocks {
        Some(blocks) => {
            constants_here(v.a, &mut blocks.label)?;
            blocks.decoder.emit_constants(v.a)
        }
        None => Ok(()),
    }
}

impl DotF32 {
    /// All tokens by the given vectors of the tile's rows, over the whole of k.
    fn pass(&self, v: &mut Vectors<'_>, vectors: &[usize]) -> Result<(), IcedError> {
        let [tile, out, stride] = [PARAMS[0], PARAMS[2], PARAMS[3]];
        let layout = self.format.tile(self.k);
        self.sums.iter().try_for_each(|sum| v.zero(*sum))?;
        v.a.lea(self.data, qword_ptr(tile + layout.scale_bytes))?;
        v.a.xor(self.index, self.index)?;
        if let Some(blocks) = &self.blocks {
            v.a.lea(blocks.scales, qword_ptr(tile + layout.unit_bytes))?;
            v.a.xor(blocks.block, blocks.block)?;
            self.fetch(v, blocks, layout.unit_bytes)?;
        }
        let turn = if self.blocks.is_some() { BLOCK } else { 4 };
        if self.k >= turn {
            let mut again = v.a.create_label();
            v.a.set_label(&mut again)?;
            if let Some(blocks) = &self.blocks {
                self.one_block(v, blocks, vectors)?;
            } else {
                self.columns(v, vectors, 4)?;
                v.a.add(self.data, (4 / per_line(self.format) * LINE) as i32)?;
            }
            v.a.add(self.index, (turn * 4) as i32)?;
            v.a.cmp(self.index, (self.k / turn * turn * 4) as i32)?;
            v.a.jne(again)?;
        }
        self.columns(v, vectors, self.k % turn)?;
        v.a.mov(self.index, out)?;
        for sums in self.sums.chunks(4 * vectors.len()) {
            for (vector, acc) in vectors.iter().zip(sums.chunks(4)) {
                v.lanes(Lanes::Add, acc[0], acc[0], acc[1])?;
                v.lanes(Lanes::Add, acc[2], acc[2], acc[3])?;
                v.lanes(Lanes::Add, acc[0], acc[0], acc[2])?;
                v.store(Address::at(self.index) + vector * v.width.bytes(), acc[0])?;
            }
            v.a.add(self.index, stride)?;
        }
        Ok(())
    }

    /// Asks for so many bytes of those that come later.
    fn fetch(&self, v: &mut Vectors<'_>, blocks: &Blocks, bytes: usize) -> Result<(), IcedError> {
        let Some(ahead) = blocks.ahead.filter(|_| bytes > 0) else { return Ok(()) };
        (0..bytes.div_ceil(LINE)).try_for_each(|line| v.a.prefetcht0(byte_ptr(ahead + line * LINE)))?;
        v.a.add(ahead, bytes as i32)
    }

    /// The product of a column of weights and each token's activation, number `column` from the index on.
    fn multiply(
        &self,
        v: &mut Vectors<'_>,
        weights: &[(usize, Vector)],
        of: usize,
        column: usize,
    ) -> Result<(), IcedError> {
        for (row, sums) in self.rows.iter().zip(self.sums.chunks(4 * of)) {
            let activation = v.repeated(Address::at(*row) + self.index + 4 * column, self.activation)?;
            for (vector, weight) in weights {
                v.fma(Fma::F231, sums[4 * vector + column % 4], *weight, activation)?;
            }
        }
        Ok(())
    }

    /// The next `count` columns of bf16 or f32, at most 4.
    fn columns(&self, v: &mut Vectors<'_>, vectors: &[usize], count: usize) -> Result<(), IcedError> {
        let per_line = if count > 0 { per_line(self.format) } else { 1 };
        let places: Vec<(usize, Vector)> = self.weights.iter().copied().enumerate().collect();
        for column in 0..count {
            for (vector, weight) in vectors.iter().zip(&self.weights) {
                let line = Address::at(self.data) + (column / per_line * LINE + vector * v.width.bytes());
                v.load(*weight, line)?;
                match (self.constants.operands.first(), column % 2) {
                    (Some(_), 0) => v.shift_left(*weight, *weight, 16)?,
                    (Some(upper), _) => v.lanes(Lanes::And, *weight, *weight, *upper)?,
                    (None, _) => {}
                }
            }
            self.multiply(v, &places, vectors.len(), column)?;
        }
        Ok(())
    }

    /// The next block of 32.
    fn one_block(&self, v: &mut Vectors<'_>, blocks: &Blocks, vectors: &[usize]) -> Result<(), IcedError> {
        let (parts, decoder) = (self.format.parts(), &blocks.decoder);
        let data_bytes = data_lines(self.format) * LINE;
        self.fetch(v, blocks, data_bytes + scale_bytes(self.format))?;
        let scales = Address::at(blocks.scales);
        let mut places = ScaleAddress { scales, units: scales };
        if parts.is_super() {
            unit_offset(v.a, self.format, blocks.unit, blocks.block)?;
            places.units = Address::at(PARAMS[0]) + blocks.unit;
        }
        let [mask, base, excess] = self.constants.operands[..] else { return Ok(()) };
        let (bytes, element) = (self.weights[0], blocks.element);
        for part in 0..parts.parts() {
            for (i, vector) in vectors.iter().enumerate() {
                let (scale, offset) = (blocks.row_scales[i], blocks.offsets[i]);
                decoder.scales(v.a, scale, places, part, *vector)?;
                match parts.has_minimum() {
                    true => decoder.minima(v.a, offset, places, part, *vector)?,
                    false => v.lanes(Lanes::Mul, offset, scale, excess)?,
                }
            }
            let chunks = CHUNKS / parts.parts();
            for chunk in part * chunks..(part + 1) * chunks {
                for (i, vector) in vectors.iter().enumerate() {
                    let data = Address::at(self.data) + vector * v.width.bytes();
                    decoder.chunk(v.a, bytes, data, chunk)?;
                    for j in 0..4 {
                        // Lane = row; byte j of the lane goes to its place.
                        match PLACE - 8 * j as i32 {
                            left if left > 0 => v.shift_left(element, bytes, left as u32)?,
                            right => v.shift_right(element, bytes, -right as u32)?,
                        }
                        v.choose_bits(element, mask, base)?;
                        if parts.has_minimum() {
                            v.lanes(Lanes::Add, element, element, excess)?;
                        }
                        v.fma(Fma::F213, element, blocks.row_scales[i], blocks.offsets[i])?;
                        self.multiply(v, &[(i, element)], vectors.len(), 4 * chunk + j)?;
                    }
                }
            }
        }
        v.a.add(blocks.block, 4)?;
        v.a.add(blocks.scales, scale_bytes(self.format) as i32)?;
        v.a.add(self.data, data_bytes as i32)
    }
}
