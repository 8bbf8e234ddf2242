//! `fn(x: *const f32, bias: *const f32, weights: *const f32, targets: *const *mut f32, offset: u64, rows:
//! u64)`: adds `rows` rows of `n` f32, a multiple of 16, to targets that lie anywhere.
//!
//! For each row r and each i < n: `t = targets[r] + offset` (bytes), `t[i] = fma(weights[r], x[r][i] +
//! bias[i], t[i])`; without a bias, which the micro-kernel then does not read, `x[r][i]` as it is. Rows of x
//! follow each other. They are added in order: a target may come more than once.

use super::param::{Amount, Param, Region};
use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::{F32X4, I64};

pub fn contract(n: usize, bias: bool) -> Vec<Param> {
    let rows = || Amount::param(5);
    vec![
        Param::Read(Region::new(Amount::times(5, n * 4))),
        if bias { Param::Read(Region::new(n * 4)) } else { Param::Ahead },
        Param::Read(Region::new(Amount::times(5, 4))),
        Param::Targets { rows: rows(), offset: Amount::param(4), bytes: n * 4 },
        Param::Number,
        Param::Number,
    ]
}

pub fn emit(e: &mut Emit, params: &[Value], n: usize, bias: bool) {
    let (x, biases, weights, targets, offset, rows) =
        (params[0], params[1], params[2], params[3], params[4], params[5]);
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, row| {
        let (x, weight, target) = (e.at(x, row, n * 4), e.at(weights, row, 4), e.at(targets, row, 8));
        let weight = e.load_splat(weight, 0);
        let target = e.load(I64, target, 0);
        let target = e.add(target, offset);
        for i in 0..n / LANES {
            let mut y = e.load(F32X4, x, i * LANES * 4);
            if bias {
                let b = e.load(F32X4, biases, i * LANES * 4);
                y = e.fadd(y, b);
            }
            let old = e.load(F32X4, target, i * LANES * 4);
            let new = e.fma(weight, y, old);
            e.store(new, target, i * LANES * 4);
        }
    });
}
