//! Expressions that fit into registers, and others.

use super::*;
use crate::asm;
use crate::expr::testing::{binary, call, num, var};
use crate::expr::{Binary, Expr, Unary};
use kernmill_plan::target::Level;

fn ukernel(expr: Expr, inputs: usize) -> MicroKernel {
    MicroKernel::Map(Map::new(expr, 64, &vec![256; inputs], 256))
}

#[test]
fn a_glu_keeps_its_constants_in_registers() {
    let min = |x, limit| binary(Binary::Min, x, num(limit));
    let (gate, up) = (min(var(0), 7.0), min(binary(Binary::Max, var(1), num(-7.0)), 7.0));
    let sigmoid = call(Unary::Sigmoid, num(1.702) * gate.clone());
    let MicroKernel::Map(map) = ukernel((up + num(1.0)) * (gate * sigmoid), 2) else { unreachable!() };
    let full = allocated(&map, Width::Full).unwrap();
    assert_eq!(full.resident.len(), ExprProgram::of(&map.definition().expr).constants().len());
    assert!(!allocated(&map, Width::Half).unwrap().resident.is_empty());
}

#[test]
fn common_parts_are_computed_once() {
    let steps = |expr: &Expr| ExprProgram::of(expr).steps.len();
    let sigmoid = call(Unary::Sigmoid, var(0) + num(1.0));
    assert_eq!(steps(&(sigmoid.clone() * sigmoid.clone())), steps(&sigmoid) + 1);
    // The same operands the other way round are another operation: the sign of a NaN may differ.
    assert_eq!(steps(&((var(0) + num(1.0)) - (num(1.0) + var(0)))), 3);
}

#[test]
fn trees_deeper_than_there_are_registers() {
    // To the right, inputs stay in memory and one register does; the heavier side goes first.
    let right = (0..60).fold(var(0), |tree, i| var(0) / num(i as f32 + 0.5) - tree);
    // A full binary tree of depth d needs d registers.
    fn full(depth: usize, ukernel: &mut usize) -> Expr {
        if depth == 0 {
            *ukernel += 1;
            return var(0) * num(*ukernel as f32);
        }
        full(depth - 1, ukernel) - full(depth - 1, ukernel)
    }
    for expr in [right, full(9, &mut 0)] {
        for level in Level::ALL {
            let ukernel = ukernel(expr.clone(), 1);
            let wide = asm::find(&ukernel, level).unwrap();
            asm::assemble(wide, &ukernel).unwrap();
        }
    }
    // Sixty products that are all needed again at the end.
    let product = |i: u16| var(0) * num(f32::from(i) + 0.5);
    let products = (2..=60).fold(product(1), |sum, i| sum + product(i));
    let again = |i: u16| product(i) * num(f32::from(i));
    let again = (1..60).rev().fold(again(60), |sum, i| sum - again(i));
    for level in Level::ALL {
        assert!(asm::find(&ukernel(products.clone() - again.clone(), 1), level).is_none());
    }
}
