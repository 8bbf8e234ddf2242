//! How a `DotQ8x4` goes through its tiles: together, block by block, or one after the other, while it fetches
//! what comes later. A prefetch past the last tile does not fault.
//!
//! Most memory that is read in several places in turn arrives faster than in one: on a Zen 4
//! (benches/micro-kernels.rs) a thread streams mxfp4 at 25 GB/s and int8 at 29 through four tiles, at 22 and
//! 23 through one, where a plain read has 30. The prefetches into L2 are at first of the tiles' own data,
//! near their end of the four tiles behind them, and all along of those tiles' scales. Tiles take turns line
//! by line: two, four or eight lines of one at a time cost one thread of a Zen 3 6, 14 and 28 percent of int8
//! (`benches/runs/2026-11-22-zen3.md`).
//!
//! On a Zen 5 one place is as good as several, and each jump to other places costs 0.2 us, however much was
//! fetched there before. One tile after the other, every byte fetched in the order in which it lies, scales
//! included, there is no jump in a whole share of a matrix (`benches/runs/2026-11-23-zen5.md`).

use super::block_decoder::unit_offset;
use super::regs::{PARAMS, Regs};
use super::vector::Address;
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::dot_q8::TILES_PER_CALL;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, byte_ptr, qword_ptr};
use kernmill_plan::format::{BLOCK, LINE, TileLayout, WeightFormat};

/// How fast a micro-kernel goes its way.
#[derive(Clone, Copy)]
pub struct LoopShape {
    /// Whether a turn of the loop is one block, for code that would not fit the cache of decoded instructions
    /// otherwise, and not as many as have their scales in one line.
    pub short: bool,
    /// Bytes of each place that prefetching is ahead.
    pub ahead: usize,
    /// Whether tiles come one after the other and bytes are fetched as they lie, into L1; instead of tiles
    /// together, into L2.
    pub linear: bool,
}

/// The way, and the registers that say how far it is gone.
pub struct Walk {
    format: WeightFormat,
    k: usize,
    pace: LoopShape,
    /// The first tile's scales, then advancing. The micro-kernel's first parameter.
    pub scales: AsmRegister64,
    /// The first tile's data, then advancing.
    pub data: AsmRegister64,
    /// Data to prefetch, advancing; unless linear, at one block set back to the next tiles' first.
    ahead: AsmRegister64,
    /// Scales to prefetch, advancing; unless linear.
    scales_ahead: AsmRegister64,
    /// Four times the block's number.
    pub block: AsmRegister64,
    /// Units of the first tile's scales, and how far behind them those of the block are.
    units: Option<[AsmRegister64; 2]>,
}

impl Walk {
    /// Takes its registers of `regs`, in which the first parameter is taken.
    pub fn new(regs: &mut Regs, format: WeightFormat, k: usize, pace: LoopShape) -> Walk {
        let [data, ahead, scales_ahead, block] = [(); 4].map(|()| regs.general());
        let units = format.parts().is_super().then(|| [regs.general(), regs.general()]);
        Walk { format, k, pace, scales: PARAMS[0], data, ahead, scales_ahead, block, units }
    }

    /// Where the units of the block's scales are, in the tile `offset` bytes on, if scales have units.
    pub fn units(&self, offset: usize) -> Option<Address> {
        self.units.map(|[units, block]| Address { base: units, index: Some(block), offset })
    }

    /// Finds the units of the block.
    pub fn block_units(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.units.map_or(Ok(()), |[_, offset]| unit_offset(a, self.format, offset, self.block))
    }

    /// Tiles that go together.
    pub fn together(&self) -> usize {
        if self.pace.linear { 1 } else { TILES_PER_CALL }
    }

    /// Bytes from one tile to the next.
    pub fn tile(&self) -> usize {
        self.format.tile(self.k).bytes()
    }

    fn block_bytes(&self) -> usize {
        data_lines(self.format) * LINE
    }

    /// Asks for the line of the data as far behind [`Walk::data`] as prefetching is ahead, `at` bytes on.
    /// Once for every line of a block and tile.
    pub fn fetch(&self, a: &mut CodeAssembler, at: usize) -> Result<(), IcedError> {
        let place = byte_ptr(self.ahead + at);
        if self.pace.linear { a.prefetcht0(place) } else { a.prefetcht1(place) }
    }

    /// The loops: for tiles that go together `one_block(a, first of them)` for every block, with the
    /// registers at it.
    pub fn all_blocks(
        &self,
        a: &mut CodeAssembler,
        one_block: impl Fn(&mut CodeAssembler, usize) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let layout = self.format.tile(self.k);
        if self.pace.linear {
            a.lea(self.ahead, qword_ptr(self.scales + prefetch_distance(self.pace.ahead, layout)))?;
        }
        for first in (0..TILES_PER_CALL).step_by(self.together()) {
            if first > 0 {
                let passed = layout.unit_bytes + self.k / BLOCK * scale_bytes(self.format);
                a.add(self.scales, (self.tile() - passed) as i32)?;
            }
            a.lea(self.data, qword_ptr(self.scales + layout.scale_bytes))?;
            if let Some([units, _]) = self.units {
                a.mov(units, self.scales)?;
                a.add(self.scales, layout.unit_bytes as i32)?;
                self.fetch_units(a)?;
            }
            a.xor(self.block, self.block)?;
            self.one_pass(a, |a| one_block(a, first))?;
        }
        Ok(())
    }

    fn one_pass(
        &self,
        a: &mut CodeAssembler,
        one_block: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let (blocks, per_line) = (self.k / BLOCK, blocks_per_line(self.format));
        let turn = if self.pace.short { 1 } else { per_line };
        // From this block on the tiles' own data have all been asked for.
        let own = blocks.saturating_sub(self.pace.ahead / self.block_bytes()) / turn * turn;
        let next = TILES_PER_CALL * self.tile();
        if !self.pace.linear {
            a.lea(self.ahead, qword_ptr(self.data + (blocks - own) * self.block_bytes()))?;
            a.lea(self.scales_ahead, qword_ptr(self.scales + next))?;
        }
        let step = |a: &mut CodeAssembler| {
            one_block(a)?;
            a.add(self.scales, scale_bytes(self.format) as i32)?;
            a.add(self.data, self.block_bytes() as i32)?;
            a.add(self.ahead, self.block_bytes() as i32)?;
            a.add(self.block, 4)
        };
        if blocks >= turn {
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            if !self.pace.linear {
                let mut same = a.create_label();
                a.cmp(self.block, (own * 4) as i32)?;
                a.jne(same)?;
                a.lea(self.ahead, qword_ptr(self.data + (next - own * self.block_bytes())))?;
                a.set_label(&mut same)?;
            }
            let mut asked = a.create_label();
            if turn < per_line {
                a.test(self.block, (per_line as i32 - 1) * 4)?;
                a.jne(asked)?;
            }
            self.fetch_scales(a)?;
            a.set_label(&mut asked)?;
            (0..turn).try_for_each(|_| step(a))?;
            a.cmp(self.block, (blocks / turn * turn * 4) as i32)?;
            a.jne(again)?;
        }
        if self.pace.linear && blocks % turn > 0 {
            self.fetch_scales(a)?;
        }
        (0..blocks % turn).try_for_each(|_| step(a))
    }

    /// Asks for the units of the tiles behind these, or wherever all bytes have got to.
    fn fetch_units(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let bytes = self.format.tile(self.k).unit_bytes;
        if self.pace.linear {
            (0..bytes / LINE).try_for_each(|line| self.fetch(a, line * LINE))?;
            return a.add(self.ahead, bytes as i32);
        }
        for tile in 0..TILES_PER_CALL {
            let behind = (TILES_PER_CALL + tile) * self.tile() - bytes;
            (0..bytes / LINE)
                .try_for_each(|line| a.prefetcht1(byte_ptr(self.scales + (behind + line * LINE))))?;
        }
        Ok(())
    }

    /// Asks for a line of scales of each tile: of those behind these, or wherever all bytes have got to.
    fn fetch_scales(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if self.pace.linear {
            self.fetch(a, 0)?;
            return a.add(self.ahead, LINE as i32);
        }
        for tile in 0..TILES_PER_CALL {
            a.prefetcht1(byte_ptr(self.scales_ahead + tile * self.tile()))?;
        }
        a.add(self.scales_ahead, LINE as i32)
    }
}

/// Bytes that prefetching goes ahead where bytes are fetched as they lie: `usual`, or more in long tiles, so
/// that a tile's first data, which lie behind all of its scales, are asked for in time as well. On a Zen 5
/// products of Q4_K with 14,336 columns, whose tiles begin with 17.5 KiB of scales, read 66 GB/s that way and
/// 54 with 6 KiB (`benches/runs/2026-11-29-block-formats.md`).
pub fn prefetch_distance(usual: usize, tile: TileLayout) -> usize {
    usual.max(tile.scale_bytes + 4096)
}

/// Blocks whose scales fill a line: a power of two.
fn blocks_per_line(format: WeightFormat) -> usize {
    LINE / scale_bytes(format)
}
