//! The patches in `docs/dev/` that show what adding something takes still apply to this tree, and are as
//! small as the documents say.

use super::root;
use std::fs;
use std::process::Command;

/// A document's patch, and how many files it may touch.
const PATCHES: [(&str, usize); 4] = [
    ("docs/dev/adding-a-weight-format.patch", 8),
    ("docs/dev/adding-a-cpu-level.patch", 3),
    ("docs/dev/adding-an-op.patch", 6),
    ("docs/dev/adding-a-kv-format.patch", 6),
];

/// Files that a patch changes or makes.
fn touched(patch: &str) -> Vec<&str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect()
}

#[test]
fn patches_touch_as_few_files_as_their_documents_say() {
    for (name, most) in PATCHES {
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
    for (name, _) in PATCHES {
        let check = |reverse: &[&str]| {
            let git = Command::new("git")
                .args(["apply", "--check"])
                .args(reverse)
                .arg(name)
                .current_dir(root())
                .output();
            git.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
        };
        let Ok((applies, error)) = check(&[]) else {
            skipped += 1;
            continue;
        };
        assert!(applies, "{name} no longer applies; change it with the code that it patches:\n{error}");
        // A patch of nothing would apply both ways.
        assert!(!check(&["--reverse"]).unwrap().0, "{name} is applied already");
    }
    if skipped > 0 {
        eprintln!("SKIPPED: git is missing, {skipped} patches were not tried");
    }
}
