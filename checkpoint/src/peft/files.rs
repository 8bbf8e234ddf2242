//! Where the two files of an adapter are, and what a path leads to instead.

use super::config::{CONFIG_FILE, OF_MLX};
use super::error::PeftError;
use super::file::TENSOR_FILE;
use crate::file_kind::FileKind;
use std::path::{Path, PathBuf};

/// Entries of a directory that are looked at to say what it holds.
const LOOKED_AT: usize = 1000;

/// The files that PEFT's `save_pretrained` writes.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) config: PathBuf,
    pub(super) tensors: PathBuf,
}

impl Files {
    /// Finds them by a directory, or by one of them.
    pub(super) fn find(path: &Path) -> Result<Files, PeftError> {
        let status = std::fs::metadata(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => PeftError::malformed(path, NOWHERE),
            _ => PeftError::io(path)(source),
        })?;
        if status.is_dir() {
            return Files::in_directory(path);
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match FileKind::of_file(path).map_err(PeftError::io(path))? {
            FileKind::Safetensors => {
                let config = parent.join(CONFIG_FILE);
                match config.exists() {
                    true => Ok(Files { config, tensors: path.to_owned() }),
                    false => Err(PeftError::malformed(path, format!("expected {CONFIG_FILE} beside it"))),
                }
            }
            FileKind::Json if path.file_name().is_some_and(|name| name == CONFIG_FILE) => {
                Files::in_directory(parent)
            }
            FileKind::Gguf => Err(PeftError::unsupported(path, OF_GGUF)),
            FileKind::Zip | FileKind::Pickle => Err(pickled(path)),
            kind => {
                let what =
                    format!("{}; expected {TENSOR_FILE}, or the directory that it is in", kind.describe());
                Err(PeftError::malformed(path, what))
            }
        }
    }

    fn in_directory(directory: &Path) -> Result<Files, PeftError> {
        let files = Files { config: directory.join(CONFIG_FILE), tensors: directory.join(TENSOR_FILE) };
        let lacking = match (files.config.exists(), files.tensors.exists()) {
            (true, true) => return Ok(files),
            (false, _) => CONFIG_FILE,
            (true, false) => TENSOR_FILE,
        };
        Err(something_else(directory).unwrap_or_else(|| {
            let what = format!(
                "there is no {lacking} in it; expected the directory that PEFT's save_pretrained wrote"
            );
            PeftError::malformed(directory, what)
        }))
    }
}

const NOWHERE: &str = "there is no such file or directory; expected the directory that PEFT's \
    save_pretrained wrote (an adapter on a hub has to be downloaded first)";
const OF_GGUF: &str = "an adapter as a GGUF file: of adapters only PEFT's are read, expected the directory \
    that its save_pretrained wrote, from before it was converted";

/// Looks whether there are files of an adapter.
///
/// # Errors
/// When there are no such files; the message names what there is instead, if that is known.
pub fn check_files(path: &Path) -> Result<(), PeftError> {
    Files::find(path).map(drop)
}

fn pickled(path: &Path) -> PeftError {
    let what = format!(
        "a pickled adapter; expected {TENSOR_FILE}: load it with PEFT and write it with save_pretrained, \
         which makes that"
    );
    PeftError::unsupported(path, what)
}

/// The other thing that a directory without an adapter of PEFT holds, if it is known.
fn something_else(directory: &Path) -> Option<PeftError> {
    let is_there = |name: &str| Some(directory.join(name)).filter(|path| path.exists());
    if let Some(path) = is_there("adapter_model.bin") {
        return Some(pickled(&path));
    }
    if let Some(path) = is_there("adapters.safetensors").or_else(|| is_there("adapters.npz")) {
        return Some(PeftError::unsupported(&path, OF_MLX));
    }
    if is_there("config.json").is_some() && is_there(CONFIG_FILE).is_none() {
        let what = "a model, and no adapter: --weights reads it";
        return Some(PeftError::malformed(directory, what));
    }
    let entries = std::fs::read_dir(directory).ok()?.take(LOOKED_AT).flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    names.sort();
    if let Some(path) = names.iter().find(|path| path.extension().is_some_and(|end| end == "gguf")) {
        return Some(PeftError::unsupported(path, OF_GGUF));
    }
    let inner = names.iter().find(|path| path.join(TENSOR_FILE).exists())?;
    let what = format!("there is no adapter in it, but one in {}", inner.display());
    Some(PeftError::malformed(directory, what))
}
