//! Adapters (LoRA, DoRA) from their directories to the engine.

use crate::error::{Error, Result};
use crate::observe::Observer;
use kernmill_checkpoint::peft::check_files;
use kernmill_plan::program::Program;
use kernmill_runtime::adapter::AdapterLoader;
use kernmill_runtime::{AdapterError, AdapterUse, Engine};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

/// An adapter on disk: a directory that PEFT's `save_pretrained` wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSource {
    /// The name by which sequences ask for the adapter.
    pub name: String,
    /// The directory, with `adapter_config.json` and `adapter_model.safetensors`.
    pub directory: PathBuf,
    /// A factor for what the adapter adds, besides its own `lora_alpha / r`. 1 is as trained.
    pub scale: f32,
}

/// An adapter that has been loaded.
#[derive(Clone, Debug)]
pub struct LoadedAdapter {
    /// The name by which sequences ask for the adapter.
    pub name: String,
    /// Bytes of memory that the packed adapter takes.
    pub bytes: u64,
    /// Seconds that reading and packing took.
    pub seconds: f64,
}

/// Checks adapters before a model is loaded: that their names differ and their files are there.
///
/// # Errors
/// When a name occurs twice, or a file is missing. The error is that of the first adapter at fault.
pub fn check(adapters: &[AdapterSource]) -> Result<()> {
    for (n, adapter) in adapters.iter().enumerate() {
        if adapters[..n].iter().any(|other| other.name == adapter.name) {
            return Err(Error::bad_input(format!("--lora {}=... is given twice", adapter.name)));
        }
        check_files(&adapter.directory)?;
    }
    Ok(())
}

/// Checks that adapters fit a program: targets, ranks and shapes. Their elements are checked when they are
/// loaded.
///
/// # Errors
/// When an adapter does not fit, or the program was compiled without branches for adapters. The error is that
/// of the first adapter at fault.
pub(crate) fn check_fit(adapters: &[AdapterSource], program: &Program) -> Result<()> {
    if adapters.is_empty() {
        return Ok(());
    }
    let Some(lora_targets) = &program.model.adapters else { return Err(AdapterError::NoLoraTargets.into()) };
    let loader = AdapterLoader::for_merging(Arc::new(lora_targets.clone()), program.model.name.clone());
    adapters.iter().try_for_each(|adapter| Ok(loader.open(&adapter.directory, adapter.scale).map(drop)?))
}

/// Reads adapters and puts them into an engine, one after the other, without a limit of memory.
///
/// # Errors
/// When an adapter cannot be read or does not fit, or memory is short.
pub(crate) fn load(
    adapters: &[AdapterSource],
    engine: &mut Engine,
    observer: &dyn Observer,
) -> Result<Vec<LoadedAdapter>> {
    let mut loaded = Vec::new();
    if adapters.is_empty() {
        return Ok(loaded);
    }
    let loader = engine.adapter_store().loader()?;
    engine.adapter_store_mut().set_budget(u64::MAX);
    for AdapterSource { name, directory, scale } in adapters {
        let start = Instant::now();
        let adapter = loader.load(directory, *scale)?;
        adapter.notes().iter().for_each(|note| observer.note(note));
        let bytes = adapter.bytes();
        engine.adapter_store_mut().insert(name, adapter)?;
        loaded.push(LoadedAdapter { name: name.clone(), bytes, seconds: start.elapsed().as_secs_f64() });
    }
    Ok(loaded)
}

/// The adapters of a sequence that uses all of these together.
pub fn together(adapters: &[AdapterSource]) -> Vec<AdapterUse> {
    adapters.iter().map(|adapter| AdapterUse::of(&adapter.name)).collect()
}

impl FromStr for AdapterSource {
    type Err = String;

    /// Reads `NAME=DIR[:SCALE]`. The text behind the last colon is a scale if it is a number, unless there is
    /// a file or directory of the whole name.
    fn from_str(text: &str) -> std::result::Result<AdapterSource, String> {
        let parts = text.split_once('=').filter(|(name, rest)| !name.is_empty() && !rest.is_empty());
        let Some((name, rest)) = parts else {
            return Err(
                "expected NAME=DIR or NAME=DIR:SCALE, such as poet=adapters/poet or poet=adapters/poet:0.5"
                    .to_owned(),
            );
        };
        let scaled = rest.rsplit_once(':').and_then(|(dir, scale)| Some((dir, scale.parse::<f32>().ok()?)));
        let scaled = scaled.filter(|_| !Path::new(rest).exists());
        let (directory, scale) = scaled.unwrap_or((rest, 1.0));
        if !scale.is_finite() {
            return Err(format!("the scale is {scale}, expected a finite number"));
        }
        Ok(AdapterSource { name: name.to_owned(), directory: directory.into(), scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(text: &str) -> std::result::Result<AdapterSource, String> {
        text.parse()
    }

    #[test]
    fn names_directories_and_scales_are_told_apart() {
        let of = |name: &str, directory: &str, scale| {
            Ok(AdapterSource { name: name.into(), directory: directory.into(), scale })
        };
        assert_eq!(adapter("a=b"), of("a", "b", 1.0));
        assert_eq!(adapter("a=b/c:0.5"), of("a", "b/c", 0.5));
        assert_eq!(adapter("a=b:c=d:-2"), of("a", "b:c=d", -2.0));
        assert_eq!(adapter("a=b:c"), of("a", "b:c", 1.0));
        // A directory named after the time of day is no scale of its neighbour.
        let dir = std::env::temp_dir().join(format!("kernmill-adapter-{}-T10:30", std::process::id()));
        let at = |end: &str| format!("a={}{end}", dir.display());
        let cut = dir.display().to_string().replace("T10:30", "T10");
        assert_eq!(adapter(&at("")), of("a", &cut, 30.0));
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(adapter(&at("")), of("a", &dir.display().to_string(), 1.0));
        assert_eq!(adapter(&at(":0.25")), of("a", &dir.display().to_string(), 0.25));
        std::fs::remove_dir(&dir).unwrap();
        for wrong in ["a", "=b", "a=", "a=b:inf", "a=b:NaN"] {
            assert!(adapter(wrong).is_err(), "{wrong}");
        }
    }
}
