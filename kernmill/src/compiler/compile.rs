//! Writing plans: a model compiled once, which starts at once from then on.

use super::source::SourceModel;
use crate::chat::given_or;
use crate::error::{Error, Result};
use crate::memory::check_space;
use crate::observe::{Observer, Unit};
use crate::options::Options;
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::output::plan_file::{PlanParts, PlanWriteError, PlanWriter};
use kernmill_compiler::pipeline::compile;
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_compiler::weights::WeightSource;
use kernmill_os::output::NewFile;
use kernmill_plan::target::Level;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;

/// Compiles a model for each of `levels`, ascending, and writes the plan. The file appears when it is whole.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kernmill::compiler::{SourceModel, compile_plan};
/// use kernmill::{FusedSet, Model, Options, Preset, Target, locate::SourceFiles, observe::Silent};
/// use kernmill_os::output::NewFile;
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("nano.plan");
/// let options = Options::default();
/// let model = SourceModel::open(&SourceFiles::default(), FusedSet::builtin())?; // the embedded model
/// let level = Target::Native.runnable_level(Preset::Faithful, &Silent)?;
/// compile_plan(&model, &[level], &options, NewFile::create_file(&path)?)?;
/// let pieces = Model::open(&path)?.generate("A slice", &Default::default())?;
/// let text: String = pieces.collect::<Result<_, _>>()?;
/// assert!(!text.is_empty());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the model cannot be compiled, a weight is unusable, the disk has no room, or the system refuses to
/// write.
pub fn compile_plan(model: &SourceModel, levels: &[Level], options: &Options, file: NewFile) -> Result<()> {
    with_writer(model, levels, options, |writer| write(model, writer, options, file))
}

/// Compiles a model for each of `levels`, ascending, and hands what makes the plan to `act`.
pub(super) fn with_writer<T>(
    model: &SourceModel,
    levels: &[Level],
    options: &Options,
    act: impl FnOnce(&PlanWriter<'_>) -> Result<T>,
) -> Result<T> {
    let (tokenizer_json, end_tokens) = (model.tokenizer_json()?, model.end_tokens()?);
    let chat_templates = given_or(options.chat_template.as_deref(), &model.chat_templates)?;
    let choices = model.choices(options.compile.preset, options.threads(), &*options.observer)?;
    let chunk = model.graph.chunk(options.chunk, levels.iter().copied());
    let at = |level: &Level| options.compile.at(*level, chunk, choices.clone());
    let compiled = levels.iter().map(|level| Ok(compile(&model.graph, &at(level))?));
    let compiled = compiled.collect::<Result<Vec<_>>>()?;
    let writer = PlanWriter::new(&PlanParts {
        producer: options.compile.producer,
        compiled: &compiled,
        choices: choices.as_ref(),
        fused: options.compile.fuse,
        fused_specs: &model.source.fused,
        spec: &model.source.text,
        tokenizer_json: tokenizer_json.as_deref(),
        end_tokens: &end_tokens,
        chat_templates: Some(&chat_templates),
    })?;
    model.note_conversion(writer.weight_bytes(), options);
    act(&writer)
}

/// Writes the plan of `model` that `writer` has put together.
pub(super) fn write(
    model: &SourceModel,
    writer: &PlanWriter<'_>,
    options: &Options,
    file: NewFile,
) -> Result<()> {
    let weights = CheckpointWeights::new(&model.graph, &model.checkpoint)?;
    write_plan(file, writer, &weights, options.threads(), &*options.observer)
}

/// Writes the plan that `writer` has put together, and packs its weights with `threads` threads. The file
/// appears when it is whole, and nobody but its owner may write it.
///
/// # Errors
/// When a weight is unusable, the disk has no room, or the system refuses to write.
pub fn write_plan(
    file: NewFile,
    writer: &PlanWriter<'_>,
    weights: &impl WeightSource<Error = CheckpointError>,
    threads: usize,
    observer: &dyn Observer,
) -> Result<()> {
    let path = file.path().to_owned();
    check_space(&path, writer.bytes())?;
    owner_alone_writes(file.file()).map_err(Error::write(&path))?;
    let packing = observer.begin("packing weights", Unit::Bytes, writer.weight_bytes());
    let written = writer.write(file.file(), weights, threads, &|bytes| packing.advance(bytes));
    drop(packing);
    written.map_err(|error| match error {
        PlanWriteError::Pack(error) => error.into(),
        PlanWriteError::Write(error) => Error::write(&path)(error),
    })?;
    let _writing = observer.begin("writing to the disk", Unit::Unknown, 0);
    file.finish_synced().map_err(Error::write(&path))
}

/// Whatever the user's umask: code that others could write would not be run.
pub(super) fn owner_alone_writes(file: &File) -> std::io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & !OTHERS_WRITE);
    file.set_permissions(permissions)
}
