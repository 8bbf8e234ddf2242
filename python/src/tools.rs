//! Work on models that are not loaded: compiling, inspecting, explaining.

use crate::error::Failure;
use crate::model::{check_threads, find, preset, target};
use crate::wait::working;
use kernmill::compiler::compile_plan;
use kernmill::compiler::{SourceModel, SpecSource};
use kernmill::locate::{Located, SourceFiles};
use kernmill::observe::Silent;
use kernmill::{CompileOptions, Error, Options};
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::pipeline;
use kernmill_compiler::passes::quant::Preset;
use kernmill_os::output::NewFile;
use kernmill_serve::read_session as read;
use kernmill_tools::explain::{ExplainOptions, Explained, Subject};
use kernmill_tools::listing;
use kernmill_tools::targets::Targets;
use kernmill_tools::tensors::TensorList;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Compiles a model into a plan at `output`.
#[pyfunction]
#[pyo3(signature = (model, output, *, spec, preset_name, targets, threads, chunk))]
#[allow(clippy::too_many_arguments)]
pub fn compile(
    py: Python<'_>,
    model: Option<PathBuf>,
    output: PathBuf,
    spec: Option<PathBuf>,
    preset_name: String,
    targets: Vec<String>,
    threads: Option<usize>,
    chunk: Option<u32>,
) -> PyResult<()> {
    working(py, move || {
        check_threads(threads)?;
        let preset = preset(&preset_name)?;
        let asked: Vec<Targets> = targets.iter().map(|name| targets_of(name)).collect::<Result<_, _>>()?;
        let levels = Targets::levels(&asked, preset, &Silent)?;
        let files = match find(model.as_deref(), spec.as_deref())? {
            Located::Source(files) => files,
            Located::Plan(path) => return Err(is_plan(&path)),
        };
        files.need_weights()?;
        let mut options = Options::default().with(|it| {
            it.threads = threads;
            it.chunk = chunk;
        });
        options.compile.producer = concat!("kernmill ", env!("CARGO_PKG_VERSION"), ", Python");
        options.compile.preset = preset;
        // A problem of the place is found before the work.
        NewFile::check(&output).map_err(|error| Error::input(&output, error))?;
        let source = SourceModel::open(&files, options.compile.fused.clone())?;
        let file = NewFile::create_file(&output).map_err(|error| Error::input(&output, error))?;
        Ok(compile_plan(&source, &levels, &options, file)?)
    })
}

fn targets_of(name: &str) -> Result<Targets, Failure> {
    if name == "all" {
        return Ok(Targets::All);
    }
    Ok(match target(name)? {
        kernmill::Target::Native => Targets::Native,
        kernmill::Target::Level(level) => Targets::Level(level),
    })
}

fn is_plan(path: &Path) -> Failure {
    let what =
        "it is a plan, which is compiled already; expected a checkpoint's directory, a GGUF file or a spec";
    Error::input(path, what).into()
}

/// The contents of a plan, or a model's tensors under a preset, as JSON.
#[pyfunction]
pub fn inspect(
    py: Python<'_>,
    model: Option<PathBuf>,
    preset_name: String,
    threads: Option<usize>,
) -> PyResult<String> {
    working(py, move || {
        check_threads(threads)?;
        let preset = preset(&preset_name)?;
        let json = match find(model.as_deref(), None)? {
            Located::Plan(path) => {
                let plan = kernmill_runtime::Plan::open(&path).map_err(Error::from)?;
                listing::plan_json(&plan)?
            }
            Located::Source(files) => {
                let threads = Options::default().with(|it| it.threads = threads).threads();
                TensorList::of(&files, preset, threads, &Silent)?.json()
            }
        };
        Ok(json.to_string())
    })
}

/// The kernels that a model compiles to, and the reasons, as JSON.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    model: Option<PathBuf>,
    preset_name: String,
    target_name: String,
    context: Option<u32>,
    chunk: Option<u32>,
) -> PyResult<String> {
    working(py, move || {
        let (asked, target) = (preset(&preset_name)?, target(&target_name)?);
        let options = CompileOptions::default().with(|it| it.preset = asked);
        let level = |preset: Preset| target.level(preset, &Silent);
        let subject = match find(model.as_deref(), None)? {
            Located::Plan(path) => Subject::of_plan(&path, &options, &level)?,
            Located::Source(files) => Subject::of_source(&files, &options, chunk, &level, false)?,
        };
        let Subject { graph, options, assumed, .. } = subject;
        let Some(options) = options else { return Err(Failure::Defect("nothing to explain".to_owned())) };
        let compiled = pipeline::compile(&graph, &options).map_err(Error::from)?;
        let explained = Explained::new(&graph, &compiled,
            ExplainOptions { context, assumed, ..ExplainOptions::default() })?;
        Ok(explained.json().to_string())
    })
}

/// The spec of a published checkpoint's directory or of a GGUF file, as TOML.
#[pyfunction]
pub fn import_spec(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let files = SourceFiles { weights: Some(path), ..SourceFiles::default() };
    working(py, move || Ok(SpecSource::of(&files, FusedSet::builtin())?.text))
}

/// Tokens and note of a saved session.
#[pyfunction]
pub fn read_session(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<u32>, String)> {
    working(py, move || Ok(read(&path)?))
}
