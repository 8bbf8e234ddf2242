//! The server with the nano model: what its clients see.

mod also;
mod attacks;
mod batch;
mod client;
mod crowd;
mod endpoint;
mod eval;
mod guards;
mod harmony;
mod killed;
mod ollama;
mod own;
mod stages;
mod templates;
mod texts;
mod vectors;

pub use client::get;

use kernmill::{Loaded, Opened, Options};
use kernmill_runtime::{Engine, TokenizerHandle};
use kernmill_serve::SchedulerConfig as Scheduling;
use kernmill_server::{Backend, BackendInfo, BackendLoad, EngineBackend, Server, ServerConfig};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Tokens of the nano model's vocabulary.
const VOCAB: u64 = 3072;

/// Nano on one thread, for texts of `context` tokens, and its end tokens.
fn nano(context: u32, sequences: u32) -> (Loaded, Vec<u32>) {
    nano_with(Options::default(), context, sequences)
}

/// Nano as [`nano`] has it, with other options than usual.
fn nano_with(options: Options, context: u32, sequences: u32) -> (Loaded, Vec<u32>) {
    let options = options.with(|it| {
        it.threads = Some(1);
        it.sessions = true;
    });
    let mut opened = Opened::open(kernmill::locate::nano(), &options).unwrap();
    opened.tokenizer();
    let ends = opened.end_tokens().unwrap();
    (opened.prepare(&options).unwrap().load(&options, context, sequences).unwrap(), ends)
}

/// The tokenizer of nano.
fn tokenizer() -> &'static TokenizerHandle {
    static TOKENIZER: LazyLock<TokenizerHandle> = LazyLock::new(|| {
        Opened::open(kernmill::locate::nano(), &Options::default()).unwrap().tokenizer().unwrap()
    });
    &TOKENIZER
}

/// An engine of nano, for what is to be expected.
fn engine() -> Engine {
    nano(512, 1).0.engine
}

/// A scheduler that refuses nobody for a long wait: what a test sees does not depend on what else the machine
/// does.
fn patient() -> Scheduling {
    Scheduling { max_wait: [None; 3], ..Scheduling::default() }
}

/// A server on a separate thread.
struct Served {
    address: SocketAddr,
    /// The models.
    backends: Vec<Arc<dyn Backend>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(config: ServerConfig) -> Served {
        Served::with(config, patient())
    }

    fn with(config: ServerConfig, scheduling: Scheduling) -> Served {
        Served::of_loaded(nano(512, scheduling.max_sequences.min(8)), "nano", config, scheduling)
    }

    /// A server of a model, which is called `name`.
    fn of(model: (Loaded, Vec<u32>), name: &str, config: ServerConfig) -> Served {
        Served::of_loaded(model, name, config, patient())
    }

    fn of_loaded(
        (loaded, ends): (Loaded, Vec<u32>),
        name: &str,
        config: ServerConfig,
        scheduling: Scheduling,
    ) -> Served {
        let facts = BackendInfo::of(&loaded, name, &ends).unwrap();
        let serving = loaded.into_serving(scheduling).unwrap();
        Served::over(vec![Arc::new(EngineBackend::start(serving, facts).unwrap())], config)
    }

    fn over(backends: Vec<Arc<dyn Backend>>, config: ServerConfig) -> Served {
        let config = ServerConfig { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..config };
        let (end, ends) = oneshot::channel();
        let (told, address) = std::sync::mpsc::channel();
        let theirs = backends.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::bind(&theirs, config).await.unwrap();
                told.send(server.address().unwrap()).unwrap();
                server.run(async { drop(ends.await) }).await;
            });
        });
        let address = address.recv().unwrap();
        Served { address, backends, end: Some(end), thread: Some(thread) }
    }

    /// Waits until nothing waits or runs; what was done then.
    fn settle(&self) -> BackendLoad {
        let start = Instant::now();
        loop {
            let load = self.backends[0].load();
            if load.waiting == [0; 3] && load.running == [0; 3] && load.kv_bytes[1] == 0 {
                return load;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "it does not come to rest: {load:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
        self.backends.iter().for_each(|backend| backend.end());
    }
}
