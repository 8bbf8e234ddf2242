//! Parser of `use` lines and of paths in code: which file uses which.

use super::circles::Graph;
use std::collections::BTreeMap;

/// A module's path from its crate's root; the root's is empty.
pub type Path = Vec<String>;

/// The text of every module of a crate.
pub type Modules = BTreeMap<Path, String>;

/// One name that a `use` line brings in.
#[derive(Debug, PartialEq)]
pub struct Use {
    /// Path as it is written, `self` at the end left out.
    pub path: Path,
    /// Name that the file has for it.
    pub name: String,
    /// Whether others may use it from here.
    pub is_exported: bool,
}

/// Every `use` line of a file, tests at its end left out.
pub fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim()).peekable();
    while let Some(line) = lines.next() {
        let is_inline = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(is_inline) {
            break;
        }
        let (is_exported, rest) = match line.split_once("use ") {
            Some(("", rest)) => (false, rest),
            Some((before, rest)) if is_visibility(before) => (true, rest),
            _ => continue,
        };
        let mut statement = rest.to_owned();
        while is_tree(&statement) && !statement.contains(';') && lines.peek().is_some() {
            statement.push_str(lines.next().unwrap_or(""));
        }
        // A line of a text may begin so too.
        if !is_tree(&statement) || !statement.contains(';') {
            continue;
        }
        let tree = statement.split(';').next().unwrap_or("");
        read_tree(tree, &[], is_exported, &mut found);
    }
    found
}

/// Every path of two names or more in the code of a file, but for tests at its end, texts, comments and `use`
/// lines.
pub fn paths(text: &str) -> Vec<Path> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    let mut is_use = false;
    while let Some(line) = lines.next() {
        let code = without_texts(line);
        let line = code.trim();
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.trim_end().ends_with('{')) {
            break;
        }
        is_use |=
            line.split_once("use ").is_some_and(|(before, _)| before.is_empty() || is_visibility(before));
        if !is_use {
            let line = line.replace("(in crate::", "(");
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
            found.extend(words.map(|word| segments(word).collect::<Path>()).filter(|path| path.len() > 1));
        }
        is_use &= !line.contains(';');
    }
    found
}

/// A line without what is in quotes, and without its comment.
fn without_texts(line: &str) -> String {
    let mut kept = String::new();
    let mut is_text = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_text => drop(chars.next()),
            '"' => is_text = !is_text,
            '/' if !is_text && chars.peek() == Some(&'/') => break,
            _ if !is_text => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// `pub `, `pub(crate) ` and their like.
fn is_visibility(before: &str) -> bool {
    before == "pub " || (before.starts_with("pub(") && before.ends_with(") "))
}

/// Whether a text has only what stands in a `use` line.
fn is_tree(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " \t_:{},*;".contains(c))
}

/// Takes `a::{b, c::d as e}` apart.
fn read_tree(tree: &str, before: &[String], is_exported: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((start, inner)) = tree.split_once('{') {
        let path: Path = before.iter().cloned().chain(segments(start)).collect();
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        parts(inner).into_iter().for_each(|part| read_tree(part, &path, is_exported, found));
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
        let mut path: Path = before.iter().cloned().chain(segments(path)).collect();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = alias.or(path.last().map(String::as_str)).unwrap_or("").trim().to_owned();
        found.push(Use { path, name, is_exported });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::").map(|segment| segment.trim().to_owned()).filter(|segment| !segment.is_empty())
}

/// The parts between commas that are in no inner braces.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Which module of a crate uses which. A name that a module takes from another's `use` lines belongs to the
/// module that has it, and a module that only passes on what its own children have does not use them.
pub fn graph(modules: &Modules) -> Graph {
    let uses: BTreeMap<&Path, Vec<Use>> = modules.iter().map(|(path, text)| (path, uses(text))).collect();
    let mut graph = Graph::new();
    for (module, found) in &uses {
        let targets = graph.entry(module.join("::")).or_default();
        // A folder's own file calls what its files have: it is their door, and they may know it.
        let in_code = paths(&modules[*module]).into_iter().map(|path| (path, true));
        for (path, is_door) in found.iter().map(|one| (one.path.clone(), one.is_exported)).chain(in_code) {
            let Some(target) = absolute(modules, module, &path).and_then(|path| owner(&uses, &path, 0))
            else {
                continue;
            };
            let passes_on = is_door && target.starts_with(module) && target != **module;
            if target != **module && !passes_on {
                targets.insert(target.join("::"));
            }
        }
    }
    graph
}

/// For each folder, the graph of what is in it: a file, or a folder with all in it, uses another one's. The
/// folder's own file is left out.
pub fn folders(files: &Graph) -> BTreeMap<String, Graph> {
    let mut folders: BTreeMap<String, Graph> = BTreeMap::new();
    let path =
        |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Path>();
    for (file, used) in files {
        let file = path(file);
        for depth in 0..file.len() {
            let folder = folders.entry(file[..depth].join("::")).or_default();
            folder.entry(file[depth].clone()).or_default();
        }
        for used in used.iter().map(|used| path(used)) {
            let depth = file.iter().zip(&used).take_while(|(a, b)| a == b).count();
            if depth < file.len() && depth < used.len() {
                let folder = folders.entry(file[..depth].join("::")).or_default();
                folder.entry(used[depth].clone()).or_default();
                folder.entry(file[depth].clone()).or_default().insert(used[depth].clone());
            }
        }
    }
    folders
}

/// The path from the crate's root, of what is in the crate.
fn absolute(modules: &Modules, module: &Path, path: &Path) -> Option<Path> {
    let first = path.first()?;
    let joined = |base: &[String], rest: &[String]| base.iter().chain(rest).cloned().collect::<Path>();
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(joined(module, &path[1..])),
        "super" => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            Some(joined(&module[..module.len().checked_sub(up)?], &path[up..]))
        }
        _ => {
            let child = joined(module, std::slice::from_ref(first));
            modules.contains_key(&child).then(|| joined(module, path))
        }
    }
}

/// The module that has what is at `path`, past `use` lines of other modules; `None` if it is another crate's.
fn owner(uses: &BTreeMap<&Path, Vec<Use>>, path: &Path, depth: usize) -> Option<Path> {
    let length = (0..=path.len()).rev().find(|n| uses.contains_key(&path[..*n].to_vec()))?;
    let module = path[..length].to_vec();
    let Some(name) = path.get(length).filter(|_| depth < 8) else { return Some(module) };
    let Some(from) = uses[&module].iter().find(|one| one.name == *name) else { return Some(module) };
    let known: Modules = uses.keys().map(|path| ((*path).clone(), String::new())).collect();
    let mut target = absolute(&known, &module, &from.path)?;
    target.extend_from_slice(&path[length + 1..]);
    owner(uses, &target, depth + 1)
}
