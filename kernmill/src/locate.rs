//! Which model a path names, told by what is in the files: a plan, a checkpoint, a GGUF file, a spec.

use crate::compiler::instead_of_config;
use crate::error::{Error, Result};
use crate::hub;
use crate::makes::ModelMakes;
use kernmill_checkpoint::file_kind::FileKind;
use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_checkpoint::{Checkpoint, INDEX_FILE, SINGLE_FILE, SPEC_FILE};
use kernmill_os::files::lead_to_same_file;
use kernmill_os::output::directory;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Name of the file that describes a published checkpoint.
pub(crate) const CONFIG_FILE: &str = "config.json";

/// The files of a model that was found.
#[derive(Debug)]
pub enum Located {
    /// The path of a plan.
    Plan(PathBuf),
    /// The files of a model that is compiled in this process.
    Source(SourceFiles),
}

/// The files of a model that is compiled in this process. Without spec and weights, they stand for the
/// embedded nano model.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles {
    /// A spec file. Without it, the weights say what the model is.
    pub spec: Option<PathBuf>,
    /// A directory with a checkpoint, or a GGUF file.
    pub weights: Option<PathBuf>,
    /// Whether the model is to make texts or vectors.
    pub makes: ModelMakes,
}

impl Located {
    /// Refuses a place for an output where one of the model's own files is, which it would replace.
    ///
    /// # Errors
    /// When it is such a place.
    pub fn check_apart(&self, output: &Path) -> Result<()> {
        match self {
            Located::Plan(plan) => apart(std::slice::from_ref(plan), output),
            Located::Source(files) => files.check_apart(output),
        }
    }
}

impl SourceFiles {
    /// Refuses a place for an output where one of the model's own files is, which it would replace.
    ///
    /// # Errors
    /// When it is such a place.
    pub(crate) fn check_apart(&self, output: &Path) -> Result<()> {
        // Most outputs are new, and no file has to be opened for them.
        if !output.exists() {
            return Ok(());
        }
        let mut files: Vec<PathBuf> = self.spec.iter().chain(&self.weights).cloned().collect();
        if let Some(weights) = &self.weights {
            let dir = if weights.is_dir() { weights } else { directory(weights) };
            files.extend([CONFIG_FILE, INDEX_FILE].map(|name| dir.join(name)));
            // Files that are wrong are the model's all the same; the command says what is wrong in them.
            if let Ok(checkpoint) = Checkpoint::open(weights) {
                files.extend(checkpoint.files().map(Path::to_owned));
            } else {
                files.push(dir.join(SINGLE_FILE));
            }
            files.extend(TokenizerFiles::of(weights).iter().flat_map(TokenizerFiles::files));
        }
        apart(&files, output)
    }
}

fn apart(files: &[PathBuf], output: &Path) -> Result<()> {
    match files.iter().any(|file| lead_to_same_file(file, output)) {
        true => Err(Error::input(output, "it is a file of the model: give the output another name")),
        false => Ok(()),
    }
}

/// The embedded nano model.
pub fn nano() -> Located {
    Located::Source(SourceFiles::default())
}

/// Finds the model that `path` names. The content of the files decides, not their names.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// use kernmill::locate::{Located, locate};
/// # let dir = tempfile::tempdir().unwrap();
/// # let nano = std::path::Path::new("../model-specs/nano");
/// # std::fs::copy(nano.join("nano.toml"), dir.path().join("kernmill.toml")).unwrap();
/// # std::fs::copy(nano.join("model.safetensors"), dir.path().join("model.safetensors")).unwrap();
/// // A directory with a checkpoint. A plan, a GGUF file or a spec will do as well.
/// let located = locate(dir.path())?;
/// assert!(matches!(located, Located::Source(files) if files.weights.is_some()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When there is nothing at `path`, or nothing that a model can be.
pub fn locate(path: &Path) -> Result<Located> {
    match look(path)? {
        Content::File(FileKind::Plan) => Ok(Located::Plan(path.to_owned())),
        content if !cfg!(feature = "compiler") => Err(no_plan(path, &content)),
        Content::File(FileKind::Text) => Ok(Located::Source(of_spec(path, None)?)),
        content => Ok(Located::Source(of_checkpoint(path, content, None)?)),
    }
}

/// The error for a model at `path` that is no plan, in a kernmill without the compiler. `content` is what
/// lies at `path`.
fn no_plan(path: &Path, content: &Content) -> Error {
    let is = match content {
        Content::Directory => "it is a directory",
        Content::Stream => "it is a pipe or a device",
        Content::File(kind) => kind.describe(),
    };
    Error::input(path, format!("{is}, expected a plan: this kernmill has no compiler"))
}

/// The model whose spec and weights were named by two paths. Without both, it is the embedded model.
///
/// # Errors
/// When a path names nothing, or no spec or no weights.
pub fn of_parts(spec: Option<&Path>, weights: Option<&Path>) -> Result<SourceFiles> {
    let spec = spec.map(spec_file).transpose()?;
    match (weights, spec) {
        (Some(weights), Some(spec)) => Ok(SourceFiles {
            spec: Some(spec),
            weights: Some(checkpoint(weights)?),
            ..SourceFiles::default()
        }),
        (Some(weights), None) => {
            let weights = checkpoint(weights)?;
            Ok(SourceFiles { spec: own_spec(&weights)?, weights: Some(weights), ..SourceFiles::default() })
        }
        (None, spec) => with_spec(spec, None),
    }
}

/// The model of the spec file at `spec`, with the checkpoint at `weights`.
///
/// # Errors
/// When there is nothing at `weights`, or no checkpoint.
pub(crate) fn of_spec(spec: &Path, weights: Option<&Path>) -> Result<SourceFiles> {
    with_spec(Some(spec.to_owned()), weights.map(checkpoint).transpose()?)
}

/// The model of the checkpoint at `path`, where [`look`] has found `content`. The spec is the file at `spec`,
/// or the checkpoint's own.
///
/// # Errors
/// When there is no checkpoint, or nothing says what model it is and no spec is given.
pub fn of_checkpoint(path: &Path, content: Content, spec: Option<&Path>) -> Result<SourceFiles> {
    let weights = checkpoint_in(path, content)?;
    let spec = match spec {
        Some(spec) => Some(spec_file(spec)?),
        None => own_spec(&weights)?,
    };
    Ok(SourceFiles { spec, weights: Some(weights), ..SourceFiles::default() })
}

/// A spec that lies in a checkpoint's directory belongs to that checkpoint.
fn with_spec(spec: Option<PathBuf>, weights: Option<PathBuf>) -> Result<SourceFiles> {
    let beside =
        spec.as_deref().filter(|spec| spec.file_name() == Some(OsStr::new(SPEC_FILE))).map(directory);
    let weights = weights.or_else(|| beside.filter(|dir| has_weights(dir)).map(Path::to_owned));
    Ok(SourceFiles { spec, weights, ..SourceFiles::default() })
}

fn has_weights(dir: &Path) -> bool {
    [SINGLE_FILE, INDEX_FILE].iter().any(|file| dir.join(file).exists())
}

/// The kind of file at a path, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A directory.
    Directory,
    /// A pipe or a device.
    Stream,
    /// A regular file of this kind.
    File(FileKind),
}

/// Looks at what lies at `path`. Of a file, the first bytes are read.
///
/// # Errors
/// When there is nothing at `path`, or it cannot be read.
pub fn look(path: &Path) -> Result<Content> {
    if path.is_dir() {
        return Ok(Content::Directory);
    }
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(Content::Stream);
    }
    match FileKind::of_file(path) {
        Ok(kind) => Ok(Content::File(kind)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_there(path, &error)),
        Err(error) => Err(Error::read(path)(error)),
    }
}

/// A path that is not there may be the name of a published model, or a text for a model that nobody named.
fn not_there(path: &Path, error: &std::io::Error) -> Error {
    let is_text = path.to_str().is_some_and(|text| text.contains(' ') && !text.contains('/'));
    let of_text =
        "If it is a text, it comes behind MODEL; `kernmill chat` alone talks with the embedded model";
    match hub::instead_of_path(path).or_else(|| is_text.then(|| of_text.to_owned())) {
        Some(instead) => Error::input(path, format!("{error}. {instead}")),
        None => Error::input(path, error),
    }
}

/// The checkpoint that `--weights` names.
fn checkpoint(path: &Path) -> Result<PathBuf> {
    match look(path)? {
        Content::File(FileKind::Plan) => Err(Error::input(
            path,
            "it is a plan, whose weights are packed: give it as MODEL, without --weights",
        )),
        Content::File(FileKind::Text) => {
            Err(Error::input(path, "it is text, expected a checkpoint: a directory or a GGUF file"))
        }
        content => checkpoint_in(path, content),
    }
}

/// The checkpoint that a directory or file is, or belongs to.
fn checkpoint_in(path: &Path, content: Content) -> Result<PathBuf> {
    match content {
        Content::Directory | Content::File(FileKind::Gguf) => Ok(path.to_owned()),
        // A file of another name may be one of several whole models in its directory.
        Content::File(FileKind::Safetensors) if path.file_name() != Some(OsStr::new(SINGLE_FILE)) => {
            Ok(path.to_owned())
        }
        Content::File(FileKind::Safetensors) => Ok(directory(path).to_owned()),
        Content::File(FileKind::Json)
            if [CONFIG_FILE, INDEX_FILE].map(OsStr::new).contains(&path.file_name().unwrap_or_default()) =>
        {
            Ok(directory(path).to_owned())
        }
        Content::Stream => {
            Err(Error::input(path, "it is a pipe or a device, expected a file or a directory"))
        }
        // Its name is enough to say what is wrong in it.
        Content::File(_) if path.extension() == Some(OsStr::new("gguf")) => Ok(path.to_owned()),
        Content::File(kind) => Err(Error::input(
            path,
            format!(
                "{}; expected a plan, a checkpoint's directory, a GGUF file or a spec (TOML)",
                kind.describe()
            ),
        )),
    }
}

/// The spec that a checkpoint brings beside its weights, if it does not say by `config.json` or as GGUF file
/// what it is.
fn own_spec(weights: &Path) -> Result<Option<PathBuf>> {
    if !weights.is_dir() {
        return Ok(None);
    }
    let spec = weights.join(SPEC_FILE);
    if spec.exists() {
        return Ok(Some(spec));
    }
    if weights.join(CONFIG_FILE).exists() {
        return Ok(None);
    }
    let plans_and_gguf = std::fs::read_dir(weights).map_err(Error::read(weights))?;
    let mut files: Vec<PathBuf> = plans_and_gguf
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "gguf" || end == "plan"))
        .collect();
    files.sort();
    let help = match (files.first(), instead_of_config(weights)) {
        (Some(file), _) => format!("; or give a file in it, such as {}", file.display()),
        (None, Some(instead)) => format!("; {instead}"),
        (None, None) => String::new(),
    };
    Err(Error::input(
        weights,
        format!(
            "no {CONFIG_FILE} in this directory, expected a checkpoint: {CONFIG_FILE}, model.safetensors and \
                 tokenizer.json; without {CONFIG_FILE}, give the model's spec with --spec{help}"
        ),
    ))
}

/// The file that `--spec` names.
fn spec_file(path: &Path) -> Result<PathBuf> {
    match look(path)? {
        Content::Stream | Content::File(FileKind::Text | FileKind::Empty) => Ok(path.to_owned()),
        Content::Directory if path.join(SPEC_FILE).exists() => Ok(path.join(SPEC_FILE)),
        Content::Directory => Err(Error::input(path, "it is a directory, expected a model spec (TOML)")),
        Content::File(kind) => {
            Err(Error::input(path, format!("{}; expected a model spec (TOML)", kind.describe())))
        }
    }
}

impl SourceFiles {
    /// Checks that there are weights, or that the model is the embedded one.
    ///
    /// # Errors
    /// When there is a spec but no weights.
    pub fn need_weights(&self) -> Result<()> {
        match (&self.spec, &self.weights) {
            (Some(spec), None) => Err(Error::bad_input(format!(
                "--weights is missing: {spec} is a spec, which has no weights; give a checkpoint of it with \
                 --weights, or have random weights made with `kernmill synth {spec} -o DIR`",
                spec = spec.display()
            ))),
            _ => Ok(()),
        }
    }
}
