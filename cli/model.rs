//! From what was given to a loaded engine. Everything that can be refused is refused before the work.

use crate::aside::Aside;
use crate::compiler::{AnewArgs, KeptArgs};
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::{GivenArgs, OF_COMPILING};
use crate::options::{CompileArgs, ThreadsArgs, size, target_parser};
use kernmill::adapters::{AdapterSource, LoadedAdapter};
use kernmill::locate::Located;
use kernmill::{Loaded, ModelMakes, Opened, Options, Target};
use kernmill_tools::{CpuSet, Numa, stages::of_prepared};
use std::path::PathBuf;
use std::sync::Arc;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    #[command(flatten)]
    pub given: GivenArgs,
    #[arg(skip)]
    pub makes: ModelMakes,
    #[command(flatten)]
    pub anew: AnewArgs,
    /// Instruction set; native is the best that this CPU has (which takes amx for preset bf16 only), or of
    /// a plan's targets the best that runs here
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    pub target: Target,
    #[command(flatten)]
    pub kept: KeptArgs,
    /// Adapter (LoRA or DoRA): a directory that PEFT's save_pretrained wrote, with a name for it. SCALE
    /// multiplies what it adds, beside its own alpha. May be given several times: run and logits add them all
    /// up, bench gives them to its sequences in turn
    #[arg(long = "lora", value_name = "NAME=DIR[:SCALE]")]
    #[cfg_attr(feature = "compiler", arg(conflicts_with = "no_adapters"))]
    pub adapters: Vec<AdapterSource>,
    #[command(flatten)]
    pub compile: CompileArgs,
    #[command(flatten)]
    pub aside: Aside,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// CPUs that workers may run on, such as 0-3,8; by default all that this process may use
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// Keep each worker on one CPU of --cpus: ascending, one of each core before a second one of any
    #[arg(long)]
    pub pin: bool,
    /// Where memory has several nodes (sockets), keep workers and the weights that they read on them
    #[arg(long, value_name = "auto|off", default_value = "auto")]
    pub numa: Numa,
    /// Lock the weights in memory: the system never takes any of it away, also when others need some
    #[arg(long)]
    pub mlock: bool,
    /// Refuse to start when more memory than this would be needed, such as 15G or 800M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
    /// Memory of the KV cache, such as 4G; by default what all sequences need (batch: at most 3/4 of what is
    /// free). Texts that have ended stay in what is left: what begins like them is not computed again
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub kv_memory: Option<u64>,
    /// Keep what --kv-memory has no room for in this directory, and everything at the end, so that the next
    /// start finds it. Keep it private: its files tell what prompts said
    #[arg(long, value_name = "DIR")]
    pub kv_disk: Option<PathBuf>,
    /// Most that the files of --kv-disk may take. A gigabyte of the disk stays free in any case
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = size)]
    pub kv_disk_limit: u64,
    /// Write /tmp/perf-PID.map, by which `perf report` names the kernels
    #[arg(long)]
    pub perf_map: bool,
    /// Write jit-PID.dump to this directory: `perf inject --jit` and `perf annotate` show the kernels by it
    #[arg(long, value_name = "DIR")]
    pub perf_jit: Option<PathBuf>,
}

impl ModelArgs {
    /// The library's form of it.
    pub fn options(&self, emit: &Emit) -> Result<Options> {
        let compile = self.compile.library(&self.anew, &self.kept, emit)?;
        Ok(Options::default().with(|options| {
            (options.compile, options.target) = (compile, self.target);
            (options.chunk, options.threads) = (self.compile.chunk, self.threads.given());
            (options.pin, options.numa, options.mlock) = (self.pin, self.numa, self.mlock);
            (options.cpus, options.perf_map, options.kv_memory) = (self.cpus, self.perf_map, self.kv_memory);
            (options.max_memory, options.perf_jit) = (self.max_memory, self.perf_jit.clone());
            (options.kv_disk, options.kv_disk_limit) = (self.kv_disk.clone(), self.kv_disk_limit);
            (options.adapters, options.observer) = (self.adapters.clone(), Arc::new(self.aside));
        }))
    }
}

/// Reads and checks everything but the weights.
pub fn open(args: &ModelArgs, emit: &Emit, explicit: &Explicit) -> Result<(Opened, Options)> {
    kernmill::adapters::check(&args.adapters)?;
    if args.kv_disk.is_none() {
        explicit.refuse(&["kv-disk-limit"], "there is no --kv-disk")?;
    }
    let located = args.given.resolve(explicit)?;
    match &located {
        Located::Plan(_) => {
            let of_code: &[&str] = if explicit.has("regenerate") { &[] } else { &["tune"] };
            let unused = [&OF_COMPILING, of_code].concat();
            explicit.refuse(&unused, "a plan is compiled already; compile the model anew instead")?;
        }
        Located::Source(_) => args.compile.check_source(explicit)?,
    }
    let options = args.options(emit)?.with(|it| it.makes = args.compile.makes(args.makes));
    Ok((Opened::open(located, &options)?, options))
}

/// Compiles what is no plan, emits the stages that are wanted, and starts an engine for `sequences` sequences
/// of `context` tokens, with its adapters.
pub fn load(
    opened: Opened,
    options: &Options,
    emit: &Emit,
    context: u32,
    sequences: u32,
) -> Result<(Loaded, Vec<LoadedAdapter>)> {
    let prepared = opened.prepare(options)?;
    emit.write(None, &|stage| of_prepared(&prepared, stage))?;
    let mut loaded = prepared.load(options, context, sequences)?;
    let adapters = loaded.load_adapters(options)?;
    Ok((loaded, adapters))
}
