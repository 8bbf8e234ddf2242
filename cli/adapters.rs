//! `--lora`: adapters from the command line to the engine.

use crate::failure::{Failure, Result};
use crate::output;
use kernmill_checkpoint::peft::check_files;
use kernmill_plan::program::Program;
use kernmill_runtime::adapter::AdapterLoader;
use kernmill_runtime::{AdapterError, AdapterUse, Engine, EngineError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Adapters to run with.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AdapterArgs {
    /// Adapter (LoRA or DoRA): a directory that PEFT's save_pretrained wrote, with a name for it. SCALE multiplies what it adds, beside its own
    /// alpha. May be given several times: run and logits add them all up, bench gives them to its sequences in turn
    #[arg(long = "lora", value_name = "NAME=DIR[:SCALE]", value_parser = adapter)]
    #[cfg_attr(feature = "compiler", arg(conflicts_with = "no_adapters"))]
    pub adapters: Vec<AdapterArg>,
}

/// A directory with an adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterArg {
    /// What it is called here.
    pub name: String,
    /// Where it is.
    pub directory: PathBuf,
    /// What it adds is multiplied with this.
    pub scale: f32,
}

/// Reads `NAME=DIR[:SCALE]`. What follows the last colon is a scale if it is a number, unless there is a file or directory of the whole name.
pub fn adapter(text: &str) -> std::result::Result<AdapterArg, String> {
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
    Ok(AdapterArg { name: name.to_owned(), directory: directory.into(), scale })
}

/// An adapter that has been loaded.
pub struct LoadedAdapter {
    /// What it is called.
    pub name: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// How long loading took.
    pub seconds: f64,
}

impl LoadedAdapter {
    /// For reports.
    pub fn json(&self) -> Value {
        json!({ "name": self.name, "bytes": self.bytes, "seconds": self.seconds })
    }
}

impl AdapterArgs {
    /// Finds what can be found before the model is loaded: names that occur twice, files that are not there.
    pub fn check(&self) -> Result<()> {
        for (n, adapter) in self.adapters.iter().enumerate() {
            if self.adapters[..n].iter().any(|other| other.name == adapter.name) {
                return Err(Failure::BadInput(format!("--lora {}=... is given twice", adapter.name)));
            }
            check_files(&adapter.directory).map_err(|error| refused(error.into()))?;
        }
        Ok(())
    }

    /// Finds what of the adapters does not fit a program, before its weights are there; their elements are looked at when they are loaded.
    pub fn check_fit(&self, program: &Program) -> Result<()> {
        if self.adapters.is_empty() {
            return Ok(());
        }
        let Some(adapters) = &program.model.adapters else { return Err(refused(AdapterError::NoSites)) };
        let loader = AdapterLoader::for_merging(Arc::new(adapters.clone()), program.model.name.clone());
        self.adapters
            .iter()
            .try_for_each(|adapter| loader.open(&adapter.directory, adapter.scale).map(drop).map_err(refused))
    }

    /// Loads them all; notes about them go to standard error.
    pub fn load(&self, engine: &mut Engine, quiet: bool) -> Result<Vec<LoadedAdapter>> {
        let mut loaded = Vec::new();
        if self.adapters.is_empty() {
            return Ok(loaded);
        }
        let loader = engine.adapter_store().loader().map_err(refused)?;
        engine.adapter_store_mut().set_budget(u64::MAX);
        for AdapterArg { name, directory, scale } in &self.adapters {
            let start = Instant::now();
            let adapter = loader.load(directory, *scale).map_err(refused)?;
            for note in adapter.notes().iter().filter(|_| !quiet) {
                output::note(format_args!("note: {note}"));
            }
            let bytes = adapter.bytes();
            engine.adapter_store_mut().insert(name, adapter).map_err(refused)?;
            loaded.push(LoadedAdapter { name: name.clone(), bytes, seconds: start.elapsed().as_secs_f64() });
        }
        Ok(loaded)
    }

    /// All of them on one sequence.
    pub fn together(&self) -> Vec<AdapterUse> {
        self.adapters.iter().map(|adapter| AdapterUse::of(&adapter.name)).collect()
    }
}

fn refused(error: AdapterError) -> Failure {
    EngineError::Adapter(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_directories_and_scales_are_told_apart() {
        let of = |name: &str, directory: &str, scale| {
            Ok(AdapterArg { name: name.into(), directory: directory.into(), scale })
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
