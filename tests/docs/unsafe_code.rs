//! The table of `unsafe` in ARCHITECTURE.md lists every place that has some, and no other.

use super::{files, root};
use std::fs;
use std::path::Path;

const HEADING: &str = "### Where `unsafe` is";

/// Directories with sources of the workspace, and of the Python module beside it.
const SOURCES: [&str; 17] = [
    "cli",
    "chat",
    "checkpoint",
    "compiler",
    "constrain",
    "eval",
    "kernels-gen",
    "kernmill",
    "kernmill-tools",
    "kv-store",
    "os",
    "plan",
    "python",
    "quantize",
    "runtime",
    "scheduler",
    "server",
];

/// Paths in the first column of the table: files, or directories that end with `/`.
fn listed() -> Vec<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split(HEADING).nth(1).expect("the section").split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
}

/// Whether a source has the keyword outside of comments.
fn has_unsafe(text: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split("//").next().unwrap();
        code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "unsafe")
    })
}

fn is_test(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    parts.iter().any(|part| ["tests", "benches", "examples"].contains(part)) || parts.ends_with(&["tests.rs"])
}

/// Files that are not tests and have `unsafe`, by their paths in the repository.
fn found() -> Vec<String> {
    let sources = SOURCES.iter().flat_map(|dir| files(&root().join(dir), &["rs"]));
    let relative = sources.map(|file| file.strip_prefix(root()).unwrap().to_owned());
    let unsafe_ones =
        relative.filter(|path| !is_test(path) && has_unsafe(&fs::read_to_string(root().join(path)).unwrap()));
    unsafe_ones.map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_architecture_lists_where_unsafe_is() {
    let (listed, found) = (listed(), found());
    let covers = |place: &str, file: &str| match place.ends_with('/') {
        true => file.starts_with(place),
        false => file == place,
    };
    let missing: Vec<&String> =
        found.iter().filter(|file| !listed.iter().any(|place| covers(place, file))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not list {missing:?}");
    let idle: Vec<&String> =
        listed.iter().filter(|place| !found.iter().any(|file| covers(place, file))).collect();
    assert!(idle.is_empty(), "ARCHITECTURE.md lists places without `unsafe`: {idle:?}");
}

#[test]
fn the_keyword_is_told_from_its_like() {
    assert!(has_unsafe("let a = unsafe { b };"));
    assert!(has_unsafe("#[unsafe(link_section = \".init_array\")]"));
    assert!(!has_unsafe("// unsafe stays elsewhere"));
    assert!(!has_unsafe("#![deny(unsafe_code)]"));
}
