//! A model on its way from opened files through the compiler to weights in memory.
//! It has an identity, by which a store or a session knows whose rows it holds.

use super::cache;
use super::source::{SourceModel, SpecSource};
use crate::error::Result;
use crate::locate::SourceFiles;
use crate::nano;
use crate::observe::Unit;
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_compiler::emit::pack::piece_sizes;
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::pipeline::{Compiled, compile};
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_os::region::WeightRegion;
use kernmill_os::threads::share;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::file::{FusedSpecText, Identity};
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::{PlanImage, TokenizerHandle};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A model that is compiled in this process, and the level that it is compiled for.
pub struct OpenedSource {
    /// The model's files.
    pub model: SourceModel,
    /// Level that the model is compiled for, which this CPU can run.
    pub level: Level,
    /// Where the model's plan is to be kept.
    kept: Option<PathBuf>,
    /// Tokenizer of the model, once it was asked for.
    tokenizer: Option<TokenizerHandle>,
}

/// The result of looking into a model's files: a model to compile, or one that was compiled before and kept.
pub(crate) enum Found {
    Source(Box<OpenedSource>),
    Kept(Box<PlanModel>),
}

/// The compiler's result: a program in memory, or a plan that was kept.
pub(crate) enum Made {
    Compiled(Box<CompiledModel>),
    Kept(Box<PlanModel>),
}

/// A model that was compiled in this process. Its weights have not been read.
pub(crate) struct CompiledModel {
    source: OpenedSource,
    compiled: Compiled,
}

impl OpenedSource {
    /// Opens a model's files and checks everything but the weights. A model that was compiled before, and
    /// kept, is a plan.
    pub(crate) fn open(files: &SourceFiles, options: &Options) -> Result<Found> {
        let fused = options.compile.fused.clone();
        if files.need_weights().is_err() {
            // A text that is no spec says so first.
            SpecSource::of(files, fused.clone())?.graph()?;
            files.need_weights()?;
        }
        let level = options.target.runnable_level(options.compile.preset, &*options.observer)?;
        let model = SourceModel::open(files, fused)?;
        let kept = cache::place(&model, level, options)?;
        if let Some(plan) = kept.as_deref().and_then(|path| cache::open(path, options)) {
            return Ok(Found::Kept(Box::new(plan)));
        }
        Ok(Found::Source(Box::new(OpenedSource { model, level, kept, tokenizer: None })))
    }

    pub(crate) fn vocab(&self) -> usize {
        self.model.graph.vocab
    }

    pub(crate) fn longest_context(&self) -> u32 {
        self.model.graph.max_context as u32
    }

    pub(crate) fn example(&self) -> Option<&'static str> {
        self.model.embedded.then_some(nano::PROMPT)
    }

    pub(crate) fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        if self.tokenizer.is_none() {
            self.tokenizer = self.model.tokenizer();
        }
        self.tokenizer.clone()
    }

    pub(crate) fn leave_tokenizer(&mut self) {
        self.tokenizer = None;
    }

    pub(crate) fn tokenizer_note(&self) -> Option<String> {
        self.model.texts.note()
    }

    pub(crate) fn end_tokens(&self) -> Result<Vec<u32>> {
        self.model.end_tokens()
    }

    pub(crate) fn chat_templates(&self) -> &ChatTemplates {
        &self.model.chat_templates
    }

    /// Compiles the model; beside it the seconds that choosing formats and generating code took. With
    /// [`CompileOptions::plan_cache`](super::CompileOptions::plan_cache), it becomes a plan there.
    pub(crate) fn compile(self, options: &Options) -> Result<(Made, [f64; 2])> {
        let start = Instant::now();
        let kept = self.kept.as_deref().map(|path| cache::fill(&self.model, self.level, path, options));
        if let Some(mut plan) = kept.transpose()?.flatten().map(Box::new) {
            if self.tokenizer.is_some() {
                plan.tokenizer();
            }
            return Ok((Made::Kept(plan), [0.0, start.elapsed().as_secs_f64()]));
        }
        let preset = options.compile.preset;
        let choices = self.model.choices(preset, options.threads(), &*options.observer)?;
        let choose = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let chunk = self.model.graph.chunk(options.chunk, [self.level]);
        let compiler = options.compile.at(self.level, chunk, choices);
        let compiled = compile(&self.model.graph, &compiler)?;
        self.model.note_conversion(compiled.layout.bytes, options);
        let seconds = [choose, start.elapsed().as_secs_f64()];
        Ok((Made::Compiled(Box::new(CompiledModel { source: self, compiled })), seconds))
    }
}

impl CompiledModel {
    /// The model's files, and what the compiler made of them.
    pub(crate) fn origin(&self) -> (&SourceModel, &Compiled) {
        (&self.source.model, &self.compiled)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.compiled.program
    }

    /// Reads and packs the weights; the image, and the seconds that it took.
    pub(crate) fn into_image(self, templates: ChatTemplates, options: &Options) -> Result<(PlanImage, f64)> {
        let threads = options.threads();
        let start = Instant::now();
        let CompiledModel { source: OpenedSource { model, tokenizer, .. }, compiled } = self;
        let progress = options.observer.begin("packing weights", Unit::Bytes, compiled.layout.bytes);
        let weights = CheckpointWeights::new(&model.graph, &model.checkpoint)?;
        let packed = build_weights(&compiled, &weights, threads, &|bytes| progress.advance(bytes));
        drop(progress);
        let packed = packed?;
        let identity = identity(&model, &compiled, &packed, options);
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program, packed) };
        let image = image.with_tokenizer(tokenizer).with_chat_templates(templates);
        let image = match identity {
            Some(identity) => image.with_identity(identity),
            None => image,
        };
        Ok((image, start.elapsed().as_secs_f64()))
    }
}

/// The identity of a model that was compiled here: that of the plan which `kernmill compile` would write.
/// `None`, and no time spent on hashing weights, unless it, a session, a store or a stage is asked for.
pub(super) fn identity(
    model: &SourceModel,
    compiled: &Compiled,
    weights: &WeightRegion,
    options: &Options,
) -> Option<[u8; 32]> {
    let is_wanted = options.identity || options.sessions;
    if options.kv_disk.is_none() && !is_wanted && options.stage.is_none() {
        return None;
    }
    let mut pieces = Vec::new();
    let mut rest = weights.as_slice();
    for bytes in piece_sizes(&compiled.layout) {
        let (piece, behind) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        pieces.push(piece);
        rest = behind;
    }
    let entries = Mutex::new(vec![[0; 40]; pieces.len()]);
    let next = AtomicUsize::new(0);
    share(options.threads(), || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else { break };
            let mut entry = [0; 40];
            entry[..8].copy_from_slice(&(piece.len() as u64).to_le_bytes());
            entry[8..].copy_from_slice(blake3::hash(piece).as_bytes());
            entries.lock().expect("no panic holds it")[index] = entry;
        }
    });
    let entries = entries.into_inner().expect("no panic holds it");
    let specs = model.source.fused.specs();
    let fused_specs: Vec<FusedSpecText> = specs
        .map(|spec| FusedSpecText { name: spec.name.value.clone(), text: spec.source.text().to_owned() })
        .collect();
    let identity = Identity {
        producer: options.compile.producer,
        model: &compiled.program.model,
        fused: options.compile.fuse,
        fused_specs: &fused_specs,
        spec: *blake3::hash(model.source.text.as_bytes()).as_bytes(),
        weights: *blake3::hash(entries.as_flattened()).as_bytes(),
    };
    Some(identity.hash())
}
