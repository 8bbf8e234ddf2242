//! `kernmill compile` writes a plan file. With `--dry-run` it shows what it would write, and how the plan
//! would run here; with `--emit` and no output, what a spec alone compiles to.

use crate::aside::Aside;
use crate::compiler::options::{CompileArgs, MachineArgs, NATIVE};
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::GivenArgs;
use crate::options::{TemplateArgs, ThreadsArgs};
use crate::{output, version};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill::ModelMakes;
use kernmill::adapters::AdapterSource;
use kernmill::chat::{fault, given_or};
use kernmill::compiler::{SourceModel, SpecSource, choices, write_plan};
use kernmill::locate::{Located, SourceFiles};
use kernmill_tools::estimate::{Host, PlanEstimate};
use kernmill_tools::machine::Description;
use kernmill_tools::merge::AdapterMerge;
use kernmill_tools::stages::{EmitOutputs, StageSources, fingerprints};
use kernmill_tools::targets::{Targets, closing};
use kernmill_tools::vectors::making;
use kernmill_tools::{Compiled, FormatChoices, Graph, Level, PlanParts, PlanWriter, Preset, compile};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Compiles a model to a plan file, which starts at once
///
/// The weights are packed straight from the checkpoint into the file. The file appears when it is whole, and
/// replaces what was there. The same input gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/compile.txt"))]
pub struct Compile {
    #[command(flatten)]
    given: GivenArgs,
    /// Plan to write. With `--emit obj`, and no --emit-dir, the object file to write, and no plan; with other
    /// stages it may be left out, then there is no plan either
    #[arg(long, short, value_name = "FILE.plan|FILE.o", required_unless_present_any = ["dry_run", "emit"])]
    output: Option<PathBuf>,
    /// Instruction sets to generate code for; native is this CPU's best, all those of the preset (both take
    /// amx for preset bf16 only). It wins over --machine
    #[arg(long, value_name = "LEVEL,..", default_value = "native", value_delimiter = ',',
        value_parser = targets_parser())]
    target: Vec<Targets>,
    /// Bake an adapter (a directory that PEFT's save_pretrained wrote) into the weights; may be given several
    /// times. Changed matrices are stored as the preset stores bf16 ones: MXFP4 experts become int8, twice as
    /// large
    #[arg(long, value_name = "NAME=DIR[:SCALE]")]
    merge_lora: Vec<AdapterSource>,
    /// Write nothing: show sizes, memory, whether it fits, and how fast this machine would run it. A spec
    /// needs no weights for that
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: the context that memory is shown for, in tokens; by default 4096 if the model can
    #[arg(long, value_name = "N", requires = "dry_run")]
    context: Option<u32>,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// The description in `machine`, once it is read.
    #[arg(skip)]
    described: Option<Description>,
    #[command(flatten)]
    threads: ThreadsArgs,
    #[command(flatten)]
    compile: CompileArgs,
    #[command(flatten)]
    aside: Aside,
    #[command(flatten)]
    emit: Emit,
    /// Print what --dry-run or --emit hashes says as JSON
    #[arg(long)]
    json: bool,
}

const ALL: &str = "all";

fn targets_parser() -> impl TypedValueParser<Value = Targets> {
    let names = [NATIVE, ALL].into_iter().chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>()).map(|name| match Level::from_name(&name) {
        Some(level) => Targets::Level(level),
        None if name == ALL => Targets::All,
        None => Targets::Native,
    })
}

impl Compile {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        let start = Instant::now();
        self.described = self.machine.read()?;
        let (machine, preset) = (self.described.as_ref(), self.compile.preset);
        self.target = Targets::on(self.target, explicit.has("target"), machine, preset);
        let levels = Targets::levels(&self.target, preset, &self.aside)?;
        let is_native = self.target.iter().all(|target| matches!(target, Targets::Native));
        self.compile = self.compile.tuned(is_native, machine);
        let given = self.source(explicit)?;
        self.asked(&given).check(&levels)?;
        if self.asked(&given).writes_no_plan() {
            return self.emit_only(&levels, &given);
        }
        if self.dry_run && given.need_weights().is_err() {
            return self.dry_run_of_spec(&levels, &given);
        }
        // A problem of the place is found before the work.
        let file = self.output.as_deref().filter(|_| !self.dry_run).map(output::create_file).transpose()?;
        let model = SourceModel::open(&given, self.compile.fusions.set()?)?;
        let (tokenizer_json, end_tokens) = (model.tokenizer_json()?, model.end_tokens()?);
        let templates = given_or(self.template.chat_template.as_deref(), &model.chat_templates)?;
        model.texts.note().into_iter().chain(fault(&templates)).for_each(|note| self.aside.note(note));
        let threads = self.threads.number();
        let merge = AdapterMerge::new(&model, &self.merge_lora, &self.aside)?;
        let weights = merge.weights(&model)?;
        let choices = choices(&merge.graph, &weights, self.compile.preset, threads, &self.aside)?;
        let compiled = self.targets(&model.source, &merge.graph, &levels, choices.as_ref())?;
        let writer = PlanWriter::new(&PlanParts {
            tokenizer_json: tokenizer_json.as_deref(),
            end_tokens: &end_tokens,
            chat_templates: Some(&templates),
            ..self.parts(&compiled, choices.as_ref(), &model.source)
        })?;
        let note = merge.note(&model, self.compile.preset, writer.weight_bytes());
        let Some(file) = file else {
            return self.show_dry_run(&writer, &compiled, note.into_iter().collect());
        };
        let path = file.path().to_owned();
        write_plan(file, &writer, &weights, threads, &self.aside)?;
        note.iter().for_each(|merged| self.aside.line(merged));
        self.aside.wrote(&path, closing(&levels, writer.bytes(), start.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The model that is compiled.
    fn source(&self, explicit: &Explicit) -> Result<SourceFiles> {
        let located = making(self.given.resolve(explicit)?, self.compile.makes(ModelMakes::AsFiles));
        self.output.as_deref().map_or(Ok(()), |path| located.check_apart(path))?;
        match located {
            Located::Source(source) => Ok(source),
            Located::Plan(path) => {
                let what = "it is a plan, which is compiled already; expected a checkpoint's directory, a \
                    GGUF file or a spec";
                Err(kernmill::Error::input(&path, what).into())
            }
        }
    }

    /// The parts of a plan besides a tokenizer and what belongs to it.
    fn parts<'a>(
        &self,
        compiled: &'a [Compiled],
        choices: Option<&'a FormatChoices>,
        source: &'a SpecSource,
    ) -> PlanParts<'a> {
        PlanParts {
            producer: version::PRODUCER,
            compiled,
            choices,
            fused: !self.compile.no_fuse,
            fused_specs: &source.fused,
            spec: &source.text,
            tokenizer_json: None,
            end_tokens: &[],
            chat_templates: None,
        }
    }

    /// The model compiled for each level; stages are shown for the highest, hashes for all.
    fn targets(
        &self,
        source: &SpecSource,
        graph: &Graph,
        levels: &[Level],
        choices: Option<&FormatChoices>,
    ) -> Result<Vec<Compiled>> {
        let mut options = self.compile.options(source.fused.clone(), &self.emit);
        options.machine.clone_from(&self.described);
        let chunk = graph.chunk(self.compile.chunk, levels.iter().copied());
        let options = |level| options.at(level, chunk, choices.cloned());
        let compiled = levels.iter().map(|level| Ok(compile(graph, &options(*level))?));
        let compiled = compiled.collect::<Result<Vec<_>>>()?;
        if self.json && !self.dry_run {
            let hashes = json!({ "targets": fingerprints(&compiled) });
            output::print(version::report("kernmill.hashes/1", hashes))?;
        } else {
            let stages = StageSources { spec: &source.text, graph, compiled: &compiled };
            self.emit.write(self.output.as_deref(), &|stage| stages.contents(stage))?;
        }
        Ok(compiled)
    }

    /// Tells what compiling a spec would give. Of its weights only shapes and stored formats count, which the
    /// spec says.
    fn dry_run_of_spec(&self, levels: &[Level], given: &SourceFiles) -> Result<()> {
        if !self.merge_lora.is_empty() {
            given.need_weights()?;
        }
        let source = SpecSource::of(given, self.compile.fusions.set()?)?;
        let graph = source.graph()?;
        let mut notes = vec!["without weights at hand: a tokenizer would come on top".to_owned()];
        let choices = (self.compile.preset == Preset::Fast).then(|| {
            notes.push("assuming that every tensor that may have 4 bits does".to_owned());
            FormatChoices::assumed(&graph)
        });
        let compiled = self.targets(&source, &graph, levels, choices.as_ref())?;
        let writer = PlanWriter::new(&self.parts(&compiled, choices.as_ref(), &source))?;
        self.show_dry_run(&writer, &compiled, notes)
    }

    /// Prints it.
    fn show_dry_run(&self, writer: &PlanWriter<'_>, compiled: &[Compiled], notes: Vec<String>) -> Result<()> {
        let host = Host::of(self.described.as_ref(), self.threads.given());
        let Some(it) = PlanEstimate::new(writer, compiled, self.context, host, notes)? else { return Ok(()) };
        version::show(self.json, "kernmill.dry-run/1", || it.json(), || it.text())
    }

    /// The outputs that are asked for.
    fn asked(&self, given: &SourceFiles) -> EmitOutputs<'_> {
        EmitOutputs {
            stages: &self.emit.emit,
            has_dir: self.emit.emit_dir.is_some(),
            has_output: self.output.is_some(),
            json: self.json,
            dry_run: self.dry_run,
            has_weights: given.need_weights().is_ok(),
            preset: self.compile.preset,
        }
    }

    /// Compiles and emits. The weights are looked at only where the code depends on them.
    fn emit_only(&self, levels: &[Level], given: &SourceFiles) -> Result<()> {
        // A problem of the place is found before the work.
        self.output.as_deref().filter(|_| self.asked(given).writes_object()).map_or(Ok(()), output::check)?;
        if given.need_weights().is_err() && self.merge_lora.is_empty() {
            let source = SpecSource::of(given, self.compile.fusions.set()?)?;
            let graph = source.graph()?;
            return self.targets(&source, &graph, levels, None).map(drop);
        }
        let model = SourceModel::open(given, self.compile.fusions.set()?)?;
        let threads = self.threads.number();
        let merge = AdapterMerge::new(&model, &self.merge_lora, &self.aside)?;
        let weights = merge.weights(&model)?;
        let choices = choices(&merge.graph, &weights, self.compile.preset, threads, &self.aside)?;
        self.targets(&model.source, &merge.graph, levels, choices.as_ref()).map(drop)
    }
}
