//! `DecodeTiles` in 512 bits, and `GemmTiles` on AMX tiles, with their configuration for int8. Need AVX-512,
//! and AMX-TILE, AMX-BF16 and AMX-INT8.
//!
//! `GemmTiles` has a vector of sums for each of its 16 tokens. Tiles multiply three blocks in a row and store
//! them, while vectors scale and add the three before. A product's way from tiles to vectors goes through
//! memory, which holds both. It is stored after the next one has begun: at once, it would wait for the tiles
//! with nothing else to do. Decoding writes the tiles that are multiplied next: a tile that was just written
//! is slow to load. Clobbers: caller-saved registers, flags, and the tiles.
//!
//! What bounds products of bf16 is the number of loads, 32 rows of tiles and 16 of a product. Scales of four
//! tokens are therefore loaded at once, and each is taken from there by a shuffle. Products of int8 load half
//! as much and have more to do for vectors, so that every scale has a separate load.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress};
use super::decoder::{first_block, next_block_ahead};
use super::gemm_bf16_amx::{ROW_BYTES_AT, ROWS_AT, configuration, configure};
use super::gemm_bf16_avx512::{BF16_TABLE, pairs_of_words};
use super::regs::{PARAMS, Regs, SCRATCH, ZMM, constants_here};
use super::vector::{Address, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::data_lines;
use crate::ukernel::gemm_tiles::{LEAST_SCALE, PANEL_ROWS, PRODUCT_BYTES, PRODUCTS, TileElement};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterTmm, AsmRegisterZmm, CodeAssembler, byte_ptr, dword_bcst, dword_ptr, eax, k1,
    ptr, qword_ptr, tmm0, tmm1, tmm2, tmm4, tmm6, xmmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{LINE, MAX_E8M0, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_tiles_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DecodeTiles { format } if TileElement::serves(format)),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DecodeTiles { format } => match TileElement::of(format) {
            TileElement::Bf16 => decode_powers(a),
            TileElement::I8 => decode_bytes(a, format),
        },
        _ => Ok(()),
    },
};

/// Configuring tiles of int8.
pub const ON: AsmKernel = AsmKernel {
    name: "tiles_on_bytes",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::TilesOn(TileElement::I8),
    assemble: |a, _| {
        let (mut config, bytes) = (configuration(), TileElement::I8);
        // A row of the panel is 32 bytes of k, and weights are as many lines as hold them.
        config[ROW_BYTES_AT + 2 * ROWS_NUMBER] = bytes.row_bytes() as u8;
        config[ROWS_AT + WEIGHTS_NUMBER] = bytes.lines() as u8;
        configure(a, &config)
    },
};

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_tiles_amx",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::GemmTiles { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmTiles { element, stride } => GemmTilesAmx::assemble(a, element, stride),
        _ => Ok(()),
    },
};

/// Scales that are loaded at once: those of 16 bytes.
const SCALES: usize = 4;
/// Products that are under way at once.
const TILES: [AsmRegisterTmm; 3] = [tmm0, tmm1, tmm2];
const ROWS: AsmRegisterTmm = tmm4;
const WEIGHTS: AsmRegisterTmm = tmm6;
/// Numbers of these two.
const ROWS_NUMBER: usize = 4;
const WEIGHTS_NUMBER: usize = 6;

// Tiles of bf16 have 16 rows of a line; there is memory for the products that are scaled and for those under
// way.
const _: () = assert!(TILE_ROWS * 4 == LINE && TileElement::Bf16.row_bytes() == LINE);
const _: () = assert!(TileElement::Bf16.lines() == PANEL_ROWS && 2 * TILES.len() == PRODUCTS);

/// The scale byte whose values the table of [`decode_powers`] has: the largest that leaves all of them
/// finite. Those of other scales have a smaller exponent.
const TABLE_SCALE: u16 = 252;
/// The scale byte of 1.
const SCALE_OF_ONE: u16 = 127;
/// Places of a bf16's exponent, and of a f32's.
const EXPONENT_AT: u32 = 7;
const EXPONENT_AT_F32: u32 = 23;

// Every scale that is packed is below that of the table.
const _: () = assert!(MAX_E8M0 as u16 <= TABLE_SCALE);

/// MXFP4 as bf16, values times their power of two. A subtraction from the exponent does it, which stops at
/// zero: a value of zero stays one.
fn decode_powers(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let element = TileElement::Bf16;
    let mut regs = Regs::with_params(5);
    let [scales, data, out, _, ahead, ..] = PARAMS;
    let [table, first, second, least, one, top] = [(); 6].map(|()| regs.vector());
    let [scale, used, less, bytes, low, high] = [(); 6].map(|()| regs.vector());
    let mut constants = a.create_label();
    regs.save(a)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    a.vmovdqu64(table, zmmword_ptr(SCRATCH))?;
    a.vmovdqu64(first, zmmword_ptr(SCRATCH + LINE))?;
    a.vmovdqu64(second, zmmword_ptr(SCRATCH + 2 * LINE))?;
    for (i, constant) in [least, one, top].into_iter().enumerate() {
        a.vpbroadcastd(constant, dword_ptr(SCRATCH + (3 * LINE + 4 * i)))?;
    }
    let labels = first_block(a)?;
    let lines = data_lines(WeightFormat::Mxfp4);
    for line in 0..lines {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    a.vpmovzxbd(scale, xmmword_ptr(scales))?;
    a.vpmaxud(used, scale, least)?;
    // The difference of a row's exponents to the largest, in both words.
    a.vpsubd(less, top, used)?;
    a.vpslld(less, less, EXPONENT_AT)?;
    a.vpslld(low, less, 16)?;
    a.vpord(less, less, low)?;
    // 2^(scale - used).
    a.vpsubd(scale, scale, used)?;
    a.vpaddd(scale, scale, one)?;
    a.vpslld(scale, scale, EXPONENT_AT_F32)?;
    a.vmovdqu64(zmmword_ptr(out + element.decoded_factors()), scale)?;
    for line in 0..lines {
        a.vmovdqu64(bytes, zmmword_ptr(data + line * LINE))?;
        for (pair, words) in [first, second].into_iter().enumerate() {
            // Two words for each row, a byte in each.
            a.vpshufb(low, bytes, words)?;
            a.vpsrlw(high, low, 4)?;
            for (half, nibbles) in [low, high].into_iter().enumerate() {
                // The low five bits of a word are its index, and the table repeats every 16.
                a.vpermw(nibbles, nibbles, table)?;
                a.vpsubusw(nibbles, nibbles, less)?;
                a.vmovdqu64(zmmword_ptr(out + (line * 4 + half * 2 + pair) * LINE), nibbles)?;
            }
        }
    }
    next_block_ahead(a, WeightFormat::Mxfp4, element.decoded_block(), labels)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
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

/// Stored bytes as signed ones.
fn decode_bytes(a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
    let (element, parts) = (TileElement::of(format), format.parts());
    let mut regs = Regs::with_params(5);
    let [scales, data, out, _, ahead, ..] = PARAMS;
    let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, false);
    let (scale, bias) = (regs.numbered(Width::Full), regs.vector());
    let bytes = regs.several_numbered(Width::Full, decoder.chunks());
    let mut constants = a.create_label();
    regs.save(a)?;
    a.mov(eax, u32::from_ne_bytes([parts.bias() as u8; 4]))?;
    a.vpbroadcastd(bias, eax)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    decoder.prepare(a)?;
    let labels = first_block(a)?;
    let places = ScaleAddress { scales: Address::at(scales), units: Address::at(scales) };
    decoder.scales(a, scale, places, 0, 0)?;
    a.vmovups(zmmword_ptr(out + element.decoded_factors()), ZMM[scale])?;
    for line in 0..data_lines(format) {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    for line in decoder.lines(0) {
        decoder.weights(a, &bytes, Address::at(data), line)?;
        for (i, bytes) in bytes.iter().enumerate() {
            let bytes = ZMM[*bytes];
            a.vpsubb(bytes, bytes, bias)?;
            a.vmovdqu64(zmmword_ptr(out + (line * decoder.chunks() + i) * LINE), bytes)?;
        }
    }
    next_block_ahead(a, format, element.decoded_block(), labels)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    decoder.emit_constants(a)
}

/// The scaling of products by vectors before they add them.
#[derive(Clone, Copy, PartialEq)]
enum ProductScaling {
    /// Nothing: products are `isum * w`.
    Done,
    /// Factors are multiplied with them.
    Factors,
    /// Integers become floats, and factors are multiplied with them.
    Integers,
}

/// Registers of a gemm.
struct GemmTilesAmx {
    element: TileElement,
    weights: AsmRegister64,
    panel: AsmRegister64,
    sums: AsmRegister64,
    blocks: AsmRegister64,
    /// Products that are scaled, and those under way.
    now: AsmRegister64,
    next: AsmRegister64,
    /// Bytes of a line.
    line: AsmRegister64,
    /// Bytes of a panel's row.
    row: AsmRegister64,
    rest: AsmRegister64,
    acc: Vec<AsmRegisterZmm>,
    product: [AsmRegisterZmm; 2],
    /// Scales of four tokens, repeated; and one of them in all lanes.
    scales: Vec<AsmRegisterZmm>,
    scale: [AsmRegisterZmm; 2],
    factors: AsmRegisterZmm,
    one: AsmRegisterZmm,
}

impl GemmTilesAmx {
    fn assemble(a: &mut CodeAssembler, element: TileElement, stride: usize) -> Result<(), IcedError> {
        let mut regs = Regs::with_params(5);
        let [next, line, rest] = [(); 3].map(|()| regs.general());
        let gemm = GemmTilesAmx {
            element,
            weights: PARAMS[0],
            panel: PARAMS[1],
            sums: PARAMS[2],
            blocks: PARAMS[3],
            now: PARAMS[4],
            next,
            line,
            row: if element.row_bytes() == LINE { line } else { regs.general() },
            rest,
            acc: regs.vectors(PANEL_ROWS),
            product: [regs.vector(), regs.vector()],
            scales: regs.vectors(PANEL_ROWS / SCALES),
            scale: [regs.vector(), regs.vector()],
            factors: regs.vector(),
            one: regs.vector(),
        };
        let mut constants = a.create_label();
        let (mut done, mut small, mut store) = (a.create_label(), a.create_label(), a.create_label());
        let integers = element == TileElement::I8;
        regs.save(a)?;
        a.test(gemm.blocks, gemm.blocks)?;
        a.je(done)?;
        if !integers {
            a.lea(SCRATCH, qword_ptr(constants))?;
            a.vpbroadcastd(gemm.one, dword_ptr(SCRATCH))?;
        }
        a.mov(gemm.line, LINE as u64)?;
        if integers {
            a.mov(gemm.row, element.row_bytes() as u64)?;
        }
        a.lea(gemm.next, ptr(gemm.now + TILES.len() * PRODUCT_BYTES))?;
        for (token, acc) in gemm.acc.iter().enumerate() {
            a.vmovups(*acc, zmmword_ptr(gemm.sums + token * stride))?;
        }
        if integers {
            gemm.multiply(a, ProductScaling::Integers)?;
        } else {
            gemm.look_for_small(a)?;
            a.jne(small)?;
            gemm.multiply(a, ProductScaling::Done)?;
            a.jmp(store)?;
            a.set_label(&mut small)?;
            gemm.multiply(a, ProductScaling::Factors)?;
            a.set_label(&mut store)?;
        }
        for (token, acc) in gemm.acc.iter().enumerate() {
            a.vmovups(zmmword_ptr(gemm.sums + token * stride), *acc)?;
        }
        a.set_label(&mut done)?;
        regs.restore_and_return(a)?;
        if integers {
            return Ok(());
        }
        constants_here(a, &mut constants)?;
        a.dd(&[1f32.to_bits()])
    }

    /// Unequal if there is a factor below 1, which few matrices have.
    fn look_for_small(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let mut again = a.create_label();
        a.mov(SCRATCH, self.weights)?;
        a.mov(self.rest, self.blocks)?;
        a.vmovaps(self.factors, self.one)?;
        a.set_label(&mut again)?;
        a.vminps(self.factors, self.factors, zmmword_ptr(SCRATCH + self.element.decoded_factors()))?;
        a.add(SCRATCH, self.element.decoded_block() as i32)?;
        a.dec(self.rest)?;
        a.jne(again)?;
        // Less than.
        a.vcmpps(k1, self.factors, self.one, 1)?;
        a.kortestd(k1, k1)
    }

    /// All blocks, first those that three do not divide.
    fn multiply(&self, a: &mut CodeAssembler, scaling: ProductScaling) -> Result<(), IcedError> {
        let three = TILES.len();
        let (mut divide, mut single) = (a.create_label(), a.create_label());
        let (mut threes, mut again) = (a.create_label(), a.create_label());
        let (mut last, mut end) = (a.create_label(), a.create_label());
        a.mov(self.rest, self.blocks)?;
        a.set_label(&mut divide)?;
        a.sub(self.rest, three as i32)?;
        a.jae(divide)?;
        a.add(self.rest, three as i32)?;
        a.je(threes)?;
        a.sub(self.blocks, self.rest)?;
        a.set_label(&mut single)?;
        self.product(a, 0, 0)?;
        self.store(a, self.now, 0)?;
        self.scale(a, 0, scaling)?;
        self.pass(a, 1)?;
        a.dec(self.rest)?;
        a.jne(single)?;
        a.test(self.blocks, self.blocks)?;
        a.je(end)?;
        a.set_label(&mut threes)?;
        for block in 0..three {
            self.product(a, block, block)?;
            if block > 0 {
                self.store(a, self.now, block - 1)?;
            }
        }
        a.sub(self.blocks, three as i32)?;
        a.je(last)?;
        a.set_label(&mut again)?;
        for block in 0..three {
            self.product(a, three + block, block)?;
            match block {
                0 => self.store(a, self.now, three - 1)?,
                _ => self.store(a, self.next, block - 1)?,
            }
            self.scale(a, block, scaling)?;
        }
        self.pass(a, three)?;
        a.mov(SCRATCH, self.now)?;
        a.mov(self.now, self.next)?;
        a.mov(self.next, SCRATCH)?;
        a.sub(self.blocks, three as i32)?;
        a.jne(again)?;
        a.set_label(&mut last)?;
        self.store(a, self.now, three - 1)?;
        for block in 0..three {
            self.scale(a, block, scaling)?;
        }
        a.set_label(&mut end)?;
        // A label needs a separate instruction.
        a.nop()
    }

    /// A block that lies so many behind the next one, to tile number `tile`.
    fn product(&self, a: &mut CodeAssembler, block: usize, tile: usize) -> Result<(), IcedError> {
        a.tilezero(TILES[tile])?;
        a.tileloadd(ROWS, ptr(self.panel + self.row + block * self.element.panel_block()))?;
        a.tileloadd(WEIGHTS, ptr(self.weights + self.line + block * self.element.decoded_block()))?;
        match self.element {
            TileElement::Bf16 => a.tdpbf16ps(TILES[tile], ROWS, WEIGHTS),
            TileElement::I8 => a.tdpbssd(TILES[tile], ROWS, WEIGHTS),
        }
    }

    fn store(&self, a: &mut CodeAssembler, to: AsmRegister64, tile: usize) -> Result<(), IcedError> {
        a.tilestored(ptr(to + self.line + tile * PRODUCT_BYTES), TILES[tile])
    }

    /// Adds the product of a block that lies so many behind the next one.
    fn scale(&self, a: &mut CodeAssembler, block: usize, scaling: ProductScaling) -> Result<(), IcedError> {
        let element = self.element;
        if scaling != ProductScaling::Done {
            let place = self.weights + (block * element.decoded_block() + element.decoded_factors());
            a.vmovups(self.factors, zmmword_ptr(place))?;
        }
        let scales = self.panel + (block * element.panel_block() + element.panel_scales());
        if scaling != ProductScaling::Integers {
            for (four, register) in self.scales.iter().enumerate() {
                a.vbroadcasti32x4(*register, xmmword_ptr(scales + four * SCALES * 4))?;
            }
        }
        for (token, acc) in self.acc.iter().enumerate() {
            let (product, scale) = (self.product[token % 2], self.scale[token % 2]);
            let place = zmmword_ptr(self.now + (block * PRODUCT_BYTES + token * LINE));
            if scaling == ProductScaling::Integers {
                a.vcvtdq2ps(product, place)?;
                a.vmulps(product, product, self.factors)?;
                a.vfmadd231ps(*acc, product, dword_bcst(scales + token * 4))?;
                continue;
            }
            let lane = (token % SCALES) as i32;
            a.vpshufd(scale, self.scales[token / SCALES], lane * 0b01_01_01_01)?;
            match scaling {
                ProductScaling::Factors => {
                    a.vmulps(product, self.factors, place)?;
                    a.vfmadd231ps(*acc, scale, product)?;
                }
                _ => a.vfmadd231ps(*acc, scale, place)?,
            }
        }
        Ok(())
    }

    /// Goes on behind so many blocks.
    fn pass(&self, a: &mut CodeAssembler, blocks: usize) -> Result<(), IcedError> {
        a.add(self.weights, (blocks * self.element.decoded_block()) as i32)?;
        a.add(self.panel, (blocks * self.element.panel_block()) as i32)
    }
}
