//! Stages of what was compiled.

use crate::listing;
use crate::stage::{NO_OBJECT, Stage};
use kernmill::compiler::SourceModel;
use kernmill::{Error, Level, Preset, Result};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::output::fingerprint::Fingerprint;
use kernmill_compiler::pipeline::Compiled;
use kernmill_kernels_gen::{disasm, elf};
use kernmill_plan::program::Program;
use std::fmt::{Display, Write};

/// The stages that a plan still has, for messages.
pub const OF_PLANS: &str = "spec, asm, plan and obj";

/// The outputs that `kernmill compile` is asked for.
pub struct EmitOutputs<'a> {
    /// Stages that are wanted.
    pub stages: &'a [Stage],
    /// Whether stages go to files of a directory.
    pub has_dir: bool,
    /// Whether there is a file for the plan, or for the object file.
    pub has_output: bool,
    /// Whether JSON is printed.
    pub json: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether there are weights.
    pub has_weights: bool,
    /// How the model is quantised.
    pub preset: Preset,
}

impl EmitOutputs<'_> {
    /// Whether the stages are all that is wanted.
    pub fn writes_no_plan(&self) -> bool {
        !self.stages.is_empty() && !self.dry_run && (!self.has_output || self.writes_object())
    }

    /// Whether the output is an object file.
    pub fn writes_object(&self) -> bool {
        self.stages.contains(&Stage::Obj) && !self.has_dir
    }

    /// Refuses what cannot be had, before the work.
    ///
    /// # Errors
    /// When options contradict each other, or weights are missing that are needed.
    pub fn check(&self, levels: &[Level]) -> Result<()> {
        let bad = |what: &str| Err(Error::bad_input(what.to_owned()));
        let hashes = self.stages == [Stage::Hashes] && !self.has_dir;
        if self.json && !(hashes ^ self.dry_run) {
            return bad("--json: expected --dry-run or --emit hashes, which alone are JSON");
        }
        if self.json && self.dry_run && !self.stages.is_empty() && !self.has_dir {
            return bad("--emit: with --json and --dry-run, one JSON object is printed; give --emit-dir");
        }
        if self.stages.contains(&Stage::Obj) {
            if !self.has_dir && !self.has_output {
                return bad(NO_OBJECT);
            }
            if let [_, _, ..] = levels {
                let names = levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
                let what = "--emit obj: an object file has one target's code, but --target is";
                return bad(&format!("{what} {names}: choose one"));
            }
            if self.dry_run {
                return bad("--emit obj: --dry-run writes nothing; leave out one of them");
            }
        }
        if !self.has_weights {
            if !self.writes_no_plan() && !self.dry_run {
                let what = "--weights is missing: a plan holds the weights. Without them, --emit shows what \
                    the spec compiles to";
                return bad(what);
            }
            if self.preset == Preset::Fast && !self.dry_run {
                let what =
                    "--weights is missing: preset fast decides from the weights which code is generated";
                return bad(what);
            }
        }
        Ok(())
    }
}

/// The sources of the stages.
pub struct StageSources<'a> {
    /// Text of the spec.
    pub spec: &'a str,
    /// Graph of the spec.
    pub graph: &'a Graph,
    /// Everything after the graph, for each target; the last is shown, of hashes all are. Without any there
    /// are the first two stages only.
    pub compiled: &'a [Compiled],
}

impl StageSources<'_> {
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
fn object(program: &Program) -> Result<Vec<u8>> {
    let source = format!("{} ({}, {})", program.model.name, program.model.preset, program.level.name());
    elf::object_file(&program.code, &source)
        .map_err(|error| Error::failed(format!("the object file: {error}")))
}

/// Fingerprints of each target's program.
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

/// A stage that is made of a program's code; `None` of others.
pub fn code(program: &Program, stage: Stage) -> Option<Result<Vec<u8>>> {
    match stage {
        Stage::Asm => Some(Ok(disasm::blob(&program.code).into_bytes())),
        Stage::Obj => Some(object(program)),
        _ => None,
    }
}

/// A stage of a model that was compiled in this process.
///
/// # Errors
/// When no object file can be made.
pub fn of_compiled(model: &SourceModel, compiled: &Compiled, stage: Stage) -> Result<Vec<u8>> {
    let compiled = std::slice::from_ref(compiled);
    StageSources { spec: &model.source.text, graph: &model.graph, compiled }.contents(stage)
}

/// Text of the functions whose names contain `part`.
///
/// # Errors
/// When no part has the name.
pub fn disassembly(program: &Program, part: &str) -> Result<String> {
    let symbols = program.code.symbols.iter().filter(|symbol| symbol.name.contains(part));
    let functions: Vec<String> = symbols.map(|symbol| disasm::function(&program.code, symbol)).collect();
    if functions.is_empty() {
        return Err(Error::bad_input(format!(
            "--disasm {part}: no function's name contains it; kernmill inspect lists the symbols"
        )));
    }
    Ok(functions.join("\n"))
}
