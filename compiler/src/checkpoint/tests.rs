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
        (raw("[1]", 0), "not a JSON object of tensors"),
        (file(&format!("{a}, {b}, {a}"), 8), "tensor `a` is in the header twice"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0".to_vec(), "it is a git-lfs pointer"),
        (b"<!DOCTYPE html>".to_vec(), "expected a safetensors file, but it is a web page"),
        (b"PK\x03\x04archive".to_vec(), "it is a zip archive, as torch.save writes"),
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
fn indexes_name_shards_and_the_shards_say_what_they_hold() {
    let shard = |name: &str| {
        raw(&format!(r#"{{"{name}": {{"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}}}"#), 1)
    };
    let cases = [
        (r#"{"weight_map": {"a": "1.st", "b": "2.st"}}"#, ""),
        (r#"{"weight_map": {"a": "1.st", "b": "3.st"}}"#, "names shard `3.st`"),
        (r#"{"weight_map": {"a": "1.st", "b": "../2.st"}}"#, "not a plain file name"),
        (r#"{"weight_map": {"a": "1.st", "b": "2.st", "c": "2.st"}}"#, ""),
        (r#"{"weight_map": {"a": "2.st", "b": "1.st"}}"#, ""),
        (r#"{"weight_map": {"a": "1.st", "c": "2.st"}}"#, ""),
        (r#"{"weight_map": {"a": "1.st", "d": "4.st"}}"#, "tensor `a` is in both"),
        (r#"{"a": "1.st"}"#, "not an index"),
        ("[]", "not an index"),
        ("version https://git-lfs.github.com/spec/v1", "expected an index, but it is a git-lfs pointer"),
    ];
    for (index, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        for (file, tensor) in [("1.st", "a"), ("2.st", "b"), ("4.st", "a")] {
            fs::write(dir.path().join(file), shard(tensor)).unwrap();
        }
        fs::write(dir.path().join(INDEX_FILE), index).unwrap();
        match Checkpoint::open(dir.path()) {
            Ok(found) => {
                assert!(expected.is_empty(), "{expected}");
                assert!(found.tensor("a").is_some() && found.tensor("b").is_some(), "{index}");
            }
            Err(e) => assert!(!expected.is_empty() && e.to_string().contains(expected), "{expected}: {e}"),
        }
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Checkpoint::open(empty.path()), Err(CheckpointError::NoCheckpoint { .. })));
}

/// A tensor that the index lacks, one that it has and no shard, and a buffer in two shards are no faults; a whole file goes first.
#[test]
fn what_is_left_over_from_conversions_does_not_matter() {
    let u8s = |names: &[&str]| {
        let entry = |(i, name): (usize, &&str)| {
            format!(r#""{name}": {{"dtype": "U8", "shape": [1], "data_offsets": [{i}, {}]}}"#, i + 1)
        };
        let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
        raw(&format!("{{{}}}", entries.join(", ")), names.len())
    };
    let buffer = "model.layers.0.self_attn.rotary_emb.inv_freq";
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (first, second) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    fs::write(path(first), u8s(&["a", buffer, "c"])).unwrap();
    fs::write(path(second), u8s(&["b", buffer])).unwrap();
    let index =
        format!(r#"{{"weight_map": {{"a": "{first}", "b": "{second}", "x.masked_bias": "{first}"}}}}"#);
    fs::write(path(INDEX_FILE), index).unwrap();
    let names = |path: &Path| {
        let checkpoint = Checkpoint::open(path).unwrap();
        checkpoint.tensors().map(|t| t.name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(dir.path()), ["a", "b", "c", buffer]);
    // One of its files stands for the checkpoint.
    for file in [INDEX_FILE, first, second] {
        assert_eq!(names(&path(file)), ["a", "b", "c", buffer]);
    }
    fs::write(path(SINGLE_FILE), u8s(&["d"])).unwrap();
    assert_eq!(names(dir.path()), ["d"]);
    assert_eq!(names(&path(SINGLE_FILE)), ["d"]);
}

#[test]
fn pipes_in_a_directory_are_refused_at_once() {
    use std::os::unix::ffi::OsStrExt;
    for name in [SINGLE_FILE, INDEX_FILE] {
        let dir = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(dir.path().join(name).as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a NUL and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        let error = Checkpoint::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("expected a regular file"), "{error}");
    }
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
            transposed: false,
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
    let weights = Weights::unbound(&checkpoint);
    let tensor = |name: &str, rows: RowSelect, n: usize| Tensor {
        name: name.into(),
        role: crate::graph::Role::ExpertMatrix,
        shape: vec![experts, n, cols],
        stored: WeightFormat::F32,
        format: WeightFormat::F32,
        source: crate::graph::Source { name: name.into(), scales: None, rows, transposed: true },
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
