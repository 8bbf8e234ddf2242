//! The library stays small, the compiler is behind few lines, and the program uses the library and its tools
//! alone.

use super::size::{named, rust};
use super::uses::uses;
use crate::docs::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Table;

/// Lines of the library at most, without its tests.
const LIBRARY: usize = 6000;
/// Public items that the library declares at most: functions, methods, types, constants and modules.
const ITEMS: usize = 150;
/// Names of other crates that the library passes on at most: types in its signatures.
const FOREIGN: usize = 20;
/// Public modules of the library at most.
const MODULES: usize = 10;
/// Lines at most that ask whether the compiler is there.
const ASKED: usize = 80;

/// Kinds of items, as they are declared.
const KINDS: [&str; 11] =
    ["async", "const", "enum", "extern", "fn", "mod", "static", "struct", "trait", "type", "unsafe"];

/// The library's files. Files that stand in for others without the compiler are left out.
fn library() -> Vec<(PathBuf, Vec<String>)> {
    let dir = root().join("kernmill/src");
    let is_library = |path: &Path| path.starts_with(&dir) && !path.ends_with("without.rs");
    rust().into_iter().filter(|(path, _)| is_library(path)).collect()
}

/// The lines of a file before its tests.
fn without_tests(lines: &[String]) -> &[String] {
    let is_test = |line: &String| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    &lines[..lines.iter().position(is_test).unwrap_or(lines.len())]
}

/// The public items that a file declares.
fn items(lines: &[String]) -> Vec<String> {
    let items = lines.iter().filter_map(|line| line.trim_start().strip_prefix("pub "));
    let items = items.filter(|item| item.split_whitespace().next().is_some_and(|kind| KINDS.contains(&kind)));
    items.map(str::to_owned).collect()
}

/// The names of other crates that a file passes on.
fn foreign(lines: &[String]) -> Vec<String> {
    let used = uses(&lines.join("\n").replace("pub(crate) use", "use")).into_iter();
    used.filter(|one| one.is_exported && one.path[0].starts_with("kernmill_")).map(|one| one.name).collect()
}

#[test]
fn the_library_is_small() {
    let library = library();
    let lines: usize = library.iter().map(|(_, lines)| without_tests(lines).len()).sum();
    // A module that is there in two forms is one item.
    let items: Vec<String> = library
        .iter()
        .flat_map(|(path, lines)| {
            items(lines).into_iter().map(move |item| format!("{}: {item}", named(path)))
        })
        .collect();
    let modules: BTreeSet<&String> = items.iter().filter(|item| item.contains(": mod ")).collect();
    let twice = items.iter().filter(|item| item.contains(": mod ")).count() - modules.len();
    let foreign: Vec<String> = library.iter().flat_map(|(_, lines)| foreign(lines)).collect();
    let count = items.len() - twice;
    println!("the library: {lines} lines, {count} public items in {} modules", modules.len());
    println!("the library passes on {} names of other crates", foreign.len());
    assert!((1000..=LIBRARY).contains(&lines), "{lines} lines");
    assert!((50..=ITEMS).contains(&count), "{count} public items: {items:#?}");
    assert!((1..=MODULES).contains(&modules.len()), "{modules:?}");
    assert!((1..=FOREIGN).contains(&foreign.len()) && !foreign.contains(&"*".to_owned()), "{foreign:?}");
}

#[test]
fn the_compiler_is_behind_few_lines() {
    let feature = format!("feature = {:?}", "compiler");
    let asks = |line: &&String| line.contains("cfg") && line.contains(&feature);
    let asked: Vec<(String, usize)> = rust()
        .iter()
        .map(|(path, lines)| (named(path), lines.iter().filter(asks).count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let all: usize = asked.iter().map(|(_, count)| count).sum();
    println!("{all} lines ask for the compiler");
    assert!((1..ASKED).contains(&all), "{all}: {asked:#?}");
}

#[test]
fn the_program_uses_the_library_and_its_tools_alone() {
    let is_allowed = |name: &str| ["kernmill", "kernmill_tools"].contains(&name);
    let mut others = Vec::new();
    for (path, lines) in rust().iter().filter(|(path, _)| path.starts_with(root().join("cli"))) {
        let words =
            lines.iter().flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c)));
        let names = words.filter_map(|word| word.split_once("::")).map(|(name, _)| name);
        let used = names.filter(|name| name.starts_with("kernmill") && !is_allowed(name));
        others.extend(used.map(|name| format!("{}: {name}", named(path))));
    }
    println!("the program has {} imports past the library", others.len());
    assert!(others.is_empty(), "{others:#?}");
    let manifest: Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let needs = manifest["dependencies"].as_table().unwrap().keys().map(|name| name.replace('-', "_"));
    let ours: Vec<String> = needs.filter(|name| name.starts_with("kernmill")).collect();
    assert_eq!(ours, ["kernmill", "kernmill_tools"]);
}

#[test]
fn public_items_are_seen() {
    let file = "pub struct A;\nimpl A {\n    pub fn new() {}\n    pub(crate) fn own() {}\n}\npub use \
        kernmill_a::{B, c::D};\npub use inner::E;\nstruct F {\n    pub field: u8,\n}";
    let lines: Vec<String> = file.lines().map(str::to_owned).collect();
    assert_eq!(items(&lines), ["struct A;", "fn new() {}"]);
    assert_eq!(foreign(&lines), ["B", "D"]);
}
