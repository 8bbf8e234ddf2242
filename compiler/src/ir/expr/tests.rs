//! Trees, errors and limits of the parser.

use super::*;

#[test]
fn text_parses_back_to_the_same_tree() {
    let vars = ["gate", "up"];
    for text in [
        "(clamp(up, -7, 7) + 1) * (min(gate, 7) * sigmoid(1.702 * min(gate, 7)))",
        "silu(gate) * up",
        "-gate - -up / 2e-3",
        "select(gate + 1 <= up, bf16(gate), select(gate>up, gelu_erf(abs(up)), -softplus(log(f16(up)))))",
        "select(gate == 0, 1, 2) + select(gate < 0, 1, 2) * select(gate>=up,1,2)",
    ] {
        let expr = parse(text, &vars).unwrap();
        assert_eq!(parse(&expr.text(&vars), &vars).unwrap(), expr, "{text}");
    }
    let one = |text| parse(text, &vars).unwrap();
    assert_eq!(one("gelu_tanh(up)"), one("gelu(up)"));
    assert_ne!(one("gelu_erf(up)"), one("gelu(up)"));
    assert_eq!(one("select(up < 1, gate, -up) + 1").operators(), 3);
}

#[test]
fn substitution_reaches_every_part() {
    let expr = parse("select(a < b, exp(a), a + b)", &["a", "b"]).unwrap();
    let swapped = expr.substitute(&[Expr::Var(1), Expr::Const(2.0)]);
    assert_eq!(swapped, parse("select(b < 2, exp(b), b + 2)", &["a", "b"]).unwrap());
}

/// The message, and what of the text it is about.
fn refused(text: &str) -> (usize, &str, String) {
    let error = parse(text, &["gate", "up"]).unwrap_err();
    (error.offset, &text[error.offset..error.offset + error.len], error.message)
}

#[test]
fn errors_say_where_and_what() {
    for (text, offset, wrong, message) in [
        ("gate +", 6, "", "expected a number, a variable, a function or `(`"),
        ("gate up", 5, "", "expected an operator or the end of the expression"),
        ("1e99", 0, "1e99", "expected a finite number"),
        ("(gate", 5, "", "expected `)`"),
        ("exp gate", 4, "", "expected `(`"),
        ("min(gate)", 8, ")", "expected `,`: it is min(a, b), found 1 of them"),
        ("clamp(gate, 1)", 13, ")", "expected `,`: it is clamp(x, low, high), found 2 of them"),
        ("exp(gate, up)", 8, ",", "expected `)`: it is exp(x)"),
        ("select(gate < 1, up, 2, 3)", 22, ",", "expected `)`: it is select(a < b, x, y)"),
        ("select(gate < 1, up)", 19, ")", "expected `,`: it is select(a < b, x, y), found 2 of them"),
        (
            "select(gate, up, 1)",
            11,
            "",
            "expected a comparison (<, <=, >, >=, ==): it is select(a < b, x, y)",
        ),
        (
            "select(gate != up, up, 1)",
            12,
            "",
            "expected a comparison (<, <=, >, >=, ==): it is select(a < b, x, y)",
        ),
        (
            "gate >= up",
            5,
            ">=",
            "expected an operator or the end of the expression; a comparison stands in `select(a >= b, x, y)` only",
        ),
        ("exp(gate < up)", 9, "<", "expected `)`; a comparison stands in `select(a < b, x, y)` only"),
    ] {
        assert_eq!(refused(text), (offset, wrong, message.to_owned()), "{text}");
    }
}

#[test]
fn unknown_names_are_shown_with_the_nearest_known_one() {
    for (text, offset, wrong, near) in [
        ("up * sigmod(gate)", 5, "sigmod", "; did you mean `sigmoid`?"),
        ("geluerf(up)", 0, "geluerf", "; did you mean `gelu_erf`?"),
        ("1 + gat", 4, "gat", "; did you mean `gate`?"),
        ("foo(gate)", 0, "foo", "found `foo`"),
    ] {
        let (at, name, message) = refused(text);
        assert_eq!((at, name), (offset, wrong), "{text}");
        assert!(message.starts_with("expected a variable (gate, up) or a function (exp, "), "{message}");
        assert!(message.ends_with(near), "{message}");
    }
}

#[test]
fn functions_stand_for_their_expressions() {
    let function = |name: &str, params: &[&str], body: &str, known: &[ExprFunction]| ExprFunction {
        name: name.to_owned(),
        params: params.iter().map(ToString::to_string).collect(),
        body: parse_with(body, params, known).unwrap(),
        doc: String::new(),
    };
    let square = function("square", &["x"], "x * x", &[]);
    let norm = function("norm", &["x", "y"], "sqrt(square(x) + square(y))", std::slice::from_ref(&square));
    let above = function("above", &["x", "y"], "select(x > y, x, 0)", &[]);
    let known = [square, norm, above];
    let with = |text: &str| parse_with(text, &["a", "b"], &known);
    let plain = |text: &str| parse(text, &["a", "b"]).unwrap();
    assert_eq!(with("norm(a + 1, b)").unwrap(), plain("sqrt((a + 1) * (a + 1) + b * b)"));
    assert_eq!(with("above(exp(a), b)").unwrap(), plain("select(exp(a) > b, exp(a), 0)"));
    assert_eq!(with("norm(a)").unwrap_err().message, "expected `,`: it is norm(x, y), found 1 of them");
    assert_eq!(with("square(a, b)").unwrap_err().message, "expected `)`: it is square(x)");
    let error = with("cube(a)").unwrap_err();
    assert!(error.message.contains(", square, norm, above), found `cube`"), "{}", error.message);
    let error = with("squar(a)").unwrap_err();
    assert!(error.message.ends_with("did you mean `square`?"), "{}", error.message);
    let deep = format!("{}a{}", "square(".repeat(40), ")".repeat(40));
    let error = with(&deep).unwrap_err();
    assert_eq!(error.message, "expected at most 1024 operators, those of `square` included");
}

#[test]
fn long_and_deep_texts_are_refused() {
    for unit in ["(", "-", "x+", "x/", "exp(", "select(x<", "select(1<2,"] {
        assert!(parse(&(unit.repeat(100_000) + "x"), &["x"]).is_err(), "{unit}");
    }
}
