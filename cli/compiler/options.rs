//! Options that say how a model is compiled here.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::version;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill::{CompileOptions, ModelMakes};
use kernmill_tools::machine::{Description, read_machine};
use kernmill_tools::stages::Stage;
use kernmill_tools::vectors::makes;
use kernmill_tools::{FusedSet, KvRequest, Preset, Tuning, fused_set, keep_plans, values::size};
use std::path::PathBuf;

/// How a model is compiled.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Quantisation. exact: weights as stored, f32 activations and cache. faithful: weights in blocks bit for
    /// bit, other matrices and activations int8, f16 cache. bf16: as faithful, but MXFP4 experts are
    /// multiplied by bf16 activations. fast: as faithful, but 4 bits for the matrices of attention and
    /// unembedding that lose little
    #[arg(long, value_name = "PRESET", default_value = "faithful", value_parser = preset_parser())]
    pub preset: Preset,
    /// Formats of cached keys and values, if not those of the preset: FORMAT for layers that see the whole
    /// context, or parts by name, such as k=int8,v=f16,sliding=int8. FORMAT is f32, f16, fp8, int4, or int8,
    /// which takes half as much memory as f16
    #[arg(long, value_name = "FORMATS", default_value = "", hide_default_value = true)]
    pub kv_format: KvRequest,
    /// Prompt tokens that are run at once; by default 512, 2,048 for amx alone or encoders, or what a plan is
    /// made for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: Option<u32>,
    /// Whose CPUs the code is to be fast on: it runs on all of its level, and gives the same bits. native is
    /// this CPU and the default, but `compile` and `explain` with a --target other than native tune for all
    /// (generic)
    #[arg(long, value_name = "MAKER", value_parser = tuning_parser())]
    pub tune: Option<Tuning>,
    /// Make vectors of texts, pooled by the last token, the mean of all or the first, in place of texts; none
    /// makes texts. By default what the model's files say
    #[arg(long, value_name = "last|mean|first|none", value_parser = makes)]
    vectors: Option<ModelMakes>,
    /// Compile every graph node by itself: for comparing
    #[arg(long)]
    pub no_fuse: bool,
    /// Leave out the branches for adapters (--lora): the code is smaller
    #[arg(long)]
    pub no_adapters: bool,
    /// The fused ops.
    #[command(flatten)]
    pub fusions: FusedArgs,
}

/// The machine that a model is compiled for.
#[derive(Clone, Debug, clap::Args)]
pub struct MachineArgs {
    /// Machine that kernels are picked for, as `kernmill cpu --measure -o FILE` described it there: its
    /// workers, memory, cost of a step, best target (amx if tiles pay), CPU family. --target and --tune win
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineArgs {
    /// Reads the description.
    pub fn read(&self) -> Result<Option<Description>> {
        Ok(self.machine.as_deref().map(read_machine).transpose()?)
    }
}

/// Which fused-op specs a model is compiled with.
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

/// Whether a plan's code is taken from it.
#[derive(Clone, Debug, clap::Args)]
pub struct AnewArgs {
    /// Use the plan's weights only, and generate the code anew from its spec
    #[arg(long)]
    regenerate: bool,
}

/// Where what is compiled is kept.
#[derive(Clone, Debug, clap::Args)]
pub struct KeptArgs {
    /// Directory that keeps what is compiled, for the next start, as plans; without it
    /// ~/.cache/kernmill/plans keeps models of a billion weights and more
    #[arg(long, value_name = "DIR")]
    plan_cache: Option<PathBuf>,
    /// Most that these plans take, 50G in ~/.cache: those used longest ago make way
    #[arg(long, value_name = "SIZE", value_parser = size)]
    plan_cache_limit: Option<u64>,
    /// Keep no plans
    #[arg(long, conflicts_with = "plan_cache")]
    pub no_plan_cache: bool,
}

/// This CPU, in place of a name.
pub const NATIVE: &str = "native";

/// `--preset`.
pub fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name))
        .map(|name| Preset::from_name(&name).unwrap_or(Preset::Faithful))
}

/// `--tune`.
fn tuning_parser() -> impl TypedValueParser<Value = Tuning> {
    let names = std::iter::once(NATIVE).chain(Tuning::ALL.map(Tuning::name));
    let named = |name: String| Tuning::ALL.into_iter().find(|tuning| tuning.name() == name);
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(move |name| named(name).unwrap_or_else(Tuning::native))
}

impl CompileArgs {
    /// These options with a tuning, unless one was given: the described machine's; this CPU's for target
    /// native; everybody's for targets that were named, whose code does not depend on where it is compiled.
    pub fn tuned(mut self, is_native: bool, machine: Option<&Description>) -> CompileArgs {
        let here = || if is_native { Tuning::native() } else { Tuning::Generic };
        self.tune.get_or_insert_with(|| machine.map_or_else(here, |machine| machine.family));
        self
    }

    /// The kind of output that the model is to make; `usual` where nobody says it.
    pub fn makes(&self, usual: ModelMakes) -> ModelMakes {
        self.vectors.unwrap_or(usual)
    }

    /// The library's options for all that says how a model is compiled.
    pub fn library(&self, anew: &AnewArgs, kept: &KeptArgs, emit: &Emit) -> Result<CompileOptions> {
        let options = self.options(self.fusions.set()?, emit);
        Ok(options.with(|it| {
            it.regenerate = anew.regenerate;
            let is_off = kept.no_plan_cache || !emit.emit.is_empty();
            keep_plans(it, kept.plan_cache.as_deref(), is_off, kept.plan_cache_limit);
        }))
    }

    /// Refuses options that do not apply to a model that is compiled here.
    pub fn check_source(&self, explicit: &Explicit) -> Result<()> {
        if self.no_fuse {
            explicit.refuse(&["without-fusion"], "--no-fuse leaves out all of them")?;
        }
        explicit.refuse(&["regenerate"], "only a plan's code can be generated anew; this is compiled here")
    }

    /// The library's options, with the fused ops.
    pub fn options(&self, fused: FusedSet, emit: &Emit) -> CompileOptions {
        CompileOptions::default().with(|it| {
            it.preset = self.preset;
            it.kv = self.kv_format;
            it.tuning = self.tune;
            it.machine = None;
            it.fuse = !self.no_fuse;
            it.adapters = !self.no_adapters;
            it.fused = fused;
            it.keep_clif = emit.wants(Stage::Clif);
            it.producer = version::PRODUCER;
        })
    }
}

impl FusedArgs {
    /// The built-in specs and those given, without those left out.
    pub fn set(&self) -> Result<FusedSet> {
        Ok(fused_set(&self.fused, &self.without_fusion)?)
    }
}
