//! Decoding of the next chunk in a strip, in 512 bits: as pieces of work that lie between its additions, and
//! in a loop for what is left. What is decoded is a parameter behind the sixth, which lies on the stack.

use super::block_decoder::{BlockDecoder, ScaleAddress};
use super::gemm_bf16_avx512::{BF16_TABLE, pairs_of_words};
use super::regs::{Regs, SCRATCH, ZMM, constants_here};
use super::vector::{Address, Vector, Width};
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::gemm_tiles::{CHUNK_BLOCKS, LEAST_SCALE, Strip, TileElement};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr, eax, qword_ptr,
    xmmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{LINE, MAX_E8M0};

/// The scale byte whose values the table of [`PowerDecoder`] has: the largest that leaves all of them finite.
/// Values of other scales have a smaller exponent.
const TABLE_SCALE: u16 = 252;
/// The scale byte of 1.
const SCALE_OF_ONE: u16 = 127;
/// Places of a bf16's exponent, and of a f32's.
const EXPONENT_AT: u32 = 7;
const EXPONENT_AT_F32: u32 = 23;

// Every scale that is packed is below that of the table.
const _: () = assert!(MAX_E8M0 as u16 <= TABLE_SCALE);

/// Numbers of the parameters, as [`crate::ukernel::gemm_tiles`] has them.
const SCALES: usize = 6;
const DATA: usize = 7;
const OUT: usize = 8;
const COUNT: usize = 9;
const APART: usize = 10;
const AHEAD: usize = 11;

/// Decodes blocks of one or two tiles, the first one's first.
pub struct TileDecoder {
    strip: Strip,
    /// The places of the next block.
    scales: AsmRegister64,
    data: AsmRegister64,
    out: AsmRegister64,
    /// Blocks that are left.
    left: AsmRegister64,
    /// Bytes from the data to what is fetched meanwhile.
    ahead: AsmRegister64,
    way: DecoderWay,
    constants: CodeLabel,
}

enum DecoderWay {
    Powers(PowerDecoder),
    Bytes(ByteDecoder),
}

/// One thing to do for a block, which is given by its number from the places on. Its scales come first.
#[derive(Clone, Copy)]
pub enum DecodePiece {
    /// Factors, and what lines need of the scales.
    Scales(usize),
    /// A line of codes.
    Line(usize, usize),
}

/// MXFP4 as bf16, values times their power of two. A subtraction from the exponent does it, which stops at
/// zero: a value of zero stays one.
struct PowerDecoder {
    table: AsmRegisterZmm,
    /// Which bytes of a line become the words of a row.
    pairs: [AsmRegisterZmm; 2],
    least: AsmRegisterZmm,
    one: AsmRegisterZmm,
    top: AsmRegisterZmm,
    /// The difference of a row's exponents to the largest, in both words.
    less: AsmRegisterZmm,
    bytes: AsmRegisterZmm,
    work: [AsmRegisterZmm; 2],
}

/// Stored bytes as signed ones.
struct ByteDecoder {
    decoder: BlockDecoder,
    scale: Vector,
    bias: AsmRegisterZmm,
    bytes: Vec<Vector>,
}

impl TileDecoder {
    /// A decoder for a strip. `idle` are registers that are free where it decodes: the vectors are for MXFP4.
    pub fn new(
        a: &mut CodeAssembler,
        regs: &mut Regs,
        strip: Strip,
        (ahead, idle): (AsmRegister64, [AsmRegisterZmm; 2]),
    ) -> TileDecoder {
        let [scales, data, out, left] = [(); 4].map(|()| regs.general());
        let way = match TileElement::of(strip.format) {
            TileElement::Bf16 => DecoderWay::Powers(PowerDecoder {
                table: regs.vector(),
                pairs: [regs.vector(), regs.vector()],
                least: idle[0],
                one: idle[1],
                top: regs.vector(),
                less: regs.vector(),
                bytes: regs.vector(),
                work: [regs.vector(), regs.vector()],
            }),
            TileElement::I8 => {
                let decoder = BlockDecoder::new(regs, strip.format, Width::Full, SCRATCH, false);
                let (scale, bias) = (regs.numbered(Width::Full), regs.vector());
                let bytes = regs.several_numbered(Width::Full, decoder.chunks());
                DecoderWay::Bytes(ByteDecoder { decoder, scale, bias, bytes })
            }
        };
        TileDecoder { strip, scales, data, out, left, ahead, way, constants: a.create_label() }
    }

    /// Takes up what is to be decoded.
    pub fn begin(&self, a: &mut CodeAssembler, regs: &Regs) -> Result<(), IcedError> {
        a.mov(self.scales, regs.stacked(SCALES))?;
        a.mov(self.data, regs.stacked(DATA))?;
        a.mov(self.out, regs.stacked(OUT))?;
        a.mov(self.left, regs.stacked(COUNT))?;
        if self.strip.tiles == 2 { a.add(self.left, self.left) } else { Ok(()) }
    }

    /// Loads what it keeps in registers meanwhile.
    pub fn prepare(&self, a: &mut CodeAssembler, regs: &Regs) -> Result<(), IcedError> {
        a.mov(self.ahead, regs.stacked(AHEAD))?;
        match &self.way {
            DecoderWay::Powers(powers) => {
                a.lea(SCRATCH, qword_ptr(self.constants))?;
                for (i, line) in [powers.table, powers.pairs[0], powers.pairs[1]].into_iter().enumerate() {
                    a.vmovdqu64(line, zmmword_ptr(SCRATCH + i * LINE))?;
                }
                for (i, constant) in [powers.least, powers.one, powers.top].into_iter().enumerate() {
                    a.vpbroadcastd(constant, dword_ptr(SCRATCH + (3 * LINE + 4 * i)))?;
                }
                Ok(())
            }
            DecoderWay::Bytes(ByteDecoder { decoder, bias, .. }) => {
                a.mov(eax, u32::from_ne_bytes([self.strip.format.parts().bias() as u8; 4]))?;
                a.vpbroadcastd(*bias, eax)?;
                a.lea(SCRATCH, qword_ptr(self.constants))?;
                decoder.prepare(a)
            }
        }
    }

    /// Equal if whole chunks are decoded.
    pub fn is_whole(&self, a: &mut CodeAssembler, regs: &Regs) -> Result<(), IcedError> {
        a.mov(SCRATCH, regs.stacked(COUNT))?;
        a.cmp(SCRATCH, CHUNK_BLOCKS as i32)
    }

    /// Equal if nothing is left.
    pub fn is_done(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.test(self.left, self.left)
    }

    /// Decodes what is left.
    pub fn rest(&self, a: &mut CodeAssembler, regs: &Regs) -> Result<(), IcedError> {
        let (mut again, mut done) = (a.create_label(), a.create_label());
        self.is_done(a)?;
        a.je(done)?;
        self.prepare(a, regs)?;
        a.set_label(&mut again)?;
        self.decode(a, &self.pieces(1))?;
        self.pass(a, regs, 1, false)?;
        self.is_done(a)?;
        a.jne(again)?;
        a.set_label(&mut done)
    }

    /// Passes so many blocks that are decoded, of a whole chunk or of any, and goes on to the second tile
    /// behind the first one.
    pub fn pass(
        &self,
        a: &mut CodeAssembler,
        regs: &Regs,
        blocks: usize,
        is_whole: bool,
    ) -> Result<(), IcedError> {
        let mut same = a.create_label();
        for (place, bytes) in [self.scales, self.data, self.out].into_iter().zip(self.block_bytes()) {
            a.add(place, (blocks * bytes) as i32)?;
        }
        a.sub(self.left, blocks as i32)?;
        if self.strip.tiles == 1 {
            return Ok(());
        }
        if is_whole {
            a.cmp(self.left, CHUNK_BLOCKS as i32)?;
        } else {
            a.mov(SCRATCH, regs.stacked(COUNT))?;
            a.cmp(self.left, SCRATCH)?;
        }
        a.jne(same)?;
        a.mov(SCRATCH, regs.stacked(APART))?;
        for (place, first) in [(self.scales, SCALES), (self.data, DATA)] {
            a.mov(place, regs.stacked(first))?;
            a.add(place, SCRATCH)?;
        }
        a.mov(self.out, regs.stacked(OUT))?;
        a.add(self.out, TileElement::of(self.strip.format).decoded_tile() as i32)?;
        a.set_label(&mut same)?;
        // Other labels may follow, and each needs its own instruction.
        a.nop()
    }

    /// Puts its constants here, behind all code.
    pub fn constants(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let mut constants = self.constants;
        constants_here(a, &mut constants)?;
        match &self.way {
            DecoderWay::Powers(_) => {
                let of_table = |value: u16| match value {
                    0 => 0,
                    value => value + ((TABLE_SCALE - SCALE_OF_ONE) << EXPONENT_AT),
                };
                a.dw(&BF16_TABLE.map(of_table).repeat(2))?;
                for start in [0, 2] {
                    a.db(&pairs_of_words(start))?;
                }
                a.dd(&[u32::from(LEAST_SCALE), u32::from(SCALE_OF_ONE), u32::from(TABLE_SCALE)])
            }
            DecoderWay::Bytes(ByteDecoder { decoder, .. }) => decoder.emit_constants(a),
        }
    }

    /// The pieces of work for the first `blocks` blocks.
    pub fn pieces(&self, blocks: usize) -> Vec<DecodePiece> {
        let lines = match &self.way {
            DecoderWay::Powers(_) => data_lines(self.strip.format),
            DecoderWay::Bytes(bytes) => bytes.decoder.lines(0).len(),
        };
        let of_block = |block: usize| {
            let lines = (0..lines).map(move |line| DecodePiece::Line(block, line));
            [DecodePiece::Scales(block)].into_iter().chain(lines)
        };
        (0..blocks).flat_map(of_block).collect()
    }

    /// Does some.
    pub fn decode(&self, a: &mut CodeAssembler, pieces: &[DecodePiece]) -> Result<(), IcedError> {
        pieces.iter().try_for_each(|piece| match *piece {
            DecodePiece::Scales(block) => self.decode_scales(a, block),
            DecodePiece::Line(block, line) => self.decode_line(a, block, line),
        })
    }

    /// Bytes of a block's scales, of its data, and decoded.
    fn block_bytes(&self) -> [usize; 3] {
        let out = TileElement::of(self.strip.format).decoded_block();
        [scale_bytes(self.strip.format), data_lines(self.strip.format) * LINE, out]
    }

    fn decode_scales(&self, a: &mut CodeAssembler, block: usize) -> Result<(), IcedError> {
        let TileDecoder { scales, data, out, ahead, .. } = *self;
        let [scales_at, data_at, out_at] = self.block_bytes().map(|bytes| bytes * block);
        for line in 0..data_lines(self.strip.format) {
            a.prefetcht1(byte_ptr(data + ahead + (data_at + line * LINE)))?;
        }
        let factors = zmmword_ptr(out + (out_at + TileElement::of(self.strip.format).decoded_factors()));
        match &self.way {
            DecoderWay::Powers(powers) => {
                let [scale, used] = powers.work;
                a.vpmovzxbd(scale, xmmword_ptr(scales + scales_at))?;
                a.vpmaxud(used, scale, powers.least)?;
                a.vpsubd(powers.less, powers.top, used)?;
                // 2^(scale - used).
                a.vpsubd(scale, scale, used)?;
                a.vpaddd(scale, scale, powers.one)?;
                a.vpslld(scale, scale, EXPONENT_AT_F32)?;
                a.vmovdqu64(factors, scale)?;
                // In both words.
                a.vpslld(powers.less, powers.less, EXPONENT_AT)?;
                a.vpslld(used, powers.less, 16)?;
                a.vpord(powers.less, powers.less, used)
            }
            DecoderWay::Bytes(bytes) => {
                let scales = Address { base: scales, index: None, offset: scales_at };
                let places = ScaleAddress { scales, units: scales };
                bytes.decoder.scales(a, bytes.scale, places, 0, 0)?;
                a.vmovups(factors, ZMM[bytes.scale])
            }
        }
    }

    fn decode_line(&self, a: &mut CodeAssembler, block: usize, line: usize) -> Result<(), IcedError> {
        let TileDecoder { data, out, .. } = *self;
        let [_, data_at, out_at] = self.block_bytes().map(|bytes| bytes * block);
        let line_out = |line: usize| zmmword_ptr(out + (out_at + line * LINE));
        match &self.way {
            DecoderWay::Powers(powers) => {
                let [low, high] = powers.work;
                a.vmovdqu64(powers.bytes, zmmword_ptr(data + (data_at + line * LINE)))?;
                for (pair, words) in powers.pairs.into_iter().enumerate() {
                    // Two words for each row, a byte in each.
                    a.vpshufb(low, powers.bytes, words)?;
                    a.vpsrlw(high, low, 4)?;
                    for (half, nibbles) in [low, high].into_iter().enumerate() {
                        // The low five bits of a word are its index, and the table repeats every 16.
                        a.vpermw(nibbles, nibbles, powers.table)?;
                        a.vpsubusw(nibbles, nibbles, powers.less)?;
                        a.vmovdqu64(line_out(line * 4 + half * 2 + pair), nibbles)?;
                    }
                }
                Ok(())
            }
            DecoderWay::Bytes(ByteDecoder { decoder, bias, bytes, .. }) => {
                decoder.weights(a, bytes, Address { base: data, index: None, offset: data_at }, line)?;
                for (i, byte) in bytes.iter().map(|byte| ZMM[*byte]).enumerate() {
                    a.vpsubb(byte, byte, *bias)?;
                    a.vmovdqu64(line_out(line * bytes.len() + i), byte)?;
                }
                Ok(())
            }
        }
    }
}
