//! The tree of sources: no file, no folder and no crate uses another in a circle.

mod circles;
mod comments;
mod names;
mod program;
mod size;
mod surface;
mod texts;
mod turns;
mod uses;

use crate::docs::{files, root};
use circles::{Graph, circle};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use uses::{Modules, folders, graph, uses};

/// A member of the workspace, or the program, its tests, or the Python module, which is outside of it.
struct Sources {
    /// The name in `use` lines.
    name: String,
    dir: PathBuf,
}

/// Where every crate of the workspace has its sources.
fn sources() -> Vec<Sources> {
    let manifest = |dir: &Path| -> toml::Table {
        fs::read_to_string(dir.join("Cargo.toml")).unwrap().parse().expect("a manifest")
    };
    let members = manifest(root())["workspace"]["members"].as_array().cloned().expect("members");
    let mut sources: Vec<Sources> = members
        .iter()
        .map(|member| {
            let dir = root().join(member.as_str().expect("a path"));
            let name = manifest(&dir)["package"]["name"].as_str().expect("a name").replace('-', "_");
            Sources { name, dir: dir.join("src") }
        })
        .collect();
    for (name, dir) in [("the program", "cli"), ("the tests", "tests"), ("the Python module", "python/src")] {
        sources.push(Sources { name: name.to_owned(), dir: root().join(dir) });
    }
    sources
}

/// The modules of a crate, by their files' places.
fn modules(dir: &Path) -> Modules {
    let module = |file: &PathBuf| -> Option<(Vec<String>, String)> {
        let place = file.strip_prefix(dir).unwrap().with_extension("");
        let mut path: Vec<String> = place.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        // A separate binary.
        if path == ["run_only"] {
            return None;
        }
        if ["mod", "lib", "main"].contains(&path.last()?.as_str()) {
            path.pop();
        }
        Some((path, fs::read_to_string(file).unwrap()))
    };
    let all: Modules = files(dir, &["rs"]).iter().filter_map(module).collect();
    let tests: Vec<Vec<String>> = all.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let of_tests = |path: &Vec<String>| tests.iter().any(|test| path.starts_with(test));
    all.into_iter().filter(|(path, _)| !of_tests(path)).collect()
}

/// The modules of a file that are there in tests only.
fn test_modules(path: &[String], text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" && !line.starts_with("#[cfg(all(test") {
            continue;
        }
        while lines.peek().is_some_and(|next| next.starts_with("#[")) {
            lines.next();
        }
        let name = lines.peek().and_then(|next| next.rsplit_once("mod ")?.1.strip_suffix(';'));
        found.extend(name.map(|name| path.iter().cloned().chain([name.to_owned()]).collect()));
    }
    found
}

#[test]
fn no_file_uses_another_in_a_circle() {
    for Sources { name, dir } in sources() {
        let modules = modules(&dir);
        assert!(modules.contains_key(&Vec::new()), "{name} has a root");
        let graph = graph(&modules);
        assert!(modules.len() < 5 || graph.values().any(|uses| !uses.is_empty()), "{name}: no use is seen");
        let circle = circle(&graph);
        assert!(circle.is_none(), "{name}: files use each other: {}", circle.unwrap().join(" -> "));
    }
}

/// Folders whose parts still need each other, by crate; the root's name is empty. The list may only shrink.
const KNOTS: [(&str, &str); 8] = [
    ("kernmill_checkpoint", ""),
    ("kernmill_kernels_gen", ""),
    ("kernmill_tools", "compiler"),
    ("kernmill", ""),
    ("kernmill_runtime", ""),
    ("kernmill_server", ""),
    ("the program", ""),
    ("the tests", ""),
];

#[test]
fn no_folder_uses_another_in_a_circle() {
    for Sources { name, dir } in sources() {
        for (folder, graph) in folders(&graph(&modules(&dir))) {
            let (circle, known) = (circle(&graph), KNOTS.contains(&(name.as_str(), folder.as_str())));
            assert!(
                circle.is_some() || !known,
                "{name}: no knot in {folder}/ any more: take it off the list"
            );
            let way = circle.filter(|_| !known).map(|circle| circle.join(" -> "));
            assert_eq!(way, None, "{name}: circle in {folder}/");
        }
    }
}

#[test]
fn no_crate_uses_another_in_a_circle() {
    let sources = sources();
    let mut graph = Graph::new();
    for Sources { name, dir } in &sources {
        let used = modules(dir).into_values().flat_map(|text| uses(&text)).map(|one| one.path[0].clone());
        let ours = used.filter(|used| used != name && sources.iter().any(|other| other.name == *used));
        graph.insert(name.clone(), ours.collect());
    }
    assert!(graph["kernmill_compiler"].contains("kernmill_plan"), "{graph:?}");
    let circle = circle(&graph);
    assert!(circle.is_none(), "crates use each other: {}", circle.unwrap().join(" -> "));
}

/// A crate of these files, `""` being its root.
fn made_up(files: &[(&str, &str)]) -> Graph {
    let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    graph(&files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect::<BTreeMap<_, _>>())
}

#[test]
fn a_made_up_circle_is_found() {
    let straight = [("", "mod a;\nmod b;\nuse a::A;"), ("a", "use crate::b::B;"), ("b", "use std::fmt;")];
    assert_eq!(circle(&made_up(&straight)), None);
    let bent = [("", "mod a;\nmod b;"), ("a", "use crate::{b::{self, B}, c};"), ("b", "use super::a::A;")];
    assert_eq!(circle(&made_up(&bent)).unwrap(), ["a", "b"]);
    let long =
        [("", ""), ("a", "use crate::b::B;"), ("b", "pub use crate::c::C as B;"), ("c", "use super::a;")];
    assert_eq!(circle(&made_up(&long)).unwrap(), ["a", "c"]);
}

#[test]
fn a_circle_of_a_folder_and_its_files_is_found() {
    // The folder passes on what its files have, and they take it from there: no circle with the folder, but
    // one between them.
    let passed_on = [
        ("", "mod m;"),
        ("m", "mod one;\nmod two;\npub use one::{\n    One, // first\n};\npub use two::Two;"),
        ("m::one", "use super::Two;"),
        ("m::two", "use std::fmt;"),
    ];
    assert_eq!(circle(&made_up(&passed_on)), None);
    let mut each_other = passed_on;
    each_other[3].1 = "use super::One;";
    assert_eq!(circle(&made_up(&each_other)).unwrap(), ["m::one", "m::two"]);
    let both_ways =
        [("", "mod m;"), ("m", "mod one;\nuse one::One;\nstruct Mine;"), ("m::one", "use super::Mine;")];
    assert_eq!(circle(&made_up(&both_ways)).unwrap(), ["m", "m::one"]);
}

#[test]
fn tests_in_a_file_make_no_circle() {
    let files =
        [("", ""), ("a", "use crate::b::B;"), ("b", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}")];
    assert_eq!(circle(&made_up(&files)), None);
    let parsed = uses(
        "    use a::{b as c, d::{self, E}};\n// use x;\nlet used = 1;\nuse it, he said.\npub(crate) use f::*;",
    );
    let names: Vec<&str> = parsed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["c", "d", "E", "*"]);
    assert!(parsed[3].is_exported && !parsed[0].is_exported);
}

#[test]
fn modules_of_tests_are_left_out() {
    let text = "mod a;\n#[cfg(test)]\n#[path = \"toys.rs\"]\npub(crate) mod toy;\nmod b;";
    assert_eq!(test_modules(&["m".to_owned()], text), [["m", "toy"]]);
    assert!(test_modules(&[], "#[cfg(test)]\nmod tests {\n    mod inner;\n}").is_empty());
}

#[test]
fn a_path_in_code_and_a_folder_make_circles() {
    let by_path = [
        ("", ""),
        ("a", "fn f() -> u8 {\n    crate::b::g() // crate::c::h()\n}"),
        ("b", "fn g() -> &'static str {\n    crate::a::f();\n    \"crate::c::h\"\n}"),
        ("c", "use crate::a::f;"),
    ];
    assert_eq!(circle(&made_up(&by_path)).unwrap(), ["a", "b"]);
    // The folder's own file is a door: calls of its files make no circle, and their use of it neither.
    let door = [("", ""), ("m", "fn all() {\n    one::f()\n}"), ("m::one", "use super::all;")];
    assert_eq!(circle(&made_up(&door)), None);
    let rooms = [
        ("", ""),
        ("m::one", "use crate::n::two::Two;"),
        ("m::three", ""),
        ("n::two", "use std::fmt;"),
        ("n::four", "use crate::m::three::Three;"),
    ];
    let graph = made_up(&rooms);
    assert_eq!(circle(&graph), None);
    assert_eq!(circle(&folders(&graph)[""]).unwrap(), ["m", "n"]);
}
