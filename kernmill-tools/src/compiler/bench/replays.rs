//! Replays of an engine's steps, and ways to read.

use crate::stats::Quartiles;
use kernmill::Loaded;
use kernmill::Result;
use kernmill_kernels_gen::peak::probe;
use kernmill_runtime::measure::{MemoryReader, readers};
use kernmill_runtime::{Engine, Replay};
use std::time::Instant;

/// Rounds in which ways to read are compared.
const ROUNDS: usize = 3;
/// Replays that are timed; their median counts.
const REPLAYS: usize = 5;

/// Replays, which read as an engine's steps do.
pub struct Replays {
    pub replay: Replay,
    pub readers: Vec<MemoryReader>,
    /// Index of the way to read that is the fastest, once it is known.
    fastest: Option<usize>,
}

impl Replays {
    /// Replays of what is loaded.
    ///
    /// # Errors
    /// When the functions that read cannot be made or run here.
    pub fn new(loaded: &Loaded) -> Result<Replays> {
        let probe = probe(loaded.image.program().level)?;
        // SAFETY: the generator has just made the probe.
        let readers = unsafe { readers(&probe) }?;
        Ok(Replays { replay: Replay::new(&loaded.image), readers, fastest: None })
    }

    /// Seconds of a replay of the engine's last step, in the median of some.
    ///
    /// # Errors
    /// When its sequences are gone.
    pub fn seconds(&mut self, engine: &mut Engine) -> Result<f64> {
        let experts = engine.last_experts();
        let mut time = |way: usize| -> Result<f64> {
            let start = Instant::now();
            engine.replay(&self.replay, &self.readers[way], &experts)?;
            Ok(start.elapsed().as_secs_f64())
        };
        let way = match self.fastest {
            Some(way) => way,
            None => {
                let mut times = vec![Vec::new(); self.readers.len()];
                for _ in 0..ROUNDS {
                    for (way, times) in times.iter_mut().enumerate() {
                        times.push(time(way)?);
                    }
                }
                least(&times, |times| Quartiles::of(times).median)
            }
        };
        self.fastest = Some(way);
        let times = (0..REPLAYS).map(|_| time(way)).collect::<Result<Vec<f64>>>()?;
        Ok(Quartiles::of(&times).median)
    }
}

/// Index of the element that has the least value of `of`.
pub fn least<T>(all: &[T], of: impl Fn(&T) -> f64) -> usize {
    (0..all.len()).min_by(|a, b| of(&all[*a]).total_cmp(&of(&all[*b]))).unwrap_or(0)
}
