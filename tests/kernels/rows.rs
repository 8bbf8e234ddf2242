//! The micro-kernels of row-wise work against the interpreter: maps of any expression, quantisation, norms.

use super::{Code, choose, name, versions};
use fastrand::Rng;
use kernmill_compiler::interp::{eval, num};
use kernmill_compiler::ir::expr;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::map::Map;
use kernmill_plan::format::BLOCK;

/// Where functions change course, and what is no number.
pub const EDGES: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-40,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    7.0,
    -7.0,
    86.99999,
    -86.99999,
    87.0,
    -87.0,
    -87.00001,
    88.0,
    88.00001,
    0.5,
    12_582_912.0,
    1e20,
    -1e-20,
];

/// Edges, magnitudes of every size, and everyday numbers.
fn value(rng: &mut Rng) -> f32 {
    match rng.u8(..4) {
        0 => EDGES[rng.usize(..EDGES.len())],
        1 => f32::from_bits(rng.u32(..)),
        _ => (rng.f32() - 0.5) * 40.0,
    }
}

pub fn assert_same(actual: f32, expected: f32, what: impl Fn() -> String) {
    // Which NaN comes out of two is left open.
    let same = actual.to_bits() == expected.to_bits() || actual.is_nan() && expected.is_nan();
    assert!(
        same,
        "{}: {actual:?} ({:08x}), expected {expected:?} ({:08x})",
        what(),
        actual.to_bits(),
        expected.to_bits()
    );
}

/// Calls a map of `inputs`, each `[rows][stride]` f32; the output as it lies.
pub fn call_map(code: &Code, index: usize, inputs: &[Vec<f32>], out: &mut [f32], rows: usize) {
    let mut args: Vec<u64> = vec![out.as_mut_ptr() as u64];
    args.extend(inputs.iter().map(|input| input.as_ptr() as u64));
    args.push(rows as u64);
    args.resize(6, 0);
    // SAFETY: the caller's rows are as far apart as the map was told.
    unsafe {
        let f: super::operands::Function = std::mem::transmute(code.address(index));
        f(args[0], args[1], args[2], args[3], args[4], args[5]);
    }
}

/// Checks a map over rows of `n`: every input has its own distance between rows, the last of several none.
fn check_map(expr: &Expr, inputs: usize, n: usize, rows: usize, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let gap = |i: usize| if inputs > 1 && i + 1 == inputs { 0 } else { n + 16 * i };
    let strides: Vec<usize> = (0..inputs).map(|i| 4 * gap(i)).collect();
    let out_stride = n + 16;
    let ukernel = MicroKernel::Map(Map::new(expr.clone(), n, &strides, 4 * out_stride));
    let values: Vec<Vec<f32>> =
        (0..inputs).map(|i| (0..gap(i) * rows + n).map(|_| value(&mut rng)).collect()).collect();
    for (level, version) in versions() {
        let code = Code::new(
            generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version)).unwrap(),
        );
        let mut out = vec![1234.5; out_stride * rows + n];
        call_map(&code, 0, &values, &mut out, rows);
        for (at, actual) in out.iter().enumerate() {
            let (row, i) = (at / out_stride, at % out_stride);
            if row >= rows || i >= n {
                assert_eq!(*actual, 1234.5, "{} {ukernel}: wrote behind a row", name(level, version));
                continue;
            }
            let vars: Vec<f32> = (0..inputs).map(|input| values[input][gap(input) * row + i]).collect();
            assert_same(*actual, eval(expr, &vars), || {
                format!("{} {} of {vars:?}, row {row}", name(level, version), expr.text(&[]))
            });
        }
    }
}

#[test]
fn functions_of_maps_match_the_interpreter_bit_for_bit() {
    let vars = ["x", "y", "z", "w"];
    for (seed, text) in [
        "x",
        "-x",
        "1.5",
        "exp(x)",
        "sigmoid(x)",
        "silu(x)",
        "tanh(x)",
        "gelu(x)",
        "sqrt(x)",
        "rsqrt(x)",
        "x + y",
        "x - y",
        "x * y",
        "x / y",
        "min(x, y)",
        "max(x, y)",
        "min(1, x)",
        "max(0, x) - min(0, x)",
        "clamp(x, y, z)",
        "exp(2)",
        "sqrt(2) + x",
        "1 / x - 2 / y",
        "abs(x)",
        "log(x)",
        "softplus(x)",
        "gelu_erf(x)",
        "bf16(x)",
        "f16(x)",
        "select(x < y, z, w)",
        "select(x <= 0, x, y)",
        "select(1.5 > x, 2, y)",
        "select(x >= y, 3, 4)",
        "select(x == y, x + 1, 0 / y)",
        "select(sqrt(x) < sqrt(y), sqrt(x), sqrt(y)) - sqrt(y)",
        "select(2 < 1, x, y) * select(x == x, y, 1)",
        "exp(exp(x) - exp(y)) * z",
        "(clamp(y + w, -7, 7) + 1) * (min(x + z, 7) * sigmoid(1.702 * min(x + z, 7)))",
        "silu(gelu(x) + tanh(y)) / rsqrt(z) - sigmoid(w) * exp(-x)",
    ]
    .into_iter()
    .enumerate()
    {
        let expr = expr::parse(text, &vars).unwrap();
        let inputs = vars.iter().rposition(|var| text.contains(var)).map_or(0, |last| last + 1);
        for (n, rows) in [(16, 1), (32, 7), (48, 2), (80, 3), (1024, 1), (16, 0)] {
            check_map(&expr, inputs, n, rows, seed as u64);
        }
    }
}

/// A random expression with about `size` operators.
fn random_expr(rng: &mut Rng, size: usize, vars: &[&str]) -> String {
    if size == 0 {
        return match rng.u8(..4) {
            0 => format!("{:?}", (rng.f32() * 9.0).abs()),
            _ => vars[rng.usize(..vars.len())].to_owned(),
        };
    }
    let left = rng.usize(..size);
    let (a, b) = (random_expr(rng, left, vars), random_expr(rng, size - 1 - left, vars));
    match rng.u8(..18) {
        0 => format!("exp({a} / {b})"),
        1 => format!("sigmoid({a}) * ({b})"),
        2 => format!("tanh({b}) - silu({a})"),
        3 => format!("gelu({a}) + sqrt({b})"),
        4 => format!("min({a}, {b})"),
        5 => format!("clamp({a}, -3, {b})"),
        6 => format!("-({a}) / ({b})"),
        7 => format!("({a}) - rsqrt({b})"),
        8 => format!("({a}) * (({a}) + ({b}))"),
        9 => format!("({b}) - ({a})"),
        10 => format!("select({a} < {b}, {b}, 1 - {a})"),
        11 => format!("select({b} == {a}, 1, abs({b})) * ({a})"),
        12 => format!("log({a}) - softplus({b})"),
        13 => format!("gelu_erf({a}) + bf16({b})"),
        14 => format!("f16({a}) * select(0 >= {b}, {a}, 2)"),
        _ => format!("({a}) * ({b})"),
    }
}

#[test]
fn random_maps_match_the_interpreter_bit_for_bit() {
    let vars = ["x", "y", "z"];
    let mut rng = Rng::with_seed(3);
    for case in 0..60 {
        let text = random_expr(&mut rng, case % 9, &vars);
        let expr = expr::parse(&text, &vars).unwrap();
        check_map(&expr, 3, 32, 3, case as u64);
    }
}

#[test]
fn a_map_may_write_over_its_input() {
    let expr = expr::parse("silu(x) + y", &["x", "y"]).unwrap();
    let ukernel = MicroKernel::Map(Map::new(expr.clone(), 32, &[256, 0], 256));
    let mut rng = Rng::with_seed(9);
    let x: Vec<f32> = (0..64 * 5).map(|_| value(&mut rng)).collect();
    let y: Vec<f32> = (0..32).map(|_| value(&mut rng)).collect();
    for (level, version) in versions() {
        let code = Code::new(
            generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version)).unwrap(),
        );
        let mut out = x.clone();
        let place = out.as_mut_ptr();
        // SAFETY: five rows of 64 floats, and one of 32.
        unsafe {
            let f: super::operands::Function = std::mem::transmute(code.address(0));
            f(place as u64, place as u64, y.as_ptr() as u64, 5, 0, 0);
        }
        for (i, actual) in out.iter().enumerate() {
            let expected = if i % 64 < 32 { eval(&expr, &[x[i], y[i % 64]]) } else { x[i] };
            assert_same(*actual, expected, || format!("{} element {i}", name(level, version)));
        }
    }
}

/// Blocks of every kind: everyday, tiny, huge, zero, one infinity, one NaN.
fn blocks(rng: &mut Rng) -> Vec<f32> {
    let mut x = Vec::new();
    for kind in 0..48 {
        let mut block: Vec<f32> = (0..BLOCK).map(|_| (rng.f32() - 0.5) * 10.0).collect();
        let place = rng.usize(..BLOCK);
        match kind % 8 {
            0 => block.iter_mut().for_each(|x| *x *= 1e-41),
            1 => block.iter_mut().for_each(|x| *x *= 6e37),
            2 => block.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { 0.0 } else { -0.0 }),
            3 => block[place] = f32::INFINITY,
            4 => block[place] = f32::NAN,
            5 => block[place] = f32::NEG_INFINITY,
            // Halves between two integers.
            6 => block
                .iter_mut()
                .enumerate()
                .for_each(|(i, x)| *x = if i == 3 { -127.0 } else { i as f32 - 15.5 }),
            _ => {}
        }
        x.extend(block);
    }
    x
}

#[test]
fn quantisation_matches_the_interpreter_bit_for_bit() {
    let x = blocks(&mut Rng::with_seed(1));
    let count = x.len() / BLOCK;
    for (level, version) in versions() {
        let code =
            Code::new(generate_ukernels(&[MicroKernel::Quantize], level, &choose(level, version)).unwrap());
        for blocks in [0, 1, 2, 7, count] {
            let mut values = vec![99i8; x.len()];
            let (mut scales, mut sums) = (vec![-1f32; count], vec![[-9999i16; 2]; count]);
            // SAFETY: there is room for `count` blocks everywhere.
            unsafe {
                let f: super::operands::Function = std::mem::transmute(code.address(0));
                let (v, s, n) = (values.as_mut_ptr(), scales.as_mut_ptr(), sums.as_mut_ptr());
                f(x.as_ptr() as u64, v as u64, s as u64, n as u64, blocks as u64, 0);
            }
            for block in 0..count {
                let (mut q, range) = (vec![99; BLOCK], block * BLOCK..(block + 1) * BLOCK);
                let scale = match block < blocks {
                    true => num::quantize_block(&x[range.clone()], &mut q).0,
                    false => -1.0,
                };
                // Of the halves.
                let sum = match block < blocks {
                    true => [0, 1].map(|half| q[16 * half..][..16].iter().map(|q| i16::from(*q)).sum()),
                    false => [-9999; 2],
                };
                let what = format!("{} block {block} of {blocks}", name(level, version));
                assert_eq!(values[range], q, "{what}");
                assert_same(scales[block], scale, || what.clone());
                assert_eq!(sums[block], sum, "{what}");
            }
        }
    }
}

#[test]
fn norms_match_the_definition_bit_for_bit() {
    let eps = 1e-5f32;
    for n in [16, 48, 64, 2880] {
        let mut rng = Rng::with_seed(n as u64);
        let weight: Vec<f32> = (0..n).map(|_| rng.f32() + 0.5).collect();
        for kind in 0..5 {
            let x: Vec<f32> = (0..n)
                .map(|i| match (kind, i) {
                    (1, _) => 0.0,
                    (2, _) => (rng.f32() - 0.5) * 1e-42,
                    (3, 5) => f32::INFINITY,
                    (4, _) => (rng.f32() - 0.5) * 1e30,
                    _ => (rng.f32() - 0.5) * 8.0,
                })
                .collect();
            let r = 1.0 / (num::sum_squares(&x) / n as f32 + eps).sqrt();
            for (level, version) in versions() {
                let ukernel = MicroKernel::RmsNorm { n, eps: eps.to_bits() };
                let code = Code::new(
                    generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version))
                        .unwrap(),
                );
                let mut out = vec![-1f32; n];
                // SAFETY: three rows of n floats.
                unsafe {
                    let f: super::operands::Function = std::mem::transmute(code.address(0));
                    f(x.as_ptr() as u64, weight.as_ptr() as u64, out.as_mut_ptr() as u64, 0, 0, 0);
                }
                for i in 0..n {
                    let expected = (x[i] * r) * weight[i];
                    assert_same(out[i], expected, || {
                        format!("{} {ukernel} element {i}", name(level, version))
                    });
                }
            }
        }
    }
}

#[test]
fn weighted_sums_match_the_definition_bit_for_bit() {
    const OFFSET: usize = 8;
    // The first two rows have the same.
    let target = |row: usize, rows: usize| rows - row.max(1);
    for (n, rows) in [(16, 1), (32, 9), (48, 3), (96, 2), (32, 0)] {
        let mut rng = Rng::with_seed(n as u64);
        let mut random = |count: usize| -> Vec<f32> { (0..count).map(|_| value(&mut rng)).collect() };
        let (x, bias, weights, old) =
            (random(n * rows), random(n), random(rows), random((n + 2 * OFFSET) * rows));
        for (level, version) in versions() {
            for biased in [false, true] {
                let ukernel = MicroKernel::AddWeighted { n, bias: biased };
                let code = Code::new(
                    generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version))
                        .unwrap(),
                );
                let (mut new, mut expected) = (old.clone(), old.clone());
                let first = new.as_mut_ptr();
                let place = |row: usize| target(row, rows) * (n + 2 * OFFSET);
                let targets: Vec<u64> = (0..rows).map(|row| first.wrapping_add(place(row)) as u64).collect();
                for (row, weight) in weights.iter().enumerate() {
                    for i in 0..n {
                        let y = if biased { x[row * n + i] + bias[i] } else { x[row * n + i] };
                        let sum = &mut expected[place(row) + OFFSET + i];
                        *sum = weight.mul_add(y, *sum);
                    }
                }
                let args = [x.as_ptr() as u64, bias.as_ptr() as u64, weights.as_ptr() as u64];
                // SAFETY: rows and targets are as long as the micro-kernel's contract asks.
                unsafe {
                    let f: super::operands::Function = std::mem::transmute(code.address(0));
                    f(args[0], args[1], args[2], targets.as_ptr() as u64, 4 * OFFSET as u64, rows as u64);
                }
                for (at, (new, expected)) in new.iter().zip(&expected).enumerate() {
                    assert_same(*new, *expected, || format!("{} {ukernel} at {at}", name(level, version)));
                }
            }
        }
    }
}
