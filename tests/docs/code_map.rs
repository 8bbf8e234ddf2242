//! The code map of ARCHITECTURE.md is short enough to be read, and names what exists.

use super::root;
use std::fs;

/// Rows of the map at most.
const ROWS: usize = 45;

/// The rows of the map: the paths of the first column, and those of the second.
fn rows(text: &str) -> Vec<[Vec<&str>; 2]> {
    let section = text.split("## Code map\n").nth(1).expect("the section").split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once(" | "))
        .map(|(places, about)| {
            [paths(places.split('`').step_by(2)), paths(about.split('`').skip(1).step_by(2))]
        })
        .collect()
}

/// Paths among some words: a folder ends with `/`, a file has a kind.
fn paths<'t>(words: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let is_path = |word: &&str| (word.ends_with('/') || word.ends_with(".rs")) && !word.starts_with('/');
    words.filter(is_path).collect()
}

#[test]
fn the_code_map_is_short_and_names_what_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&text);
    assert!((20..=ROWS).contains(&rows.len()), "{} rows, at most {ROWS}", rows.len());
    for [places, about] in &rows {
        assert!(!places.is_empty(), "a row without a place: {about:?}");
        for place in places {
            assert!(root().join(place).exists(), "the code map names {place}");
        }
        // A path in the text starts at the root, or in one of the row's folders.
        for path in about {
            let is_there = |place: &&str| root().join(place).join(path).exists();
            assert!(root().join(path).exists() || places.iter().any(is_there), "the code map names {path}");
        }
    }
}

#[test]
fn rows_of_a_map_are_read() {
    let text = "# A\n## Code map\n\n| where | what |\n|---|---|\n| `a/b.rs`, `c/` | `d.rs` and `Word` of \
        `/proc` |\n\n## B\n| `e/` | f |";
    assert_eq!(rows(text), [[vec!["a/b.rs", "c/"], vec!["d.rs"]]]);
}
