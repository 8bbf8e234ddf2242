//! Decoding beside a replay of its reads.
//!
//! Memory that others use too changes its speed from one second to the next, so that a rate says little by
//! itself, and the best of some reads says less the more the memory changes. Here every step of decoding (W)
//! is set against replays (R) right before and behind it: the same workers read the same bytes in the same
//! order, with the same barriers, and compute nothing ([`Engine::replay`]). The remaining noise of the ratio
//! averages out over some hundred steps. Trials that alternate on shared machines are an old idea (Abedi and
//! Brecht 2017; Bulej and others 2020).
//!
//! Three more kinds of units show what the ruler can see: replays in place of steps (R', whose ratio must be
//! 1), steps that read 5 % more bytes (W+, which must lose as much), and reads of as many bytes from one end
//! to the other (S).

mod estimate;
mod report;
mod series;

pub use report::PairedReport;

use super::Case;
use super::case::Setup;
use super::replays::{Replays, least};
use crate::stats::Quartiles;
use fastrand::Rng;
use kernmill::Loaded;
use kernmill::Result;
use kernmill_plan::probe::ReadWay;
use kernmill_runtime::measure::{major_faults, stolen_seconds};
use kernmill_runtime::{Engine, SeqId, SequenceTokens, Steps};
use series::{Series, TimedUnit, UnitKind};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Steps that are measured unless asked for more.
pub const UNITS: u32 = 400;
/// Seconds in which ways of reading are compared, before anything is measured.
const CALIBRATION: Duration = Duration::from_secs(5);
/// Rounds of the comparison: a round tries every way.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=25;
/// Choices of experts that replays draw from.
const CHOICES: usize = 64;
/// A replay in so many units has a read in sequence before it.
const SEQUENTIAL_EVERY: usize = 4;
/// [`UnitKind::More`] reads one in so many bytes again.
const MORE: u64 = 20;
/// Seed of the order, of tokens, and of the choices that are replayed.
const SEED: u64 = 7;

/// The replays of a plan in memory that are measured.
pub struct Paired(Replays);

/// The outcome of a case.
pub struct PairedOutcome {
    case: Case,
    series: Series,
    /// How replays and sequential reads read.
    ways: [ReadWay; 2],
    /// Bytes that a replay reads.
    bytes: u64,
}

impl Paired {
    /// Tokens that sequences get before they begin anew: [`Case::tokens`] of what is measured.
    pub const TOKENS: u32 = 64;

    /// Makes replays of what is loaded.
    ///
    /// # Errors
    /// When the functions that read cannot be made or run here.
    pub fn new(loaded: &Loaded) -> Result<Paired> {
        Replays::new(loaded).map(Paired)
    }

    /// Measures `units` steps. `tick` is called after each.
    ///
    /// # Errors
    /// When the engine cannot run it.
    pub fn measure(
        &self,
        engine: &mut Engine,
        case: Case,
        how: &Setup<'_>,
        units: u32,
        tick: &dyn Fn(),
    ) -> Result<PairedOutcome> {
        let mut run = PairedRun {
            paired: self,
            filled: case.fill(engine, how)?,
            engine,
            how,
            case,
            sequences: Vec::new(),
            left: 0,
            choices: VecDeque::new(),
            ways: [0, 0],
            bytes: 0,
            from: 0,
            rng: Rng::with_seed(SEED),
        };
        for _ in 0..CHOICES {
            run.forward()?;
        }
        run.choose_ways()?;
        let samples = run.samples(units, tick)?;
        let (bytes, ways) = (run.bytes, run.ways.map(|way| self.0.readers[way].way().clone()));
        let all = run.sequences.drain(..).chain(run.filled.drain(..)).collect::<Vec<SeqId>>();
        all.into_iter().for_each(|id| engine.drop_sequence(id));
        Ok(PairedOutcome { case, series: Series::new(samples), ways, bytes })
    }
}

/// A measurement under way.
struct PairedRun<'a> {
    paired: &'a Paired,
    engine: &'a mut Engine,
    how: &'a Setup<'a>,
    case: Case,
    /// The sequences that others are forked from; none for an empty context.
    filled: Vec<SeqId>,
    sequences: Vec<SeqId>,
    /// Tokens until sequences begin anew.
    left: u32,
    /// The choices of earlier steps.
    choices: VecDeque<Vec<Vec<u32>>>,
    /// Indices of the ways to read: of replays, of sequential reads.
    ways: [usize; 2],
    bytes: u64,
    /// Where the next sequential read begins.
    from: u64,
    rng: Rng,
}

impl PairedRun<'_> {
    /// A step of decoding; its seconds.
    fn forward(&mut self) -> Result<f64> {
        if self.left == 0 {
            self.sequences.drain(..).for_each(|id| self.engine.drop_sequence(id));
            self.sequences = self.case.start(self.engine, self.how.adapters, &self.filled)?;
            self.left = self.case.tokens;
        }
        self.left -= 1;
        let tokens: Vec<[u32; 1]> = self.sequences.iter().map(|_| [self.rng.u32(..self.how.vocab)]).collect();
        let entries: Vec<SequenceTokens<'_>> =
            self.sequences.iter().zip(&tokens).map(|(id, token)| SequenceTokens::last(*id, token)).collect();
        let start = Instant::now();
        self.engine.extend(&entries, &())?;
        let seconds = start.elapsed().as_secs_f64();
        self.choices.push_back(self.engine.last_experts());
        while self.choices.len() > CHOICES {
            self.choices.pop_front();
        }
        Ok(seconds)
    }

    /// A replay of the last step with the experts of an earlier one; its seconds.
    fn replay(&mut self) -> Result<f64> {
        let experts = &self.choices[self.rng.usize(..self.choices.len())];
        let start = Instant::now();
        self.bytes =
            self.engine.replay(&self.paired.0.replay, &self.paired.0.readers[self.ways[0]], experts)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// A read of `bytes` from one end to the other; its seconds.
    fn sequential(&mut self, bytes: u64) -> Result<f64> {
        let start = Instant::now();
        self.engine.read_weights(
            &self.paired.0.replay,
            &self.paired.0.readers[self.ways[1]],
            self.from,
            bytes,
        )?;
        self.from = (self.from + bytes) % self.paired.0.replay.bytes().max(1);
        Ok(start.elapsed().as_secs_f64())
    }

    /// Chooses the ways to read that take the least time in the median.
    fn choose_ways(&mut self) -> Result<()> {
        let mut times = vec![[Vec::new(), Vec::new()]; self.paired.0.readers.len()];
        let start = Instant::now();
        for round in 0..*ROUNDS.end() {
            if round >= *ROUNDS.start() && start.elapsed() > CALIBRATION {
                break;
            }
            for (way, times) in times.iter_mut().enumerate() {
                self.ways = [way, way];
                times[0].push(self.replay()?);
                times[1].push(self.sequential(self.bytes)?);
            }
        }
        self.ways = [0, 1].map(|kind| least(&times, |times| Quartiles::of(&times[kind]).median));
        Ok(())
    }

    fn samples(&mut self, units: u32, tick: &dyn Fn()) -> Result<Vec<TimedUnit>> {
        let mut samples = Vec::new();
        for (n, unit) in series::order(units, &mut self.rng).into_iter().enumerate() {
            // A turn begins with a step that fills caches: it is not measured.
            if self.left == 0 {
                self.forward()?;
            }
            if unit == UnitKind::Replay && n % SEQUENTIAL_EVERY == 0 {
                samples.push(self.sample(UnitKind::Sequential)?);
            }
            samples.push(self.sample(unit)?);
            if unit == UnitKind::Step {
                tick();
            }
        }
        Ok(samples)
    }

    fn sample(&mut self, unit: UnitKind) -> Result<TimedUnit> {
        let before = Noise::now();
        let seconds = match unit {
            UnitKind::Replay | UnitKind::Again => self.replay()?,
            UnitKind::Step => self.forward()?,
            UnitKind::More => self.forward()? + self.sequential(self.bytes / MORE)?,
            UnitKind::Sequential => self.sequential(self.bytes)?,
        };
        let after = Noise::now();
        Ok(TimedUnit {
            unit,
            seconds,
            stolen: after.stolen - before.stolen,
            faults: after.faults - before.faults,
        })
    }
}

/// The disturbances of a process so far.
struct Noise {
    /// Seconds that the machine's CPUs were others'; 0 where the system does not tell.
    stolen: f64,
    /// Page faults that waited for a disk.
    faults: u64,
}

impl Noise {
    fn now() -> Noise {
        Noise { stolen: stolen_seconds().unwrap_or(0.0), faults: major_faults() }
    }
}
