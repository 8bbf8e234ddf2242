//! `GemmStrip` on AMX tiles. Needs AVX-512, AMX-TILE, AMX-BF16 and AMX-INT8.
//!
//! A panel's tile of a block is loaded once for both tiles of weights. Every product is stored in memory,
//! which tiles and vectors share, and vectors add it to the sums later. There are registers for 16 vectors of
//! sums: those of one half of a panel's rows, by both tiles of weights, so that a row's scale is made once
//! for both. A panel's products lie there until vectors have gone through them twice, for either half.
//! Meanwhile tiles multiply the next panel: each block's products come with two blocks of one half that
//! vectors add. So tiles wait for vectors at no panel's end, and what vectors take up was stored long before.
//! A single tile of weights has all rows in one half. What bounds products of bf16 is the number of loads,
//! and for int8 that of vector operations.
//!
//! The next chunk is decoded in pieces between additions, some blocks beside each whole panel. What panels do
//! not suffice for comes behind them, as does all of a chunk that is not whole.
//!
//! Whole chunks go this way, in code without loops over blocks. Others, and those with factors below 1, which
//! few matrices have, go in loops: a panel's products first, then its sums. Clobbers: caller-saved registers,
//! flags, and the tiles.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::strip_sums::{Place, ProductScaling, RowGroup, StripSums};
use super::strip_tiles::{HALF_ROWS, PRODUCT_TILES, PendingProducts, ROWS, TileProduct, WEIGHTS};
use super::tile_decoder::{DecodePiece, TileDecoder};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::{
    CHUNK_BLOCKS, DECODING_PANELS, HALF_PANEL, PANEL_ROWS, PRODUCT_BYTES, PRODUCTS, Strip, TileElement,
};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterTmm, CodeAssembler, CodeLabel, byte_ptr, eax, k1, ptr,
    zmmword_ptr,
};
use kernmill_plan::format::{LINE, TILE_ROWS};
use kernmill_plan::target::Features;

/// Multiplying.
pub const GEMM: AsmKernel = AsmKernel {
    name: "gemm_strip_amx",
    needs: Features::AVX512.and(Features::AMX),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::GemmStrip(Strip { tiles: 1..=2, .. })),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmStrip(strip) => StripCode::assemble(a, strip),
        _ => Ok(()),
    },
};

/// Blocks whose products lie in another place for every second panel: they are stored again before vectors
/// have taken up those of the panel before.
const EARLY: usize = 2;
/// Blocks between those that tiles multiply and those that are fetched into the first cache.
const FETCHED_AHEAD: usize = 4;

// Tiles of bf16 have 16 rows of a line, and products go through their registers in the same order in every
// panel, with one tile of weights as with two. There is memory for a panel's products and the early ones of
// the next. The first of a panel's blocks are added while it is multiplied.
const _: () = assert!(TILE_ROWS * 4 == LINE && TileElement::Bf16.row_bytes() == LINE);
const _: () =
    assert!(TileElement::Bf16.lines() == PANEL_ROWS && CHUNK_BLOCKS.is_multiple_of(PRODUCT_TILES.len()));
const _: () = assert!(PRODUCTS == 2 * (CHUNK_BLOCKS + EARLY) && CHUNK_BLOCKS > FETCHED_AHEAD);

/// Registers of a strip.
struct StripCode {
    strip: Strip,
    element: TileElement,
    weights: AsmRegister64,
    panel: AsmRegister64,
    sums: AsmRegister64,
    /// Rows from the panel on.
    rows: AsmRegister64,
    blocks: AsmRegister64,
    products: AsmRegister64,
    /// Bytes of a panel's row, which also counts lines: a line is one or two.
    row: AsmRegister64,
    /// Early products of the panel, and of that before. Places of a block, in loops.
    early: [AsmRegister64; 2],
    /// Blocks to go, in loops.
    rest: AsmRegister64,
    vectors: StripSums,
    next: TileDecoder,
    regs: Regs,
}

impl StripCode {
    fn assemble(a: &mut CodeAssembler, strip: Strip) -> Result<(), IcedError> {
        let mut regs = Regs::with_params(PARAMS.len());
        let [row, rest] = [regs.general(), regs.general()];
        let early = [regs.general(), regs.general()];
        let vectors = StripSums::new(&mut regs, strip);
        // In whole chunks there are no loops, and where products are done, these vectors have nothing to do.
        let idle = (rest, [vectors.product, vectors.factors[0]]);
        let next = TileDecoder::new(a, &mut regs, strip, idle);
        let code = StripCode {
            strip,
            element: TileElement::of(strip.format),
            weights: PARAMS[0],
            panel: PARAMS[1],
            sums: PARAMS[2],
            rows: PARAMS[3],
            blocks: PARAMS[4],
            products: PARAMS[5],
            row,
            early,
            rest,
            vectors,
            next,
            regs,
        };
        let (mut done, mut in_loops) = (a.create_label(), a.create_label());
        code.regs.save(a)?;
        code.next.begin(a, &code.regs)?;
        a.test(code.rows, code.rows)?;
        a.je(done)?;
        a.test(code.blocks, code.blocks)?;
        a.je(done)?;
        a.mov(code.row, code.element.row_bytes() as u64)?;
        a.cmp(code.blocks, CHUNK_BLOCKS as i32)?;
        a.jne(in_loops)?;
        if code.element == TileElement::Bf16 {
            code.look_for_small(a)?;
            a.jne(in_loops)?;
        }
        code.all_panels(a)?;
        a.jmp(done)?;
        code.loops(a, &mut in_loops)?;
        a.set_label(&mut done)?;
        code.next.rest(a, &code.regs)?;
        code.regs.restore_and_return(a)?;
        code.next.constants(a)
    }

    /// Unequal if there is a factor below 1.
    fn look_for_small(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let (mut again, least, one) = (a.create_label(), self.vectors.factors[0], self.vectors.product);
        a.mov(eax, 1f32.to_bits())?;
        a.vpbroadcastd(one, eax)?;
        a.mov(SCRATCH, self.weights)?;
        a.mov(self.rest, self.blocks)?;
        a.vmovaps(least, one)?;
        a.set_label(&mut again)?;
        for tile in 0..self.strip.tiles {
            let factors = tile * self.element.decoded_tile() + self.element.decoded_factors();
            a.vminps(least, least, zmmword_ptr(SCRATCH + factors))?;
        }
        a.add(SCRATCH, self.element.decoded_block() as i32)?;
        a.dec(self.rest)?;
        a.jne(again)?;
        // Less than.
        a.vcmpps(k1, least, one, 1)?;
        a.kortestd(k1, k1)
    }

    /// How products are scaled where all factors are 1.
    fn scaling(&self) -> ProductScaling {
        match self.element {
            TileElement::Bf16 => ProductScaling::Done,
            TileElement::I8 => ProductScaling::Integers,
        }
    }

    /// Groups of a panel with 16 rows, or with up to [`HALF_PANEL`].
    fn groups(&self, is_half: bool, is_before: bool) -> Vec<RowGroup> {
        let rows = if is_half { HALF_PANEL } else { PANEL_ROWS };
        let count = self.vectors.group_rows().min(rows);
        (0..rows).step_by(count).map(|first| RowGroup { is_before, first, count }).collect()
    }

    /// The blocks that vectors add, in order.
    fn adds(&self, groups: &[RowGroup]) -> Vec<(RowGroup, usize)> {
        groups.iter().flat_map(|group| (0..CHUNK_BLOCKS).map(|block| (*group, block))).collect()
    }

    /// Blocks of a panel's groups that vectors add after tiles have gone on: one is stored when the next but
    /// one begins, and added when two more products have begun.
    fn behind(&self) -> usize {
        if self.strip.tiles == 2 { CHUNK_BLOCKS + 3 } else { 4 }
    }

    /// All panels of whole chunks. There is code for the first, for those behind it, and for halves; of the
    /// former two with and without decoding.
    fn all_panels(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let [now, before] = self.early;
        let [mut first, mut decoding, mut again, mut last, mut half, mut only_half, mut after_half, mut end] =
            [(); 8].map(|()| a.create_label());
        a.lea(now, ptr(self.products))?;
        a.lea(before, ptr(self.products + EARLY * self.slot_bytes()))?;
        self.next.prepare(a, &self.regs)?;
        a.cmp(self.rows, HALF_PANEL as i32)?;
        a.jbe(only_half)?;
        self.next.is_whole(a, &self.regs)?;
        a.jne(first)?;
        self.panel(a, Panel { has_before: false, is_half: false, decodes: true })?;
        a.sub(self.rows, PANEL_ROWS as i32)?;
        a.jbe(last)?;
        a.set_label(&mut decoding)?;
        self.next.is_done(a)?;
        a.je(again)?;
        self.pass_panel(a)?;
        a.cmp(self.rows, HALF_PANEL as i32)?;
        a.jbe(half)?;
        self.panel(a, Panel { has_before: true, is_half: false, decodes: true })?;
        a.sub(self.rows, PANEL_ROWS as i32)?;
        a.ja(decoding)?;
        a.jmp(last)?;
        a.set_label(&mut first)?;
        self.panel(a, Panel { has_before: false, is_half: false, decodes: false })?;
        a.sub(self.rows, PANEL_ROWS as i32)?;
        a.jbe(last)?;
        a.set_label(&mut again)?;
        self.pass_panel(a)?;
        a.cmp(self.rows, HALF_PANEL as i32)?;
        a.jbe(half)?;
        self.panel(a, Panel { has_before: true, is_half: false, decodes: false })?;
        a.sub(self.rows, PANEL_ROWS as i32)?;
        a.ja(again)?;
        a.set_label(&mut last)?;
        self.last(a, false)?;
        a.jmp(end)?;
        a.set_label(&mut half)?;
        self.panel(a, Panel { has_before: true, is_half: true, decodes: false })?;
        a.jmp(after_half)?;
        a.set_label(&mut only_half)?;
        self.panel(a, Panel { has_before: false, is_half: true, decodes: false })?;
        a.set_label(&mut after_half)?;
        self.last(a, true)?;
        a.set_label(&mut end)?;
        // A label needs a separate instruction.
        a.nop()
    }

    /// Goes on to the next panel.
    fn pass_panel(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let [now, before] = self.early;
        a.add(self.panel, self.strip.panel_stride() as i32)?;
        a.add(self.sums, (PANEL_ROWS * self.strip.stride) as i32)?;
        a.mov(SCRATCH, now)?;
        a.mov(now, before)?;
        a.mov(before, SCRATCH)
    }

    /// Products of a panel, and meanwhile sums: first what is left to add of the panel before, if there is
    /// one, which has 16 rows.
    fn panel(&self, a: &mut CodeAssembler, panel: Panel) -> Result<(), IcedError> {
        let Panel { has_before, is_half, decodes } = panel;
        let behind = self.adds(&self.groups(false, true));
        let behind = behind[behind.len() - self.behind()..].iter();
        let own = self.adds(&self.groups(is_half, false)).into_iter();
        let mut adds = behind.map(|add| has_before.then_some(*add)).chain(own.map(Some));
        let mut pending = PendingProducts::default();
        let products = CHUNK_BLOCKS * self.strip.tiles;
        if has_before {
            (products - 2..products).for_each(|product| pending.began(product, false, self.strip.tiles));
        }
        let decoded = if decodes { products.div_ceil(DECODING_PANELS) } else { 0 };
        let pieces = self.next.pieces(decoded);
        let mut group = has_before.then(|| self.groups(false, true)[0]);
        for block in 0..CHUNK_BLOCKS {
            self.multiply(a, &mut pending, block, is_half)?;
            self.fetch(a, block, is_half)?;
            for product in block * self.strip.tiles..(block + 1) * self.strip.tiles {
                let beside = part(&pieces, product, products);
                match adds.next().flatten() {
                    Some((of, added)) => {
                        self.take_up(a, &mut group, of)?;
                        self.add(a, of, added, beside)?;
                    }
                    None => self.next.decode(a, beside)?,
                }
            }
        }
        if decodes { self.next.pass(a, &self.regs, decoded, true) } else { Ok(()) }
    }

    /// The rest of the work, behind the last panel.
    fn last(&self, a: &mut CodeAssembler, is_half: bool) -> Result<(), IcedError> {
        let mut pending = PendingProducts::default();
        let last = CHUNK_BLOCKS * self.strip.tiles;
        (last - 2..last).for_each(|product| pending.began(product, is_half, self.strip.tiles));
        while let Some(product) = pending.0.pop_front() {
            self.store(a, product)?;
        }
        let groups = self.groups(is_half, false);
        let adds = self.adds(&groups);
        // As many as a panel's blocks come with are done.
        let done = CHUNK_BLOCKS * self.strip.tiles - self.behind();
        let mut group = Some(groups[0]);
        for (of, block) in &adds[done..] {
            self.take_up(a, &mut group, *of)?;
            self.add(a, *of, *block, &[])?;
        }
        group.map_or(Ok(()), |group| self.vectors.store(a, group, self.sums_of(group)))
    }

    /// Multiplies a block of the panel by each tile, and stores products that began before.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        pending: &mut PendingProducts,
        block: usize,
        is_half: bool,
    ) -> Result<(), IcedError> {
        let rows = if is_half { HALF_ROWS } else { ROWS };
        a.tileloadd(rows, ptr(self.panel + self.row + block * self.element.panel_block()))?;
        for tile in 0..self.strip.tiles {
            let weights = tile * self.element.decoded_tile() + block * self.element.decoded_block();
            a.tileloadd(WEIGHTS, ptr(self.weights + self.lines() + weights))?;
            let product = block * self.strip.tiles + tile;
            let to = TileProduct::new(product, is_half, self.strip.tiles);
            while pending.0.iter().any(|product| product.tile == to.tile) {
                pending.0.pop_front().map_or(Ok(()), |product| self.store(a, product))?;
            }
            a.tilezero(to.tile)?;
            self.dot(a, to.tile, rows)?;
            pending.began(product, is_half, self.strip.tiles);
            // Two are under way behind it.
            if pending.0.len() == PRODUCT_TILES.len() {
                pending.0.pop_front().map_or(Ok(()), |product| self.store(a, product))?;
            }
        }
        Ok(())
    }

    /// The operand that steps by lines.
    fn lines(&self) -> AsmMemoryOperand {
        self.row * (LINE / self.element.row_bytes()) as i32
    }

    fn dot(&self, a: &mut CodeAssembler, to: AsmRegisterTmm, rows: AsmRegisterTmm) -> Result<(), IcedError> {
        match self.element {
            TileElement::Bf16 => a.tdpbf16ps(to, rows, WEIGHTS),
            TileElement::I8 => a.tdpbssd(to, rows, WEIGHTS),
        }
    }

    fn store(&self, a: &mut CodeAssembler, product: TileProduct) -> Result<(), IcedError> {
        let Place(base, offset) = self.slot(product.block, false).at(product.of * PRODUCT_BYTES);
        a.tilestored(ptr(base + self.lines() + offset), product.tile)
    }

    /// Bytes of a block's products.
    fn slot_bytes(&self) -> usize {
        self.strip.tiles * PRODUCT_BYTES
    }

    /// Where the products of a block of the panel lie, or of that before.
    fn slot(&self, block: usize, is_before: bool) -> Place {
        if block < EARLY {
            return Place(self.early[usize::from(is_before)], 0).at(block * self.slot_bytes());
        }
        Place(self.products, 0).at((block + EARLY) * self.slot_bytes())
    }

    /// Fetches the block that lies so many ahead: of the panel, or of the next behind a whole one.
    fn fetch(&self, a: &mut CodeAssembler, block: usize, is_half: bool) -> Result<(), IcedError> {
        let (element, ahead) = (self.element, block + FETCHED_AHEAD);
        let first = match ahead.checked_sub(CHUNK_BLOCKS) {
            None => ahead * element.panel_block(),
            Some(_) if is_half => return Ok(()),
            Some(next) => self.strip.panel_stride() + next * element.panel_block(),
        };
        let rows = element.panel_scales() / if is_half { 2 } else { 1 };
        let mut lines = (0..rows).step_by(LINE).chain([element.panel_scales()]);
        lines.try_for_each(|at| a.prefetcht0(byte_ptr(self.panel + (first + at))))
    }

    /// Where the sums of a group's panel begin.
    fn sums_of(&self, group: RowGroup) -> Place {
        let before = if group.is_before { PANEL_ROWS * self.strip.stride } else { 0 };
        Place(self.sums, -(before as i32))
    }

    /// Stores the sums of a group, unless it goes on, and loads those of the next.
    fn take_up(
        &self,
        a: &mut CodeAssembler,
        group: &mut Option<RowGroup>,
        next: RowGroup,
    ) -> Result<(), IcedError> {
        if *group == Some(next) {
            return Ok(());
        }
        if let Some(done) = group.replace(next) {
            self.vectors.store(a, done, self.sums_of(done))?;
        }
        self.vectors.load(a, next, self.sums_of(next))
    }

    /// Adds a block to the sums of a group's rows, with pieces of decoding between them.
    fn add(
        &self,
        a: &mut CodeAssembler,
        group: RowGroup,
        block: usize,
        beside: &[DecodePiece],
    ) -> Result<(), IcedError> {
        let before = if group.is_before { self.strip.panel_stride() } else { 0 };
        let panel = Place(self.panel, -(before as i32)).at(block * self.element.panel_block());
        let weights = Place(self.weights, 0).at(block * self.element.decoded_block());
        let places = [panel, weights, self.slot(block, group.is_before)];
        let decode = |a: &mut CodeAssembler, row| self.next.decode(a, part(beside, row, group.count));
        self.vectors.add_block(a, group, places, self.scaling(), decode)
    }

    /// All panels, block by block, from the label on.
    fn loops(&self, a: &mut CodeAssembler, again: &mut CodeLabel) -> Result<(), IcedError> {
        let [panel, weights] = self.early;
        let scaling = match self.element {
            TileElement::Bf16 => ProductScaling::Factors,
            TileElement::I8 => ProductScaling::Integers,
        };
        a.set_label(again)?;
        self.each_block(a, |a| {
            a.tileloadd(ROWS, ptr(panel + self.row))?;
            for (tile, product) in PRODUCT_TILES.into_iter().enumerate().take(self.strip.tiles) {
                a.tileloadd(WEIGHTS, ptr(weights + self.lines() + tile * self.element.decoded_tile()))?;
                a.tilezero(product)?;
                self.dot(a, product, ROWS)?;
                a.tilestored(ptr(SCRATCH + self.lines() + tile * PRODUCT_BYTES), product)?;
            }
            Ok(())
        })?;
        for group in self.groups(false, false) {
            let sums = Place(self.sums, 0);
            self.vectors.load(a, group, sums)?;
            let places = [panel, weights, SCRATCH].map(|register| Place(register, 0));
            self.each_block(a, |a| self.vectors.add_block(a, group, places, scaling, |_, _| Ok(())))?;
            self.vectors.store(a, group, sums)?;
        }
        self.pass_panel(a)?;
        a.sub(self.rows, PANEL_ROWS as i32)?;
        a.ja(*again)
    }

    /// Does something for each block, with its places of the panel, the weights and, in [`SCRATCH`], of its
    /// products.
    fn each_block(
        &self,
        a: &mut CodeAssembler,
        act: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let (mut again, [panel, weights]) = (a.create_label(), self.early);
        a.mov(panel, self.panel)?;
        a.mov(weights, self.weights)?;
        a.mov(SCRATCH, self.products)?;
        a.mov(self.rest, self.blocks)?;
        a.set_label(&mut again)?;
        act(a)?;
        a.add(panel, self.element.panel_block() as i32)?;
        a.add(weights, self.element.decoded_block() as i32)?;
        a.add(SCRATCH, self.slot_bytes() as i32)?;
        a.dec(self.rest)?;
        a.jne(again)
    }
}

/// A panel's code.
#[derive(Clone, Copy)]
struct Panel {
    /// Whether there is a panel before.
    has_before: bool,
    /// Whether it has up to [`HALF_PANEL`] rows.
    is_half: bool,
    /// Whether the next chunk is decoded meanwhile.
    decodes: bool,
}

/// Part number `index` of so many parts of a list.
fn part<T>(all: &[T], index: usize, parts: usize) -> &[T] {
    &all[index * all.len() / parts..(index + 1) * all.len() / parts]
}
