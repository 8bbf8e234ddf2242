//! Models that are compiled here: a spec and a checkpoint, or the embedded model.

use crate::error::{Error, Result};
use crate::locate::{SPEC_FILE, SourceFiles};
use crate::nano;
use crate::observe::{Observer, Unit};
use kernmill_checkpoint::gguf::{Gguf, is_gguf};
use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_checkpoint::{Checkpoint, CheckpointError};
use kernmill_compiler::fuse::{FusedSet, FusedSpec};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::import;
use kernmill_compiler::pack::WeightSource;
use kernmill_compiler::pack::region::BuildError;
use kernmill_compiler::quant::Preset;
use kernmill_compiler::quant::choose::FormatChoices;
use kernmill_compiler::spec::{self, Spec};
use kernmill_compiler::weights::Weights;
use kernmill_os::files::{read_named_text, read_regular_text};
use kernmill_os::output::directory;
use kernmill_plan::limit;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{Tokenizer, TokenizerHandle};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A spec's text, the name that messages call it by, and what is fused.
pub struct SpecSource {
    /// File name.
    pub name: String,
    /// TOML.
    pub text: String,
    /// Fused-op specs.
    pub fused: FusedSet,
}

impl SpecSource {
    /// The spec of a model: its file, or what its weights say, or the embedded model's.
    pub fn of(given: &SourceFiles, fused: FusedSet) -> Result<SpecSource> {
        match (&given.spec, &given.weights) {
            (Some(spec), _) => SpecSource::read(spec, fused),
            (None, Some(weights)) => SpecSource::import(weights, fused),
            (None, None) => Ok(SpecSource::embedded(fused)),
        }
    }

    fn embedded(fused: FusedSet) -> SpecSource {
        SpecSource { name: nano::NAME.to_owned(), text: nano::SPEC.to_owned(), fused }
    }

    /// Reads a spec file.
    pub fn read(path: &Path, fused: FusedSet) -> Result<SpecSource> {
        // One of this name was found in a directory, where nothing must be waited for.
        let is_found = path.file_name() == Some(OsStr::new(SPEC_FILE));
        let read = if is_found { read_regular_text } else { read_named_text };
        let text = read(path, limit::SPEC_BYTES).map_err(Error::read(path))?;
        Ok(SpecSource { name: path.display().to_string(), text, fused })
    }

    /// Writes a spec from the `config.json` in a directory, or from a GGUF file.
    pub fn import(path: &Path, fused: FusedSet) -> Result<SpecSource> {
        if is_gguf(path) {
            return SpecSource::import_gguf(&Gguf::open(path)?, fused);
        }
        let config = import::read_config(path)?;
        match Checkpoint::open(path) {
            Ok(checkpoint) => SpecSource::import_config(path, &config, Some(&checkpoint), fused),
            // The config alone will do: it says of what type the tensors are.
            Err(CheckpointError::NoCheckpoint { .. }) => {
                SpecSource::import_config(path, &config, None, fused)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn import_gguf(gguf: &Gguf, fused: FusedSet) -> Result<SpecSource> {
        let name = gguf.path().file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
        let text = import::from_gguf(&name, gguf)?;
        Ok(SpecSource { name: gguf.path().display().to_string(), text, fused })
    }

    /// Writes a spec from `config`, the text of the config.json of the checkpoint at `path`.
    fn import_config(
        path: &Path,
        config: &str,
        checkpoint: Option<&Checkpoint>,
        fused: FusedSet,
    ) -> Result<SpecSource> {
        let dir = if path.is_dir() { path } else { directory(path) };
        let name =
            dir.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
        let name = name.as_deref().unwrap_or("model");
        let text = match checkpoint {
            Some(checkpoint) => import::from_checkpoint(name, config, checkpoint),
            None => import::from_config(name, config),
        };
        let text = text.map_err(|error| Error::BadInput(format!("{}: {error}", dir.display())))?;
        Ok(SpecSource { name: dir.join("config.json").display().to_string(), text, fused })
    }

    /// The graph that it describes.
    pub fn graph(&self) -> Result<Graph> {
        Ok(spec::lower(&Spec::parse_with(&self.name, &self.text, &self.fused.language())?)?)
    }
}

/// A model that is compiled here, whose files have been checked.
pub struct SourceModel {
    /// Its spec.
    pub source: SpecSource,
    /// What it computes.
    pub graph: Graph,
    /// Its weights.
    pub checkpoint: Checkpoint,
    /// Where its tokenizer is, which is read when it is asked for.
    pub texts: TokenizerFiles,
    /// Its chat template, if it has one.
    pub chat_template: Option<String>,
    /// Whether it is the embedded one.
    pub embedded: bool,
}

impl SourceModel {
    /// Reads spec and checkpoint headers; without spec and weights, those of the embedded model.
    pub fn open(given: &SourceFiles, fused: FusedSet) -> Result<SourceModel> {
        crate::memory::check_compiler_memory()?;
        let mut chat_template = None;
        let (source, checkpoint, texts) = match (given.spec.as_deref(), given.weights.as_deref()) {
            (spec, Some(weights)) => {
                // The spec's own faults come before those of the weights.
                let given = spec.map(|path| SpecSource::read(path, fused.clone())).transpose()?;
                given.as_ref().map(SpecSource::graph).transpose()?;
                if is_gguf(weights) {
                    let gguf = Gguf::open(weights)?;
                    let source = given.map_or_else(|| SpecSource::import_gguf(&gguf, fused), Ok)?;
                    chat_template = gguf.chat_template()?.map(str::to_owned);
                    let texts = TokenizerFiles::Gguf(Arc::new(gguf.clone()));
                    (source, gguf.into_checkpoint()?, texts)
                } else {
                    let (source, checkpoint) = match given {
                        Some(source) => (source, Checkpoint::open(weights)?),
                        None => {
                            let config = import::read_config(weights)?;
                            let checkpoint = Checkpoint::open(weights)?;
                            (
                                SpecSource::import_config(weights, &config, Some(&checkpoint), fused)?,
                                checkpoint,
                            )
                        }
                    };
                    source.graph()?;
                    (source, checkpoint, TokenizerFiles::of(weights)?)
                }
            }
            _ => {
                given.need_weights()?;
                let source = SpecSource::embedded(fused);
                let checkpoint = Checkpoint::from_static(nano::NAME, nano::WEIGHTS)?;
                (source, checkpoint, TokenizerFiles::Embedded(nano::TOKENIZER))
            }
        };
        let graph = source.graph()?;
        Weights::new(&graph, &checkpoint)?;
        let embedded = given.weights.is_none();
        Ok(SourceModel { source, graph, checkpoint, texts, chat_template, embedded })
    }

    /// The contents of its `tokenizer.json`, if it has one; checked.
    pub fn tokenizer_json(&self) -> Result<Option<Vec<u8>>> {
        let json = self.texts.read()?;
        if let Some(json) = &json {
            Tokenizer::from_json(json, self.graph.vocab as u32)?;
        }
        Ok(json)
    }

    /// Its tokenizer, if it has one, which a thread of its own begins to read now.
    pub fn tokenizer(&self) -> Option<TokenizerHandle> {
        let (texts, vocab) = (self.texts.clone(), self.graph.vocab as u32);
        let read = move || match texts.read() {
            Ok(Some(json)) => Tokenizer::from_json(&json, vocab),
            Ok(None) => Err(TokenizerError::Read { message: "the tokenizer is gone".to_owned() }),
            Err(error) => Err(TokenizerError::Read { message: error.to_string() }),
        };
        self.texts.exist().then(|| TokenizerHandle::start(read))
    }

    /// Tokens by which its texts end.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        Ok(self.texts.end_tokens(self.graph.vocab)?)
    }

    /// What preset `fast` makes of the weights; nothing for the other presets.
    pub fn choices(
        &self,
        preset: Preset,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Option<FormatChoices>> {
        let weights = Weights::new(&self.graph, &self.checkpoint)?;
        choices(&self.graph, &weights, preset, threads, observer)
    }
}

/// What preset `fast` makes of weights; nothing for the other presets.
pub fn choices<S: WeightSource<Error = CheckpointError>>(
    graph: &Graph,
    weights: &S,
    preset: Preset,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Option<FormatChoices>> {
    if preset != Preset::Fast {
        return Ok(None);
    }
    let all = FormatChoices::assumed(graph).elements(graph);
    let progress = observer.begin("choosing formats", Unit::Count, all);
    let choices = FormatChoices::measured(graph, weights, threads, &|elements| progress.advance(elements));
    drop(progress);
    Ok(Some(choices.map_err(BuildError::Pack)?))
}

/// Reads fused-op specs: files, or directories of .toml files.
///
/// # Errors
/// When one cannot be read or is wrong, or a directory has none.
pub fn read_fused(paths: &[PathBuf]) -> Result<Vec<FusedSpec>> {
    let mut specs = Vec::new();
    for path in paths {
        // What is found in a directory must not be waited for.
        let read = if path.is_dir() { read_regular_text } else { read_named_text };
        for file in toml_files(path)? {
            let text = read(&file, limit::SPEC_BYTES).map_err(Error::read(&file))?;
            specs.push(FusedSpec::parse(&file.display().to_string(), &text)?);
        }
    }
    Ok(specs)
}

/// A file itself, or the .toml files of a directory by name.
fn toml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(Error::read(path))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(Error::read(path))?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::input(path, "no .toml files in it, expected fused-op specs"));
    }
    Ok(files)
}
