//! A model on its way from opened files through the compiler to weights in memory.

use super::cache;
use super::identity::identity;
use super::source::{SourceModel, SpecSource};
use crate::error::Result;
use crate::locate::SourceFiles;
use crate::nano;
use crate::observe::Unit;
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_compiler::pack::region::build_weights;
use kernmill_compiler::pipeline::{Compiled, compile};
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::{PlanImage, TokenizerHandle};
use std::path::PathBuf;
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
        let compiler = options.compile.at(self.level, options.chunk(), choices);
        let compiled = compile(&self.model.graph, &compiler)?;
        self.model.note_growth(compiled.layout.bytes, options);
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
