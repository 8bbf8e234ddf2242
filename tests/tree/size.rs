//! Files stay small.

use super::sources;
use crate::docs::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file at most.
const FILE: usize = 500;
/// Lines that half of the files stay below.
const MEDIAN: usize = 200;
/// Lines of the program, which has arguments and printing only.
const PROGRAM: usize = 3700;

/// Every Rust file of the tree, with its lines.
pub fn rust() -> Vec<(PathBuf, Vec<String>)> {
    let dirs = sources().into_iter().map(|sources| sources.dir);
    let others = [
        "benches",
        "kernels-gen/benches",
        "runtime/benches",
        "runtime/pool-model",
        "kernmill/examples",
        "scheduler/tests",
        "chat/tests",
        "fuzz/fuzz_targets",
    ];
    let all = dirs.chain(others.map(|dir| root().join(dir))).flat_map(|dir| files(&dir, &["rs"]));
    all.map(|path| {
        let lines = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        (path, lines)
    })
    .collect()
}

/// A file's path from the root of the tree.
pub fn named(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn files_are_small() {
    let rust = rust();
    let long: Vec<String> = rust
        .iter()
        .filter(|(_, lines)| lines.len() > FILE)
        .map(|(path, lines)| format!("{} ({})", named(path), lines.len()))
        .collect();
    assert!(long.is_empty(), "over {FILE} lines: {}", long.join(", "));
    let mut lengths: Vec<usize> = rust.iter().map(|(_, lines)| lines.len()).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    println!("{} files, the median has {median} lines", lengths.len());
    assert!(lengths.len() > 100 && median < MEDIAN, "{} files, median {median}", lengths.len());
    let program: usize = rust
        .iter()
        .filter(|(path, _)| path.starts_with(root().join("cli")))
        .map(|(_, lines)| lines.len())
        .sum();
    println!("the program has {program} lines");
    assert!((1..PROGRAM).contains(&program), "cli has {program} lines");
}
