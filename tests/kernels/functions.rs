//! How accurate the functions of expressions are, over every exponent, and that each has one result
//! everywhere.

use super::rows::{EDGES, assert_same, call_map};
use super::{Code, choose, name, versions};
use fastrand::Rng;
use kernmill_compiler::interp::eval;
use kernmill_compiler::ir::expr;
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::map::Map;
use std::fs;

/// Elements of a row; the sample is whole rows.
const ROW: usize = 1024;

/// 128 numbers of every exponent and sign (zeros, denormals, infinities and NaNs among them), edges, and
/// everyday numbers.
fn sample() -> Vec<f32> {
    let mut rng = Rng::with_seed(17);
    let mut sample = EDGES.to_vec();
    for top in 0..512u32 {
        let fixed = [0, 1, 0x3f_ffff, 0x40_0000, 0x7f_ffff];
        let random = (fixed.len()..128).map(|_| rng.u32(..1 << 23));
        let mantissas: Vec<u32> = fixed.into_iter().chain(random).collect();
        sample.extend(mantissas.into_iter().map(|mantissa| f32::from_bits(top << 23 | mantissa)));
    }
    while sample.len() < 192 * ROW {
        sample.push((rng.f32() - 0.5) * if rng.bool() { 4.0 } else { 200.0 });
    }
    sample
}

/// The unit of the error.
enum Unit {
    /// Steps between floats at the exact result; below 2^-126, 2^-149.
    Ulp,
    /// 2^-24, for results of up to 1.
    OfOne,
    /// 2^-24 of the argument; of a denormal, 2^-149.
    OfArgument,
}

/// A line of the table in docs/dev/numerics.md.
struct ErrorBound {
    call: &'static str,
    exact: fn(f64) -> f64,
    /// Arguments for which it holds.
    range: (f32, f32),
    limit: f64,
    unit: Unit,
}

const ALL: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

fn gelu_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    // 1 + tanh(y) without cancellation.
    x / (1.0 + (-2.0 * inner).exp())
}

fn gelu_erf(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x / std::f64::consts::SQRT_2)
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

const CLAIMS: [ErrorBound; 12] = [
    ErrorBound { call: "-x", exact: |x| -x, range: ALL, limit: 0.0, unit: Unit::Ulp },
    ErrorBound { call: "abs(x)", exact: f64::abs, range: ALL, limit: 0.0, unit: Unit::Ulp },
    ErrorBound {
        call: "sqrt(x)",
        exact: f64::sqrt,
        range: (0.0, f32::INFINITY),
        limit: 0.5,
        unit: Unit::Ulp,
    },
    ErrorBound {
        call: "rsqrt(x)",
        exact: |x| 1.0 / x.sqrt(),
        range: (1e-45, f32::MAX),
        limit: 1.5,
        unit: Unit::Ulp,
    },
    ErrorBound { call: "exp(x)", exact: f64::exp, range: (-87.0, 88.0), limit: 1.0, unit: Unit::Ulp },
    ErrorBound { call: "log(x)", exact: f64::ln, range: (1e-45, f32::MAX), limit: 1.0, unit: Unit::Ulp },
    ErrorBound {
        call: "sigmoid(x)",
        exact: |x| 1.0 / (1.0 + (-x).exp()),
        range: (-87.0, f32::INFINITY),
        limit: 2.5,
        unit: Unit::Ulp,
    },
    ErrorBound {
        call: "silu(x)",
        exact: |x| x / (1.0 + (-x).exp()),
        range: (-87.0, f32::MAX),
        limit: 3.0,
        unit: Unit::Ulp,
    },
    ErrorBound { call: "tanh(x)", exact: f64::tanh, range: ALL, limit: 3.0, unit: Unit::OfOne },
    ErrorBound {
        call: "gelu(x)",
        exact: gelu_tanh,
        range: (-1e12, 1e12),
        limit: 3.0,
        unit: Unit::OfArgument,
    },
    ErrorBound {
        call: "gelu_erf(x)",
        exact: gelu_erf,
        range: (-13.0, f32::MAX),
        limit: 5.0,
        unit: Unit::Ulp,
    },
    ErrorBound {
        call: "softplus(x)",
        exact: softplus,
        range: (-87.0, f32::MAX),
        limit: 3.0,
        unit: Unit::Ulp,
    },
];

fn ulp(exact: f64) -> f64 {
    let exponent = libm::ilogb(exact).max(-126);
    2f64.powi(exponent - 23)
}

/// The error of `actual`, in units.
fn error(claim: &ErrorBound, x: f32, actual: f32) -> f64 {
    let exact = (claim.exact)(f64::from(x));
    if exact == f64::from(actual) {
        return 0.0;
    }
    let unit = match claim.unit {
        Unit::Ulp => ulp(exact),
        Unit::OfOne => 2f64.powi(-24),
        Unit::OfArgument => (2f64.powi(-24) * f64::from(x).abs()).max(2f64.powi(-149)),
    };
    (f64::from(actual) - exact).abs() / unit
}

#[test]
fn functions_are_as_accurate_as_the_document_says() {
    let document = fs::read_to_string(crate::docs::root().join("docs/dev/numerics.md")).unwrap();
    let sample = sample();
    let mut wrong = Vec::new();
    for claim in &CLAIMS {
        let expr = expr::parse(claim.call, &["x"]).unwrap();
        let within = sample.iter().filter(|x| (claim.range.0..=claim.range.1).contains(*x));
        let errors = within.map(|x| (error(claim, *x, eval(&expr, &[*x])), *x));
        let (worst, at) = errors.fold((-1.0, 0.0), |a, b| if b.0 <= a.0 { a } else { b });
        let unit = match claim.unit {
            Unit::Ulp => "ULP",
            Unit::OfOne => "2^-24",
            Unit::OfArgument => "2^-24 of x",
        };
        let row = format!("| `{}` | {:?} {unit} |", claim.call, claim.limit);
        // A limit that is far from what is seen says nothing.
        let tight = claim.limit == 0.0 || worst > 0.6 * claim.limit;
        if !(worst <= claim.limit && tight && document.contains(&row)) {
            wrong.push(format!("{row} measured {worst:.4} at {at:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/dev/numerics.md should have, or the functions give:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn results_outside_of_the_claims_are_as_the_document_says() {
    let (nan, infinity, tiny) = (f32::NAN, f32::INFINITY, 1e-45);
    for (call, x, expected) in [
        ("exp(x)", 88.5, eval(&expr::parse("exp(88)", &[]).unwrap(), &[])),
        ("exp(x)", infinity, eval(&expr::parse("exp(88)", &[]).unwrap(), &[])),
        ("exp(x)", nan, eval(&expr::parse("exp(88)", &[]).unwrap(), &[])),
        ("exp(x)", -87.1, 0.0),
        ("exp(x)", -infinity, 0.0),
        ("log(x)", 0.0, -infinity),
        ("log(x)", -0.0, -infinity),
        ("log(x)", -tiny, nan),
        ("log(x)", -infinity, nan),
        ("log(x)", nan, nan),
        ("log(x)", infinity, infinity),
        ("log(x)", 1.0, 0.0),
        ("sqrt(x)", -0.0, -0.0),
        ("sqrt(x)", -tiny, nan),
        ("rsqrt(x)", 0.0, infinity),
        ("rsqrt(x)", infinity, 0.0),
        ("silu(x)", nan, nan),
        ("gelu(x)", nan, nan),
        ("tanh(x)", infinity, 1.0),
        ("tanh(x)", -infinity, -1.0),
        ("gelu_erf(x)", -14.5, -0.0),
        ("gelu_erf(x)", -infinity, -0.0),
        ("gelu_erf(x)", infinity, infinity),
        ("gelu_erf(x)", nan, nan),
        ("gelu_erf(x)", 0.0, 0.0),
        ("gelu_erf(x)", -0.0, -0.0),
        ("softplus(x)", -88.0, 0.0),
        ("softplus(x)", -infinity, 0.0),
        ("softplus(x)", infinity, infinity),
        ("softplus(x)", nan, nan),
        ("bf16(x)", f32::MAX, infinity),
        ("bf16(x)", -1e-40, -0.0),
        ("bf16(x)", 1.0 + 1.0 / 256.0, 1.0),
        ("bf16(x)", 1.0 + 3.0 / 256.0, 1.015625),
        ("bf16(x)", nan, nan),
        ("f16(x)", 65519.996, 65504.0),
        ("f16(x)", 65520.0, infinity),
        ("f16(x)", -infinity, -infinity),
        ("f16(x)", 2f32.powi(-25), 0.0),
        ("f16(x)", 3.0 * 2f32.powi(-25), 2f32.powi(-23)),
        ("f16(x)", nan, nan),
        ("select(x < 0, 1, 2)", nan, 2.0),
        ("select(x >= x, 1, 2)", nan, 2.0),
        ("select(x == 0, 1, 2)", -0.0, 1.0),
    ] {
        let actual = eval(&expr::parse(call, &["x"]).unwrap(), &[x]);
        assert_same(actual, expected, || format!("{call} of {x:?}"));
    }
}

#[test]
fn functions_have_one_result_everywhere() {
    let sample = sample();
    let others = ["bf16(x)", "f16(x)", "select(x < 1, x, 2)", "select(abs(x) <= 7, log(abs(x)), -x)"];
    for call in CLAIMS.iter().map(|claim| claim.call).chain(others) {
        let expr = expr::parse(call, &["x"]).unwrap();
        let expected: Vec<f32> = sample.iter().map(|x| eval(&expr, &[*x])).collect();
        let ukernel = MicroKernel::Map(Map::new(expr, ROW, &[4 * ROW], 4 * ROW));
        for (level, version) in versions() {
            let code = Code::new(
                generate_ukernels(std::slice::from_ref(&ukernel), level, &choose(level, version)).unwrap(),
            );
            let mut out = vec![0.0; sample.len()];
            call_map(&code, 0, std::slice::from_ref(&sample), &mut out, sample.len() / ROW);
            for ((x, actual), expected) in sample.iter().zip(&out).zip(&expected) {
                assert_same(*actual, *expected, || format!("{} {call} of {x:?}", name(level, version)));
            }
        }
    }
}
