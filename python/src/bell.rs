//! How an event loop learns that something came: a socket that it watches like any other.
//!
//! The engine's thread writes one byte where nothing was waiting, and never touches the interpreter: no
//! thread of Python makes it wait, and it may outlive the interpreter.

use std::collections::BTreeSet;
use std::io::{Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bell that the engine rings and one event loop hears.
pub struct Bell {
    heard: UnixStream,
    rope: UnixStream,
    /// Tickets of requests with news.
    news: Mutex<BTreeSet<u64>>,
}

impl Bell {
    /// A bell that is silent.
    pub fn new() -> Result<Bell> {
        let (heard, rope) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Bell { heard, rope, news: Mutex::default() })
    }

    /// The descriptor that the loop watches for reading.
    pub fn fileno(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// Tells that a request has news. A bell that rings already is not rung again.
    pub fn ring(&self, ticket: u64) {
        let mut news = self.lock();
        let is_silent = news.is_empty();
        news.insert(ticket);
        if is_silent {
            // A full socket has something to read already.
            let _ = (&self.rope).write(&[1]);
        }
    }

    /// Tickets of the requests that have news; the bell is silent then.
    pub fn answer(&self) -> Vec<u64> {
        let mut news = self.lock();
        let mut bytes = [0; 64];
        while (&self.heard).read(&mut bytes).is_ok_and(|count| count > 0) {}
        std::mem::take(&mut *news).into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
