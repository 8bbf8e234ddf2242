//! The engine as Python holds it.

use crate::ask;
use crate::error::Failure;
use crate::figures;
use crate::logits::logits;
use crate::mailbox::{Mailbox, Sender as Mail};
use crate::model::{Loading, ModelInfo, load};
use crate::request::{PyBell, Request, forked};
use crate::wait::{received, working};
use kernmill_runtime::{AdapterUse, Tenant};
use kernmill_serve::{self as serve, Class, SavedTokens, Serving, ServingThread};
use numpy::{IntoPyArray, PyArray2, ndarray::Array2};
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

/// The message where the engine's thread has ended.
const GONE: &str = "the engine has ended";

/// A loaded model, whose engine is on a separate thread.
#[pyclass(frozen, module = "kernmill._kernmill")]
pub struct Engine {
    /// The engine, which a child of a fork leaves alone: it has no threads.
    thread: ManuallyDrop<ServingThread>,
    facts: Arc<ModelInfo>,
    /// The process that the thread is in.
    process: u32,
    next: AtomicU64,
    is_closed: AtomicBool,
}

impl Engine {
    /// Checks that the engine is here and can be asked.
    fn check(&self) -> Result<(), Failure> {
        if std::process::id() != self.process {
            return Err(forked());
        }
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Failure::Input("the model has been closed".to_owned()));
        }
        Ok(())
    }

    /// Has something done between two steps, and waits for it.
    fn asked<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Serving) -> T + Send + 'static,
    ) -> PyResult<T> {
        self.check()?;
        let (done, answer) = channel();
        self.thread.give(move |serving| drop(done.send(work(serving))));
        received(py, answer, GONE)
    }

    /// Hands in a request.
    fn submitted(
        &self,
        request: serve::Request,
        reading: Option<ask::Reading>,
        bell: Option<&PyBell>,
    ) -> Request {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let bell = bell.map(|bell| (bell.0.clone(), ticket));
        let mail = Arc::new(Mailbox::new(bell, reading));
        let prompt = request.prompt.clone();
        let handed_in = self.thread.submit(request, Mail::new(mail.clone()));
        Request::new(handed_in, ticket, prompt, mail)
    }

    fn ended(&self) {
        if std::process::id() == self.process && !self.is_closed.swap(true, Ordering::Relaxed) {
            self.thread.give(Serving::cancel_all);
            self.thread.end();
        }
    }
}

/// Adapters as the runtime names them.
fn uses(adapters: Vec<(String, f32)>) -> Vec<AdapterUse> {
    adapters.into_iter().map(|(name, weight)| AdapterUse { name, weight }).collect()
}

/// A request where it stands among others: with its adapters, its class, and its claim within that.
fn placed(
    request: serve::Request,
    adapters: Vec<(String, f32)>,
    interactive: bool,
    priority: i32,
) -> serve::Request {
    let class = if interactive { Class::Interactive } else { Class::Batch };
    serve::Request { adapters: uses(adapters), class, priority, ..request }
}

#[pymethods]
impl Engine {
    #[new]
    fn new(py: Python<'_>, options: Loading) -> PyResult<Engine> {
        let (serving, facts) = working(py, move || load(options))?;
        let thread = ServingThread::start(serving, |_: &mut Serving| {}).map_err(Failure::from)?;
        Ok(Engine {
            thread: ManuallyDrop::new(thread),
            facts: Arc::new(facts),
            process: std::process::id(),
            next: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Name of the model.
    #[getter]
    fn model(&self) -> &str {
        &self.facts.name
    }

    /// Most tokens of a text with its prompt.
    #[getter]
    fn context(&self) -> u32 {
        self.facts.context
    }

    /// Number of logits.
    #[getter]
    fn vocab(&self) -> u32 {
        self.facts.vocab
    }

    /// Instruction set of the code.
    #[getter]
    fn target(&self) -> &str {
        self.facts.level
    }

    /// Bytes of the packed weights.
    #[getter]
    fn weight_bytes(&self) -> u64 {
        self.facts.weight_bytes
    }

    /// Tokens that end a text.
    #[getter]
    fn end_tokens(&self) -> Vec<u32> {
        self.facts.end_tokens.clone()
    }

    /// Notes on what the user may not have meant when the model was loaded.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.facts.notes.clone()
    }

    /// Form of conversations: harmony, template or plain.
    #[getter]
    fn chat_format(&self) -> PyResult<&str> {
        Ok(self.facts.format()?.name())
    }

    /// Token ids of a text.
    fn encode(&self, py: Python<'_>, text: &str, special: bool) -> PyResult<Vec<u32>> {
        self.check()?;
        let encoded = py.detach(|| -> Result<_, Failure> {
            let tokenizer = self.facts.tokenizer()?;
            tokenizer.encode(text, special).map_err(Failure::input)
        });
        Ok(encoded?)
    }

    /// Text of token ids.
    fn decode(&self, ids: Vec<u32>) -> PyResult<String> {
        self.check()?;
        if let Some(id) = ids.iter().find(|id| **id >= self.facts.vocab) {
            let vocab = self.facts.vocab;
            return Err(Failure::Input(format!("token {id} is past the vocabulary of {vocab}")).into());
        }
        let text = self.facts.tokenizer()?.decode(&ids);
        Ok(text.map_err(Failure::input)?)
    }

    /// Bytes of a token; `None` if it stands for no text.
    fn token_bytes(&self, id: u32) -> PyResult<Option<std::borrow::Cow<'static, [u8]>>> {
        self.check()?;
        Ok(self.facts.tokenizer()?.token_bytes(id).map(std::borrow::Cow::Owned))
    }

    /// Ids of the prompt that a conversation makes.
    fn chat_prompt(&self, py: Python<'_>, conversation: &str) -> PyResult<Vec<u32>> {
        self.check()?;
        Ok(py.detach(|| ask::prompt_of(&self.facts, conversation))?)
    }

    /// Takes up a request that continues token ids.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (prompt, params, adapters, *, interactive, priority, bell = None))]
    fn submit(
        &self,
        py: Python<'_>,
        prompt: Vec<u32>,
        params: &Bound<'_, PyAny>,
        adapters: Vec<(String, f32)>,
        interactive: bool,
        priority: i32,
        bell: Option<&Bound<'_, PyBell>>,
    ) -> PyResult<Request> {
        self.check()?;
        let (request, rule) = ask::read(params, &self.facts.end_tokens)?;
        let request = placed(request, adapters, interactive, priority);
        let request = py.detach(|| ask::request(&self.facts, prompt, request, rule))?;
        Ok(self.submitted(request, None, bell.map(Bound::get)))
    }

    /// Takes up a request that answers a conversation.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (conversation, params, adapters, *, interactive, priority, bell = None))]
    fn submit_chat(
        &self,
        py: Python<'_>,
        conversation: &str,
        params: &Bound<'_, PyAny>,
        adapters: Vec<(String, f32)>,
        interactive: bool,
        priority: i32,
        bell: Option<&Bound<'_, PyBell>>,
    ) -> PyResult<Request> {
        self.check()?;
        let (request, rule) = ask::read(params, &[])?;
        let request = placed(request, adapters, interactive, priority);
        let (request, turn) = py.detach(|| ask::answer(&self.facts, conversation, request, rule))?;
        let reading = ask::Reading::new(turn, self.facts.clone());
        Ok(self.submitted(request, Some(reading), bell.map(Bound::get)))
    }

    /// Logits after every token, or after the last.
    fn logits<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<u32>,
        last: bool,
        adapters: Vec<(String, f32)>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let (rows, uses, seen) = (if last { 1 } else { tokens.len() }, uses(adapters), is_abandoned.clone());
        let work = move |serving: &mut Serving| logits(serving.engine(), &tokens, last, &uses, &seen);
        let computed =
            self.asked(py, work).inspect_err(|_| is_abandoned.store(true, Ordering::Relaxed))??;
        let shape = (rows, self.facts.vocab as usize);
        let array = Array2::from_shape_vec(shape, computed);
        Ok(array.map_err(Failure::defect)?.into_pyarray(py))
    }

    /// Vectors of prompts, a row each.
    fn embed<'py>(
        &self,
        py: Python<'py>,
        prompts: Vec<Vec<u32>>,
        dimensions: Option<u32>,
        adapters: Vec<(String, f32)>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.check()?;
        let (count, uses) = (prompts.len(), uses(adapters));
        let computed = py.detach(|| -> serve::Result<Vec<f32>> {
            let request = |prompt| serve::Request {
                adapters: uses.clone(),
                ..serve::Request::values(prompt, serve::Wanted::Vector { dimensions })
            };
            let texts = prompts.into_iter().map(|prompt| self.thread.text(request(prompt)));
            let texts = texts.collect::<serve::Result<Vec<_>>>()?;
            let vectors = texts.into_iter().map(|text| Ok(text.whole()?.values));
            Ok(vectors.collect::<serve::Result<Vec<_>>>()?.concat())
        });
        let computed = computed.map_err(Failure::from)?;
        let array = Array2::from_shape_vec((count, computed.len() / count.max(1)), computed);
        Ok(array.map_err(Failure::defect)?.into_pyarray(py))
    }

    /// Loads an adapter; how many bytes it takes.
    fn load_adapter(&self, py: Python<'_>, name: String, path: PathBuf, scale: f32) -> PyResult<u64> {
        let loader = self.asked(py, |serving| serving.engine().adapter_store().loader())?;
        let wrong = |error: kernmill_runtime::AdapterError| Failure::from(kernmill::Error::from(error));
        let loader = loader.map_err(wrong)?;
        // Reading and packing take time, in which others run.
        let adapter = working(py, move || loader.load(&path, scale).map_err(wrong))?;
        let bytes = adapter.bytes();
        let inserted = self.asked(py, move |serving| {
            let store = serving.engine().adapter_store_mut();
            store.set_budget(u64::MAX);
            store.insert(&name, adapter)
        })?;
        inserted.map_err(wrong)?;
        Ok(bytes)
    }

    /// Forgets an adapter; whether there was one.
    fn unload_adapter(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.asked(py, move |serving| serving.engine().adapter_store_mut().remove(&name))
    }

    /// Names of the adapters that are loaded.
    fn adapters(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.asked(py, |serving| serving.engine().adapter_store().names().map(str::to_owned).collect())
    }

    /// Saves a sequence with what is cached of it; of how many tokens that is.
    fn save_session(
        &self,
        py: Python<'_>,
        path: PathBuf,
        tokens: Vec<u32>,
        adapters: Vec<(String, f32)>,
        note: String,
    ) -> PyResult<u32> {
        let saved = SavedTokens { tokens, adapters: uses(adapters), tenant: Tenant::default(), note };
        Ok(self.asked(py, move |serving| serving.save_session(&path, &saved))?.map_err(Failure::from)?)
    }

    /// Brings a saved sequence into the prefix cache; how many of its tokens are there.
    fn restore_session(&self, py: Python<'_>, path: PathBuf, adapters: Vec<(String, f32)>) -> PyResult<u32> {
        let uses = uses(adapters);
        let restored =
            self.asked(py, move |serving| serving.restore_session(&path, &uses, Tenant::default()))?;
        Ok(restored.map_err(Failure::from)?)
    }

    /// The work that waits and the work done, as JSON.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        self.asked(py, |serving| figures::json(serving).to_string())
    }

    /// Cancels every request and frees the model.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.ended());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // While the last step ends, Python's threads may run.
        if Python::try_attach(|py| py.detach(|| self.ended())).is_none() {
            self.ended();
        }
    }
}
