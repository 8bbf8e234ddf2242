//! `kernmill explain`: what a spec compiles to, and why.

use crate::emit::Emit;
use crate::failure::Result;
use crate::model::{CompileArgs, Target, target_parser};
use crate::output;
use crate::source::SpecSource;
use crate::stages::Stages;
use kernmill_compiler::choose::Choices;
use kernmill_compiler::fuse;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::quant::Preset;
use kernmill_compiler::select;
use std::fmt::Write;
use std::path::PathBuf;

/// Shows what a model spec compiles to: what fused, what nearly did and why not, what it takes, and which kernels were picked why
///
/// No weights are needed, and the target need not be this CPU's. Of preset fast, which decides tensor by tensor from the weights, it
/// shows what comes out when every tensor that may have 4 bits does; `kernmill inspect` shows the decisions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill explain model-specs/gpt-oss-20b.toml
  kernmill explain model-specs/gpt-oss-20b.toml --json                  candidates, costs and picks
  kernmill explain model-specs/nano/nano.toml --emit graph              the graph, as text
  kernmill explain model-specs/nano/nano.toml --emit fused,schedule     several stages
  kernmill explain model-specs/nano/nano.toml --emit clif,asm --emit-dir stages --target x86-64-v3")]
pub struct Explain {
    /// Model spec (TOML)
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Instruction set; native is the best that this CPU has (amx only for preset bf16)
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    target: Target,
    #[command(flatten)]
    compile: CompileArgs,
    #[command(flatten)]
    emit: Emit,
    /// Print the candidates of every kernel and leaf, their costs and the picks as JSON instead
    #[arg(long, conflicts_with = "emit")]
    json: bool,
}

impl Explain {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        self.emit.check(None)?;
        let source = SpecSource::read(&self.spec, self.compile.fusions.set()?)?;
        let graph = source.graph()?;
        if !self.emit.emit.is_empty() && self.emit.needs_no_compiler() {
            let stages = Stages { spec: &source.text, graph: &graph, compiled: &[] };
            return self.emit.write(None, &|stage| stages.contents(stage));
        }
        let assumed = Some(Choices::assumed(&graph));
        let level = self.target.level(self.compile.preset)?;
        let compile = self.compile.tuned(matches!(self.target, Target::Native));
        let compiled = compile.compile(level, &source, &graph, assumed, &self.emit)?;
        if self.json {
            let report = select::explain(&compiled.selections, &compiled.leaves);
            output::print(format!("{:#}\n", serde_json::json!(report)))?;
        } else if self.emit.emit.is_empty() {
            output::print(report(&graph, &compiled))?;
        }
        if !compile.quiet {
            eprintln!("{}", times(&compiled));
        }
        Ok(())
    }
}

fn report(graph: &Graph, compiled: &Compiled) -> String {
    let mut text = fuse::explain(&compiled.fused, &compiled.report);
    let program = &compiled.program;
    let model = &program.model;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "compiled for {}, preset {}:", program.level.name(), model.preset);
    if model.preset == Preset::Fast.name() {
        let _ = writeln!(text, "  assuming that every tensor that may have 4 bits does");
    }
    let _ = writeln!(text, "  vocabulary {}, longest context {}", graph.vocab, graph.max_context);
    let _ = writeln!(
        text,
        "  weights {} bytes, of which one token reads {}",
        compiled.layout.bytes, model.decode_bytes
    );
    let _ = writeln!(
        text,
        "  {} kernels, {} bytes of code; arena {} bytes, scratch {} bytes per worker",
        compiled.kernels.list.len(),
        program.code.bytes.len(),
        program.arena_bytes,
        program.scratch_bytes
    );
    for class in &program.classes {
        let logits = class.logit_steps.len();
        let adapters = class.steps.iter().filter(|step| !step.sites.is_empty()).count();
        let steps = class.steps.len() - adapters;
        let more = if adapters > 0 { format!(", {adapters} more for adapters") } else { String::new() };
        let _ = writeln!(
            text,
            "  up to {} tokens: {steps} steps{more}, and {logits} for logits",
            class.max_tokens
        );
    }
    let _ = write!(text, "{}", select::explain(&compiled.selections, &compiled.leaves));
    text
}

fn times(compiled: &Compiled) -> String {
    let total: f64 = compiled.times.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let mut passes: Vec<_> = compiled.times.iter().collect();
    passes.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let longest = passes.iter().take(3).map(|(name, time)| format!("{name} {:.3} s", time.as_secs_f64()));
    format!("compiled in {total:.3} s ({})", longest.collect::<Vec<_>>().join(", "))
}
