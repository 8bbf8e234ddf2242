//! How a model is compiled and run.

use crate::adapters::AdapterSource;
use crate::compiler::CompileOptions;
use crate::error::{Error, Result};
use crate::makes::ModelMakes;
use crate::observe::{Observer, Silent};
use crate::stage::Stage;
use crate::target::Target;
use kernmill_os::affinity::CpuSet;
use kernmill_runtime::KvBudget;
use kernmill_runtime::pool::{Numa, PoolConfig, default_threads, default_threads_on};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a store of KV blocks on disk, unless [`Options::kv_disk_limit`] says another.
pub(crate) const DEFAULT_KV_DISK_BYTES: u64 = 10_000_000_000;

/// How a model is opened: target, compiler options, memory, threads, adapters. The default suits a program
/// that makes one text at a time.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// use kernmill::{Model, Options, Preset};
///
/// let options = Options::default().with(|options| {
///     options.threads = Some(1);
///     options.max_memory = Some(1_000_000_000);
///     options.compile.preset = Preset::Fast;
/// });
/// let model = Model::nano_with(&options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The instruction-set level.
    pub target: Target,
    /// How a model that is no plan is compiled.
    pub compile: CompileOptions,
    /// Whether a model that is no plan makes texts or vectors, where its `SourceFiles` do not say it.
    pub makes: ModelMakes,
    /// Prompt tokens that are run at once; `None` takes 512, for target `amx` alone 2,048, or what a plan was
    /// compiled for.
    pub chunk: Option<u32>,
    /// Worker threads; `None` takes one for each physical core that this process may use.
    pub threads: Option<usize>,
    /// CPUs that workers may run on; `None` leaves that to the system. [`Options::threads`] then counts the
    /// cores among them.
    pub cpus: Option<CpuSet>,
    /// Whether each worker stays on one CPU: one of each core, ascending, before a second one of any.
    pub pin: bool,
    /// Whether workers, and the weights that they read, stay on nodes of memory where there are several.
    pub numa: Numa,
    /// Whether the weights are locked in memory, so that the system never takes any of it away.
    pub mlock: bool,
    /// Whether `/tmp/perf-PID.map` is written, by which `perf report` names kernels.
    pub perf_map: bool,
    /// Directory to which a `jit-PID.dump` is written, from which `perf inject --jit` makes what `perf
    /// annotate` disassembles; `None` writes none.
    pub perf_jit: Option<PathBuf>,
    /// Most bytes that weights, KV cache and working memory may take together; `None` takes what is
    /// available.
    pub max_memory: Option<u64>,
    /// Bytes of the KV cache; `None` takes what all sequences need when each is as long as the context. The
    /// part that running sequences leave keeps the beginnings of texts that have ended
    /// ([`kernmill_runtime::kv`]).
    pub kv_memory: Option<u64>,
    /// Whether the KV cache, where nobody says how large it is, takes less than all sequences need if memory
    /// is short: at most three quarters of what weights and working memory leave, but never less than one
    /// sequence of the whole context. Sequences then wait for room, or lose their place for a while. `false`
    /// by default.
    pub kv_yields: bool,
    /// Directory of a store on disk, for what makes way in the KV cache; `None` keeps nothing. One process at
    /// a time writes to it, others only read. Keep it private: its files tell what prompts said.
    pub kv_disk: Option<PathBuf>,
    /// Most bytes that the store's files may take together.
    pub kv_disk_limit: u64,
    /// Whether sessions are saved or restored (`kernmill-serve`). A model that is compiled here is hashed
    /// for it, as it is for a store.
    pub sessions: bool,
    /// Whether a model that is compiled here is hashed, so that answers can name its weights and arithmetic.
    /// A plan is, in any case. `false` by default.
    pub identity: bool,
    /// The stage of the model that is run here, where several processes run one together; `None` runs all of
    /// it. It must be the first one: the others run by [`Stage::serve`](crate::stage::Stage::serve).
    pub stage: Option<Stage>,
    /// File with a chat template (Jinja) that conversations take in place of the model's own format; `None`
    /// takes the model's.
    pub chat_template: Option<PathBuf>,
    /// Purpose of the texts that vectors are made of, such as `query`: the model's files name them, and say
    /// what comes before such texts. `None` takes the model's usual one, which most do not have.
    pub prompt: Option<String>,
    /// Adapters that are loaded with the model.
    pub adapters: Vec<AdapterSource>,
    /// Receives notes and the progress of opening.
    pub observer: Arc<dyn Observer>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            target: Target::Native,
            compile: CompileOptions::default(),
            makes: ModelMakes::AsFiles,
            chunk: None,
            threads: None,
            cpus: None,
            pin: false,
            numa: Numa::Auto,
            mlock: false,
            perf_map: false,
            perf_jit: None,
            max_memory: None,
            kv_memory: None,
            kv_yields: false,
            kv_disk: None,
            kv_disk_limit: DEFAULT_KV_DISK_BYTES,
            sessions: false,
            identity: false,
            stage: None,
            chat_template: None,
            prompt: None,
            adapters: Vec::new(),
            observer: Arc::new(Silent),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("target", &self.target)
            .field("chunk", &self.chunk)
            .field("threads", &self.threads)
            .field("max_memory", &self.max_memory)
            .field("adapters", &self.adapters)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// These options, as `set` changes them.
    ///
    /// ```
    /// let options = kernmill::Options::default().with(|options| options.threads = Some(2));
    /// assert_eq!(options.threads(), 2);
    /// ```
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Options)) -> Options {
        set(&mut self);
        self
    }

    /// The memory of the KV cache.
    pub(crate) fn kv_budget(&self) -> KvBudget {
        self.kv_memory.map_or(KvBudget::WorstCase, KvBudget::Bytes)
    }

    /// Worker threads.
    pub fn threads(&self) -> usize {
        let on = |cpus| default_threads_on(cpus).unwrap_or(1);
        self.threads.unwrap_or_else(|| self.cpus.as_ref().map_or_else(default_threads, on))
    }

    /// The workers of an engine.
    pub(crate) fn pool(&self) -> PoolConfig {
        PoolConfig { threads: Some(self.threads()), cpus: self.cpus, pin: self.pin, numa: self.numa }
    }

    /// Refuses what stages cannot do, if this is one.
    pub(crate) fn check_stage(&self) -> Result<()> {
        if self.stage.is_none() {
            return Ok(());
        }
        let refused = [
            (
                !self.adapters.is_empty(),
                "--lora: adapters are not applied in other processes; merge them into the plan",
            ),
            (self.kv_disk.is_some(), "--kv-disk: a stage has the rows of its own layers only"),
            (self.sessions, "--session-dir: a stage has the rows of its own layers only"),
            (self.mlock, "--mlock: a stage uses a part of the weights only"),
        ];
        match refused.into_iter().find(|(is_asked, _)| *is_asked) {
            Some((_, why)) => Err(Error::bad_input(format!("--stage does not go with {why}"))),
            None => Ok(()),
        }
    }

    /// Checks that this process may use the CPUs.
    pub(crate) fn check_cpus(&self) -> Result<()> {
        let Some(cpus) = &self.cpus else { return Ok(()) };
        let checked = default_threads_on(cpus).map(drop);
        checked.map_err(|error| Error::bad_input(format!("--cpus {cpus}: {error}")))
    }

    /// Notes that there are more threads than CPUs: they wait for each other at every step.
    pub(crate) fn note_threads(&self) {
        let all = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        let cpus = self.cpus.map_or(all, |cpus| cpus.iter().count().min(all));
        let threads = self.threads();
        if threads > cpus {
            let plural = if cpus == 1 { "" } else { "s" };
            self.observer.note(&format!(
                "--threads {threads}: workers may use {cpus} CPU{plural}; more threads than that are slower"
            ));
        }
    }
}
