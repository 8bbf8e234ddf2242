//! A connection to the next stage, which is made again when it breaks.

use super::StageKey;
use super::hello::{PATIENCE, Wish, call, prepare};
use super::wire::{Frames, LOST, PULSE, ROWS, attend, send};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How long a new connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// The first wait before another try, and the longest.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// Why a stage cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stage {stage} at {peer} cannot be reached: {why}")]
pub struct StageLost {
    /// Number of the stage, counted from 1.
    pub stage: u32,
    /// Address of the stage.
    pub peer: String,
    /// The reason of the loss.
    pub why: String,
}

/// Tells whether the next stage is there, from any thread.
#[derive(Clone)]
pub struct StageHealth(Arc<LinkShared>);

impl StageHealth {
    /// Why the next stage cannot be used now; `None` while it can.
    pub fn lost(&self) -> Option<StageLost> {
        let state = self.0.lock();
        state.up.is_none().then(|| self.0.lost(&state.why))
    }
}

struct LinkShared {
    stage: u32,
    peer: String,
    state: Mutex<LinkState>,
    /// The state is another one.
    changed: Condvar,
}

struct LinkState {
    /// Number of the present connection, or of the last one.
    epoch: u64,
    /// To write to, while there is a connection.
    up: Option<Arc<Mutex<TcpStream>>>,
    why: String,
    /// Rows that have come over the present connection.
    rows: VecDeque<Vec<u8>>,
    has_ended: bool,
}

impl LinkShared {
    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self, why: &str) -> StageLost {
        StageLost { stage: self.stage, peer: self.peer.clone(), why: why.to_owned() }
    }
}

/// The connection. A thread makes it, reads from it, and makes it again.
pub(super) struct Link {
    shared: Arc<LinkShared>,
}

impl Link {
    /// Begins to call the stage at `peer`. `most` is the number of bytes of a frame at most.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub(super) fn start(peer: &str, key: StageKey, wish: Wish, most: usize) -> io::Result<Link> {
        let state = LinkState {
            epoch: 0,
            up: None,
            why: "it has not been reached yet".to_owned(),
            rows: VecDeque::new(),
            has_ended: false,
        };
        let shared = Arc::new(LinkShared {
            stage: wish.stage,
            peer: peer.to_owned(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let caller = LinkThread { shared: shared.clone(), key, wish, most };
        Builder::new().name("kernmill-stage".to_owned()).spawn(move || caller.run())?;
        Ok(Link { shared })
    }

    /// Tells others whether the stage is there.
    pub(super) fn health(&self) -> StageHealth {
        StageHealth(self.shared.clone())
    }

    /// The number of the present connection.
    ///
    /// # Errors
    /// When there is no connection.
    pub(super) fn epoch(&self) -> Result<u64, StageLost> {
        let state = self.shared.lock();
        if state.up.is_some() { Ok(state.epoch) } else { Err(self.shared.lost(&state.why)) }
    }

    /// The error for a stage that was lost and is there again, with nothing in its cache.
    pub(super) fn renewed(&self) -> StageLost {
        self.shared.lost("it was lost, and has begun anew")
    }

    /// Waits until there is a connection, or `patience` is over.
    pub(super) fn wait(&self, patience: Duration) -> Result<u64, StageLost> {
        let state = self.shared.lock();
        let waits = |state: &mut LinkState| state.up.is_none();
        let waited = self.shared.changed.wait_timeout_while(state, patience, waits);
        drop(waited);
        self.epoch()
    }

    /// Sends a frame over the connection of that number.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) fn send(&self, epoch: u64, kind: u8, parts: &[&[u8]]) -> Result<(), StageLost> {
        let stream = {
            let state = self.shared.lock();
            let stream = state.up.clone().filter(|_| state.epoch == epoch);
            stream.ok_or_else(|| self.shared.lost(&state.why))?
        };
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut stream, kind, parts).map_err(|error| {
            // Half a frame may be on its way: nothing can follow it. The reader says what comes of it.
            let _ = stream.shutdown(Shutdown::Both);
            self.shared.lost(&error.to_string())
        })
    }

    /// Waits for rows that come over the connection of that number.
    ///
    /// # Errors
    /// When it is gone.
    pub(super) fn receive(&self, epoch: u64) -> Result<Vec<u8>, StageLost> {
        let mut state = self.shared.lock();
        loop {
            if state.epoch != epoch || state.up.is_none() {
                return Err(self.shared.lost(&state.why));
            }
            if let Some(rows) = state.rows.pop_front() {
                return Ok(rows);
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_ended = true;
        if let Some(stream) = state.up.take() {
            // It is gone already, or goes now.
            let _ = stream.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

/// The state of the thread.
struct LinkThread {
    shared: Arc<LinkShared>,
    key: StageKey,
    wish: Wish,
    most: usize,
}

impl LinkThread {
    fn run(self) {
        let mut wait = WAITS[0];
        loop {
            let why = match self.connect() {
                Ok(stream) => {
                    tracing::info!("stage {} at {} is there", self.wish.stage, self.shared.peer);
                    wait = WAITS[0];
                    self.listen(stream)
                }
                Err(error) => error.to_string(),
            };
            let mut state = self.shared.lock();
            if state.up.take().is_some() || state.why != why {
                tracing::warn!("{}", self.shared.lost(&why));
            }
            state.why = why;
            state.rows.clear();
            self.shared.changed.notify_all();
            let waited = self.shared.changed.wait_timeout_while(state, wait, |state| !state.has_ended);
            if waited.unwrap_or_else(PoisonError::into_inner).0.has_ended {
                return;
            }
            wait = (wait * 2).min(WAITS[1]);
        }
    }

    /// Calls the stage at any of its addresses.
    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::other("its name has no address");
        for address in self.shared.peer.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(mut stream) => {
                    prepare(&stream)?;
                    call(&mut stream, &self.key, &self.wish)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Reads what comes, until nothing more does; why.
    fn listen(&self, stream: TcpStream) -> String {
        match self.listen_to(stream) {
            Ok(why) => why,
            Err(error) => error.to_string(),
        }
    }

    fn listen_to(&self, stream: TcpStream) -> io::Result<String> {
        stream.set_read_timeout(Some(PULSE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let writer = Arc::new(Mutex::new(stream.try_clone()?));
        let mut frames = Frames::new(stream, self.most);
        {
            let mut state = self.shared.lock();
            if state.has_ended {
                return Ok("it is not needed any more".to_owned());
            }
            state.epoch += 1;
            state.up = Some(writer.clone());
            state.rows.clear();
            self.shared.changed.notify_all();
        }
        attend(&mut frames, &writer, |kind, contents| match kind {
            ROWS => {
                self.shared.lock().rows.push_back(contents);
                self.shared.changed.notify_all();
                None
            }
            LOST => Some(String::from_utf8_lossy(&contents).into_owned()),
            kind => Some(format!("it sent a frame of the unknown kind {kind}")),
        })
    }
}
