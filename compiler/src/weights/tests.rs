use super::*;
use crate::front::spec::{self, Spec};
use crate::ir::{RowSelect, Tensor};
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
    let weights = CheckpointWeights::unbound(&checkpoint);
    let tensor = Tensor {
        name: "up".into(),
        role: crate::ir::Role::ExpertMatrix,
        shape: vec![2, 2, 32],
        stored: WeightFormat::Mxfp4,
        format: WeightFormat::Mxfp4,
        source: crate::ir::TensorSource {
            name: "blocks".into(),
            scales: Some("scales".into()),
            rows: RowSelect::Odd,
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
    let weights = CheckpointWeights::unbound(&checkpoint);
    let tensor = |name: &str, rows: RowSelect, n: usize| Tensor {
        name: name.into(),
        role: crate::ir::Role::ExpertMatrix,
        shape: vec![experts, n, cols],
        stored: WeightFormat::F32,
        format: WeightFormat::F32,
        source: crate::ir::TensorSource { name: name.into(), scales: None, rows, transposed: true },
    };
    let read = |tensor: &Tensor, expert, range| {
        let mut out = vec![7.0];
        weights.will_need(tensor, expert, Range::clone(&range));
        weights.f32_rows(tensor, expert, range.clone(), &mut out).unwrap();
        weights.done_with(tensor, expert, range);
        out
    };
    let all = tensor("wide", RowSelect::All, 6);
    assert_eq!(stored_shape(&all), [2, 3, 6]);
    assert_eq!(read(&all, 0, 1..3), [10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
    assert_eq!(read(&all, 1, 5..6), [150.0, 151.0, 152.0]);
    assert_eq!(read(&all, 1, 2..2), [0.0; 0]);
    let odd = tensor("narrow", RowSelect::Odd, 3);
    assert_eq!(stored_shape(&odd), [2, 3, 6]);
    assert_eq!(read(&odd, 0, 0..3), [10.0, 11.0, 12.0, 30.0, 31.0, 32.0, 50.0, 51.0, 52.0]);
    assert_eq!(read(&tensor("narrow", RowSelect::Even, 3), 0, 1..2), [20.0, 21.0, 22.0]);
}
