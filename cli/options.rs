//! Options that say how a model is compiled, and for what.

// Without the compiler, no other `Result` is in scope here.
#![cfg_attr(not(feature = "compiler"), allow(unused_qualifications))]

#[cfg(feature = "compiler")]
use crate::emit::Emit;
#[cfg(feature = "compiler")]
use crate::failure::{Failure, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill::Target;
#[cfg(feature = "compiler")]
use kernmill::machine::{Description, read_machine};
pub use kernmill::memory::size;
#[cfg(feature = "compiler")]
use kernmill::{CompileOptions, DEFAULT_CHUNK, source::read_fused};
#[cfg(feature = "compiler")]
use kernmill_compiler::{fuse::FusedSet, quant::Preset};
#[cfg(feature = "compiler")]
use kernmill_plan::kv::KvRequest;
use kernmill_plan::target::Level;
#[cfg(feature = "compiler")]
use kernmill_plan::target::Tuning;
#[cfg(feature = "compiler")]
use std::path::PathBuf;

/// How a model is compiled.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Quantisation. exact: weights as stored, f32 activations and cache. faithful: MXFP4 weights bit for
    /// bit, other matrices and activations int8, f16 cache. bf16: as faithful, but MXFP4 experts are
    /// multiplied by bf16 activations. fast: as faithful, but 4 bits for the matrices of attention and
    /// unembedding that lose little
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Formats of cached keys and values, if not those of the preset: FORMAT for layers that see the whole
    /// context, or parts by name, such as k=int8,v=f16,sliding=int8. FORMAT is f32, f16, fp8, int4, or int8,
    /// which takes half as much memory as f16
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "FORMATS", default_value = "", hide_default_value = true)]
    pub kv_format: KvRequest,
    /// Prompt tokens that are run at once; by default 512, or what a plan was compiled for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: Option<u32>,
    /// Whose CPUs the code is to be fast on: it runs on all of its level, and gives the same bits. native is
    /// this CPU and the default, but `compile` and `explain` with a --target other than native tune for all
    /// (generic)
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "MAKER", value_parser = tuning_parser())]
    pub tune: Option<Tuning>,
    /// Compile every graph node by itself: for comparing
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_fuse: bool,
    /// Leave out the branches for adapters (--lora): the code is smaller
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub no_adapters: bool,
    /// What is fused.
    #[cfg(feature = "compiler")]
    #[command(flatten)]
    pub fusions: FusedArgs,
    /// Neither progress bars nor the closing lines on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// The machine that a model is compiled for.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, clap::Args)]
pub struct MachineArgs {
    /// Machine that kernels are picked for, as `kernmill cpu --measure -o FILE` described it there: its
    /// workers, memory, cost of a step, best target (amx if tiles pay), CPU family. --target and --tune win
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

#[cfg(feature = "compiler")]
impl MachineArgs {
    /// Reads the description.
    pub fn read(&self) -> Result<Option<Description>> {
        Ok(self.machine.as_deref().map(read_machine).transpose()?)
    }
}

/// Which fused-op specs a model is compiled with.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, clap::Args)]
pub struct FusedArgs {
    /// Fused-op specs (TOML) besides the built-in ones: a file, or a directory of .toml files; one that has a
    /// built-in one's name replaces it
    #[arg(long, value_name = "FILE|DIR")]
    pub fused: Vec<PathBuf>,
    /// Leave out the fused-op spec of that name
    #[arg(long, value_name = "NAME")]
    pub without_fusion: Vec<String>,
}

const NATIVE: &str = "native";

/// `--preset`.
#[cfg(feature = "compiler")]
pub fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .map(|name| Preset::from_name(&name).unwrap_or(Preset::Faithful))
}

/// `--tune`.
#[cfg(feature = "compiler")]
fn tuning_parser() -> impl TypedValueParser<Value = Tuning> {
    let names = std::iter::once(NATIVE).chain(Tuning::ALL.map(Tuning::name));
    let named = |name: String| Tuning::ALL.into_iter().find(|tuning| tuning.name() == name);
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(move |name| named(name).unwrap_or_else(Tuning::native))
}

/// `--target`.
pub fn target_parser() -> impl TypedValueParser<Value = Target> {
    let names = std::iter::once(NATIVE).chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(|name| Level::from_name(&name).map_or(Target::Native, Target::Level))
}

/// A finite number from `least` to `most`, which `range` says.
pub fn number(
    least: f32,
    most: f32,
    range: &'static str,
) -> impl Fn(&str) -> std::result::Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f32>() {
        Ok(number) if number.is_finite() && (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a number, {range}")),
    }
}

#[cfg(feature = "compiler")]
impl CompileArgs {
    /// These options with a tuning, unless one was given: the described machine's; this CPU's for target
    /// native; everybody's for targets that were named, whose code does not depend on where it is compiled.
    pub fn tuned(mut self, is_native: bool, machine: Option<&Description>) -> CompileArgs {
        let here = || if is_native { Tuning::native() } else { Tuning::Generic };
        self.tune.get_or_insert_with(|| machine.map_or_else(here, |machine| machine.family));
        self
    }

    /// Prompt tokens that are run at once, where no plan says how many.
    pub fn chunk(&self) -> u32 {
        self.chunk.unwrap_or(DEFAULT_CHUNK)
    }

    /// What the library makes of it, with what is fused.
    pub fn options(&self, fused: FusedSet, emit: &Emit) -> CompileOptions {
        CompileOptions {
            preset: self.preset,
            kv: self.kv_format,
            tuning: self.tune,
            machine: None,
            fuse: !self.no_fuse,
            adapters: !self.no_adapters,
            fused,
            keep_clif: emit.wants_clif(),
        }
    }
}

#[cfg(feature = "compiler")]
impl FusedArgs {
    /// The built-in specs and those given, without those left out.
    pub fn set(&self) -> Result<FusedSet> {
        let mut set = FusedSet::builtin().with(read_fused(&self.fused)?)?;
        for name in &self.without_fusion {
            set = set
                .without(name)
                .map_err(|message| Failure::BadInput(format!("--without-fusion: {message}")))?;
        }
        Ok(set)
    }
}
