//! The stages of a compilation that has just been made.

use crate::emit::{Emit, Stage};
use crate::failure::{Failure, Result};
use crate::listing;
use kernmill::source::SpecSource;
use kernmill_compiler::fingerprint::Fingerprint;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::{Compiled, Options, compile};
use kernmill_kernels::{disasm, elf};
use kernmill_plan::program::Program;
use std::fmt::{Display, Write};

/// What the stages are made from.
pub struct Stages<'a> {
    /// Text of the spec.
    pub spec: &'a str,
    /// Its graph.
    pub graph: &'a Graph,
    /// Everything after it, for each target; the last is shown, of hashes all are. Without any there are the first two stages only.
    pub compiled: &'a [Compiled],
}

impl Emit {
    /// Whether only stages before compilation are wanted.
    pub fn needs_no_compiler(&self) -> bool {
        self.emit.iter().all(|stage| *stage <= Stage::Graph)
    }

    /// Whether Cranelift's IR must be kept.
    pub fn wants_clif(&self) -> bool {
        self.wants(Stage::Clif)
    }
}

impl Stages<'_> {
    /// A stage: text, or an object file.
    pub fn contents(&self, stage: Stage) -> Result<Vec<u8>> {
        Ok(match (stage, self.compiled.last()) {
            (Stage::Obj, Some(compiled)) => object(&compiled.program)?,
            (_, compiled) => self.text(stage, compiled).into_bytes(),
        })
    }

    fn text(&self, stage: Stage, compiled: Option<&Compiled>) -> String {
        match (stage, compiled) {
            (Stage::Spec, _) => self.spec.to_owned(),
            (Stage::Graph, _) => self.graph.to_string(),
            (Stage::Obj, _) | (_, None) => String::new(),
            (Stage::Quant, Some(compiled)) => compiled.fused.graph.to_string(),
            (Stage::Fused, Some(compiled)) => compiled.fused.to_string(),
            (Stage::Select, Some(compiled)) => listings(&compiled.selections),
            (Stage::Schedule, Some(compiled)) => listings(&compiled.schedules),
            (Stage::Memory, Some(compiled)) => arenas(compiled),
            (Stage::Clif, Some(compiled)) => compiled.clif.join("\n"),
            (Stage::Asm, Some(compiled)) => disasm::blob(&compiled.program.code),
            (Stage::Plan, Some(compiled)) => listing::program(&compiled.program),
            (Stage::Hashes, Some(_)) => listings(&fingerprints(self.compiled)),
        }
    }
}

/// The code of a program as an object file.
pub fn object(program: &Program) -> Result<Vec<u8>> {
    let source = format!("{} ({}, {})", program.model.name, program.model.preset, program.level.name());
    elf::object_file(&program.code, &source)
        .map_err(|error| Failure::Work(format!("the object file: {error}")))
}

/// Hashes of each target.
pub fn fingerprints(compiled: &[Compiled]) -> Vec<Fingerprint> {
    compiled.iter().map(Fingerprint::new).collect()
}

/// One listing after another: of token classes, or targets.
fn listings<T: Display>(classes: &[T]) -> String {
    classes.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

fn arenas(compiled: &Compiled) -> String {
    let mut text = String::new();
    for (class, arena) in compiled.program.classes.iter().zip(&compiled.arenas) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "class of up to {} tokens\n{arena}", class.max_tokens);
    }
    text
}

/// Compiles for a level that need not be this CPU's, and emits what is wanted.
pub fn compile_and_emit(
    source: &SpecSource,
    graph: &Graph,
    options: &Options,
    emit: &Emit,
) -> Result<Compiled> {
    let compiled = compile(graph, options)?;
    let stages = Stages { spec: &source.text, graph, compiled: std::slice::from_ref(&compiled) };
    emit.write(None, &|stage| stages.contents(stage))?;
    Ok(compiled)
}
