//! The patches in `docs/dev/` that show what adding something takes still apply to this tree, and are as
//! small as the documents say.

use super::root;
use kernmill_plan::target::Level;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A document's patch, how many files it may touch, and whether it is in the tree already.
const PATCHES: [(&str, usize, bool); 4] = [
    ("docs/dev/adding-a-weight-format.patch", 4, false),
    ("docs/dev/adding-a-cpu-level.patch", 3, false),
    ("docs/dev/adding-an-op.patch", 7, true),
    ("docs/dev/adding-a-kv-format.patch", 6, false),
];

/// Files that a patch changes or makes.
fn touched(patch: &str) -> Vec<&str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect()
}

#[test]
fn patches_touch_as_few_files_as_their_documents_say() {
    for (name, most, _) in PATCHES {
        let patch = fs::read_to_string(root().join(name)).unwrap();
        let document = fs::read_to_string(root().join(name).with_extension("md")).unwrap();
        let files = touched(&patch);
        assert!((1..=most).contains(&files.len()), "{name} touches {files:?}");
        for file in files {
            assert!(document.contains(file), "{name}: its document does not name {file}");
        }
    }
}

#[test]
fn patches_apply_to_this_tree() {
    let mut skipped = 0;
    for (name, _, is_applied) in PATCHES {
        let check = |reverse: &[&str]| {
            let git = Command::new("git")
                .args(["apply", "--check"])
                .args(reverse)
                .arg(name)
                .current_dir(root())
                .output();
            git.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
        };
        let [way, other]: [&[&str]; 2] =
            if is_applied { [&["--reverse"], &[]] } else { [&[], &["--reverse"]] };
        let Ok((applies, error)) = check(way) else {
            skipped += 1;
            continue;
        };
        assert!(applies, "{name} no longer applies; change it with the code that it patches:\n{error}");
        // A patch of nothing would apply both ways.
        assert!(!check(other).unwrap().0, "{name} applies the other way too");
    }
    if skipped > 0 {
        eprintln!("SKIPPED: git is missing, {skipped} patches were not tried");
    }
}

/// This tree, but for fixtures, with a patch applied. It always lies in one place, where a build finds what
/// the last one left.
fn patched_tree(patch: &str) -> PathBuf {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git lists this tree's files");
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("patched");
    if tree.exists() {
        fs::remove_dir_all(&tree).unwrap();
    }
    let names = String::from_utf8(listed.stdout).unwrap();
    for name in names.split_terminator('\0').filter(|name| !name.starts_with("tests/fixtures")) {
        let (from, to) = (root().join(name), tree.join(name));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        // A file that is deleted and not yet committed is listed, too.
        if from.exists() {
            fs::copy(from, to).unwrap();
        }
    }
    // The copy lies in a repository, where paths would be those of its root.
    let applied = Command::new("git")
        .args(["apply", patch])
        .env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap())
        .current_dir(&tree)
        .status();
    assert!(applied.unwrap().success(), "{patch} applies to a copy of the tree");
    tree
}

/// A format of 6 bits is built, its products are right and their times are measured at every level of this
/// machine, by assembled code, which does not know of it.
#[test]
fn a_weight_format_comes_with_its_speed() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("SKIPPED: git is missing, no patch was built");
        return;
    }
    let tree = patched_tree("docs/dev/adding-a-weight-format.patch");
    let bench = Command::new(env!("CARGO"))
        .args(["bench", "--locked", "--offline", "--profile", "dev", "--workspace", "--bench", "costs"])
        .args(["--", "int6"])
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
        // Libraries that are here already serve, but those of the copy get names of their own: with the same
        // ones, they would lie in the place of this tree's.
        .env("RUSTC_WORKSPACE_WRAPPER", "env")
        .current_dir(&tree)
        .output()
        .unwrap();
    assert!(bench.status.success(), "{}", String::from_utf8_lossy(&bench.stderr));
    let lines: Vec<Value> = String::from_utf8(bench.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for level in Level::supported().into_iter().filter(|level| !level.has_tiles()) {
        for (what, by) in [("dot_int6", "dot_q8_"), ("decode_int6", "decode_avx")] {
            let measured = |line: &&Value| {
                let begins = |key: &str, with: &str| line[key].as_str().unwrap().starts_with(with);
                line["level"] == level.name() && begins("leaf", what) && begins("version", by)
            };
            let line = lines.iter().find(measured);
            let line = line.unwrap_or_else(|| panic!("{what} by {by} at {}: {lines:?}", level.name()));
            assert!(line["ns_per_block"].as_f64().unwrap() > 0.0, "{line}");
        }
    }
}
