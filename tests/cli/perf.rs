//! Files for Linux's `perf`, read by the definitions of their formats.

use crate::harness::program;
use kernmill::locate::nano;
use kernmill::{Opened, Options};
use std::fs;
use std::process::Stdio;

/// Takes a little-endian number from the front.
fn number<const BYTES: usize>(rest: &mut &[u8]) -> u64 {
    let (front, behind) = rest.split_at(BYTES);
    *rest = behind;
    front.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A function of a jitdump: name, address, code.
type Loaded = (String, u64, Vec<u8>);

/// The functions of a jitdump of process `pid`, by Linux's `jitdump-specification.txt`, version 1.
fn jitdump(file: &[u8], pid: u64) -> Vec<Loaded> {
    let rest = &mut &*file;
    // The magic number is the letters JiTD as the writer's machine has numbers; e_machine 62 is x86-64.
    assert_eq!(number::<4>(rest), 0x4a69_5444);
    assert_eq!((number::<4>(rest), number::<4>(rest), number::<4>(rest)), (1, 40, 62));
    assert_eq!((number::<4>(rest), number::<4>(rest)), (0, pid));
    let (started, flags) = (number::<8>(rest), number::<8>(rest));
    assert_eq!(flags, 0);
    let mut loaded = Vec::new();
    while !rest.is_empty() {
        let before = rest.len();
        let (id, size, time) = (number::<4>(rest), number::<4>(rest), number::<8>(rest));
        assert_eq!(id, 0, "a record of loaded code");
        assert!(time >= started);
        assert_eq!((number::<4>(rest), number::<4>(rest)), (pid, pid));
        let (vma, address, bytes, index) =
            (number::<8>(rest), number::<8>(rest), number::<8>(rest), number::<8>(rest));
        assert_eq!((vma, index), (address, loaded.len() as u64));
        let end = rest.iter().position(|byte| *byte == 0).expect("the name ends");
        let name = String::from_utf8(rest[..end].to_vec()).unwrap();
        let (code, behind) = rest[end + 1..].split_at(bytes as usize);
        loaded.push((name, address, code.to_vec()));
        *rest = behind;
        assert_eq!(before - rest.len(), size as usize);
    }
    loaded
}

#[test]
fn dump_and_map_have_every_function_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["run", "--prompt", "hi", "-n", "1", "-q", "--perf-map", "--perf-jit"]).arg(dir.path());
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let map = format!("/tmp/perf-{pid}.map");
    let text = fs::read_to_string(&map).unwrap();
    fs::remove_file(&map).unwrap();
    let dump = fs::read(dir.path().join(format!("jit-{pid}.dump"))).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let options = Options::default();
    let prepared = Opened::open(nano(), &options).unwrap().prepare(&options).unwrap();
    let code = &prepared.program().code;
    let loaded = jitdump(&dump, pid.into());
    assert_eq!(loaded.len(), code.symbols.len());
    let base = loaded[0].1 - code.symbols[0].offset;
    let mut lines = text.lines();
    for ((name, address, bytes), symbol) in loaded.iter().zip(&code.symbols) {
        assert_eq!((name, *address), (&symbol.name, base + symbol.offset));
        assert_eq!(bytes[..], code.bytes[symbol.offset as usize..][..symbol.size as usize], "{name}");
        assert_eq!(lines.next(), Some(&*format!("{address:x} {:x} kernmill:{name}", symbol.size)));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_dump_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    let mut command = program();
    command.args(["run", "--prompt", "hi", "-n", "1", "-q", "--perf-jit"]).arg(&nowhere);
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("nowhere/jit-") && message.lines().count() == 1, "{message}");
}
