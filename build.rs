//! Gives the program the commit that it is built from, and the names of its features: the same sources give
//! the same program, and no `git` is needed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    // A development build is seldom that of a commit, and would be built again for every one.
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join(".git");
    let commit = if variable("PROFILE") == "release" { commit(&root) } else { None };
    // `cargo run` passes these on to the program: they must not have the names of its options' variables.
    println!("cargo:rustc-env=BUILD_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo:rustc-env=BUILD_TARGET={}", variable("TARGET"));
    let names = env::vars_os()
        .filter_map(|(name, _)| Some(name.to_str()?.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let mut features: Vec<_> = names.filter(|name| name != "default").collect();
    features.sort();
    println!("cargo:rustc-env=BUILD_FEATURES={}", features.join(", "));
}

/// The commit that is checked out, by what `.git` holds: a directory, or in a linked worktree a file that
/// names one.
pub fn commit(dot_git: &Path) -> Option<String> {
    let git_dir = match read(dot_git) {
        Some(text) => dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        None => dot_git.to_owned(),
    };
    let common = match read(&git_dir.join("commondir")) {
        Some(path) => git_dir.join(path.trim()),
        None => git_dir.clone(),
    };
    watch(&git_dir.join("HEAD"));
    watch(&git_dir.join("logs/HEAD"));
    let head = read(&git_dir.join("HEAD"))?;
    let hash = match head.trim().strip_prefix("ref: ") {
        None => head.trim().to_owned(),
        Some(name) => loose(&[&git_dir, &common], name).or_else(|| packed(&common, name))?,
    };
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(hash)
}

/// The commit of a branch that has a separate file.
fn loose(dirs: &[&PathBuf], name: &str) -> Option<String> {
    dirs.iter().find_map(|dir| {
        watch(&dir.join(name));
        Some(read(&dir.join(name))?.trim().to_owned())
    })
}

/// The commit of a branch that stands in the list of all.
fn packed(common: &Path, name: &str) -> Option<String> {
    let path = common.join("packed-refs");
    watch(&path);
    let list = read(&path)?;
    list.lines()
        .find_map(|line| line.split_once(' ').filter(|(_, listed)| *listed == name))
        .map(|(hash, _)| hash.to_owned())
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Builds again when the file changes. One that is not there would mean every time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}
