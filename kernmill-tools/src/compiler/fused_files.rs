//! Fused-op specs in files.

use kernmill::{Error, Result};
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec};
use kernmill_os::files::{read_named_text, read_regular_text};
use kernmill_plan::limit;
use std::path::{Path, PathBuf};

/// The built-in fused-op specs and those in `files`, without those that are named.
///
/// # Errors
/// When a spec is wrong or not there, or one that is to be left out is not among them.
pub fn fused_set(files: &[PathBuf], without: &[String]) -> Result<FusedSet> {
    let mut set = FusedSet::builtin().with(read_fused(files)?)?;
    for name in without {
        let set_without = set.without(name);
        set = set_without.map_err(|message| Error::bad_input(format!("--without-fusion: {message}")))?;
    }
    Ok(set)
}

/// Reads fused-op specs: files, or directories of .toml files.
///
/// # Errors
/// When one cannot be read or is wrong, or a directory has none.
pub fn read_fused(paths: &[PathBuf]) -> Result<Vec<FusedSpec>> {
    let mut specs = Vec::new();
    for path in paths {
        // A file that is found in a directory must not be waited for.
        let read = if path.is_dir() { read_regular_text } else { read_named_text };
        for file in toml_files(path)? {
            let text = read(&file, limit::SPEC_BYTES).map_err(Error::read(&file))?;
            specs.push(FusedSpec::parse(&file.display().to_string(), &text)?);
        }
    }
    Ok(specs)
}

/// A file itself, or the .toml files of a directory by name.
fn toml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(Error::read(path))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(Error::read(path))?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::input(path, "no .toml files in it, expected fused-op specs"));
    }
    Ok(files)
}
