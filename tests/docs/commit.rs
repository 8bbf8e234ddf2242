//! The commit that the program is built from, as `build.rs` finds it.

#[allow(dead_code)]
#[path = "../../build.rs"]
mod build_script;

use std::fs;
use std::path::Path;
use tempfile::TempDir;

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

/// The result in a directory with these files.
fn found(files: &[(&str, &str)], dot_git: &str) -> Option<String> {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    build_script::commit(&dir.path().join(Path::new(dot_git)))
}

#[test]
fn a_commit_is_found_wherever_git_keeps_it() {
    let line = format!("{HASH}\n");
    let head = ("repo/.git/HEAD", "ref: refs/heads/main\n");
    let packed =
        format!("# pack-refs with: peeled\n{HASH} refs/heads/main\n{} refs/heads/other\n", "f".repeat(40));
    let cases: [&[(&str, &str)]; 4] = [
        &[head, ("repo/.git/refs/heads/main", &line)],
        &[head, ("repo/.git/packed-refs", &packed)],
        &[("repo/.git/HEAD", &line)],
        &[
            ("repo/.git", "gitdir: ../main/.git/worktrees/repo\n"),
            ("main/.git/worktrees/repo/HEAD", "ref: refs/heads/main\n"),
            ("main/.git/worktrees/repo/commondir", "../..\n"),
            ("main/.git/refs/heads/main", &line),
        ],
    ];
    for files in cases {
        assert_eq!(found(files, "repo/.git").as_deref(), Some(HASH), "{files:?}");
    }
}

#[test]
fn without_a_repository_there_is_no_commit() {
    let head = ("repo/.git/HEAD", "ref: refs/heads/main\n");
    let cases: [&[(&str, &str)]; 4] = [
        &[("repo/Cargo.toml", "")],
        &[head],
        &[head, ("repo/.git/refs/heads/main", "not a hash\n")],
        &[("repo/.git", "something else\n")],
    ];
    for files in cases {
        assert_eq!(found(files, "repo/.git"), None, "{files:?}");
    }
}
