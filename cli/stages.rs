//! The stages of a compilation that has just been made, as text.

use crate::emit::{Emit, Stage};
use crate::failure::Result;
use crate::listing;
use crate::model::CompileArgs;
use crate::source::SpecSource;
use kernmill_compiler::choose::Choices;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::{Compiled, compile};
use kernmill_kernels::disasm;
use kernmill_plan::target::Level;
use std::fmt::{Display, Write};

/// What the stages are printed from.
pub struct Stages<'a> {
    /// Text of the spec.
    pub spec: &'a str,
    /// Its graph.
    pub graph: &'a Graph,
    /// Everything after it; `None` shows the first two stages only.
    pub compiled: Option<&'a Compiled>,
}

impl Emit {
    /// Whether only stages before compilation are wanted.
    pub fn needs_no_compiler(&self) -> bool {
        self.emit.iter().all(|stage| *stage <= Stage::Graph)
    }

    /// Whether Cranelift's IR must be kept.
    pub fn wants_clif(&self) -> bool {
        self.emit.contains(&Stage::Clif)
    }
}

impl Stages<'_> {
    /// A stage as text.
    pub fn text(&self, stage: Stage) -> Result<String> {
        Ok(match (stage, self.compiled) {
            (Stage::Spec, _) => self.spec.to_owned(),
            (Stage::Graph, _) => self.graph.to_string(),
            (_, None) => String::new(),
            (Stage::Quant, Some(compiled)) => compiled.fused.graph.to_string(),
            (Stage::Fused, Some(compiled)) => compiled.fused.to_string(),
            (Stage::Select, Some(compiled)) => listings(&compiled.selections),
            (Stage::Schedule, Some(compiled)) => listings(&compiled.schedules),
            (Stage::Memory, Some(compiled)) => arenas(compiled),
            (Stage::Clif, Some(compiled)) => compiled.clif.join("\n"),
            (Stage::Asm, Some(compiled)) => disasm::blob(&compiled.program.code),
            (Stage::Plan, Some(compiled)) => listing::program(&compiled.program),
        })
    }
}

/// One listing for each token class.
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

impl CompileArgs {
    /// Compiles for a level that need not be this CPU's, and emits what is wanted. Preset `fast` needs choices.
    pub fn compile(
        &self,
        level: Level,
        source: &SpecSource,
        graph: &Graph,
        choices: Option<Choices>,
        emit: &Emit,
    ) -> Result<Compiled> {
        let compiled = compile(graph, &self.options(level, source, choices, emit))?;
        emit.write(&|stage| Stages { spec: &source.text, graph, compiled: Some(&compiled) }.text(stage))?;
        Ok(compiled)
    }
}
