use super::*;
use crate::front::spec::{self, Spec};
use crate::ir::{Graph, RowSelect, Tensor};
use kernmill_checkpoint::{Checkpoint, Dtype, Result, SINGLE_FILE};
use kernmill_plan::format::WeightFormat;
use safetensors::tensor::TensorView as View;
use std::ops::Range;

const SPEC: &str = r#"
model = { name = "m", vocab = 4, max_context = 8 }
tensors.table = { from = "table", shape = [4, 2], format = "bf16" }
tensors.head = { from = "head", shape = [4, 2], format = "f32" }
before.node = [{ out = "x", op = "embed", table = "table" }, { out = "y", op = "select_rows", input = "x" }]
after.node = [{ out = "logits", op = "logits", input = "y", weight = "head" }]
"#;

/// A mixture that has a tensor for each expert.
const BY_EXPERT: &str = r#"
model = { name = "m", vocab = 4, max_context = 8 }
tensors.table = { from = "table", shape = [4, 32], format = "bf16" }
tensors.router = { from = "router", shape = [2, 32], format = "bf16" }
tensors.gate = { from = "e.{expert}.gate", shape = [2, 32, 32], format = "bf16" }
tensors.down = { from = "e.{expert}.down", rows = { of = 48, take = "16..48" }, shape = [2, 32, 32], format = "f32" }
before.node = [
  { out = "x", op = "embed", table = "table" },
  { out = "scores", op = "linear", input = "x", weight = "router" },
  { out = "routing", op = "router_topk", input = "scores", k = 1 },
  { out = "m", op = "moe", input = "x", routing = "routing", gate = "gate", up = "gate", down = "down", activation = "gate * up" },
  { out = "y", op = "select_rows", input = "m" },
]
after.node = [{ out = "logits", op = "logits", input = "y", weight = "head" }]
tensors.head = { from = "table", shape = [4, 32], format = "bf16" }
"#;

#[test]
fn every_expert_must_have_its_tensor() {
    let zeros = [0; 6144];
    let bind_without = |missing: &str, cols: usize| {
        let sizes = [
            ("table", 4),
            ("router", 2),
            ("e.0.gate", 32),
            ("e.1.gate", 32),
            ("e.0.down", 48),
            ("e.1.down", 48),
        ];
        let views = sizes.into_iter().filter(|(name, _)| *name != missing).map(|(name, rows)| {
            let cols = if name == "e.1.down" { cols } else { 32 };
            (name, View::new(Dtype::BF16, vec![rows, cols], &zeros[..2 * rows * cols]).unwrap())
        });
        let checkpoint = Checkpoint::from_bytes("m", safetensors::serialize(views, None).unwrap()).unwrap();
        let graph = spec::lower(&Spec::parse("m.toml", BY_EXPERT).unwrap()).unwrap();
        assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
        bind(&graph, &checkpoint).map_err(|error| error.to_string())
    };
    bind_without("", 32).unwrap();
    let text = spec::lower(&Spec::parse("m.toml", BY_EXPERT).unwrap()).unwrap().to_string();
    for (from, to, expected) in [
        ("rows 16..48 of 48", "rows 16..48 of 40", "unknown row selection `16..48`"),
        ("rows 16..48 of 48", "rows 16..", "unknown row selection `16..`"),
        ("rows 16..48 of 48", "rows 16..47 of 48", "@down takes 31 rows of every 48, which 32 rows are not"),
        ("\"router\"", "\"router.{expert}\"", "@router: {expert} stands in all names"),
    ] {
        assert!(text.contains(from), "{text}");
        let error = text.replacen(from, to, 1).parse::<Graph>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = bind_without("e.1.gate", 32).unwrap_err();
    assert!(error.contains("tensor `e.1.gate` is missing (the model's `gate`)"), "{error}");
    let error = bind_without("", 64).unwrap_err();
    assert!(error.contains("tensor `e.1.down` has shape [48, 64], expected [48, 32]"), "{error}");
}

/// Name, dtype, shape.
type Described<'a> = (&'a str, Dtype, &'a [usize]);

fn bind_to(tensors: &[Described<'_>]) -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let zeros = [0; 256];
    let views = tensors.iter().map(|(name, dtype, shape)| {
        let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
        (*name, View::new(*dtype, shape.to_vec(), &zeros[..bytes]).unwrap())
    });
    safetensors::serialize_to_file(views, None, &dir.path().join(SINGLE_FILE)).unwrap();
    let graph = spec::lower(&Spec::parse("m.toml", SPEC).unwrap()).unwrap();
    bind(&graph, &Checkpoint::open(dir.path()).unwrap())
}

#[test]
fn a_checkpoint_must_hold_exactly_the_graphs_weights() {
    let table: Described<'_> = ("table", Dtype::BF16, &[4, 2]);
    let head: Described<'_> = ("head", Dtype::F32, &[4, 2]);
    bind_to(&[table, head]).unwrap();
    bind_to(&[table, ("head", Dtype::F16, &[4, 2])]).unwrap();
    bind_to(&[table, ("head", Dtype::BF16, &[4, 2])]).unwrap();
    bind_to(&[table, head, ("layers.0.rotary_emb.inv_freq", Dtype::F32, &[4])]).unwrap();
    let cases: [(&[Described<'_>], &str); 4] = [
        (
            &[table, ("haed", Dtype::F32, &[4, 2])],
            "tensor `head` is missing (the model's `head`), did you mean `haed`?",
        ),
        (
            &[("table", Dtype::F32, &[4, 2]), head],
            "tensor `table` is F32, expected BF16, or format = \"f32\" in the spec (the model's `table`)",
        ),
        (&[("table", Dtype::BF16, &[2, 4]), head], "tensor `table` has shape [2, 4], expected [4, 2]"),
        (&[table, head, ("tail", Dtype::F32, &[1])], "1 tensor that the model does not use: tail"),
    ];
    for (tensors, expected) in cases {
        let error = bind_to(tensors).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn blocks_must_be_those_that_the_spec_names() {
    let text = SPEC.replacen("shape = [4, 2], format = \"bf16\"", "shape = [4, 32], format = \"int8\"", 1);
    let text = text.replacen("shape = [4, 2], format = \"f32\"", "shape = [4, 32], format = \"f32\"", 1);
    let graph = spec::lower(&Spec::parse("m.toml", &text).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let zeros = [0; 512];
    let views = ["table", "head"].map(|name| (name, View::new(Dtype::F32, vec![4, 32], &zeros).unwrap()));
    safetensors::serialize_to_file(views, None, &dir.path().join(SINGLE_FILE)).unwrap();
    let error = bind(&graph, &Checkpoint::open(dir.path()).unwrap()).unwrap_err().to_string();
    let expected =
        "tensor `table` is F32, expected Q8_0, or format = \"f32\" in the spec (the model's `table`)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn rows_are_selected_and_decoded() {
    // Two experts of four rows of 32: row r of expert e has every code r + 4 e and scale 127 + r.
    let blocks: Vec<u8> = (0..8u8).flat_map(|row| [row | row << 4; 16]).collect();
    let scales: Vec<u8> = (0..8u8).map(|row| 127 + row % 4).collect();
    let dir = tempfile::tempdir().unwrap();
    let views = [
        ("blocks", View::new(Dtype::U8, vec![2, 4, 1, 16], &blocks).unwrap()),
        ("scales", View::new(Dtype::U8, vec![2, 4, 1], &scales).unwrap()),
    ];
    safetensors::serialize_to_file(views, None, &dir.path().join(SINGLE_FILE)).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let weights = CheckpointWeights::of_some(&checkpoint);
    let tensor = Tensor {
        name: "up".into(),
        role: crate::ir::Role::ExpertMatrix,
        shape: vec![2, 2, 32],
        stored: WeightFormat::Mxfp4,
        format: WeightFormat::Mxfp4,
        plus: 0.0,
        source: crate::ir::TensorSource {
            name: "blocks".into(),
            scales: Some("scales".into()),
            rows: RowSelect::ODD,
            transposed: false,
        },
    };
    let (mut rows, mut codes, mut factors) = (Vec::new(), Vec::new(), Vec::new());
    weights.f32_rows(&tensor, 1, 0..2, &mut rows).unwrap();
    // Code 5 is 3, scale 2; code 7 is 6, scale 8.
    assert_eq!(rows, [[6.0; 32], [48.0; 32]].concat());
    weights.stored_rows(&tensor, 1, 1..2, &mut codes, &mut factors).unwrap();
    assert_eq!((codes, factors), (vec![0x77; 16], vec![130]));
    weights.will_need(&tensor, 1, 0..1);
    weights.done_with(&tensor, 1, 0..1);
    weights.drop_cache();
    weights.f32_rows(&tensor, 0, 0..1, &mut rows).unwrap();
    assert_eq!(rows, [1.0; 32]);
}

/// Element (expert e, row r, column c) of the matrix is 100 e + 10 r + c, and is stored at [e, c, r].
#[test]
fn transposed_matrices_are_read_by_rows() {
    let (experts, rows, cols) = (2, 6, 3);
    let mut values = Vec::new();
    for e in 0..experts {
        for c in 0..cols {
            values.extend((0..rows).map(|r| (100 * e + 10 * r + c) as f32));
        }
    }
    let f32s: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let bf16s: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[2..].to_vec()).collect();
    let shape = vec![experts, cols, rows];
    let views = [
        ("wide", View::new(Dtype::F32, shape.clone(), &f32s).unwrap()),
        ("narrow", View::new(Dtype::BF16, shape, &bf16s).unwrap()),
    ];
    let checkpoint = Checkpoint::from_bytes("m", safetensors::serialize(views, None).unwrap()).unwrap();
    let weights = CheckpointWeights::of_some(&checkpoint);
    let tensor = |name: &str, rows: RowSelect, n: usize| Tensor {
        name: name.into(),
        role: crate::ir::Role::ExpertMatrix,
        shape: vec![experts, n, cols],
        stored: WeightFormat::F32,
        format: WeightFormat::F32,
        plus: 0.0,
        source: crate::ir::TensorSource { name: name.into(), scales: None, rows, transposed: true },
    };
    let read = |tensor: &Tensor, expert, range| {
        let mut out = vec![7.0];
        weights.will_need(tensor, expert, Range::clone(&range));
        weights.f32_rows(tensor, expert, range.clone(), &mut out).unwrap();
        weights.done_with(tensor, expert, range);
        out
    };
    let all = tensor("wide", RowSelect::ALL, 6);
    assert_eq!(stored_shape(&all), [2, 3, 6]);
    assert_eq!(read(&all, 0, 1..3), [10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
    assert_eq!(read(&all, 1, 5..6), [150.0, 151.0, 152.0]);
    assert_eq!(read(&all, 1, 2..2), [0.0; 0]);
    let odd = tensor("narrow", RowSelect::ODD, 3);
    assert_eq!(stored_shape(&odd), [2, 3, 6]);
    assert_eq!(read(&odd, 0, 0..3), [10.0, 11.0, 12.0, 30.0, 31.0, 32.0, 50.0, 51.0, 52.0]);
    assert_eq!(read(&tensor("narrow", RowSelect::EVEN, 3), 0, 1..2), [20.0, 21.0, 22.0]);
}

/// Element (row r, column c) of expert e is 1000 e + 10 r + c; column c of a transposed one is at [c, r].
fn piece_source(gathered: bool, transposed: bool) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let element = |e: usize, i: usize| match transposed {
        true => (1000 * e + 10 * (i % 8) + i / 8) as f32,
        false => (1000 * e + 10 * (i / 2) + i % 2) as f32,
    };
    let shape = if transposed { [2, 8] } else { [8, 2] };
    let of = |e| (0..16).map(|i| element(e, i)).collect::<Vec<f32>>();
    match gathered {
        true => (0..3).map(|e| (format!("experts.{e}.w"), shape.to_vec(), of(e))).collect(),
        false => vec![("experts.w".to_owned(), [&[3][..], &shape].concat(), (0..3).flat_map(of).collect())],
    }
}

#[test]
fn pieces_and_experts_are_gathered() {
    for (gathered, transposed) in [(false, false), (false, true), (true, false), (true, true)] {
        let stored = piece_source(gathered, transposed);
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let views: Vec<_> = stored.iter().map(|(name, shape, v)| (name, shape.clone(), bytes(v))).collect();
        let views =
            views.iter().map(|(name, shape, v)| (name, View::new(Dtype::F32, shape.clone(), v).unwrap()));
        let checkpoint = Checkpoint::from_bytes("m", safetensors::serialize(views, None).unwrap()).unwrap();
        let weights = CheckpointWeights::of_some(&checkpoint);
        let read = |rows: RowSelect, n: usize, expert: usize| {
            let name = if gathered { "experts.{expert}.w" } else { "experts.w" };
            let source = crate::ir::TensorSource { name: name.to_owned(), scales: None, rows, transposed };
            let tensor = Tensor {
                name: "piece".into(),
                role: crate::ir::Role::ExpertMatrix,
                shape: vec![3, n, 2],
                stored: WeightFormat::F32,
                format: WeightFormat::F32,
                plus: 0.0,
                source,
            };
            assert_eq!(stored_shape(&tensor), stored[0].1);
            let mut out = Vec::new();
            weights.will_need(&tensor, expert, 0..n);
            weights.f32_rows(&tensor, expert, 1..n, &mut out).unwrap();
            weights.done_with(&tensor, expert, 0..n);
            let rows: Vec<usize> = out.iter().step_by(2).map(|x| *x as usize / 10).collect();
            assert!(out.chunks(2).all(|row| row[1] == row[0] + 1.0), "{out:?}");
            rows
        };
        let case = format!("gathered {gathered}, transposed {transposed}");
        let (second, third) = (RowSelect::new(8, 2..5).unwrap(), RowSelect::new(4, 1..3).unwrap());
        assert_eq!(read(second, 3, 2), [203, 204], "{case}");
        assert_eq!(read(third, 4, 1), [102, 105, 106], "{case}");
        assert_eq!(read(RowSelect::ODD, 4, 0), [3, 5, 7], "{case}");
    }
    assert_eq!(RowSelect::new(8, 5..5), None);
    assert_eq!(RowSelect::new(8, 5..9), None);
    assert_eq!(RowSelect::new(8, 0..8), Some(RowSelect::ALL));
}
