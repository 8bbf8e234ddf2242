//! `Score` and `Value` in 512 bits. Needs AVX-512 F.
//!
//! Score tile: 16 keys (the lanes) x up to 4 query heads, four accumulators each. Value tile: up to 64 columns of a value row (four
//! vectors) x up to 4 query heads. Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::Wide;
use super::regs::{PARAMS, Regs};
use crate::leaf::{Leaf, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, byte_ptr, dword_bcst, dword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::LINE;
use kernmill_plan::kv::{BLOCK_TOKENS, KvElem};
use kernmill_plan::target::Level;

/// Columns per vector.
const LANES: usize = 16;

/// The score version.
pub const SCORE: Wide = Wide {
    name: "score_avx512",
    levels: |level| level >= Level::V4,
    serves: |leaf| matches!(leaf, Leaf::Score { head_dim, .. } if head_dim % 4 == 0),
    assemble: |a, leaf| match leaf {
        Leaf::Score { elem, head_dim, group, scale } => score(a, elem, head_dim, group, scale),
        _ => Ok(()),
    },
};

/// The value version.
pub const VALUE: Wide = Wide {
    name: "value_avx512",
    levels: |level| level >= Level::V4,
    serves: |leaf| matches!(leaf, Leaf::Value { head_dim, .. } if head_dim % LANES == 0),
    assemble: |a, leaf| match leaf {
        Leaf::Value { elem, head_dim, group } => value(a, elem, head_dim, group),
        _ => Ok(()),
    },
};

/// Loads 16 elements as f32.
fn load16(
    a: &mut CodeAssembler,
    elem: KvElem,
    to: AsmRegisterZmm,
    base: AsmRegister64,
    offset: usize,
) -> Result<(), IcedError> {
    match elem {
        KvElem::F16 => a.vcvtph2ps(to, ymmword_ptr(base + offset)),
        KvElem::F32 => a.vmovups(to, zmmword_ptr(base + offset)),
    }
}

fn score(
    a: &mut CodeAssembler,
    elem: KvElem,
    head_dim: usize,
    group: usize,
    scale: u32,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [k, q, out, ahead] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (keys, index) = (regs.general(), regs.general());
    let (key, factor, sums) = (regs.vector(), regs.vector(), regs.vectors(16));
    let mut constants = a.create_label();
    regs.save(a)?;
    a.vpbroadcastd(factor, dword_ptr(constants))?;
    let row = BLOCK_TOKENS * elem.bytes();
    for first in (0..group).step_by(4) {
        let heads = (group - first).min(4);
        for sum in &sums[..heads * 4] {
            a.vpxord(*sum, *sum, *sum)?;
        }
        a.mov(keys, k)?;
        a.xor(index, index)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        if first == 0 {
            prefetch(a, ahead, 4 * row)?;
        }
        for d in 0..4 {
            load16(a, elem, key, keys, d * row)?;
            for head in 0..heads {
                let query = q + index + (first + head) * head_dim * 4 + d * 4;
                a.vfmadd231ps(sums[head * 4 + d], key, dword_bcst(query))?;
            }
        }
        a.add(keys, (4 * row) as i32)?;
        a.add(index, 16)?;
        a.cmp(index, (head_dim * 4) as i32)?;
        a.jne(again)?;
        for (head, acc) in sums[..heads * 4].chunks(4).enumerate() {
            a.vaddps(acc[0], acc[0], acc[1])?;
            a.vaddps(acc[2], acc[2], acc[3])?;
            a.vaddps(acc[0], acc[0], acc[2])?;
            a.vmulps(acc[0], acc[0], factor)?;
            a.vmovups(zmmword_ptr(out + (first + head) * SCORE_STRIDE), acc[0])?;
        }
    }
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&[scale])
}

fn value(a: &mut CodeAssembler, elem: KvElem, head_dim: usize, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [v, p, o, first, end, ahead] = PARAMS;
    let (row, token) = (regs.general(), regs.general());
    let (columns, sums) = (regs.vectors(4), regs.vectors(16));
    regs.save(a)?;
    let mut done = a.create_label();
    a.cmp(first, end)?;
    a.jge(done)?;
    let row_bytes = head_dim * elem.bytes();
    // The first row in view.
    a.imul_3(row, first, row_bytes as i32)?;
    a.add(v, row)?;
    for start in (0..head_dim).step_by(4 * LANES) {
        let vectors = ((head_dim - start) / LANES).min(4);
        for first_head in (0..group).step_by(4) {
            let heads = (group - first_head).min(4);
            let place = |head: usize, vector: usize| {
                zmmword_ptr(o + ((first_head + head) * head_dim + start + vector * LANES) * 4)
            };
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(sums[head * 4 + vector], place(head, vector))?;
                }
            }
            a.mov(row, v)?;
            a.mov(token, first)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            if start == 0 && first_head == 0 {
                prefetch(a, ahead, row_bytes)?;
            }
            for (vector, column) in columns[..vectors].iter().enumerate() {
                load16(a, elem, *column, row, (start + vector * LANES) * elem.bytes())?;
            }
            for head in 0..heads {
                let weight = p + token * 4 + (first_head + head) * SCORE_STRIDE;
                for (vector, column) in columns[..vectors].iter().enumerate() {
                    a.vfmadd231ps(sums[head * 4 + vector], *column, dword_bcst(weight))?;
                }
            }
            a.add(row, row_bytes as i32)?;
            a.inc(token)?;
            a.cmp(token, end)?;
            a.jl(again)?;
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(place(head, vector), sums[head * 4 + vector])?;
                }
            }
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)
}

/// The next `bytes` bytes of the later block, into L2.
fn prefetch(a: &mut CodeAssembler, ahead: AsmRegister64, bytes: usize) -> Result<(), IcedError> {
    for line in 0..bytes.div_ceil(LINE) {
        a.prefetcht1(byte_ptr(ahead + line * LINE))?;
    }
    a.add(ahead, bytes as i32)
}
