//! Models that are compiled here: a spec and a checkpoint, or the embedded model.

use super::nano;
use crate::error::{Error, Result};
use crate::hub;
use crate::locate::SourceFiles;
use crate::makes::ModelMakes;
use crate::nano::SPEC;
use crate::observe::{Observer, Unit};
use crate::options::Options;
use kernmill_checkpoint::gguf::{Gguf, is_gguf};
use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_checkpoint::{Checkpoint, CheckpointError, SPEC_FILE};
use kernmill_compiler::front::import;
use kernmill_compiler::front::spec::{self, Spec};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::output::region::BuildError;
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::weights::WeightSource;
use kernmill_compiler::weights::{CheckpointWeights, converted, grown};
use kernmill_os::files::{read_named_text, read_regular_text};
use kernmill_os::output::directory;
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::limit;
use kernmill_plan::vectors::{Pooling, VectorForm};
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{Tokenizer, TokenizerHandle};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model spec in TOML, with the fused-op specs that it is compiled with.
pub struct SpecSource {
    /// The name of the spec's file, as error messages show it.
    pub name: String,
    /// The text of the spec.
    pub text: String,
    /// Fused-op specs: which nodes of the graph become one kernel, and ops and functions that the spec may
    /// use.
    pub fused: FusedSet,
}

impl SpecSource {
    /// The spec of a model: the spec file that is given, else the spec that its weights describe (a
    /// `config.json` or a GGUF file's metadata), else the embedded model's.
    ///
    /// # Errors
    /// When a file cannot be read, or describes a model that is not supported.
    pub fn of(given: &SourceFiles, fused: FusedSet) -> Result<SpecSource> {
        let source = match (&given.spec, &given.weights) {
            (Some(spec), _) => SpecSource::read(spec, fused),
            (None, Some(weights)) => SpecSource::import(weights, fused),
            (None, None) => Ok(SpecSource::embedded(fused)),
        };
        source?.making(given)
    }

    /// The spec with the output that is asked for, or that the files of its weights are for.
    fn making(self, given: &SourceFiles) -> Result<SpecSource> {
        let spec = || Spec::parse_with(&self.name, &self.text, &self.fused.language());
        let files = given.weights.as_deref().map(TokenizerFiles::of).transpose()?;
        let stated = || files.as_ref().map_or(Ok(None), TokenizerFiles::vector_form);
        let own = spec()?.makes_vectors();
        let form = match given.makes {
            ModelMakes::Texts => None,
            ModelMakes::AsFiles if given.spec.is_some() => None,
            ModelMakes::Vectors(None) if own && given.spec.is_some() => None,
            ModelMakes::Vectors(None) if own => stated()?,
            ModelMakes::AsFiles => stated()?,
            ModelMakes::Vectors(asked) => {
                let form = VectorForm { pooling: Pooling::Last, normalise: true };
                let form = stated()?.unwrap_or(form);
                Some(VectorForm { pooling: asked.unwrap_or(form.pooling), ..form })
            }
        };
        match form {
            Some(form) => Ok(SpecSource { text: spec()?.with_vectors(form)?, ..self }),
            None => Ok(self),
        }
    }

    fn embedded(fused: FusedSet) -> SpecSource {
        SpecSource { name: nano::NAME.to_owned(), text: SPEC.to_owned(), fused }
    }

    /// Reads the spec file at `path`. Its text is checked later, by [`SpecSource::graph`].
    ///
    /// # Errors
    /// When the file cannot be read, is no text, or is larger than 4 MiB.
    pub(crate) fn read(path: &Path, fused: FusedSet) -> Result<SpecSource> {
        // One of this name was found in a directory, where nothing must be waited for.
        let is_found = path.file_name() == Some(OsStr::new(SPEC_FILE));
        let read = if is_found { read_regular_text } else { read_named_text };
        let text = read(path, limit::SPEC_BYTES).map_err(Error::read(path))?;
        Ok(SpecSource { name: path.display().to_string(), text, fused })
    }

    /// Writes a spec from the `config.json` in the directory `path`, or from the GGUF file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or describes a model that is not supported.
    pub(crate) fn import(path: &Path, fused: FusedSet) -> Result<SpecSource> {
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
        let own = |dir: PathBuf| Some(dir.file_name()?.to_string_lossy().into_owned());
        // In a cache of a hub, the directory has the name of a revision.
        let name = dir.canonicalize().ok().and_then(|dir| hub::of_snapshot(&dir).or_else(|| own(dir)));
        let name = name.as_deref().unwrap_or("model");
        let text = match checkpoint {
            Some(checkpoint) => import::from_checkpoint(name, config, checkpoint),
            None => import::from_config(name, config),
        };
        let text = text.map_err(|error| Error::bad_input(format!("{}: {error}", dir.display())))?;
        Ok(SpecSource { name: dir.join("config.json").display().to_string(), text, fused })
    }

    /// The graph of operations that the spec describes.
    ///
    /// # Errors
    /// When the spec is wrong. The error names line and column, and what was expected there.
    pub fn graph(&self) -> Result<Graph> {
        Ok(spec::lower(&Spec::parse_with(&self.name, &self.text, &self.fused.language())?)?)
    }
}

/// A model that is compiled in this process. Its files have been opened and their headers checked.
pub struct SourceModel {
    /// The model's spec.
    pub source: SpecSource,
    /// The graph of operations that the spec describes.
    pub graph: Graph,
    /// The model's weights, mapped from their files.
    pub checkpoint: Checkpoint,
    /// The files of the model's tokenizer. They are read when somebody asks for the tokenizer.
    pub texts: TokenizerFiles,
    /// The chat templates of the model's files, and the tokens that they write by name.
    pub chat_templates: ChatTemplates,
    /// Whether this is the embedded nano model.
    pub embedded: bool,
}

impl SourceModel {
    /// Reads the spec and the headers of the checkpoint, and checks that they fit each other. Without spec
    /// and weights, the model is the embedded one.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong, a tensor is missing or has another shape, or too little memory
    /// is left to compile.
    pub fn open(given: &SourceFiles, fused: FusedSet) -> Result<SourceModel> {
        super::memory::check_compiler_memory()?;
        let (source, checkpoint, texts) = match (given.spec.as_deref(), given.weights.as_deref()) {
            (spec, Some(weights)) => {
                // The spec's own faults come before those of the weights.
                let given = spec.map(|path| SpecSource::read(path, fused.clone())).transpose()?;
                given.as_ref().map(SpecSource::graph).transpose()?;
                if is_gguf(weights) {
                    let gguf = Gguf::open(weights)?;
                    let source = given.map_or_else(|| SpecSource::import_gguf(&gguf, fused), Ok)?;
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
        let source = source.making(given)?;
        let graph = source.graph()?;
        CheckpointWeights::new(&graph, &checkpoint)?;
        let embedded = given.weights.is_none();
        let chat_templates = texts.chat_templates();
        Ok(SourceModel { source, graph, checkpoint, texts, chat_templates, embedded })
    }

    /// The contents of the model's `tokenizer.json`, checked; `None` if the model has no tokenizer. A GGUF
    /// file's vocabulary is turned into such a text.
    ///
    /// # Errors
    /// When the tokenizer cannot be read, is wrong, or is of a kind that is not supported.
    pub fn tokenizer_json(&self) -> Result<Option<Vec<u8>>> {
        let json = self.texts.read()?;
        if let Some(json) = &json {
            Tokenizer::from_json(json, self.graph.vocab as u32)?;
        }
        Ok(json)
    }

    /// A handle to the model's tokenizer, which a new thread begins to read now; `None` if the model has
    /// none.
    pub(crate) fn tokenizer(&self) -> Option<TokenizerHandle> {
        let (texts, vocab) = (self.texts.clone(), self.graph.vocab as u32);
        let read = move || match texts.read() {
            Ok(Some(json)) => Tokenizer::from_json(&json, vocab),
            Ok(None) => Err(TokenizerError::gone()),
            Err(error) => Err(TokenizerError::unreadable(&error)),
        };
        self.texts.exist().then(|| TokenizerHandle::start(read))
    }

    /// Ids of the tokens that end a text of this model, from `generation_config.json`, `config.json`, the
    /// tokenizer or GGUF metadata.
    ///
    /// # Errors
    /// When a file that names them cannot be read or is wrong.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        Ok(self.texts.end_tokens(self.graph.vocab)?)
    }

    /// The weight format of each matrix, which preset `fast` chooses by the weights; `None` for other
    /// presets. It reads all candidates, which takes seconds for billions of weights.
    ///
    /// # Errors
    /// When weights cannot be read, or are no finite numbers.
    pub(crate) fn choices(
        &self,
        preset: Preset,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Option<FormatChoices>> {
        let weights = CheckpointWeights::new(&self.graph, &self.checkpoint)?;
        choices(&self.graph, &weights, preset, threads, observer)
    }

    /// Tells the user if quantised matrices of the checkpoint are rounded anew, and if `packed` bytes of
    /// weights are well above what the files have.
    pub(super) fn note_conversion(&self, packed: u64, options: &Options) {
        let preset = options.compile.preset.name();
        let mut notes = converted(&self.checkpoint, preset);
        notes.extend(grown(&self.graph, self.checkpoint.bytes(), preset, packed));
        notes.iter().for_each(|note| options.observer.note(note));
    }
}

/// The weight format of each matrix of `graph`, which preset `fast` chooses by `weights`; `None` for other
/// presets. The work is shared by `threads` threads.
///
/// # Errors
/// When weights cannot be read, or are no finite numbers.
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
