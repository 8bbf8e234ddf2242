//! Documents that cannot rot: their paths exist, their commands work, and what they claim of the workspace
//! holds.

mod code_map;
mod commands;
mod commit;
mod dependencies;
mod fits;
mod json;
mod messages;
mod pages;
mod patches;
mod pictures;
mod prose;
mod reference;
mod run;
mod unsafe_code;
mod workspace;

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Top-level directories; a path in a document starts with one of them.
const TOP: [&str; 22] = [
    ".ci/",
    "benches/",
    "chat/",
    "checkpoint/",
    "cli/",
    "compiler/",
    "docs/",
    "eval/",
    "kernels-gen/",
    "kernmill/",
    "kernmill-tools/",
    "kv-store/",
    "model-specs/",
    "os/",
    "plan/",
    "python/",
    "runtime/",
    "scheduler/",
    "serve/",
    "server/",
    "tests/",
    "tools/",
];

#[test]
fn paths_in_documents_exist() {
    let mut dead = Vec::new();
    for document in files(root(), &["md"]) {
        let text = fs::read_to_string(&document).unwrap();
        let dir = document.parent().unwrap();
        let named = code_spans(&text).into_iter().filter(|span| is_path(span)).map(|path| root().join(path));
        let linked = links(&text).into_iter().map(|link| dir.join(link));
        let missing = named.chain(linked).filter(|path| !path.exists());
        dead.extend(missing.map(|path| format!("{}: {}", document.display(), path.display())));
    }
    assert!(dead.is_empty(), "dead paths:\n{}", dead.join("\n"));
}

#[test]
fn links_to_headings_lead_to_one() {
    let mut dead = Vec::new();
    for document in files(root(), &["md"]) {
        let text = fs::read_to_string(&document).unwrap();
        let targets = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let Some((file, heading)) = target.split_once('#') else { continue };
            let file = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            let is_there = fs::read_to_string(&file).is_ok_and(|text| {
                text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
            });
            if !is_there {
                dead.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "no such heading:\n{}", dead.join("\n"));
}

/// The name by which links reach a heading.
fn anchor(line: &str) -> String {
    let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn documents_that_the_code_points_to_exist() {
    let mut dead = Vec::new();
    for source in files(root(), &["rs", "toml", "py"]) {
        let text = fs::read_to_string(&source).unwrap();
        for (at, _) in text.match_indices("docs/") {
            let name: String =
                text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/-_.".contains(*c)).collect();
            if name.ends_with(".md") && !root().join(&name).exists() {
                dead.push(format!("{}: {name}", source.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead documents:\n{}", dead.join("\n"));
}

#[test]
fn every_document_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let docs = root().join("docs");
    for document in files(&docs, &["md"]) {
        let name = document.strip_prefix(&docs).unwrap().to_str().unwrap();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "docs/README.md lacks {name}");
    }
}

/// The arguments of a line that calls the program.
pub fn call(line: &str) -> Option<&str> {
    const CALLS: [&str; 3] = ["kernmill ", "cargo run --release -- ", "cargo run --locked --release -- "];
    CALLS.iter().find_map(|call| line.strip_prefix(call))
}

/// Files of the working tree with one of these extensions, build output left out.
pub fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                found.extend(files(&path, extensions));
            }
        } else if path.extension().is_some_and(|e| extensions.iter().any(|extension| e == *extension)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The texts between single backticks, outside of code blocks.
fn code_spans(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

fn is_path(span: &str) -> bool {
    TOP.iter().any(|top| span.starts_with(top)) && !span.contains([' ', '*', '<', '{'])
}

/// Targets of links within the repository, without their anchors.
fn links(text: &str) -> Vec<&str> {
    let targets = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    local.filter_map(|target| target.split('#').next()).collect()
}
