//! The way of scores through blocks of keys: two vectors of keys at a time, which are a block in 256 bits and
//! two blocks in 512, so that a query in all lanes serves two products. A last odd block is one vector.

use super::prefetch;
use super::regs::{PARAMS, Regs};
use super::vector::{Vectors, Width};
use crate::ukernel::BLOCKS_AHEAD;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, qword_ptr};
use kernmill_plan::kv::BLOCK_TOKENS;

/// Vectors of keys of a tile at most.
pub const KEY_VECTORS: usize = 2;

/// A vector of keys of a tile.
#[derive(Clone, Copy)]
pub struct KeyVector {
    /// The block's keys.
    pub keys: AsmRegister64,
    /// Number of the vector's first key in the block.
    pub first: usize,
    /// Bytes from the tile's results to the vector's own.
    pub out: usize,
}

/// The pointers of micro-kernels whose parameters are a list of blocks, queries, results and a number of
/// blocks.
pub struct KeyBlocks {
    keys: Vec<AsmRegister64>,
    /// Blocks to prefetch while those are worked on.
    ahead: Vec<AsmRegister64>,
}

impl KeyBlocks {
    /// Takes the registers.
    pub fn new(regs: &mut Regs, width: Width) -> KeyBlocks {
        let mut several =
            || (0..KEY_VECTORS * width.lanes() / BLOCK_TOKENS).map(|_| regs.general()).collect();
        KeyBlocks { keys: several(), ahead: several() }
    }

    /// All blocks, each tile by `tile`, which is told how many blocks it has and may prefetch as many.
    pub fn walk(
        &self,
        v: &mut Vectors<'_>,
        tile: impl Fn(&mut Vectors<'_>, &[KeyVector], usize) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let [list, _, out, blocks, ..] = PARAMS;
        let mut next = v.a.create_label();
        for count in (1..=self.keys.len()).rev() {
            let fewer = v.a.create_label();
            v.a.set_label(&mut next)?;
            v.a.cmp(blocks, count as i32)?;
            v.a.jl(fewer)?;
            for block in 0..count {
                v.a.mov(self.keys[block], qword_ptr(list + block * 8))?;
                v.a.mov(self.ahead[block], qword_ptr(list + (block + BLOCKS_AHEAD) * 8))?;
            }
            let places = (0..count * BLOCK_TOKENS).step_by(v.width.lanes());
            let vectors: Vec<_> = places.map(|token| self.vector(token)).collect();
            tile(v, &vectors, count)?;
            v.a.add(list, (count * 8) as i32)?;
            v.a.add(out, (count * BLOCK_TOKENS * 4) as i32)?;
            v.a.sub(blocks, count as i32)?;
            v.a.jmp(next)?;
            next = fewer;
        }
        v.a.set_label(&mut next)
    }

    fn vector(&self, token: usize) -> KeyVector {
        KeyVector { keys: self.keys[token / BLOCK_TOKENS], first: token % BLOCK_TOKENS, out: token * 4 }
    }

    /// The share of a pass of what lies ahead of a tile of `count` blocks of so many bytes.
    pub fn prefetch(
        &self,
        a: &mut CodeAssembler,
        count: usize,
        bytes: usize,
        pass: (usize, usize),
    ) -> Result<(), IcedError> {
        self.ahead[..count].iter().try_for_each(|ahead| prefetch::share(a, *ahead, bytes, pass))
    }
}
