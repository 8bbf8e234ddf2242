//! Files stay small, their lines fit on a screen, and all are compiled.

use super::sources;
use crate::docs::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file at most.
const FILE: usize = 500;
/// Lines that half of the files stay below.
const MEDIAN: usize = 200;
/// Lines of the program, which has arguments and printing only.
const PROGRAM: usize = 3690;

/// Columns of a line of code at most.
const COLUMNS: usize = 120;

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

/// The lines that begin outside of raw texts, with their numbers. The lines of such a text are those of an
/// output or a file, which have their own width.
fn code(lines: &[String]) -> Vec<(usize, &str)> {
    let mut end: Option<String> = None;
    let mut code = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let mut rest = line.as_str();
        if end.is_none() {
            code.push((n + 1, rest));
        }
        loop {
            if let Some(mark) = &end {
                let Some((_, after)) = rest.split_once(mark.as_str()) else { break };
                (rest, end) = (after, None);
            }
            let Some((before, after)) = rest.split_once("r#") else { break };
            let text = after.trim_start_matches('#');
            if !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && text.starts_with('"') {
                end = Some(format!("\"{}", "#".repeat(after.len() - text.len() + 1)));
                rest = &text[1..];
            } else {
                rest = after;
            }
        }
    }
    code
}

#[test]
fn lines_fit_on_a_screen() {
    let mut wide = Vec::new();
    for (path, lines) in rust() {
        let is_wide = |line: &(usize, &str)| line.1.chars().count() > COLUMNS;
        wide.extend(code(&lines).into_iter().filter(is_wide).map(|(n, _)| format!("{}:{n}", named(&path))));
    }
    assert!(wide.is_empty(), "{} lines of code over {COLUMNS} columns: {}", wide.len(), wide.join(", "));
}

/// The text by which a file of its directory, or the one above, makes a file a module.
fn declaration(path: &Path) -> Option<(&Path, String)> {
    let dir = path.parent()?;
    let stem = path.file_stem()?.to_str()?;
    match stem {
        "mod" => Some((dir.parent()?, format!("mod {};", dir.file_name()?.to_str()?))),
        _ => Some((dir, format!("mod {stem};"))),
    }
}

#[test]
fn every_file_is_compiled() {
    let rust = rust();
    // Roots of crates are found by cargo, or named in a manifest.
    let is_root = |path: &Path| {
        let dir = path.parent().and_then(Path::file_name).unwrap_or_default();
        let of_cargo = ["examples", "benches", "fuzz_targets"].iter().any(|name| dir == *name);
        of_cargo || path.ends_with("src/lib.rs") || path.ends_with("main.rs") || path.ends_with("run_only.rs")
    };
    let is_path = |line: &&String| line.contains("#[path");
    let paths: Vec<&str> =
        rust.iter().flat_map(|(_, lines)| lines.iter().filter(is_path)).map(|line| quoted(line)).collect();
    let is_module = |path: &Path| {
        let Some((dir, text)) = declaration(path) else { return false };
        let is_above = |other: &Path| other.parent() == Some(dir) || other.with_extension("") == dir;
        let declares = |lines: &[String]| lines.iter().any(|line| line.contains(&text));
        paths.iter().any(|given| path.ends_with(given))
            || rust.iter().any(|(other, lines)| is_above(other) && declares(lines))
    };
    let left: Vec<String> = rust
        .iter()
        .filter(|(path, _)| !is_root(path) && !is_module(path))
        .map(|(path, _)| named(path))
        .collect();
    assert!(left.is_empty(), "no module declares: {left:?}");
}

/// The text between a line's quotes, without the directories above.
fn quoted(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or("-").trim_start_matches("../")
}
