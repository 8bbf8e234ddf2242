//! `Score` and `Value` in 256 bits. Needs AVX2, FMA and F16C.
//!
//! Score tile: the 16 keys of a block (two vectors) x up to 2 query heads; of the four accumulators of each
//! pair, two at a time are in registers, so that a broadcast query serves two fmas. Value tile: up to 16
//! columns of a value row (two vectors) x up to 4 query heads, kept in registers over all blocks of the call.
//! Every pass over a block prefetches its share of a later one. Clobbers: caller-saved registers and flags;
//! callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::kv_elements::Narrow;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, dword_ptr, qword_ptr, ymmword_ptr};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// Keys or columns per vector.
const LANES: usize = 8;
/// Vectors of a block's keys.
const KEY_VECTORS: usize = BLOCK_TOKENS / LANES;
/// Query heads of a score tile.
const SCORE_HEADS: usize = 2;
/// Query heads of a value tile.
const VALUE_HEADS: usize = 4;
/// Vectors of columns of a value tile.
const VALUE_VECTORS: usize = 2;

/// The score version.
pub const SCORE: AsmKernel = AsmKernel {
    name: "score_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::Score { elem, head_dim,
        .. } if !elem.is_scaled() && head_dim % 4 == 0)
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Score { elem, head_dim, group, scale } => score(a, elem, head_dim, group, scale),
        _ => Ok(()),
    },
};

/// The value version.
pub const VALUE: AsmKernel = AsmKernel {
    name: "value_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::Value { elem, head_dim,
        .. } if !elem.is_scaled() && head_dim % LANES == 0)
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Value { elem, head_dim, group } => value(a, elem, head_dim, group),
        _ => Ok(()),
    },
};

fn score(
    a: &mut CodeAssembler,
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    scale: u32,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, q, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (keys, ahead, place, element) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (key, query) = (regs.halves(KEY_VECTORS), regs.half());
    let sums = regs.halves(2 * KEY_VECTORS * SCORE_HEADS);
    let held = regs.halves(KEY_VECTORS * SCORE_HEADS);
    let mut constants = a.create_label();
    let mut elements = Narrow::new(a, elem);
    let (mut next, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    a.set_label(&mut next)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    a.mov(keys, qword_ptr(list))?;
    a.mov(ahead, qword_ptr(list + BLOCKS_AHEAD * 8))?;
    let row = elem.elements_bytes(BLOCK_TOKENS);
    let passes = 2 * group.div_ceil(SCORE_HEADS);
    for first in (0..group).step_by(SCORE_HEADS) {
        let heads = (group - first).min(SCORE_HEADS);
        for phase in 0..2 {
            prefetch::share(a, ahead, head_dim * row, (first / SCORE_HEADS * 2 + phase, passes))?;
            for sum in &sums {
                a.vpxor(*sum, *sum, *sum)?;
            }
            a.xor(place, place)?;
            a.xor(element, element)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            for (d, sums) in sums.chunks(KEY_VECTORS * SCORE_HEADS).enumerate() {
                let d = phase * 2 + d;
                for (vector, key) in key.iter().enumerate() {
                    elements.load(a, *key, keys + place + (d * row + vector * elem.elements_bytes(LANES)))?;
                }
                for (head, sums) in sums.chunks(KEY_VECTORS).enumerate().take(heads) {
                    let from = q + element + ((first + head) * head_dim * 4 + d * 4);
                    a.vbroadcastss(query, dword_ptr(from))?;
                    for (sum, key) in sums.iter().zip(&key) {
                        a.vfmadd231ps(*sum, *key, query)?;
                    }
                }
            }
            a.add(place, (4 * row) as i32)?;
            a.add(element, 16)?;
            a.cmp(element, (head_dim * 4) as i32)?;
            a.jne(again)?;
            let (left, right) = sums.split_at(KEY_VECTORS * SCORE_HEADS);
            for i in 0..heads * KEY_VECTORS {
                if phase == 0 {
                    a.vaddps(held[i], left[i], right[i])?;
                    continue;
                }
                a.vaddps(left[i], left[i], right[i])?;
                a.vaddps(left[i], held[i], left[i])?;
                let (head, vector) = (first + i / KEY_VECTORS, i % KEY_VECTORS);
                a.vbroadcastss(query, dword_ptr(constants))?;
                a.vmulps(left[i], left[i], query)?;
                a.vmovups(ymmword_ptr(out + (head * SCORE_STRIDE + vector * LANES * 4)), left[i])?;
            }
        }
    }
    a.add(list, 8)?;
    a.add(out, (BLOCK_TOKENS * 4) as i32)?;
    a.dec(blocks)?;
    a.jmp(next)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&[scale])?;
    elements.finish(a)
}

fn value(a: &mut CodeAssembler, elem: KvFormat, head_dim: usize, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [list, p, o, blocks, first, end] = PARAMS;
    let (row, ahead, token, stop) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (block, skip) = (regs.general(), regs.general());
    let weight = regs.half();
    let (columns, sums) = (regs.halves(VALUE_VECTORS), regs.halves(VALUE_VECTORS * VALUE_HEADS));
    let mut elements = Narrow::new(a, elem);
    regs.save(a)?;
    let mut done = a.create_label();
    a.cmp(first, end)?;
    a.jge(done)?;
    let row_bytes = elem.elements_bytes(head_dim);
    let head_tiles = group.div_ceil(VALUE_HEADS);
    let passes = head_dim.div_ceil(VALUE_VECTORS * LANES) * head_tiles;
    for (number, start) in (0..head_dim).step_by(VALUE_VECTORS * LANES).enumerate() {
        let vectors = ((head_dim - start) / LANES).min(VALUE_VECTORS);
        for first_head in (0..group).step_by(VALUE_HEADS) {
            let heads = (group - first_head).min(VALUE_HEADS);
            let pass = number * head_tiles + first_head / VALUE_HEADS;
            let place = |head: usize, vector: usize| {
                ymmword_ptr(o + ((first_head + head) * head_dim + start + vector * LANES) * 4)
            };
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(sums[head * VALUE_VECTORS + vector], place(head, vector))?;
                }
            }
            a.imul_3(skip, first, row_bytes as i32)?;
            a.mov(token, first)?;
            a.xor(block, block)?;
            a.xor(stop, stop)?;
            let (mut next, mut again) = (a.create_label(), a.create_label());
            a.set_label(&mut next)?;
            a.mov(row, qword_ptr(list + block * 8))?;
            // The first row in view.
            a.add(row, skip)?;
            a.xor(skip, skip)?;
            a.mov(ahead, qword_ptr(list + block * 8 + BLOCKS_AHEAD * 8))?;
            prefetch::share(a, ahead, elem.plane_bytes(head_dim), (pass, passes))?;
            a.add(stop, BLOCK_TOKENS as i32)?;
            a.cmp(stop, end)?;
            a.cmovg(stop, end)?;
            a.set_label(&mut again)?;
            for (vector, column) in columns[..vectors].iter().enumerate() {
                elements.load(a, *column, row + elem.elements_bytes(start + vector * LANES))?;
            }
            for head in 0..heads {
                a.vbroadcastss(weight, dword_ptr(p + token * 4 + (first_head + head) * SCORE_STRIDE))?;
                for (vector, column) in columns[..vectors].iter().enumerate() {
                    a.vfmadd231ps(sums[head * VALUE_VECTORS + vector], *column, weight)?;
                }
            }
            a.add(row, row_bytes as i32)?;
            a.inc(token)?;
            a.cmp(token, stop)?;
            a.jl(again)?;
            a.inc(block)?;
            a.cmp(block, blocks)?;
            a.jl(next)?;
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(place(head, vector), sums[head * VALUE_VECTORS + vector])?;
                }
            }
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    elements.finish(a)
}
