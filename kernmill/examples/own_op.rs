//! A fused op of one's own: the embedded model is compiled without the built-in fusion of projections with
//! the residual stream, then with one from a spec below. There is less to do at every token, and the text is
//! the same.
//!
//! `cargo run --package kernmill --example own_op`

#![allow(clippy::print_stdout)]

use kernmill::locate::nano;
use kernmill::{Model, Opened, Options, Result, Sampling};
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec};

/// A projection and the addition behind it become one kernel: the sum is made while the product is still in
/// registers.
const SPEC: &str = r#"
name = "own_residual"
doc = "a projection added to the residual stream"
kernel = "matmul"

match = [
  { name = "quant", op = "quantize_q8", inputs = ["x"], part = "prologue", optional = true },
  { name = "linear", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "add", op = "add", inputs = ["linear", "residual"], part = "epilogue" },
]
outputs = ["add"]
"#;

/// Kernels that run for one token, and a text.
fn run(fused: FusedSet) -> Result<(usize, String)> {
    let mut options = Options::default();
    options.compile.fused = fused;
    let prepared = Opened::open(nano(), &options)?.prepare(&options)?;
    let kernels = prepared.program().classes[0].steps.len();
    let text = Model::nano_with(&options)?.generate("A slice is", &Sampling::greedy().max_tokens(16))?;
    Ok((kernels, text.whole()?.text))
}

fn main() -> Result<()> {
    let without = FusedSet::builtin().without("linear_residual").expect("it is built in");
    let own = FusedSpec::parse("own_residual.toml", SPEC)?;
    let (before, text) = run(without.clone())?;
    let (after, same) = run(without.with(vec![own])?)?;
    println!("{before} kernels a token without the fused op, {after} with it");
    println!("A slice is{same}");
    assert!(after < before, "the spec fuses nothing");
    assert_eq!(text, same, "fusing changes no bit");
    Ok(())
}
