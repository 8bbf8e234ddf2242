//! Vector forms of the functions of docs/dev/numerics.md, and the compilation of expressions.

use crate::emit::Emit;
use crate::expr::Expr;
use crate::expr::lower::{Condition, ExprOperand, ExprProgram, ExprStep, Lanes};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::numeric::{EXP_MAX, EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2E, ROUND_MAGIC};

/// `exp(x)` of four lanes.
pub fn exp(e: &mut Emit, x: Value) -> Value {
    let max = e.splat_f32(EXP_MAX);
    let clamped = e.fmin(x, max);
    let (log2e, magic) = (e.splat_f32(LOG2E), e.splat_f32(ROUND_MAGIC));
    let t = e.fma(clamped, log2e, magic);
    let n = e.fsub(t, magic);
    let hi = e.splat_f32(-LN2_HI);
    let r = e.fma(n, hi, clamped);
    let lo = e.splat_f32(-LN2_LO);
    let r = e.fma(n, lo, r);
    let mut p = e.splat_f32(EXP_POLY[0]);
    for coefficient in &EXP_POLY[1..] {
        let c = e.splat_f32(*coefficient);
        p = e.fma(p, r, c);
    }
    let p_bits = e.cast(I32X4, p);
    let t_bits = e.cast(I32X4, t);
    let exponent = e.b.ins().ishl_imm_u(t_bits, 23);
    let bits = e.b.ins().iadd(p_bits, exponent);
    let value = e.cast(F32X4, bits);
    let (min, zero) = (e.splat_f32(EXP_MIN), e.splat_f32(0.0));
    e.lane_select(FloatCC::LessThan, x, min, zero, value)
}

/// An expression of four-lane values.
pub fn expr(e: &mut Emit, expr_tree: &Expr, vars: &[Value]) -> Value {
    let program = ExprProgram::of(expr_tree);
    let mut results: Vec<Value> = Vec::with_capacity(program.steps.len());
    for step in &program.steps {
        let sources: Vec<Value> =
            step.sources().into_iter().map(|source| value(e, source, vars, &results)).collect();
        let result = emit(e, *step, &sources);
        results.push(result);
    }
    value(e, program.result, vars, &results)
}

fn value(e: &mut Emit, source: ExprOperand, vars: &[Value], results: &[Value]) -> Value {
    match source {
        ExprOperand::Input(i) => vars[i],
        ExprOperand::Constant(bits) => e.splat_f32(f32::from_bits(bits)),
        ExprOperand::Step(i) => results[i],
    }
}

/// A step of these sources, in their order.
fn emit(e: &mut Emit, step: ExprStep, sources: &[Value]) -> Value {
    match (step, sources) {
        (ExprStep::Lanes(op, ..), &[x, y]) => lanes(e, op, x, y),
        (ExprStep::Fma(..), &[x, y, z]) => e.fma(x, y, z),
        (ExprStep::Sqrt(_), &[x]) => e.b.ins().sqrt(x),
        (ExprStep::AddExponent(..), &[p, t]) => {
            let (p, t) = (e.cast(I32X4, p), e.cast(I32X4, t));
            let exponent = e.b.ins().ishl_imm_u(t, 23);
            let bits = e.b.ins().iadd(p, exponent);
            e.cast(F32X4, bits)
        }
        (ExprStep::ZeroBelow { .. }, &[x, limit, value]) => {
            let zero = e.splat_f32(0.0);
            e.lane_select(FloatCC::LessThan, x, limit, zero, value)
        }
        (ExprStep::ShiftRight(_, bits), &[x]) => {
            let x = e.cast(I32X4, x);
            let shifted = e.b.ins().ushr_imm_u(x, i64::from(bits));
            e.cast(F32X4, shifted)
        }
        (ExprStep::Select { condition, .. }, &[a, b, yes, no]) => {
            let condition = match condition {
                Condition::Less => FloatCC::LessThan,
                Condition::LessEqual => FloatCC::LessThanOrEqual,
                Condition::Equal => FloatCC::Equal,
            };
            e.lane_select(condition, a, b, yes, no)
        }
        _ => unreachable!("a step has as many sources as it says"),
    }
}

fn lanes(e: &mut Emit, op: Lanes, x: Value, y: Value) -> Value {
    match op {
        Lanes::Add => return e.fadd(x, y),
        Lanes::Sub => return e.fsub(x, y),
        Lanes::Mul => return e.fmul(x, y),
        Lanes::Div => return e.fdiv(x, y),
        Lanes::Min => return e.fmin(x, y),
        Lanes::Max => return e.fmax(x, y),
        Lanes::Xor | Lanes::And | Lanes::Or | Lanes::AddInt => {}
    }
    let (x, y) = (e.cast(I32X4, x), e.cast(I32X4, y));
    let bits = match op {
        Lanes::Xor => e.b.ins().bxor(x, y),
        Lanes::And => e.b.ins().band(x, y),
        Lanes::Or => e.b.ins().bor(x, y),
        _ => e.b.ins().iadd(x, y),
    };
    e.cast(F32X4, bits)
}
