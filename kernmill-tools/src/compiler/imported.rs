//! Specs from what a path names.

use kernmill::compiler::{SpecSource, source};
use kernmill::locate::{Located, SourceFiles};
use kernmill::{Error, FusedSet, Result};
use kernmill_runtime::Plan;
use std::path::Path;

/// A spec from what was found at `path`: a plan's own, or one that is written from a config.json or GGUF
/// file.
///
/// # Errors
/// When a file cannot be read, describes a model that is not supported, or is a spec already.
pub fn imported(found: Located, path: &Path) -> Result<SpecSource> {
    match found {
        Located::Plan(path) => source(&Plan::open(&path)?),
        Located::Source(files) if files.weights.is_some() => {
            SpecSource::of(&SourceFiles { spec: None, ..files }, FusedSet::builtin())
        }
        Located::Source(_) => {
            let what = "it is a spec already; expected a config.json, a GGUF file or a plan";
            Err(Error::input(path, what))
        }
    }
}
