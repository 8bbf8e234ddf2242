//! The messages in `docs/user/troubleshooting.md` are those of the program.

use super::{files, root};
use std::fs;

/// Directories whose sources have messages.
const SOURCES: [&str; 11] = [
    "checkpoint",
    "cli",
    "compiler",
    "eval",
    "kernmill",
    "kernmill-tools",
    "kv-store",
    "os",
    "plan",
    "runtime",
    "serve",
];

/// The text of all sources, with literals that span lines joined, and without the spaces that indent them.
fn sources() -> String {
    let mut all = String::new();
    for file in SOURCES.iter().flat_map(|dir| files(&root().join(dir), &["rs"])) {
        let text = fs::read_to_string(file).unwrap();
        let mut parts = text.split("\\\n");
        all += parts.next().unwrap_or_default();
        parts.for_each(|part| all += part.trim_start());
    }
    all
}

/// First columns of the tables of messages.
fn documented() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/user/troubleshooting.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

#[test]
fn messages_in_troubleshooting_are_the_programs() {
    let (sources, documented) = (sources(), documented());
    assert!(documented.len() > 15, "found only {documented:?}");
    let unknown: Vec<&String> = documented.iter().filter(|message| !sources.contains(*message)).collect();
    assert!(unknown.is_empty(), "the program does not say {unknown:?}");
}
