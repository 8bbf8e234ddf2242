//! `config.json` as it is found: in a directory, beside a file of the checkpoint, or not at all.

use super::error::{ImportError, Result};
use kernmill_checkpoint::CheckpointError;
use kernmill_checkpoint::file_kind::{FileKind, KIND_BYTES};
use kernmill_os::files::read_regular;
use kernmill_os::output::directory;
use kernmill_plan::limit;
use std::path::Path;

/// File name of a model's configuration.
pub const CONFIG_FILE: &str = "config.json";

/// Files that stand in place of `config.json` in layouts that are not read here.
const INSTEAD: [(&str, &str); 3] = [
    (
        "adapter_config.json",
        "found adapter_config.json: it is an adapter, give it as --lora with its base model",
    ),
    (
        "params.json",
        "found params.json: it is Meta's or Mistral's own layout, download the same model as transformers has it",
    ),
    ("original", "found original/: download the config.json that belongs beside it"),
];

/// The thing that a directory holds in place of `config.json`, and advice; `None` if it is unknown.
pub fn instead_of_config(dir: &Path) -> Option<&'static str> {
    INSTEAD.iter().find(|(name, _)| dir.join(name).exists()).map(|(_, what)| *what)
}

/// The text of the `config.json` of the checkpoint at `path`: in it, if it is a directory, or else beside it.
///
/// # Errors
/// If the file is missing, is no regular file of text, or is larger than published ones are.
pub fn read_config(path: &Path) -> Result<String> {
    if !path.exists() {
        let error = CheckpointError::NoSuchPath { path: path.to_owned() };
        return Err(ImportError::Path(Box::new(error)));
    }
    let dir = if path.is_dir() { path } else { directory(path) };
    let file = dir.join(CONFIG_FILE);
    if !file.exists() {
        let found = instead_of_config(dir).map(|what| format!(", {what}")).unwrap_or_default();
        return Err(ImportError::Missing { dir: dir.to_owned(), found });
    }
    let bytes = read_regular(&file, limit::CONFIG_BYTES)
        .map_err(|source| ImportError::Read { path: file.clone(), source })?;
    let kind = FileKind::of(&bytes[..bytes.len().min(KIND_BYTES)]);
    match (kind, String::from_utf8(bytes)) {
        (FileKind::Json | FileKind::Text, Ok(text)) => Ok(text),
        (FileKind::Json | FileKind::Text, Err(_)) => {
            Err(ImportError::Kind { path: file, kind: FileKind::Unknown })
        }
        (kind, _) => Err(ImportError::Kind { path: file, kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_json_is_found_in_a_directory_or_beside_a_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(CONFIG_FILE), "{}").unwrap();
        std::fs::write(dir.path().join("model.safetensors"), "").unwrap();
        for path in [dir.path().to_owned(), dir.path().join("model.safetensors")] {
            assert_eq!(read_config(&path).unwrap(), "{}");
        }
    }

    #[test]
    fn what_is_no_config_says_what_it_is() {
        for (text, says) in [
            ("version https://git-lfs.github.com/spec/v1\noid", "it is a git-lfs pointer"),
            ("<!doctype html>", "it is a web page"),
            ("", "it is empty"),
            ("PK\u{3}\u{4}", "it is a zip archive"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(CONFIG_FILE), text).unwrap();
            let error = read_config(dir.path()).unwrap_err().to_string();
            assert!(error.contains("expected a model's config.json, but") && error.contains(says), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(CONFIG_FILE), " ".repeat(limit::CONFIG_BYTES as usize + 1)).unwrap();
        let error = read_config(dir.path()).unwrap_err().to_string();
        assert!(error.contains("it has 1048577 bytes, expected at most 1048576"), "{error}");
    }

    #[test]
    fn a_directory_without_one_says_what_it_holds() {
        for (name, says) in [
            ("adapter_config.json", "--lora"),
            ("params.json", "own layout"),
            ("spare", "no config.json found"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), "{}").unwrap();
            let error = read_config(dir.path()).unwrap_err().to_string();
            assert!(error.contains("no config.json found") && error.contains(says), "{error}");
        }
    }
}
