//! Measurements of the machine: memory bandwidth, integer peak, page faults, huge pages.

mod reader;
mod system;
mod tiles;

pub use reader::{MemoryReader, readers};
pub use system::{HugePages, huge_pages, major_faults, peak_resident, stolen_seconds};
pub use tiles::tile_shares;

use crate::code::{CodeError, ExecutableCode};
use crate::executor::LoadError;
use crate::pool::{Pool, PoolConfig, PoolError};
use kernmill_os::region::{RegionError, WeightRegion};
use kernmill_plan::probe::{MULTIPLY, Probe, READ};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a limit cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The code cannot be used.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A probe lacks a function.
    #[error("the probe has no function `{0}` (bug: please report it)")]
    Symbol(&'static str),
    /// The CPU cannot run the probes.
    #[error(transparent)]
    Cpu(LoadError),
    /// The workers could not be started.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// There is no memory to read.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// Reads or multiplies on a number of threads.
pub struct MachineProbe {
    pool: Pool,
    /// The function that reads, and bytes that a step of it reads.
    read: (ReadFn, usize),
    /// All functions that read.
    ways: Vec<(ReadFn, usize)>,
    multiply: extern "C" fn(u64),
    iteration_ops: u64,
    /// Iterations that take about [`MULTIPLY_TIME`]; 0 until known.
    iterations: u64,
    // The functions' home.
    _code: ExecutableCode,
}

/// Reads so many steps from an address on.
type ReadFn = extern "C" fn(*const u8, u64);

/// Reads of each way that are compared; the fastest counts.
const WAY_TRIES: usize = 2;
/// Bytes of such a read, if there are as many.
const WAY_BYTES: usize = 512 << 20;
/// Barriers whose mean is taken.
const BARRIERS: u32 = 1000;
const MULTIPLY_TIME: Duration = Duration::from_millis(20);

impl MachineProbe {
    /// Loads the probes and starts `threads` workers, the calling thread included.
    ///
    /// # Errors
    /// When this CPU lacks the probe's features, or the system refuses memory or threads.
    ///
    /// # Safety
    /// The probe is what kernmill's generator made (`kernmill_kernels_gen::peak::probe`): its code is called.
    ///
    /// ```compile_fail,E0133
    /// use kernmill_plan::probe::Probe;
    /// use kernmill_runtime::measure::Limits;
    /// fn limits(probe: &Probe) {
    ///     let _ = Limits::new(probe, 1);
    /// }
    /// ```
    pub unsafe fn new(probe: &Probe, threads: usize) -> Result<MachineProbe, MeasureError> {
        let missing = probe.level.missing();
        if !missing.is_empty() {
            return Err(MeasureError::Cpu(LoadError::Cpu { level: probe.level.name(), missing }));
        }
        let code = ExecutableCode::load(&probe.code.bytes, &blake3::hash(&probe.code.bytes))?;
        let find = |name: &str| {
            let symbol = probe.code.symbols.iter().find(|symbol| symbol.name == name);
            symbol.map(|symbol| symbol.offset as usize).filter(|at| *at < probe.code.bytes.len())
        };
        let multiply = code.address(find(MULTIPLY).ok_or(MeasureError::Symbol(MULTIPLY))?);
        let reading = |name: &str, step: usize| {
            let address = code.address(find(name).filter(|_| step > 0).ok_or(MeasureError::Symbol(READ))?);
            // SAFETY: a probe's functions have this type, by the caller's promise; the CPU has what they use,
            // and the code lives as long as the pointer.
            Ok::<_, MeasureError>((unsafe { std::mem::transmute::<*const u8, ReadFn>(address) }, step))
        };
        let read = reading(READ, probe.read_step)?;
        let others = probe.reads.iter().map(|way| reading(&way.symbol, way.step));
        // SAFETY: as above.
        let multiply = unsafe { std::mem::transmute::<*const u8, extern "C" fn(u64)>(multiply) };
        Ok(MachineProbe {
            pool: Pool::new(PoolConfig { threads: Some(threads), ..PoolConfig::default() })?,
            read,
            ways: others.chain([Ok(read)]).collect::<Result<_, _>>()?,
            multiply,
            iteration_ops: probe.iteration_ops,
            iterations: 0,
            _code: code,
        })
    }

    /// Reads some of the memory in every way there is, and in the fastest from now on: how many places a core
    /// should read in turn, and how far ahead, differs between CPUs.
    pub fn choose_read(&mut self, memory: &[u8]) {
        let bytes = memory.len().min(WAY_BYTES);
        let mut fastest = (0.0, self.read);
        for way in self.ways.clone() {
            self.read = way;
            for _ in 0..WAY_TRIES {
                let rate = self.read(&memory[..bytes], bytes as u64);
                if rate > fastest.0 {
                    fastest = (rate, way);
                }
            }
        }
        self.read = fastest.1;
    }

    /// Bytes per second of one read of `bytes` bytes by all workers: each reads its share of the memory from
    /// front to back, again and again when that is smaller.
    pub fn read(&mut self, memory: &[u8], bytes: u64) -> f64 {
        let workers = self.pool.count();
        let (read, step) = self.read;
        let share = memory.len() / workers / step * step;
        if share == 0 {
            return 0.0;
        }
        let wanted = bytes.div_ceil(workers as u64);
        let start = Instant::now();
        self.pool.run(&|worker, _| {
            let own = &memory[worker as usize * share..][..share];
            let mut left = wanted;
            while left > 0 {
                let part = left.min(share as u64).next_multiple_of(step as u64);
                read(own.as_ptr(), part / step as u64);
                left -= part.min(left);
            }
        });
        let done = wanted.next_multiple_of(step as u64) * workers as u64;
        done as f64 / start.elapsed().as_secs_f64()
    }

    /// Integer operations per second (a multiply-add is two) of all workers together, over some milliseconds.
    pub fn multiply(&mut self) -> f64 {
        while self.iterations == 0 {
            self.calibrate();
        }
        let seconds = self.multiply_for(self.iterations).as_secs_f64();
        (self.iteration_ops * self.iterations * self.pool.count() as u64) as f64 / seconds
    }

    /// Seconds of a barrier of all workers, which do nothing else: the mean of many.
    pub fn barrier(&mut self) -> f64 {
        let start = Instant::now();
        self.pool.run(&|worker, barrier| (0..BARRIERS).for_each(|_| barrier.wait(worker)));
        start.elapsed().as_secs_f64() / f64::from(BARRIERS)
    }

    /// Seconds of two reads of `memory` by all workers: in one step, and in `steps` steps with a barrier
    /// behind each. Every worker reads its share of a step's stretch.
    pub fn read_in_steps(&mut self, memory: &[u8], steps: usize) -> [f64; 2] {
        [1, steps.max(1)].map(|steps| {
            let ((read, step), workers) = (self.read, self.pool.count());
            let stretch = memory.len() / steps;
            let share = stretch / workers / step * step;
            let start = Instant::now();
            self.pool.run(&|worker, barrier| {
                for at in 0..steps {
                    let own = &memory[at * stretch + worker as usize * share..][..share];
                    if !own.is_empty() {
                        read(own.as_ptr(), (share / step) as u64);
                    }
                    barrier.wait(worker);
                }
            });
            start.elapsed().as_secs_f64()
        })
    }

    fn calibrate(&mut self) {
        let mut iterations = 1 << 12;
        loop {
            let took = self.multiply_for(iterations);
            if took >= MULTIPLY_TIME / 4 {
                let factor = MULTIPLY_TIME.as_secs_f64() / took.as_secs_f64();
                self.iterations = ((iterations as f64 * factor) as u64).max(1);
                return;
            }
            iterations *= 2;
        }
    }

    fn multiply_for(&mut self, iterations: u64) -> Duration {
        let multiply = self.multiply;
        let start = Instant::now();
        self.pool.run(&|_, _| multiply(iterations));
        start.elapsed()
    }
}

/// Memory of its own to read: touched, so that every page is there.
///
/// # Errors
/// When the system refuses it.
pub fn memory_to_read(bytes: usize) -> Result<Arc<WeightRegion>, MeasureError> {
    let mut region = WeightRegion::anonymous(bytes)?;
    region.as_mut_slice().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    Ok(region.freeze()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_plan::probe::ReadWay;
    use kernmill_plan::program::{CodeBlob, Symbol};
    use kernmill_plan::target::Level;

    /// `read` that returns at once, and a `multiply` that counts down.
    fn probe() -> Probe {
        let mut bytes = vec![0xc3];
        bytes.resize(64, 0xcc);
        // dec rdi; jnz -5; ret
        bytes.extend([0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3]);
        let symbol =
            |name: &str, offset, size| Symbol { name: name.to_owned(), offset, size, contract: None };
        let symbols = vec![symbol(READ, 0, 1), symbol(MULTIPLY, 64, 6)];
        Probe {
            level: Level::V3,
            code: CodeBlob { bytes, symbols },
            read_step: 512,
            reads: Vec::new(),
            iteration_ops: 10,
        }
    }

    #[test]
    fn rates_are_finite_for_any_sizes() {
        for threads in [1, 3] {
            // SAFETY: the probe's functions, above, touch no memory.
            let mut limits = unsafe { MachineProbe::new(&probe(), threads) }.unwrap();
            let memory = memory_to_read(100_000).unwrap();
            for bytes in [1, 100_000, 1_000_001] {
                let rate = limits.read(memory.as_slice(), bytes);
                assert!(rate > 0.0 && rate.is_finite(), "{rate}");
            }
            assert_eq!(limits.read(&memory.as_slice()[..100], 1000), 0.0);
            assert!(limits.multiply() > 1e6);
            assert!(limits.barrier() > 0.0 && limits.barrier().is_finite());
            for (bytes, steps) in [(100_000, 3), (100, 7), (100_000, 0)] {
                let times = limits.read_in_steps(&memory.as_slice()[..bytes], steps);
                assert!(times.iter().all(|seconds| *seconds > 0.0 && seconds.is_finite()), "{times:?}");
            }
        }
    }

    /// One of two ways to read goes round a loop in every step.
    #[test]
    fn the_fastest_way_to_read_is_chosen() {
        let mut ways = probe();
        let offset = ways.code.bytes.len() as u64;
        // mov eax, 1 << 16; dec eax; jnz -4; dec rsi; jnz -14; ret
        ways.code.bytes.extend([0xb8, 0, 0, 1, 0, 0xff, 0xc8, 0x75, 0xfc]);
        ways.code.bytes.extend([0x48, 0xff, 0xce, 0x75, 0xf2, 0xc3]);
        ways.code.symbols.push(Symbol { name: "other".to_owned(), offset, size: 15, contract: None });
        let way = |name: &str| ReadWay { symbol: name.to_owned(), step: 256, places: 1, ahead: 0 };
        ways.reads = vec![way("other")];
        let memory = memory_to_read(256 << 10).unwrap();
        let chosen = |probe: &Probe| {
            // SAFETY: the functions touch no memory.
            let mut limits = unsafe { MachineProbe::new(probe, 2) }.unwrap();
            limits.choose_read(memory.as_slice());
            limits.read.1
        };
        assert_eq!(chosen(&ways), 512, "the other one is slow");
        let [read, _, other] = &mut ways.code.symbols[..] else { panic!("three functions") };
        std::mem::swap(&mut read.name, &mut other.name);
        assert_eq!(chosen(&ways), 256, "the other one is fast");
        ways.reads = vec![way("missing")];
        // SAFETY: as above.
        assert!(matches!(unsafe { MachineProbe::new(&ways, 1) }, Err(MeasureError::Symbol(READ))));
    }

    #[test]
    fn a_probe_without_a_function_is_refused() {
        let mut broken = probe();
        broken.code.symbols.pop();
        // SAFETY: as above, of the function that is left.
        let refused = unsafe { MachineProbe::new(&broken, 1) };
        assert!(matches!(refused, Err(MeasureError::Symbol(MULTIPLY))));
    }
}
