//! One thing that is measured, and how.

use super::machine::MachineLimits;
use kernmill::adapters::AdapterSource;
use kernmill::{Error, Result};
use kernmill_runtime::measure::major_faults;
use kernmill_runtime::profile::{Detail, Profile};
use kernmill_runtime::trace::Trace;
use kernmill_runtime::{AdapterUse, Engine, SeqId, SequenceTokens, Steps};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// Prompt or decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// All tokens at once.
    Prompt,
    /// One token of each sequence at a time.
    Decode,
}

/// The filling of a context before something is measured behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Tokens, which are run: it takes as long as a prompt.
    #[default]
    Tokens,
    /// Random keys and values: nothing is run.
    Random,
}

impl FromStr for Fill {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Fill, &'static str> {
        match text {
            "tokens" => Ok(Fill::Tokens),
            "random" => Ok(Fill::Random),
            _ => Err("expected tokens or random"),
        }
    }
}

/// The work that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Prompt or decoding.
    pub kind: CaseKind,
    /// Tokens per sequence.
    pub tokens: u32,
    /// Tokens that the sequences have before.
    pub depth: u32,
    /// Sequences.
    pub batch: u32,
}

/// The cases of some options.
#[derive(Clone, Copy, Debug)]
pub struct Cases<'a> {
    /// Lengths of prompts; 0 for none.
    pub prompts: &'a [u32],
    /// Tokens before prompts.
    pub prompt_depths: &'a [u32],
    /// Tokens that are decoded; 0 for none.
    pub decoded: u32,
    /// Tokens before decoding.
    pub depths: &'a [u32],
    /// Sequences that decode together.
    pub batches: &'a [u32],
}

impl Cases<'_> {
    /// The case, if it fits a context of `longest` tokens.
    ///
    /// # Errors
    /// When a case does not fit, or nothing is to be measured.
    pub fn list(&self, longest: u32) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for tokens in self.prompts.iter().copied().filter(|tokens| *tokens > 0) {
            let depths = self.prompt_depths.iter().copied();
            cases.extend(depths.map(|depth| Case { kind: CaseKind::Prompt, tokens, depth, batch: 1 }));
        }
        let tokens = self.decoded;
        for depth in self.depths.iter().copied().filter(|_| tokens > 0) {
            let batches = self.batches.iter().copied();
            cases.extend(batches.map(|batch| Case { kind: CaseKind::Decode, tokens, depth, batch }));
        }
        cases.iter().try_for_each(|case| case.check(longest))?;
        if cases.is_empty() {
            return Err(Error::bad_input("nothing to measure: expected --pp or --tg above 0".to_owned()));
        }
        Ok(cases)
    }

    /// Checks that every adapter has a sequence: they take turns.
    ///
    /// # Errors
    /// When there are more adapters than sequences.
    pub fn check_adapters(&self, adapters: &[AdapterSource]) -> Result<()> {
        let most = self.batches.iter().copied().max().filter(|_| self.decoded > 0).unwrap_or(1);
        let left_out = |adapter: &AdapterSource| {
            let name = &adapter.name;
            let what = format!("--lora {name}: no sequence has it, there are {most} at most; raise --batch");
            Err(Error::bad_input(what))
        };
        adapters.get(most as usize).map_or(Ok(()), left_out)
    }
}

/// How cases are measured.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The sequences' adapters, in turn.
    pub adapters: &'a [AdapterUse],
    /// Measured runs.
    pub repeat: u16,
    /// The filling of contexts.
    pub fill: Fill,
    /// The detail of the times.
    pub detail: Detail,
    /// Whether some batches are recorded behind the measured runs.
    pub record: bool,
    /// Size of the vocabulary.
    pub vocab: u32,
    /// Bytes of each read of the memory.
    pub read: u64,
}

/// The outcome of a case.
pub struct CaseOutcome {
    /// The case.
    pub case: Case,
    /// Seconds of each run.
    pub seconds: Vec<f64>,
    /// Seconds of a step's replay ([`Engine::replay`]) before and behind each run of decoding: their
    /// geometric mean.
    pub replays: Vec<f64>,
    /// Page faults of each run that waited for a disk.
    pub major_faults: Vec<u64>,
    /// The executor's measurements of all runs together.
    pub profile: Profile,
    /// The record of every worker in some batches, if that was asked for.
    pub trace: Option<Trace>,
}

/// Steps of decoding that are recorded at most.
const RECORDED: usize = 8;
/// Tokens decoded before the measured runs.
const WARM_UP: usize = 8;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CaseKind::Prompt => write!(f, "prompt {}", self.tokens)?,
            CaseKind::Decode => write!(f, "decode {}", self.tokens)?,
        }
        f.write_str(&self.place())
    }
}

impl Case {
    /// Depth and count of the sequences, as a name continues.
    pub(super) fn place(&self) -> String {
        let depth = if self.depth > 0 { format!(" after {}", self.depth) } else { String::new() };
        if self.batch > 1 { format!("{depth}, {} sequences", self.batch) } else { depth }
    }

    /// Sequences that the engine needs: those that run, and those that they are forked from.
    pub fn sequences(&self) -> u32 {
        if self.depth > 0 { 2 * self.batch } else { self.batch }
    }

    /// Checks that it fits a context of `longest` tokens.
    ///
    /// # Errors
    /// When it does not, by the names that the program's options have.
    fn check(&self, longest: u32) -> Result<()> {
        let Case { tokens, depth, .. } = *self;
        if depth.saturating_add(tokens) <= longest {
            return Ok(());
        }
        let (of_depth, of_tokens) = match self.kind {
            CaseKind::Prompt => ("--pp-depth", "--pp"),
            CaseKind::Decode => ("--depth", "--tg"),
        };
        Err(Error::bad_input(format!(
            "{of_depth} {depth} and {of_tokens} {tokens}: expected together at most {longest}, the model's \
             longest context"
        )))
    }

    /// Fills the context, warms up, and measures, with a look at the machine's limits before every run and
    /// after the last. `tick` is called after the warm-up and after every run.
    ///
    /// # Errors
    /// When the engine cannot run it: a context that is too short, adapters that are not loaded.
    pub fn measure(
        &self,
        engine: &mut Engine,
        machine: &mut MachineLimits,
        how: &Setup<'_>,
        tick: &dyn Fn(),
    ) -> Result<CaseOutcome> {
        let Setup { adapters, repeat, detail, vocab, .. } = *how;
        let filled = self.fill(engine, how)?;
        let ids: Vec<Vec<u32>> =
            (0..self.batch).map(|n| random_ids(n + 1, self.tokens as usize, vocab)).collect();
        let short: Vec<Vec<u32>> = match self.kind {
            CaseKind::Prompt => {
                ids.iter().map(|ids| ids[..ids.len().min(engine.chunk() as usize)].to_vec()).collect()
            }
            CaseKind::Decode => ids.iter().map(|ids| ids[..ids.len().min(WARM_UP)].to_vec()).collect(),
        };
        let mut sequences = self.start(engine, adapters, &filled)?;
        self.run(engine, &sequences, &short)?;
        tick();
        let (mut seconds, mut replays, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        engine.start_meter(detail);
        for _ in 0..repeat {
            let replay = self.replay(engine, machine)?;
            sequences.drain(..).for_each(|id| engine.drop_sequence(id));
            machine.look();
            sequences = self.start(engine, adapters, &filled)?;
            let before = major_faults();
            seconds.push(self.run(engine, &sequences, &ids)?);
            faults.push(major_faults() - before);
            if let (Some(before), Some(behind)) = (replay, self.replay(engine, machine)?) {
                replays.push((before * behind).sqrt());
            }
            tick();
        }
        machine.look();
        let profile = engine.stop_meter();
        let mut trace = None;
        if how.record {
            sequences.drain(..).for_each(|id| engine.drop_sequence(id));
            sequences = self.start(engine, adapters, &filled)?;
            trace = self.record(engine, &sequences, &ids)?;
        }
        sequences.into_iter().chain(filled).for_each(|id| engine.drop_sequence(id));
        Ok(CaseOutcome { case: *self, seconds, replays, major_faults: faults, profile, trace })
    }

    /// Records one chunk of a prompt, or some steps of decoding: no run that is measured, since recording
    /// takes a look at the clock more for every step and worker.
    fn record(&self, engine: &mut Engine, sequences: &[SeqId], ids: &[Vec<u32>]) -> Result<Option<Trace>> {
        let (tokens, batches) = match self.kind {
            CaseKind::Prompt => (engine.chunk() as usize, 1),
            CaseKind::Decode => (RECORDED, RECORDED),
        };
        let ids: Vec<Vec<u32>> = ids.iter().map(|ids| ids[..ids.len().min(tokens)].to_vec()).collect();
        engine.start_trace(batches);
        let ran = self.run(engine, sequences, &ids);
        let trace = engine.stop_trace();
        ran.map(|_| trace)
    }

    /// Seconds of a replay of the last step of decoding.
    fn replay(&self, engine: &mut Engine, machine: &mut MachineLimits) -> Result<Option<f64>> {
        match self.kind {
            CaseKind::Decode => machine.replay(engine).map(Some),
            CaseKind::Prompt => Ok(None),
        }
    }

    /// Different sequences of `depth` tokens to fork from; none for an empty context.
    ///
    /// # Errors
    /// As those of [`Case::measure`].
    pub(super) fn fill(&self, engine: &mut Engine, how: &Setup<'_>) -> Result<Vec<SeqId>> {
        let mut filled = Vec::new();
        for n in (0..self.batch).filter(|_| self.depth > 0) {
            if how.fill == Fill::Random && !how.adapters.is_empty() {
                let what =
                    "--fill random: its contexts have no adapter; leave out --lora, or fill with tokens";
                return Err(Error::bad_input(what.to_owned()));
            }
            if how.fill == Fill::Random {
                filled.push(engine.create_random(self.depth, n.into())?);
                continue;
            }
            let id = engine.create_with(turn(how.adapters, n as usize))?;
            let ids = random_ids(0x1000 + n, self.depth as usize, how.vocab);
            engine.extend(&[SequenceTokens::silent(id, &ids)], &())?;
            filled.push(id);
        }
        Ok(filled)
    }

    /// Sequences that go on from what is filled, or new ones.
    pub(super) fn start(
        &self,
        engine: &mut Engine,
        adapters: &[AdapterUse],
        filled: &[SeqId],
    ) -> Result<Vec<SeqId>> {
        let mut start = |n: usize| match filled.get(n) {
            Some(id) => engine.fork(*id, self.depth),
            None => engine.create_with(turn(adapters, n)),
        };
        Ok((0..self.batch as usize).map(&mut start).collect::<std::result::Result<_, _>>()?)
    }

    /// Seconds that these tokens take.
    fn run(&self, engine: &mut Engine, sequences: &[SeqId], ids: &[Vec<u32>]) -> Result<f64> {
        let at_once = match self.kind {
            CaseKind::Prompt => ids[0].len(),
            CaseKind::Decode => 1,
        };
        let mut work: Vec<SequenceTokens<'_>> = Vec::with_capacity(ids.len());
        let start = Instant::now();
        for at in (0..ids[0].len()).step_by(at_once) {
            work.clear();
            work.extend(
                sequences.iter().zip(ids).map(|(id, ids)| SequenceTokens::last(*id, &ids[at..at + at_once])),
            );
            engine.extend(&work, &())?;
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

/// The adapter of sequence `n`: they take turns.
fn turn(adapters: &[AdapterUse], n: usize) -> &[AdapterUse] {
    adapters.chunks(1).cycle().nth(n).unwrap_or_default()
}

impl CaseOutcome {
    /// Tokens of one run, of all sequences.
    fn tokens(&self) -> f64 {
        f64::from(self.case.tokens) * f64::from(self.case.batch)
    }

    /// Share of each run of decoding that its replays took: 1 when a step takes no longer than its reads.
    pub fn of_replays(&self) -> Vec<f64> {
        let steps = f64::from(self.case.tokens);
        self.replays.iter().zip(&self.seconds).map(|(replay, seconds)| replay * steps / seconds).collect()
    }

    /// Tokens per second of each run.
    pub fn rates(&self) -> Vec<f64> {
        self.seconds.iter().map(|seconds| self.tokens() / seconds).collect()
    }
}

/// Token ids that are the same every time for the same seed: a linear congruential generator's high bits.
fn random_ids(seed: u32, count: usize, vocab: u32) -> Vec<u32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ (u64::from(seed) << 32);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % vocab
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_by_seed_and_stay_in_the_vocabulary() {
        let (a, b) = (random_ids(1, 100, 50), random_ids(2, 100, 50));
        assert_ne!(a, b);
        assert_eq!(a, random_ids(1, 100, 50));
        assert!(a.iter().chain(&b).all(|id| *id < 50));
    }

    #[test]
    fn cases_have_names() {
        let case = |kind, depth, batch| Case { kind, tokens: 128, depth, batch }.to_string();
        assert_eq!(case(CaseKind::Prompt, 0, 1), "prompt 128");
        assert_eq!(case(CaseKind::Prompt, 512, 1), "prompt 128 after 512");
        assert_eq!(case(CaseKind::Decode, 0, 1), "decode 128");
        assert_eq!(case(CaseKind::Decode, 4096, 8), "decode 128 after 4096, 8 sequences");
    }
}
