//! What fits and what does not.

use super::*;
use crate::asm;
use crate::expr::Expr;

fn ukernel(text: &str, vars: &[&str]) -> MicroKernel {
    let expr = Expr::parse(text, vars).unwrap();
    MicroKernel::Map(Map::new(expr, 64, &vec![256; vars.len()], 256))
}

#[test]
fn a_glu_keeps_its_constants_in_registers() {
    let text = "(clamp(up, -7, 7) + 1) * (min(gate, 7) * sigmoid(1.702 * min(gate, 7)))";
    let MicroKernel::Map(map) = ukernel(text, &["gate", "up"]) else { unreachable!() };
    let full = allocated(map, Width::Full).unwrap();
    assert_eq!(full.resident.len(), Program::of(&map.definition().expr).constants().len());
    assert!(!allocated(map, Width::Half).unwrap().resident.is_empty());
}

#[test]
fn common_parts_are_computed_once() {
    let expr = |text| Program::of(&Expr::parse(text, &["x"]).unwrap()).steps.len();
    assert_eq!(expr("sigmoid(x + 1) * sigmoid(x + 1)"), expr("sigmoid(x + 1)") + 1);
    // The same operands the other way round are another operation: the sign of a NaN may differ.
    assert_eq!(expr("(x + 1) - (1 + x)"), 3);
}

#[test]
fn trees_deeper_than_there_are_registers() {
    // To the right, inputs stay in memory and one register does; the heavier side goes first.
    let right = (0..60).fold("x".to_owned(), |text, i| format!("x / {i}.5 - ({text})"));
    // A full binary tree of depth d needs d registers.
    fn full(depth: usize, ukernel: &mut usize) -> String {
        if depth == 0 {
            *ukernel += 1;
            return format!("(x * {ukernel})");
        }
        let (a, b) = (full(depth - 1, ukernel), full(depth - 1, ukernel));
        format!("({a} - {b})")
    }
    for text in [right, full(9, &mut 0)] {
        for level in Level::ALL {
            let ukernel = ukernel(&text, &["x"]);
            let wide = asm::find(ukernel, level).unwrap();
            asm::assemble(wide, ukernel, level).unwrap();
        }
    }
    // Sixty products that are all needed again at the end.
    let products: Vec<String> = (1..=60).map(|i| format!("x * {i}.5")).collect();
    let again: Vec<String> = (1..=60).rev().map(|i| format!("(x * {i}.5) * {i}")).collect();
    let much = format!("({}) - ({})", products.join(" + "), again.join(" - "));
    for level in Level::ALL {
        assert!(asm::find(ukernel(&much, &["x"]), level).is_none());
    }
}
