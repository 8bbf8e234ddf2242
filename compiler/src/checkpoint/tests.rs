use super::*;
use crate::graph::{RowSelect, Tensor};
use crate::spec::{self, Spec};
use kernmill_plan::format::WeightFormat;
use safetensors::tensor::TensorView as View;
use std::fs;

/// A file with this header and that many bytes of data.
fn raw(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; data]].concat()
}

fn open(file: &[u8]) -> Result<Checkpoint> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(SINGLE_FILE), file).unwrap();
    Checkpoint::open(dir.path())
}

#[test]
fn corrupt_files_say_what_is_wrong() {
    let u8s = |name: &str, shape: &str, begin: u64, end: u64| {
        format!(r#""{name}": {{"dtype": "U8", "shape": {shape}, "data_offsets": [{begin}, {end}]}}"#)
    };
    let (a, b) = (u8s("a", "[4]", 0, 4), u8s("b", "[4]", 4, 8));
    let file = |entries: &str, data| raw(&format!("{{{entries}}}"), data);
    open(&file(&format!("{a}, {b}"), 8)).unwrap();
    let max = u64::MAX;
    let cases = [
        (vec![1, 2, 3], "3 bytes long"),
        (max.to_le_bytes().to_vec(), "over the limit"),
        (raw("{}", 0)[..9].to_vec(), "runs past the end of the file"),
        (raw("[1]", 0), "not a JSON object"),
        (raw("{\"a\": 1}", 0), "tensor `a`: unreadable header entry"),
        (file(&format!("{a}, {b}"), 7), "tensor `b`: offsets 4..8 run past the end of the file"),
        (file(&format!("{a}, {b}"), 9), "1 bytes behind the last tensor"),
        (file(&format!("{a}, {}", u8s("b", "[4]", 3, 7)), 8), "tensor `b` overlaps `a`"),
        (file(&format!("{a}, {}", u8s("b", "[4]", 5, 9)), 9), "a hole of 1 bytes before tensor `b`"),
        (file(&u8s("a", "[5]", 0, 4), 4), "do not fit its shape [5]"),
        (file(&u8s("a", "[4]", 4, 0), 4), "do not fit its shape [4]"),
        (file(&u8s("a", &format!("[{max}, {max}]"), 0, 4), 4), "overflows"),
        (file(&u8s("a", "[4]", max - 4, max), 4), "run past the end of the file"),
    ];
    for (bytes, expected) in cases {
        let error = open(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn indexes_must_agree_with_their_shards() {
    let shard = |name: &str| {
        raw(&format!(r#"{{"{name}": {{"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}}}"#), 1)
    };
    let cases = [
        (r#"{"weight_map": {"a": "1.st", "b": "2.st"}}"#, ""),
        (r#"{"weight_map": {"a": "1.st", "b": "3.st"}}"#, "names shard `3.st`"),
        (r#"{"weight_map": {"a": "1.st", "b": "../2.st"}}"#, "not a plain file name"),
        (
            r#"{"weight_map": {"a": "1.st", "b": "2.st", "c": "2.st"}}"#,
            "tensor `c` is not in its shard `2.st`",
        ),
        (r#"{"weight_map": {"a": "2.st", "b": "1.st"}}"#, "tensor `a` is not in `2.st` but in"),
        (r#"{"weight_map": {"a": "1.st", "d": "4.st"}}"#, "tensor `a` is in both"),
        (r#"{"a": "1.st"}"#, "not an index"),
    ];
    for (index, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        for (file, tensor) in [("1.st", "a"), ("2.st", "b"), ("4.st", "a")] {
            fs::write(dir.path().join(file), shard(tensor)).unwrap();
        }
        fs::write(dir.path().join(INDEX_FILE), index).unwrap();
        match Checkpoint::open(dir.path()) {
            Ok(_) => assert!(expected.is_empty(), "{expected}"),
            Err(e) => assert!(!expected.is_empty() && e.to_string().contains(expected), "{expected}: {e}"),
        }
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Checkpoint::open(empty.path()), Err(CheckpointError::NoCheckpoint { .. })));
}

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
    bind_to(&[table, head, ("layers.0.rotary_emb.inv_freq", Dtype::F32, &[4])]).unwrap();
    let cases: [(&[Described<'_>], &str); 4] = [
        (
            &[table, ("haed", Dtype::F32, &[4, 2])],
            "tensor `head` is missing (the model's `head`), did you mean `haed`?",
        ),
        (&[("table", Dtype::F32, &[4, 2]), head], "tensor `table` is F32, expected BF16"),
        (&[("table", Dtype::BF16, &[2, 4]), head], "tensor `table` has shape [2, 4], expected [4, 2]"),
        (&[table, head, ("tail", Dtype::F32, &[1])], "1 tensor that the model does not use: tail"),
    ];
    for (tensors, expected) in cases {
        let error = bind_to(tensors).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
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
    let weights = Weights::unbound(&checkpoint);
    let tensor = Tensor {
        name: "up".into(),
        role: crate::graph::Role::ExpertMatrix,
        shape: vec![2, 2, 32],
        stored: WeightFormat::Mxfp4,
        format: WeightFormat::Mxfp4,
        source: crate::graph::Source {
            name: "blocks".into(),
            scales: Some("scales".into()),
            rows: RowSelect::Odd,
        },
    };
    let (mut rows, mut codes, mut factors) = (Vec::new(), Vec::new(), Vec::new());
    weights.f32_rows(&tensor, 1, 0..2, &mut rows).unwrap();
    // Code 5 is 3, scale 2; code 7 is 6, scale 8.
    assert_eq!(rows, [[6.0; 32], [48.0; 32]].concat());
    weights.mxfp4_rows(&tensor, 1, 1..2, &mut codes, &mut factors).unwrap();
    assert_eq!((codes, factors), (vec![0x77; 16], vec![130]));
    weights.will_need(&tensor, 1, 0..1);
    weights.done_with(&tensor, 1, 0..1);
    weights.drop_cache();
    weights.f32_rows(&tensor, 0, 0..1, &mut rows).unwrap();
    assert_eq!(rows, [1.0; 32]);
}
