//! The machine's limits, looked at between the runs.

use super::replays::Replays;
use crate::stats::{Quartiles, best};
use kernmill::Loaded;
use kernmill::Result;
use kernmill_os::memory::available_memory;
use kernmill_os::region::WeightRegion;
use kernmill_plan::target::Level;
use kernmill_runtime::Engine;
use kernmill_runtime::measure::{MachineProbe, memory_to_read, peak_resident};
use std::sync::Arc;

/// Least looks at the limits.
const LOOKS: usize = 5;

/// The machine's limits as they have been found so far.
pub struct MachineLimits {
    limits: MachineProbe,
    replays: Replays,
    memory: Arc<WeightRegion>,
    /// Bytes of each read.
    pub bytes: u64,
    /// Whether the weights themselves are read.
    pub weights: bool,
    /// Bytes per second of each read.
    pub reads: Vec<f64>,
    /// Integer operations per second of each look.
    pub peaks: Vec<f64>,
    /// Largest resident size of the process before there was other memory to read.
    resident_before: Option<u64>,
}

impl MachineLimits {
    /// Will read the weights if they have as many bytes as are to be read, or else other memory, as much as
    /// there is.
    ///
    /// # Errors
    /// When the probes cannot be made or run here, or the system refuses the memory.
    pub fn new(loaded: &Loaded, bytes: u64) -> Result<MachineLimits> {
        let bytes = bytes.max(1 << 20);
        let resident_before = peak_resident();
        let weights = loaded.image.weights().len() as u64 >= bytes;
        let memory = if weights { Arc::clone(loaded.image.weights()) } else { buffer(bytes)? };
        let mut limits = limits(loaded.image.program().level, loaded.engine.threads())?;
        limits.choose_read(&memory.as_slice()[..memory.len().min(bytes as usize)]);
        let replays = Replays::new(loaded)?;
        Ok(MachineLimits {
            limits,
            replays,
            memory,
            bytes,
            weights,
            reads: Vec::new(),
            peaks: Vec::new(),
            resident_before,
        })
    }

    /// One look at both limits.
    pub fn look(&mut self) {
        let part = self.memory.len().min(self.bytes as usize);
        self.reads.push(self.limits.read(&self.memory.as_slice()[..part], self.bytes));
        self.peaks.push(self.limits.multiply());
    }

    /// Looks until there are enough.
    pub fn finish(&mut self) {
        while self.reads.len() < LOOKS {
            self.look();
        }
    }

    /// Largest resident size of the process so far, without the other memory that is only there to be read.
    pub fn peak_resident(&self) -> Option<u64> {
        let own = if self.weights { 0 } else { self.memory.len() as u64 };
        peak_resident().map(|peak| peak.saturating_sub(own)).max(self.resident_before)
    }

    /// Seconds of a replay of the engine's last step.
    ///
    /// # Errors
    /// When its sequences are gone.
    pub fn replay(&mut self, engine: &mut Engine) -> Result<f64> {
        self.replays.seconds(engine)
    }

    /// Bytes per second of the reads so far, in the median.
    pub fn bandwidth(&self) -> f64 {
        Quartiles::of(&self.reads).median
    }

    /// Bytes per second of the fastest read so far: nothing can be faster.
    pub fn most_bandwidth(&self) -> f64 {
        best(&self.reads)
    }

    /// Integer operations per second of the looks so far, in the median.
    pub fn peak(&self) -> f64 {
        Quartiles::of(&self.peaks).median
    }
}

/// Probes of a level on that many threads.
///
/// # Errors
/// When this CPU cannot run them, or the system makes no threads.
pub fn limits(level: Level, threads: usize) -> Result<MachineProbe> {
    let probe = kernmill_kernels_gen::peak::probe(level)?;
    // SAFETY: the generator has just made the probe.
    Ok(unsafe { MachineProbe::new(&probe, threads) }?)
}

/// Memory to read that is neither the weights nor in a cache: `bytes`, or half of what there is.
///
/// # Errors
/// When the system refuses the memory.
pub fn buffer(bytes: u64) -> Result<Arc<WeightRegion>> {
    let bytes = available_memory().map_or(bytes, |available| bytes.min(available / 2));
    Ok(memory_to_read(bytes.max(1 << 20) as usize)?)
}

/// Sizes of caches in bytes, as far as the system tells; 0 where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Bytes of each core's own second level.
    pub core: u64,
    /// Bytes of the last level.
    pub last: u64,
}

/// Sizes of this machine's caches.
pub fn caches() -> Caches {
    let size = |index: usize| {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        cache_size(std::fs::read_to_string(file).ok()?.trim())
    };
    // 0 and 1 are the first level's, for data and for code.
    let [core, last] = [2, 3].map(|index| size(index).unwrap_or(0));
    Caches { core, last: last.max(core) }
}

/// `260M`, `2048K`.
fn cache_size(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_have_units() {
        assert_eq!(cache_size("48K"), Some(49152));
        assert_eq!(cache_size("260M"), Some(260 << 20));
        assert_eq!(cache_size("77"), Some(77));
        for text in
            ["", "x", "K", "-1K", "4 K", "4KiB", "\u{fffd}", "18446744073709551615K", "18446744073709551616"]
        {
            assert_eq!(cache_size(text), None, "{text:?}");
        }
    }
}
