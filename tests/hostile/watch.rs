//! Ends the process when an input takes no end: what never returns can be measured by nobody else.

use super::memory;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Processor time after which an input counts as one that hangs, in seconds.
const MAX_SECONDS: f64 = 20.0;
/// Heap bytes at which an allocation fails, before the machine has none left.
const MAX_BYTES: i64 = 4 << 30;

/// Inputs at work, by thread.
static AT_WORK: Mutex<Vec<Work>> = Mutex::new(Vec::new());

struct Work {
    /// The thread's directory under `/proc`.
    thread: PathBuf,
    input: PathBuf,
    /// Processor time of the thread when it began.
    start: f64,
}

/// Until it is dropped, this thread works on an input.
pub struct Watched(PathBuf);

/// Watches what this thread does with the input in the file `input`.
pub fn input(input: &Path) -> Watched {
    static WATCHER: std::sync::Once = std::sync::Once::new();
    WATCHER.call_once(|| drop(std::thread::spawn(watch)));
    memory::limit(MAX_BYTES);
    let thread = fs::read_link("/proc/thread-self").map(|thread| Path::new("/proc").join(thread));
    let thread = thread.unwrap_or_default();
    let work = Work { thread: thread.clone(), input: input.to_owned(), start: thread_seconds() };
    AT_WORK.lock().expect("no panic holds it").push(work);
    Watched(thread)
}

impl Drop for Watched {
    fn drop(&mut self) {
        memory::limit(i64::MAX);
        AT_WORK.lock().expect("no panic holds it").retain(|work| work.thread != self.0);
    }
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for work in AT_WORK.lock().expect("no panic holds it").iter() {
            let seconds = seconds_of(&work.thread) - work.start;
            if seconds > MAX_SECONDS {
                eprintln!("no end after {seconds:.0} s of processor time for {}", work.input.display());
                std::process::abort();
            }
        }
    }
}

/// Processor time of this thread, in seconds: what else the machine does is not counted.
pub fn thread_seconds() -> f64 {
    seconds_of(Path::new("/proc/thread-self"))
}

fn seconds_of(thread: &Path) -> f64 {
    let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) as f64 / 1e9
}
