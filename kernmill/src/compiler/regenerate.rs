//! A plan's program, generated anew from its spec: nothing of the file is executed, only its weights are
//! read.

use super::source::SpecSource;
use crate::error::{Error, Result};
use crate::options::Options as OpenOptions;
use kernmill_compiler::emit::pack::merge_lora::merged_graph;
use kernmill_compiler::ir::{Graph, Role, Tensor};
use kernmill_compiler::output::plan_file::tensors;
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::file::check::FileError;
use kernmill_plan::file::{Metadata, TensorInfo};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::program::Program;
use kernmill_plan::target::{Level, Tuning};
use kernmill_runtime::{Plan, PlanError, PlanImage};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Tokens per prefill chunk at most, as of a model that is compiled here.
const MAX_CHUNK: u32 = 4096;

/// The files and options that a plan was compiled from.
pub struct PlanOrigin {
    /// The model spec and the fused-op specs, which the plan holds as texts.
    pub source: SpecSource,
    /// The graph that the plan computes. Where an adapter is baked in, its matrices are stored in other types
    /// than the spec says.
    pub graph: Graph,
    /// The options that the compiler was given.
    pub options: CompilerOptions,
}

/// An image with code generated anew, if that is asked for; and the seconds that it took since `start`.
/// Nobody's spec is compiled unasked.
pub(crate) fn generated_image(
    plan: &Plan,
    options: &OpenOptions,
    start: Instant,
) -> Result<Option<(PlanImage, f64)>> {
    if !options.compile.regenerate {
        return Ok(None);
    }
    let generated = regenerate(plan, options)?;
    let seconds = start.elapsed().as_secs_f64();
    // SAFETY: the compiler of this process made the program.
    let image = unsafe { plan.image_with(generated, options.compile.producer) }?;
    Ok(Some((image, seconds)))
}

/// Generates the program of `plan` for the CPU at hand, from the spec in the plan. Nothing of the file is
/// executed.
///
/// # Errors
/// When the spec in the plan is wrong, the plan's weights lie elsewhere than this version would put them, or
/// this CPU lacks AVX2.
fn regenerate(plan: &Plan, options: &OpenOptions) -> Result<Program> {
    super::memory::check_compiler_memory()?;
    let mut origin = origin(plan, &|preset| options.target.runnable_level(preset, &*options.observer))?;
    if let Some(tuning) = options.compile.tuning {
        origin.options.tuning = tuning;
    }
    if let Some(chunk) = options.chunk {
        origin.options.chunk = chunk as usize;
    }
    let metadata = plan.metadata();
    let compiled = compile(&origin.graph, &origin.options)?;
    let ours = tensors(&compiled.fused.graph, &compiled.layout, None);
    if let Some(tensor) = difference(&ours, &metadata.tensors) {
        let what = format!("tensor {tensor} does not lie where this kernmill's spec has it");
        return Err(unfit(plan, what));
    }
    if compiled.layout.bytes != metadata.weight_bytes {
        let what = format!(
            "{} bytes of weights, this kernmill makes {} of its spec",
            metadata.weight_bytes, compiled.layout.bytes
        );
        return Err(unfit(plan, what));
    }
    Ok(compiled.program)
}

/// The model spec and the fused-op specs that a plan holds.
///
/// # Errors
/// When the plan's spec section cannot be read, or a fused-op spec in it is wrong.
pub fn source(plan: &Plan) -> Result<SpecSource> {
    let text = plan.file().spec().map_err(|source| in_plan(plan, source))?;
    let name = format!("{} (embedded spec)", plan.path().display());
    Ok(SpecSource { name, text, fused: fused_set(plan, plan.metadata())? })
}

/// The files that `plan` was compiled from, with the options that compile it again for the level that `level`
/// gives for the plan's preset.
///
/// # Errors
/// When the spec in the plan is wrong, or `level` fails.
pub fn origin(plan: &Plan, level: &dyn Fn(Preset) -> Result<Level>) -> Result<PlanOrigin> {
    let metadata = plan.metadata();
    let source = source(plan)?;
    let graph = source.graph()?;
    let Some(preset) = Preset::from_name(&metadata.model.preset) else {
        return Err(unfit(plan, format!("unknown preset `{}`", metadata.model.preset)));
    };
    if !(1..=MAX_CHUNK).contains(&metadata.chunk) {
        let what = format!("chunks of {} tokens, expected 1 to {MAX_CHUNK}", metadata.chunk);
        return Err(unfit(plan, what));
    }
    // A plan of a stranger may list any number of tensors.
    let packed: HashMap<&str, &TensorInfo> =
        metadata.tensors.iter().rev().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let merged: HashSet<&str> = graph
        .tensors
        .iter()
        .filter(|tensor| is_merged(tensor, &packed))
        .map(|tensor| &*tensor.name)
        .collect();
    let graph = merged_graph(&graph, &|name| merged.contains(name));
    let options = CompilerOptions {
        preset,
        choices: (preset == Preset::Fast).then(|| choices(&graph, &packed)),
        kv: Some(metadata.model.kv.formats()),
        chunk: metadata.chunk as usize,
        adapters: metadata.model.adapters.is_some(),
        fuse: metadata.fused,
        tuning: Tuning::native(),
        fused: source.fused.clone(),
        ..CompilerOptions::new(level(preset)?)
    };
    Ok(PlanOrigin { source, graph, options })
}

fn in_plan(plan: &Plan, source: FileError) -> Error {
    PlanError::File { path: plan.path().to_owned(), source }.into()
}

fn unfit(plan: &Plan, what: String) -> Error {
    let message = format!("{what}: its code cannot be generated anew; compile the model anew");
    Error::input(plan.path(), message)
}

/// The fused-op specs that the plan was compiled with.
fn fused_set(plan: &Plan, metadata: &Metadata) -> Result<FusedSet> {
    let name = |name: &str| format!("{} (embedded fused-op spec {name})", plan.path().display());
    let texts: Vec<(String, &str)> =
        metadata.fused_specs.iter().map(|spec| (name(&spec.name), spec.text.as_str())).collect();
    Ok(FusedSet::from_texts(texts.iter().map(|(name, text)| (name.as_str(), *text)))?)
}

/// Whether a matrix was changed by an adapter that is baked in: it is packed in another format than the
/// checkpoint's would be.
fn is_merged(tensor: &Tensor, packed: &HashMap<&str, &TensorInfo>) -> bool {
    let Some(packed) = packed.get(&*tensor.name) else { return false };
    let is_matrix = matches!(tensor.role, Role::Matrix | Role::ExpertMatrix);
    if tensor.stored.is_blocked() {
        return packed.format != tensor.stored.name();
    }
    is_matrix && tensor.stored != WeightFormat::F32 && packed.format == WeightFormat::F32.name()
}

/// The formats that preset `fast` had chosen for the weights.
fn choices(graph: &Graph, packed: &HashMap<&str, &TensorInfo>) -> FormatChoices {
    let mut choices = FormatChoices::assumed(graph);
    for choice in &mut choices.list {
        let name = &graph.tensor(choice.tensor).name;
        let format = packed.get(&**name).and_then(|tensor| WeightFormat::from_name(&tensor.format));
        if let Some(format) = format.filter(|format| format.is_quantised()) {
            choice.format = format;
        }
    }
    choices
}

/// The first tensor that lies elsewhere or is packed in another way.
fn difference(ours: &[TensorInfo], theirs: &[TensorInfo]) -> Option<String> {
    let same = |a: &TensorInfo, b: &TensorInfo| {
        a.name == b.name
            && a.format == b.format
            && a.shape == b.shape
            && a.offset == b.offset
            && a.bytes == b.bytes
    };
    let unlike = ours.iter().zip(theirs).find(|(a, b)| !same(a, b)).map(|(a, _)| a.name.clone());
    let longer = if ours.len() > theirs.len() { ours } else { theirs };
    unlike.or_else(|| longer.get(ours.len().min(theirs.len())).map(|tensor| tensor.name.clone()))
}
