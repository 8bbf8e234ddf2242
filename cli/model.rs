//! From what was given to a loaded engine. Everything that can be refused is refused before the work.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::{GivenArgs, OF_COMPILING};
use crate::options::{CompileArgs, size, target_parser};
use crate::progress::Terminal;
#[cfg(feature = "compiler")]
use crate::version;
use kernmill::adapters::AdapterSource;
use kernmill::locate::Located;
use kernmill::tools::stages::of_prepared;
use kernmill::{Loaded, Opened, Options, Target};
use kernmill_os::affinity::CpuSet;
use kernmill_runtime::pool::MAX_THREADS;
use std::path::PathBuf;

/// Which model, and how it is compiled and run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    #[command(flatten)]
    pub given: GivenArgs,
    /// Use the plan's weights only, and generate the code anew from its spec
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub regenerate: bool,
    /// Instruction set; native is the best that this CPU has (which takes amx for preset bf16 only), or of
    /// a plan's targets the best that runs here
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    pub target: Target,
    /// Keep what is compiled in this directory, as plans, and start from there the next time: no compiling,
    /// no packing of weights. A plan is about as large as the model's files
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "DIR")]
    pub plan_cache: Option<PathBuf>,
    /// Adapter (LoRA or DoRA): a directory that PEFT's save_pretrained wrote, with a name for it. SCALE
    /// multiplies what it adds, beside its own alpha. May be given several times: run and logits add them all
    /// up, bench gives them to its sequences in turn
    #[arg(long = "lora", value_name = "NAME=DIR[:SCALE]")]
    #[cfg_attr(feature = "compiler", arg(conflicts_with = "no_adapters"))]
    pub adapters: Vec<AdapterSource>,
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Worker threads; by default one for each physical core that this process may use
    #[arg(long, short_alias = 't', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS as i64))]
    pub threads: Option<u16>,
    /// CPUs that workers may run on, such as 0-3,8; by default all that this process may use
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// Keep each worker on one CPU: the first on the first of --cpus, and so on
    #[arg(long)]
    pub pin: bool,
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
    /// Whether a plan's code is generated anew.
    fn regenerates(&self) -> bool {
        #[cfg(feature = "compiler")]
        return self.regenerate;
        #[cfg(not(feature = "compiler"))]
        false
    }

    /// What the library makes of it.
    ///
    /// # Errors
    /// When a fused-op spec is wrong or not there.
    pub fn options(&self, emit: &Emit) -> Result<Options> {
        #[cfg(not(feature = "compiler"))]
        let _ = emit;
        Ok(Options {
            target: self.target,
            #[cfg(feature = "compiler")]
            compile: self.compile.options(self.compile.fusions.set()?, emit),
            #[cfg(feature = "compiler")]
            regenerate: self.regenerate,
            chunk: self.compile.chunk,
            #[cfg(feature = "compiler")]
            plan_cache: self.plan_cache.clone(),
            #[cfg(feature = "compiler")]
            producer: version::PRODUCER,
            threads: self.threads.map(usize::from),
            cpus: self.cpus,
            pin: self.pin,
            mlock: self.mlock,
            perf_map: self.perf_map,
            perf_jit: self.perf_jit.clone(),
            max_memory: self.max_memory,
            kv_memory: self.kv_memory,
            kv_disk: self.kv_disk.clone(),
            kv_disk_limit: self.kv_disk_limit,
            adapters: self.adapters.clone(),
            observer: Terminal::observer(self.compile.quiet),
            ..Options::default()
        })
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
            let generates = args.regenerates();
            let unused: Vec<&str> =
                OF_COMPILING.into_iter().filter(|option| *option != "tune" || !generates).collect();
            explicit.refuse(&unused, "a plan is compiled already; compile the model anew instead")?;
        }
        #[cfg(feature = "compiler")]
        Located::Source(_) => {
            if args.compile.no_fuse {
                explicit.refuse(&["without-fusion"], "--no-fuse leaves out all of them")?;
            }
            explicit
                .refuse(&["regenerate"], "only a plan's code can be generated anew; this is compiled here")?;
        }
    }
    let options = args.options(emit)?;
    Ok((Opened::open(located, &options)?, options))
}

/// Compiles what is no plan, emits the stages that are wanted, and starts an engine for `sequences` sequences
/// of `context` tokens.
pub fn load(opened: Opened, options: &Options, emit: &Emit, context: u32, sequences: u32) -> Result<Loaded> {
    let prepared = opened.prepare(options)?;
    emit.write(None, &|stage| of_prepared(&prepared, stage))?;
    Ok(prepared.load(options, context, sequences)?)
}
