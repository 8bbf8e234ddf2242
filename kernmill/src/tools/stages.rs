//! The stages of the compiler as text, and its code as an object file.

use super::listing;
use crate::error::{Error, Result};
use crate::model::{Origin, Prepared};
#[cfg(feature = "compiler")]
use kernmill_compiler::{fingerprint::Fingerprint, graph::Graph, pipeline::Compiled};
#[cfg(feature = "compiler")]
use kernmill_kernels_gen::{disasm, elf};
use kernmill_plan::program::Program;
use kernmill_runtime::Plan;
#[cfg(feature = "compiler")]
use std::fmt::{Display, Write};

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The model spec.
    Spec,
    /// The graph of the spec.
    Graph,
    /// The graph with the preset's quantisation made explicit.
    Quant,
    /// Groups of nodes that become one kernel each.
    Fused,
    /// The kernel for each group.
    Select,
    /// Steps and buffers.
    Schedule,
    /// Places of the buffers in the arena.
    Memory,
    /// Cranelift IR of the kernels.
    Clif,
    /// Machine code of the kernels.
    Asm,
    /// What the runtime gets: steps with their operands, buffers, symbols.
    Plan,
    /// Hashes of the machine code and of everything around it, to compare compilers by.
    Hashes,
    /// The machine code as an ELF object file: with --emit-dir, or compile -o FILE.o.
    Obj,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: [Stage; 12] = [
        Stage::Spec,
        Stage::Graph,
        Stage::Quant,
        Stage::Fused,
        Stage::Select,
        Stage::Schedule,
        Stage::Memory,
        Stage::Clif,
        Stage::Asm,
        Stage::Plan,
        Stage::Hashes,
        Stage::Obj,
    ];

    /// Name of the stage on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Spec => "spec",
            Stage::Graph => "graph",
            Stage::Quant => "quant",
            Stage::Fused => "fused",
            Stage::Select => "select",
            Stage::Schedule => "schedule",
            Stage::Memory => "memory",
            Stage::Clif => "clif",
            Stage::Asm => "asm",
            Stage::Plan => "plan",
            Stage::Hashes => "hashes",
            Stage::Obj => "obj",
        }
    }

    /// What the stage shows, without a full stop.
    pub fn about(self) -> &'static str {
        match self {
            Stage::Spec => "The model spec",
            Stage::Graph => "The graph of the spec",
            Stage::Quant => "The graph with the preset's quantisation made explicit",
            Stage::Fused => "Groups of nodes that become one kernel each",
            Stage::Select => "The kernel for each group",
            Stage::Schedule => "Steps and buffers",
            Stage::Memory => "Places of the buffers in the arena",
            Stage::Clif => "Cranelift IR of the kernels",
            Stage::Asm => "Machine code of the kernels",
            Stage::Plan => "What the runtime gets: steps with their operands, buffers, symbols",
            Stage::Hashes => {
                "Hashes of the machine code and of everything around it, to compare compilers by"
            }
            Stage::Obj => "The machine code as an ELF object file: with --emit-dir, or compile -o FILE.o",
        }
    }

    /// The stage with the name `name` on the command line; `None` if no stage has it.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Name of the stage's file.
    pub fn file_name(self) -> String {
        match self {
            Stage::Spec => "spec.toml".to_owned(),
            Stage::Obj => "code.o".to_owned(),
            _ => format!("{}.txt", self.name()),
        }
    }
}

/// What the stages are made from.
#[cfg(feature = "compiler")]
pub struct Stages<'a> {
    /// Text of the spec.
    pub spec: &'a str,
    /// Graph of the spec.
    pub graph: &'a Graph,
    /// Everything after the graph, for each target; the last is shown, of hashes all are. Without any there
    /// are the first two stages only.
    pub compiled: &'a [Compiled],
}

#[cfg(feature = "compiler")]
impl Stages<'_> {
    /// A stage: text, or an object file.
    ///
    /// # Errors
    /// When no object file can be made.
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
///
/// # Errors
/// When the code does not fit one.
#[cfg(feature = "compiler")]
pub fn object(program: &Program) -> Result<Vec<u8>> {
    let source = format!("{} ({}, {})", program.model.name, program.model.preset, program.level.name());
    elf::object_file(&program.code, &source).map_err(|error| Error::Work(format!("the object file: {error}")))
}

/// Fingerprints of each target's program.
#[cfg(feature = "compiler")]
pub fn fingerprints(compiled: &[Compiled]) -> Vec<Fingerprint> {
    compiled.iter().map(Fingerprint::new).collect()
}

/// One listing after another: of token classes, or targets.
#[cfg(feature = "compiler")]
fn listings<T: Display>(classes: &[T]) -> String {
    classes.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(feature = "compiler")]
fn arenas(compiled: &Compiled) -> String {
    let mut text = String::new();
    for (class, arena) in compiled.program.classes.iter().zip(&compiled.arenas) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "class of up to {} tokens\n{arena}", class.max_tokens);
    }
    text
}

/// A stage that a plan still has: text, or an object file.
///
/// # Errors
/// When it has not, or it cannot be read.
pub fn of_plan(plan: &Plan, program: &Program, stage: Stage) -> Result<Vec<u8>> {
    match stage {
        Stage::Spec => Ok(plan.file().spec().map_err(|source| Error::in_plan(plan, source))?.into_bytes()),
        #[cfg(feature = "compiler")]
        Stage::Asm => Ok(disasm::blob(&program.code).into_bytes()),
        Stage::Plan => Ok(listing::program(program).into_bytes()),
        #[cfg(feature = "compiler")]
        Stage::Obj => object(program),
        other => Err(Error::BadInput(format!(
            "--emit {}: a plan has only {}; kernmill explain shows the others",
            other.name(),
            if cfg!(feature = "compiler") { "spec, asm, plan and obj" } else { "spec and plan here" }
        ))),
    }
}

/// A stage of a model that is about to run: of its compilation, or what its plan still has.
///
/// # Errors
/// As those of [`of_plan`].
pub fn of_prepared(prepared: &Prepared, stage: Stage) -> Result<Vec<u8>> {
    match prepared.origin() {
        Origin::Plan(plan) => of_plan(plan.plan(), plan.program(), stage),
        #[cfg(feature = "compiler")]
        Origin::Compiled(model, compiled) => {
            let compiled = std::slice::from_ref(compiled);
            Stages { spec: &model.source.text, graph: &model.graph, compiled }.contents(stage)
        }
    }
}

/// Text of the functions whose names contain `part`.
///
/// # Errors
/// When there is none.
#[cfg(feature = "compiler")]
pub fn disassembly(program: &Program, part: &str) -> Result<String> {
    let symbols = program.code.symbols.iter().filter(|symbol| symbol.name.contains(part));
    let functions: Vec<String> = symbols.map(|symbol| disasm::function(&program.code, symbol)).collect();
    if functions.is_empty() {
        return Err(Error::BadInput(format!(
            "--disasm {part}: no function's name contains it; kernmill inspect lists the symbols"
        )));
    }
    Ok(functions.join("\n"))
}
