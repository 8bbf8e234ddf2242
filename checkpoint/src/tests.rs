use super::*;
use crate::tensors::*;
use std::fs;
use std::path::Path;

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

/// A tensor that the index lacks, one that it has and no shard, and a buffer in two shards are no faults; a
/// whole file goes first.
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
