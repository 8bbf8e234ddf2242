//! A stage but the first: it waits for the one before it, and runs its layers.

use super::StageKey;
use super::StageShare;
use super::hello::{Agreeing, PATIENCE, Wish, answer, prepare, word};
use super::link::Link;
use super::tables::TablesCopy;
use super::wire::{BatchHeader, Frames, LOST, PULSE, ROWS, STEP, attend, send};
use crate::adapter::AdapterTable;
use crate::executor::{Batch, CutError, Cuts, Executor, Portion, RowsIn, RowsOut};
use crate::image::PlanImage;
use crate::kv::MAX_SEQUENCES;
use crate::pool::{Pool, PoolConfig};
use kernmill_plan::kv::LayerKind;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Callers that are being asked who they are, at most.
const CALLERS: usize = 8;
/// How often it is looked who calls.
const LISTEN: Duration = Duration::from_millis(20);
/// Batches that wait, at most: the stages before send no more.
const WAITING: usize = 64;
/// How long the next stage may take until it can be reached, before a caller is refused.
const NEXT: Duration = Duration::from_secs(2);

/// Why a stage cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The number is not that of a stage that waits for another.
    #[error("stage {number} of {stages}: expected 2 to {stages}")]
    Number {
        /// The number.
        number: u32,
        /// How many stages there are.
        stages: u32,
    },
    /// A stage in the middle lacks the address of the next one, or the last one has one.
    #[error("{0}")]
    Peer(&'static str),
    /// The model has no name of its contents, by which stages could know that they run the same one.
    #[error("the model has no identity: stages run plans")]
    NoIdentity,
    /// The system fails.
    #[error("stage: {0}")]
    Io(#[from] io::Error),
}

/// Which stage a process runs, and how.
#[derive(Clone, Debug)]
pub struct StageServerConfig {
    /// Number of the stage, counted from 1; the first one is an engine's, and no server's.
    pub number: u32,
    /// Number of stages.
    pub stages: u32,
    /// Address of the next stage, `HOST:PORT`, for all but the last one.
    pub peer: Option<String>,
    /// The key that all stages must know.
    pub key: StageKey,
    /// Threads that run the layers.
    pub pool: PoolConfig,
}

/// Runs one stage's layers for the stage before it.
pub struct StageServer {
    image: PlanImage,
    config: StageServerConfig,
}

/// The next stage, and the number of the connection to it.
type NextStage = (Arc<Link>, u64);

/// An event, in order.
enum StageEvent {
    /// Somebody who knows the key wants this stage.
    Caller(TcpStream, Agreeing, Wish),
    /// A frame of the caller of that number.
    Frame(u64, u8, Vec<u8>),
    /// The caller of that number has gone.
    Gone(u64, String),
}

/// The stage before this one, while it is connected.
struct PreviousStage {
    number: u64,
    writer: Arc<Mutex<TcpStream>>,
    /// Where rows go on, if there is a stage behind this one.
    next: Option<NextStage>,
    at_work: StageWork,
}

/// The engine that runs a caller's batches.
struct StageWork {
    executor: Executor,
    tables: TablesCopy,
    adapters: AdapterTable,
    batch: Batch,
    wish: Wish,
    rows: Vec<u8>,
    header: Vec<u8>,
    /// By slot of a sequence: the last batch that had it.
    seen: Vec<u64>,
    batches: u64,
}

impl StageServer {
    /// The server of a stage of a model in memory.
    ///
    /// # Errors
    /// When there is no such stage.
    pub fn new(image: PlanImage, config: StageServerConfig) -> Result<StageServer, StageError> {
        let (number, stages) = (config.number, config.stages);
        if !(2..=stages).contains(&number) {
            return Err(StageError::Number { number, stages });
        }
        match (&config.peer, number == stages) {
            (Some(_), true) => {
                Err(StageError::Peer("the last stage has no --peer: it answers the one before it"))
            }
            (None, false) => {
                Err(StageError::Peer("a stage in the middle needs --peer, the address of the next one"))
            }
            _ if image.identity().is_none() => Err(StageError::NoIdentity),
            _ => Ok(StageServer { image, config }),
        }
    }

    /// Serves the stage before this one, whichever calls last, until `has_ended`.
    ///
    /// # Errors
    /// When the system makes no threads, or the listener fails.
    pub fn run(&self, listener: TcpListener, has_ended: &AtomicBool) -> Result<(), StageError> {
        let (events, inbox) = sync_channel(WAITING);
        listener.set_nonblocking(true)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (key, to_main, told) = (self.config.key.clone(), events.clone(), ended.clone());
        let calls = move || take_calls(&listener, &key, &to_main, &told);
        let thread = Builder::new().name("kernmill-callers".to_owned()).spawn(calls)?;
        let served = self.serve(&events, &inbox, has_ended);
        ended.store(true, Ordering::Relaxed);
        // Nobody listens any more when this returns. A panic there has been reported.
        let _ = thread.join();
        served
    }

    fn serve(
        &self,
        events: &SyncSender<StageEvent>,
        inbox: &Receiver<StageEvent>,
        has_ended: &AtomicBool,
    ) -> Result<(), StageError> {
        let mut caller: Option<PreviousStage> = None;
        let mut callers = 0;
        while !has_ended.load(Ordering::Relaxed) {
            let event = match inbox.recv_timeout(Duration::from_millis(100)) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match event {
                StageEvent::Caller(mut stream, agreeing, wish) => {
                    if let Some(before) = caller.take() {
                        before.end("another stage has called");
                    }
                    let ready = self.ready(wish);
                    let said = match &ready {
                        Ok(_) => word(&mut stream, &self.config.key, &agreeing, Ok(())),
                        Err(why) => word(&mut stream, &self.config.key, &agreeing, Err(why)),
                    };
                    match (ready, said) {
                        (Ok((at_work, next)), Ok(())) => {
                            callers += 1;
                            match begin(stream, callers, at_work, next, events) {
                                Ok(began) => caller = Some(began),
                                // Its connection is closed with this, so that it calls again.
                                Err(error) => tracing::warn!("a caller cannot be served: {error}"),
                            }
                        }
                        (Err(why), _) => tracing::warn!("a caller was refused: {why}"),
                        (_, Err(error)) => tracing::warn!("a caller has gone: {error}"),
                    }
                }
                StageEvent::Frame(number, kind, contents) => {
                    let Some(own) = caller.as_mut().filter(|caller| caller.number == number) else {
                        continue;
                    };
                    let outcome = if kind == STEP {
                        own.step(self.config.number, self.config.stages, &contents)
                    } else {
                        Ok(())
                    };
                    if let Err(why) = outcome {
                        tracing::warn!("{why}");
                        own.end(&why);
                        caller = None;
                    }
                }
                StageEvent::Gone(number, why) => {
                    if caller.as_ref().is_some_and(|caller| caller.number == number) {
                        tracing::warn!("the stage before has gone: {why}");
                        caller = None;
                    }
                }
            }
        }
        if let Some(caller) = caller {
            caller.end("the stage has ended");
        }
        Ok(())
    }

    /// The work that a caller's wish asks for, or the reason why it is not granted.
    fn ready(&self, wish: Wish) -> Result<(StageWork, Option<NextStage>), String> {
        if Some(wish.identity) != self.image.identity() {
            return Err("it has another model, preset or version of kernmill".to_owned());
        }
        if wish.stage != self.config.number || wish.bounds.len() as u32 != self.config.stages + 1 {
            let asked = wish.bounds.len().saturating_sub(1);
            return Err(format!(
                "it is stage {} of {}, and stage {} of {asked} was called",
                self.config.number, self.config.stages, wish.stage
            ));
        }
        // In separate memory: a caller may map any block, and must not read what another one wrote.
        let at_work = self.work(&wish)?;
        let next = match &self.config.peer {
            None => None,
            Some(peer) => {
                let on = Wish { stage: self.config.number + 1, ..wish };
                let most = most_bytes(&at_work.tables, &on, self.config.number);
                let link = Link::start(peer, self.config.key.clone(), on, most)
                    .map_err(|error| error.to_string())?;
                let epoch = link.wait(NEXT).map_err(|lost| lost.to_string())?;
                Some((Arc::new(link), epoch))
            }
        };
        Ok((at_work, next))
    }

    /// Takes the memory for a wish.
    fn work(&self, wish: &Wish) -> Result<StageWork, String> {
        let program = self.image.program();
        let shape = wish.shape;
        let longest = program.model.max_context;
        let chunk = program.classes.last().map_or(1, |class| class.max_tokens);
        let fits = (1..=longest).contains(&shape.context)
            && (1..=MAX_SEQUENCES).contains(&shape.sequences)
            && (1..=chunk).contains(&shape.chunk);
        if !fits {
            return Err(format!(
                "its plan holds texts of {longest} tokens and {chunk} tokens at once: {shape:?} is more"
            ));
        }
        let cuts = Cuts::at(program, &wish.bounds).map_err(|error| error.to_string())?;
        let own: Vec<u32> = (1..=cuts.stages()).map(|stage| cuts.token_bytes(stage) as u32).collect();
        if own != wish.token_bytes {
            return Err("its program hands over other rows: compile the same plan for both".to_owned());
        }
        let pool = Pool::new(self.config.pool).map_err(|error| error.to_string())?;
        let executor = Executor::new(&self.image, shape, pool, Some((cuts, self.config.number)));
        Ok(StageWork {
            executor: executor.map_err(|error| error.to_string())?,
            tables: TablesCopy::new(&program.model.kv, shape),
            adapters: AdapterTable::new(program.model.adapters.as_ref(), 1),
            batch: Batch::with_capacity(shape.chunk as usize),
            wish: wish.clone(),
            rows: Vec::new(),
            header: Vec::new(),
            seen: vec![0; shape.sequences as usize],
            batches: 0,
        })
    }

    /// The part that the stage holds when the first one cuts evenly.
    ///
    /// # Errors
    /// When the program cannot be cut so.
    pub fn share(&self) -> Result<StageShare, CutError> {
        StageShare::of(self.image.program(), self.config.number, self.config.stages)
    }
}

/// Bytes of a frame for, or from, the stage behind cut `stage`.
fn most_bytes(tables: &TablesCopy, wish: &Wish, stage: u32) -> usize {
    let token_bytes = wish.token_bytes.get(stage as usize - 1).copied().unwrap_or(0) as usize;
    BatchHeader::most_bytes(wish.shape.chunk as usize, tables.entries(), token_bytes)
}

/// Takes calls, and finds out who calls.
fn take_calls(listener: &TcpListener, key: &StageKey, events: &SyncSender<StageEvent>, ended: &AtomicBool) {
    let open = Arc::new(());
    while !ended.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // Nobody calls, or the system is short of something for a while.
            std::thread::sleep(LISTEN);
            continue;
        };
        if Arc::strong_count(&open) > CALLERS {
            // A dropped caller tries again.
            continue;
        }
        let (key, events, open) = (key.clone(), events.clone(), open.clone());
        let asked = move || {
            let _open = open;
            let mut stream = stream;
            let told = prepare(&stream).and_then(|()| answer(&mut stream, &key));
            match told {
                // Where nobody takes it, the stage has ended.
                Ok((agreeing, wish)) => drop(events.send(StageEvent::Caller(stream, agreeing, wish))),
                Err(error) => tracing::warn!("a caller was refused: {error}"),
            }
        };
        // Without a thread for it, the caller tries again.
        let _ = Builder::new().name("kernmill-caller".to_owned()).spawn(asked);
    }
}

/// Begins to read what a caller sends, and to pass on what the next stage answers.
fn begin(
    stream: TcpStream,
    number: u64,
    at_work: StageWork,
    next: Option<NextStage>,
    events: &SyncSender<StageEvent>,
) -> io::Result<PreviousStage> {
    stream.set_read_timeout(Some(PULSE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let writer = Arc::new(Mutex::new(stream.try_clone()?));
    let most = most_bytes(&at_work.tables, &at_work.wish, at_work.wish.stage - 1);
    let (events, own) = (events.clone(), writer.clone());
    Builder::new().name("kernmill-before".to_owned()).spawn(move || {
        let why = listen(stream, most, number, &own, &events).unwrap_or_else(|error| error.to_string());
        // Where nobody takes it, the stage has ended.
        let _ = events.send(StageEvent::Gone(number, why));
    })?;
    if let Some((link, epoch)) = next.clone() {
        let back = writer.clone();
        Builder::new().name("kernmill-behind".to_owned()).spawn(move || pass_back(&link, epoch, &back))?;
    }
    Ok(PreviousStage { number, writer, next, at_work })
}

/// Reads what a caller sends, until nothing more comes; why.
fn listen(
    stream: TcpStream,
    most: usize,
    number: u64,
    writer: &Mutex<TcpStream>,
    events: &SyncSender<StageEvent>,
) -> io::Result<String> {
    attend(&mut Frames::new(stream, most), writer, |kind, contents| {
        let sent = events.send(StageEvent::Frame(number, kind, contents));
        sent.is_err().then(|| "the stage has ended".to_owned())
    })
}

/// Passes the next stage's answers back, until it is gone.
fn pass_back(link: &Link, epoch: u64, back: &Mutex<TcpStream>) {
    loop {
        let rows = link.receive(epoch);
        let mut back = back.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = match &rows {
            Ok(rows) => send(&mut back, ROWS, &[rows]),
            Err(lost) => send(&mut back, LOST, &[lost.to_string().as_bytes()]),
        };
        if rows.is_err() || sent.is_err() {
            // The reader of this connection finds out.
            let _ = back.shutdown(Shutdown::Both);
            return;
        }
    }
}

impl PreviousStage {
    /// Tells the caller why nothing more comes.
    fn end(&self, why: &str) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // It may be gone already.
        let _ = send(&mut writer, LOST, &[why.as_bytes()]);
        let _ = writer.shutdown(Shutdown::Both);
    }

    /// Runs a batch, and sends on what comes of it.
    fn step(&mut self, number: u32, stages: u32, contents: &[u8]) -> Result<(), String> {
        self.at_work.run(number, stages, contents)?;
        let StageWork { header, rows, .. } = &self.at_work;
        match &self.next {
            Some((link, epoch)) => link.send(*epoch, STEP, &[header, rows]).map_err(|lost| lost.to_string()),
            None => {
                let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
                send(&mut writer, ROWS, &[rows])
                    .map_err(|error| format!("the stage before has gone: {error}"))
            }
        }
    }
}

impl StageWork {
    /// Runs a batch over this stage's layers. Nothing of the order is trusted.
    fn run(&mut self, number: u32, stages: u32, contents: &[u8]) -> Result<(), String> {
        let (order, rows) = BatchHeader::read(contents).ok_or("a damaged batch came")?;
        self.header.clear();
        self.header.extend_from_slice(&contents[..contents.len() - rows.len()]);
        for [kind, from, to] in &order.copies {
            if !self.tables.has(*kind, *from) || !self.tables.has(*kind, *to) {
                return Err(format!("a batch copies block {from} to {to}, which are not there"));
            }
            let kind = if *kind == 0 { LayerKind::Full } else { LayerKind::Sliding };
            self.executor.copy_block(kind, *from, *to);
        }
        if let Some(wrong) = order.updates.iter().find(|update| !self.tables.apply(update)) {
            return Err(format!("a batch maps blocks that are not there, at entry {}", wrong.at));
        }
        self.check(&order)?;
        self.batch.clear();
        let places = order.positions.iter().zip(&order.sequences);
        for (token, (position, sequence)) in order.tokens.iter().zip(places) {
            self.batch.push(*token, *position, *sequence, 0);
        }
        self.rows.clear();
        let portion = Portion { from: Some(number - 1), to: Some(number) };
        let out = match number == stages {
            true => RowsOut::Wanted(&mut self.rows),
            false => RowsOut::All(&mut self.rows),
        };
        let (tables, wanted) = (self.tables.view(), &order.wanted);
        let ran = self.executor.run_portion(
            portion,
            &mut self.batch,
            wanted,
            tables,
            &self.adapters,
            RowsIn::All(rows),
            out,
        );
        ran.map_err(|error| error.to_string())
    }

    /// Checks what the executor takes for granted of its own engine's batches: rows ascend, and every
    /// sequence has one run of tokens.
    fn check(&mut self, order: &BatchHeader) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("a damaged batch came: {what}"));
        if order.wanted.windows(2).any(|pair| pair[0] >= pair[1]) {
            return wrong("wanted rows do not ascend");
        }
        self.batches += 1;
        let mut last = None;
        for (position, sequence) in order.positions.iter().zip(&order.sequences) {
            let goes_on = last.is_some() && last == position.checked_sub(1).map(|before| (*sequence, before));
            last = Some((*sequence, *position));
            if goes_on {
                continue;
            }
            let Some(seen) = self.seen.get_mut(*sequence as usize) else {
                return wrong("an unknown sequence");
            };
            if std::mem::replace(seen, self.batches) == self.batches {
                return wrong("a sequence twice");
            }
        }
        Ok(())
    }
}
