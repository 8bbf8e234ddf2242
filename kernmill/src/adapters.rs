//! Adapters (LoRA, DoRA) from their directories to the engine.

use crate::error::{Error, Result};
use crate::observe::Observer;
use kernmill_checkpoint::peft::check_files;
use kernmill_plan::program::Program;
use kernmill_runtime::adapter::AdapterLoader;
use kernmill_runtime::{AdapterError, AdapterUse, Engine};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// An adapter on disk: a directory that PEFT's `save_pretrained` wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSource {
    /// What it is called from now on.
    pub name: String,
    /// Where it is.
    pub directory: PathBuf,
    /// What it adds is multiplied with this, beside its own alpha.
    pub scale: f32,
}

/// An adapter that has been loaded.
#[derive(Clone, Debug)]
pub struct LoadedAdapter {
    /// What it is called.
    pub name: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Seconds that loading took.
    pub seconds: f64,
}

impl LoadedAdapter {
    /// As reports show it.
    pub fn json(&self) -> Value {
        json!({ "name": self.name, "bytes": self.bytes, "seconds": self.seconds })
    }
}

/// Finds what can be found before a model is loaded: names that occur twice, files that are not there.
///
/// # Errors
/// Of the first adapter that is at fault.
pub fn check(adapters: &[AdapterSource]) -> Result<()> {
    for (n, adapter) in adapters.iter().enumerate() {
        if adapters[..n].iter().any(|other| other.name == adapter.name) {
            return Err(Error::BadInput(format!("--lora {}=... is given twice", adapter.name)));
        }
        check_files(&adapter.directory)?;
    }
    Ok(())
}

/// Finds what of the adapters does not fit a program, before its weights are there. Their elements are looked at when they are loaded.
///
/// # Errors
/// Of the first adapter that does not fit, or when the program has no place for adapters.
pub fn check_fit(adapters: &[AdapterSource], program: &Program) -> Result<()> {
    if adapters.is_empty() {
        return Ok(());
    }
    let Some(lora_targets) = &program.model.adapters else { return Err(AdapterError::NoLoraTargets.into()) };
    let loader = AdapterLoader::for_merging(Arc::new(lora_targets.clone()), program.model.name.clone());
    adapters.iter().try_for_each(|adapter| Ok(loader.open(&adapter.directory, adapter.scale).map(drop)?))
}

/// Loads adapters into an engine, whatever they take.
///
/// # Errors
/// When one cannot be read, does not fit, or memory is short.
pub fn load(
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

/// All of them on one sequence.
pub fn together(adapters: &[AdapterSource]) -> Vec<AdapterUse> {
    adapters.iter().map(|adapter| AdapterUse::of(&adapter.name)).collect()
}
