//! The library without the compiler: what has to be compiled is refused, and these types have no values.

use crate::error::{Error, Result};
use crate::locate::SourceFiles;
use crate::options::Options;
use crate::plan::PlanModel;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::program::Program;
use kernmill_runtime::{Plan, PlanImage, TokenizerHandle};
use std::path::Path;
use std::time::Instant;

/// How a model that is no plan is compiled. This library has no compiler.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompileOptions {}

/// A model that is compiled in this process. This library has no compiler.
pub enum OpenedSource {}

/// The files of a model that is compiled in this process. This library has no compiler.
pub enum SourceModel {}

/// A compiled model, which this library cannot make.
pub enum Compiled {}

pub(crate) enum CompiledModel {}

#[expect(dead_code, reason = "nothing is found that could be compiled")]
pub(crate) enum Found {
    Source(Box<OpenedSource>),
    Kept(Box<PlanModel>),
}

#[expect(dead_code, reason = "nothing is compiled")]
pub(crate) enum Made {
    Compiled(Box<CompiledModel>),
    Kept(Box<PlanModel>),
}

impl OpenedSource {
    pub(crate) fn open(_files: &SourceFiles, _options: &Options) -> Result<Found> {
        Err(Error::bad_input("expected a plan: this kernmill has no compiler"))
    }

    pub(crate) fn vocab(&self) -> usize {
        match *self {}
    }

    pub(crate) fn longest_context(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn example(&self) -> Option<&'static str> {
        match *self {}
    }

    pub(crate) fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        match *self {}
    }

    pub(crate) fn leave_tokenizer(&mut self) {
        match *self {}
    }

    pub(crate) fn tokenizer_note(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn end_tokens(&self) -> Result<Vec<u32>> {
        match *self {}
    }

    pub(crate) fn chat_templates(&self) -> &ChatTemplates {
        match *self {}
    }

    pub(crate) fn compile(self, _options: &Options) -> Result<(Made, [f64; 2])> {
        match self {}
    }
}

impl CompiledModel {
    pub(crate) fn origin(&self) -> (&SourceModel, &Compiled) {
        match *self {}
    }

    pub(crate) fn program(&self) -> &Program {
        match *self {}
    }

    pub(crate) fn into_image(self, _chat: ChatTemplates, _options: &Options) -> Result<(PlanImage, f64)> {
        match self {}
    }
}

/// No code is generated anew.
pub(crate) fn generated_image(
    _plan: &Plan,
    _options: &Options,
    _start: Instant,
) -> Result<Option<(PlanImage, f64)>> {
    Ok(None)
}

/// Checkpoints are not read here.
pub(crate) fn instead_of_config(_dir: &Path) -> Option<&'static str> {
    None
}
