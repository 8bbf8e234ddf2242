//! The models of a server, from opened files to backends: one budget of memory, and steps in turns.

use crate::compiler::compile_as_usual;
use kernmill::locate::Located;
use kernmill::{Error, Opened, Options, Result, load_together};
use kernmill_serve::{SchedulerConfig, StepTurns};
use kernmill_server::{Backend, EngineBackend, ServerConfig};
use std::sync::Arc;
use std::time::Duration;

/// A model that is to be served.
pub struct ServedModel {
    /// Name of the model in the API; `None` takes its own.
    pub name: Option<String>,
    /// The model.
    pub opened: Opened,
    /// How it is run.
    pub options: Options,
    /// Tokens of its texts.
    pub context: u32,
}

impl ServedModel {
    /// A model that is served beside this one. Its texts have `longest` tokens, as far as it can.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong.
    pub fn beside(&self, name: String, located: Located, longest: usize) -> Result<ServedModel> {
        let options = self.options.clone().with(|it| {
            let usual = Options::default();
            compile_as_usual(&mut it.compile);
            (it.makes, it.chunk, it.sessions, it.stage) = (usual.makes, usual.chunk, false, None);
            (it.perf_map, it.perf_jit, it.kv_memory, it.kv_disk) = (false, None, None, None);
            (it.chat_template, it.adapters) = (None, Vec::new());
        });
        let opened = Opened::open(located, &options)?;
        let context = opened.context(None, longest)?;
        Ok(ServedModel { name: Some(name), opened, options, context })
    }
}

/// Loads the models of a server, the first one first, with its adapters, for `parallel` texts of each at once
/// and waits of at most `longest_wait`. Nothing is loaded before all names and the memory of all have been
/// checked. A note says what conversations with a model need.
///
/// # Errors
/// When two models have one name, memory is short, or a model cannot be compiled or loaded.
pub fn backends(
    models: Vec<ServedModel>,
    config: &ServerConfig,
    parallel: u32,
    longest_wait: Duration,
) -> Result<Vec<Arc<dyn Backend>>> {
    let (mut names, mut ends, mut options, mut prepared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for mut model in models {
        model.opened.tokenizer();
        ends.push(model.opened.end_tokens()?);
        let made = model.opened.prepare(&model.options)?;
        names.push(model.name.unwrap_or_else(|| made.program().model.name.clone()));
        prepared.push((made, model.context));
        options.push(model.options);
    }
    let adapters = options.iter().flat_map(|options| &options.adapters).map(|adapter| adapter.name.as_str());
    let own: Vec<&str> = names.iter().map(String::as_str).collect();
    config.check_names(&own, &adapters.collect::<Vec<_>>()).map_err(Error::bad_input)?;
    let named = prepared.into_iter().zip(options.iter().zip(&names));
    let named = named.map(|((made, context), (options, name))| (made, &**name, options, [context, parallel]));
    let mut loaded = load_together(named.collect())?;
    if let (Some(first), Some(options)) = (loaded.first_mut(), options.first()) {
        first.load_adapters(options)?;
    }
    let (turns, scheduling) = (StepTurns::default(), SchedulerConfig::default());
    let scheduling = scheduling.with_sequences(parallel).with_wait(longest_wait);
    let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
    for (loaded, ((name, ends), options)) in loaded.into_iter().zip(names.iter().zip(&ends).zip(&options)) {
        let backend = EngineBackend::of(loaded, name, ends, scheduling.clone(), turns.clone())?;
        let facts = backend.facts();
        let note = facts.format.note().filter(|_| facts.vectors.is_none());
        note.iter().for_each(|note| options.observer.note(note));
        backends.push(Arc::new(backend));
    }
    Ok(backends)
}
