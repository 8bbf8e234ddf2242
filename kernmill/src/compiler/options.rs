//! How a model is compiled, and for what.

use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::target::Target;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::select::costs_of_machine::MACHINE;
use kernmill_compiler::pipeline;
use kernmill_os::tiles;
use kernmill_plan::kv::KvRequest;
use kernmill_plan::target::{Level, Tuning};
use std::path::PathBuf;

/// How a model that is no plan is compiled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompileOptions {
    /// How weights, activations and KV cache are quantised.
    pub preset: Preset,
    /// Formats of the KV cache, where they are not to be those of the preset.
    pub kv: KvRequest,
    /// The family of CPUs that the code is tuned for; `None` is that of `machine`, or of the CPU at hand.
    /// Tuning changes speed, never results.
    pub tuning: Option<Tuning>,
    /// The machine that kernels are picked for; `None` is the compiler's own idea of one. It may change
    /// speed, never results.
    pub machine: Option<Description>,
    /// Whether nodes of the graph are fused. Without fusion every node is a separate kernel.
    pub fuse: bool,
    /// Whether the code has branches for adapters. Without them no adapter can be loaded.
    pub adapters: bool,
    /// The fused-op specs: which nodes become one kernel, and ops and functions for model specs.
    pub fused: FusedSet,
    /// Whether Cranelift's intermediate code is kept as text, for showing.
    pub keep_clif: bool,
    /// Whether a plan's code is generated anew from its spec: nothing of the file is executed then.
    pub regenerate: bool,
    /// Directory in which models that are compiled here are kept as plans, so that the next start takes
    /// seconds and no memory for packing; `None` keeps nothing. A plan is about as large as the model's
    /// files. One process at a time writes there.
    pub plan_cache: Option<PathBuf>,
    /// Most bytes that these plans may take together: those that were used longest ago make way.
    pub plan_cache_limit: u64,
    /// Weights that a model has at least if it is kept. A disk that fails is then noted only, and 10
    /// GB of it stay free. `None` keeps every model.
    pub plan_cache_least: Option<u64>,
    /// The program's name and version, for the plans that it writes.
    pub producer: &'static str,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            preset: Preset::Faithful,
            kv: KvRequest::default(),
            tuning: None,
            machine: None,
            fuse: true,
            adapters: true,
            fused: FusedSet::builtin(),
            keep_clif: false,
            regenerate: false,
            plan_cache: None,
            plan_cache_limit: u64::MAX,
            plan_cache_least: None,
            producer: concat!("kernmill ", env!("CARGO_PKG_VERSION"), ", library"),
        }
    }
}

impl CompileOptions {
    /// These options, as `set` changes them.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut CompileOptions)) -> CompileOptions {
        set(&mut self);
        self
    }

    /// The family of CPUs that the code is tuned for.
    pub fn tuning(&self) -> Tuning {
        let described = self.machine.as_ref().map(|machine| machine.family);
        self.tuning.or(described).unwrap_or_else(Tuning::native)
    }

    /// The compiler's options for `level`, `chunk` prompt tokens at once, and what preset `fast` has chosen.
    pub fn at(&self, level: Level, chunk: u32, choices: Option<FormatChoices>) -> pipeline::CompilerOptions {
        pipeline::CompilerOptions {
            preset: self.preset,
            choices,
            kv: Some(self.kv.of(self.preset.kv_formats())),
            level,
            tuning: self.tuning(),
            machine: self.machine.as_ref().map_or(MACHINE, Description::costs),
            chunk: chunk as usize,
            adapters: self.adapters,
            fuse: self.fuse,
            fused: self.fused.clone(),
            keep_clif: self.keep_clif,
            ..pipeline::CompilerOptions::new(level)
        }
    }
}

impl Target {
    /// The level to generate the preset's code for.
    ///
    /// # Errors
    /// When it is this CPU's, and the CPU lacks even the lowest.
    pub fn level(self, preset: Preset, observer: &dyn Observer) -> Result<Level> {
        match self {
            Target::Level(level) => Ok(level),
            Target::Native => native(preset, observer).ok_or_else(|| lacks(Level::V3)),
        }
    }

    /// The level, if this CPU can run it.
    ///
    /// # Errors
    /// When it cannot: the message names the features that it lacks.
    pub fn runnable_level(self, preset: Preset, observer: &dyn Observer) -> Result<Level> {
        let level = self.level(preset, observer)?;
        if level.missing().is_empty() { Ok(level) } else { Err(lacks(level)) }
    }
}

/// The best level of this CPU for the preset. Tiles that the system does not permit are done without.
fn native(preset: Preset, observer: &dyn Observer) -> Option<Level> {
    if !preset.has_tiles() || !Level::Amx.missing().is_empty() {
        return Level::native(false);
    }
    let permission = tiles::request();
    let level = Level::native(permission.is_ok());
    if let (Err(error), Some(level)) = (permission, level) {
        observer.note(&format!(
            "the system does not permit AMX tiles ({error}): compiling for {} instead",
            level.name()
        ));
    }
    level
}

fn lacks(level: Level) -> Error {
    Error::bad_input(format!("this CPU lacks {}, which {} needs", level.missing().join(", "), level.name()))
}
