//! The program says what it says beside its results in one place, and declares every option once.

use super::size::{named, rust};
use crate::docs::root;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The program's files, with their lines.
fn program() -> Vec<(String, Vec<String>)> {
    let is_program = |(path, _): &(PathBuf, Vec<String>)| path.starts_with(root().join("cli"));
    rust().into_iter().filter(is_program).map(|(path, lines)| (named(&path), lines)).collect()
}

#[test]
fn what_is_said_beside_results_goes_one_way() {
    // Marks of code that writes to standard error.
    let marks = ["\"note: ", "\"wrote ", "eprint", "stderr()", "ProgressBar::"];
    let found: Vec<String> = program()
        .iter()
        .flat_map(|(name, lines)| lines.iter().map(move |line| (name, line.trim())))
        .filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)) && !line.contains("use_stderr"))
        .map(|(name, line)| format!("{name}: {line}"))
        .collect();
    assert!(found.len() >= marks.len() - 1, "{found:#?}");
    assert!(found.iter().all(|line| line.starts_with("cli/aside.rs: ")), "{found:#?}");
}

/// The words of every option that is declared, with the files that declare it.
fn options() -> BTreeMap<String, Vec<String>> {
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // A program without the compiler declares what it has in place of the compiler's options.
    for (name, lines) in program().iter().filter(|(name, _)| name != "cli/without.rs") {
        let (mut words, mut is_option) = (String::new(), false);
        for line in lines.iter().map(|line| line.trim()) {
            if let Some(text) = line.strip_prefix("///") {
                words += text;
            } else if line.starts_with("#[") {
                is_option |= line.starts_with("#[arg(");
            } else {
                if is_option && !words.is_empty() {
                    options.entry(std::mem::take(&mut words)).or_default().push(name.clone());
                }
                words.clear();
                is_option = false;
            }
        }
    }
    options
}

#[test]
fn every_option_is_declared_once() {
    let options = options();
    assert!(options.len() > 90, "{} options are seen", options.len());
    let several: Vec<_> = options.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(several.is_empty(), "declared by several commands, expected one struct: {several:#?}");
}
