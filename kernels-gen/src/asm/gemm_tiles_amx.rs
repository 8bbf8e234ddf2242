//! `DecodeTiles` in 512 bits, and `GemmTiles` on AMX tiles. Need AVX-512, and AMX-TILE and AMX-BF16.
//!
//! `GemmTiles` has a vector of sums for each of its 16 tokens. Tiles multiply three blocks in a row and store
//! them, while vectors scale and add the three before. A product's way from tiles to vectors goes through
//! memory, which holds both. Decoding writes the tiles that are multiplied next: a tile that was just written
//! is slow to load. Clobbers: caller-saved registers, flags, and the tiles.

use super::AsmKernel;
use super::gemm_bf16_avx512::decode;
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::{
    DECODED_BLOCK, DECODED_FACTORS, PANEL_BLOCK, PANEL_ROWS, PANEL_SCALES, PRODUCT_BYTES, PRODUCTS, ROW_BYTES,
};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterTmm, AsmRegisterZmm, CodeAssembler, dword_bcst, dword_ptr, k1, ptr, qword_ptr,
    tmm0, tmm1, tmm2, tmm4, tmm6, zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS};
use kernmill_plan::target::Features;

/// Decoding.
pub const DECODE: AsmKernel = AsmKernel {
    name: "decode_tiles_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::DecodeTiles,
    assemble: |a, _| decode(a, true),
};

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_tiles_amx",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::GemmTiles { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmTiles { stride } => Gemm::assemble(a, stride),
        _ => Ok(()),
    },
};

/// Products that are under way at once.
const TILES: [AsmRegisterTmm; 3] = [tmm0, tmm1, tmm2];
const ROWS: AsmRegisterTmm = tmm4;
const WEIGHTS: AsmRegisterTmm = tmm6;

// A tile has 16 rows of a line; there is memory for the products that are scaled and for those under way.
const _: () = assert!(TILE_ROWS * 4 == LINE && ROW_BYTES == LINE && BLOCK / 2 == PANEL_ROWS);
const _: () = assert!(2 * TILES.len() == PRODUCTS);

/// Registers of a gemm.
struct Gemm {
    weights: AsmRegister64,
    panel: AsmRegister64,
    sums: AsmRegister64,
    blocks: AsmRegister64,
    /// Products that are scaled, and those under way.
    now: AsmRegister64,
    next: AsmRegister64,
    /// Bytes of a line.
    line: AsmRegister64,
    rest: AsmRegister64,
    acc: Vec<AsmRegisterZmm>,
    product: [AsmRegisterZmm; 2],
    factors: AsmRegisterZmm,
    one: AsmRegisterZmm,
}

impl Gemm {
    fn assemble(a: &mut CodeAssembler, stride: usize) -> Result<(), IcedError> {
        let mut regs = Regs::with_params(5);
        let [next, line, rest] = [(); 3].map(|()| regs.general());
        let gemm = Gemm {
            weights: PARAMS[0],
            panel: PARAMS[1],
            sums: PARAMS[2],
            blocks: PARAMS[3],
            now: PARAMS[4],
            next,
            line,
            rest,
            acc: regs.vectors(PANEL_ROWS),
            product: [regs.vector(), regs.vector()],
            factors: regs.vector(),
            one: regs.vector(),
        };
        let mut constants = a.create_label();
        let (mut done, mut small, mut store) = (a.create_label(), a.create_label(), a.create_label());
        regs.save(a)?;
        a.test(gemm.blocks, gemm.blocks)?;
        a.je(done)?;
        a.lea(SCRATCH, qword_ptr(constants))?;
        a.vpbroadcastd(gemm.one, dword_ptr(SCRATCH))?;
        a.mov(gemm.line, LINE as u64)?;
        a.lea(gemm.next, ptr(gemm.now + TILES.len() * PRODUCT_BYTES))?;
        for (token, acc) in gemm.acc.iter().enumerate() {
            a.vmovups(*acc, zmmword_ptr(gemm.sums + token * stride))?;
        }
        gemm.look_for_small(a)?;
        a.jne(small)?;
        gemm.multiply(a, false)?;
        a.jmp(store)?;
        a.set_label(&mut small)?;
        gemm.multiply(a, true)?;
        a.set_label(&mut store)?;
        for (token, acc) in gemm.acc.iter().enumerate() {
            a.vmovups(zmmword_ptr(gemm.sums + token * stride), *acc)?;
        }
        a.set_label(&mut done)?;
        regs.restore_and_return(a)?;
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
        a.vminps(self.factors, self.factors, zmmword_ptr(SCRATCH + DECODED_FACTORS))?;
        a.add(SCRATCH, DECODED_BLOCK as i32)?;
        a.dec(self.rest)?;
        a.jne(again)?;
        // Less than.
        a.vcmpps(k1, self.factors, self.one, 1)?;
        a.kortestd(k1, k1)
    }

    /// All blocks, first those that three do not divide.
    fn multiply(&self, a: &mut CodeAssembler, factors: bool) -> Result<(), IcedError> {
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
        self.scale(a, 0, factors)?;
        self.pass(a, 1)?;
        a.dec(self.rest)?;
        a.jne(single)?;
        a.test(self.blocks, self.blocks)?;
        a.je(end)?;
        a.set_label(&mut threes)?;
        for block in 0..three {
            self.product(a, block, block)?;
        }
        for block in 0..three {
            self.store(a, self.now, block)?;
        }
        a.sub(self.blocks, three as i32)?;
        a.je(last)?;
        a.set_label(&mut again)?;
        for block in 0..three {
            self.product(a, three + block, block)?;
            self.scale(a, block, factors)?;
            self.store(a, self.next, block)?;
        }
        self.pass(a, three)?;
        a.mov(SCRATCH, self.now)?;
        a.mov(self.now, self.next)?;
        a.mov(self.next, SCRATCH)?;
        a.sub(self.blocks, three as i32)?;
        a.jne(again)?;
        a.set_label(&mut last)?;
        for block in 0..three {
            self.scale(a, block, factors)?;
        }
        a.set_label(&mut end)?;
        // A label needs an instruction of its own.
        a.nop()
    }

    /// A block that lies so many behind the next one, to tile number `tile`.
    fn product(&self, a: &mut CodeAssembler, block: usize, tile: usize) -> Result<(), IcedError> {
        a.tilezero(TILES[tile])?;
        a.tileloadd(ROWS, ptr(self.panel + self.line + block * PANEL_BLOCK))?;
        a.tileloadd(WEIGHTS, ptr(self.weights + self.line + block * DECODED_BLOCK))?;
        a.tdpbf16ps(TILES[tile], ROWS, WEIGHTS)
    }

    fn store(&self, a: &mut CodeAssembler, to: AsmRegister64, tile: usize) -> Result<(), IcedError> {
        a.tilestored(ptr(to + self.line + tile * PRODUCT_BYTES), TILES[tile])
    }

    /// Adds the product of a block that lies so many behind the next one.
    fn scale(&self, a: &mut CodeAssembler, block: usize, factors: bool) -> Result<(), IcedError> {
        if factors {
            let place = self.weights + (block * DECODED_BLOCK + DECODED_FACTORS);
            a.vmovups(self.factors, zmmword_ptr(place))?;
        }
        for (token, acc) in self.acc.iter().enumerate() {
            let product = self.product[token % 2];
            a.vmovups(product, zmmword_ptr(self.now + (block * PRODUCT_BYTES + token * LINE)))?;
            if factors {
                a.vmulps(product, product, self.factors)?;
            }
            let scale = dword_bcst(self.panel + (block * PANEL_BLOCK + PANEL_SCALES + token * 4));
            a.vfmadd231ps(*acc, product, scale)?;
        }
        Ok(())
    }

    /// Goes on behind so many blocks.
    fn pass(&self, a: &mut CodeAssembler, blocks: usize) -> Result<(), IcedError> {
        a.add(self.weights, (blocks * DECODED_BLOCK) as i32)?;
        a.add(self.panel, (blocks * PANEL_BLOCK) as i32)
    }
}
