//! A model that is measured: an engine whose rows of logits are looked at.

use crate::texts::Window;
use kernmill::adapters::together;
use kernmill::observe::{Progress, Unit};
use kernmill::{Engine, Error, Opened, Options, PlanImage, Result};
use kernmill_runtime::sampler::Sampler;
use kernmill_runtime::{
    AdapterUse, LogitRow, LogitRows, SamplerParams, SeqId, SequenceTokens, Steps, Tokenizer,
};
use std::sync::{Mutex, PoisonError};

/// A model in memory.
pub struct Measured {
    /// The engine.
    pub engine: Engine,
    image: PlanImage,
    adapters: Vec<AdapterUse>,
}

/// The logarithm of a token's probability, as /v1/completions gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoredToken {
    /// To the base e.
    pub log: f32,
    /// Whether no token is likelier.
    pub is_likeliest: bool,
}

impl Measured {
    /// Loads a model for `sequences` sequences of `context` tokens.
    ///
    /// # Errors
    /// When it makes vectors, or cannot be compiled or loaded.
    pub fn load(opened: Opened, options: &Options, context: u32, sequences: u32) -> Result<Measured> {
        let mut loaded = opened.prepare(options)?.load(options, context, sequences)?;
        if loaded.engine.model().vectors().is_some() {
            return Err(Error::bad_input("the model makes vectors of texts, expected one that makes texts"));
        }
        loaded.load_adapters(options)?;
        let adapters = together(&options.adapters);
        Ok(Measured { engine: loaded.engine, image: loaded.image, adapters })
    }

    /// Name of the model.
    pub fn name(&self) -> &str {
        &self.engine.model().name
    }

    /// Tokens of the vocabulary.
    pub fn vocab(&self) -> usize {
        self.engine.model().vocab as usize
    }

    /// The model's identity by its weights and arithmetic, as hexadecimal digits.
    pub fn identity(&self) -> String {
        self.image.identity().iter().flatten().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A new sequence with the model's adapters.
    ///
    /// # Errors
    /// When all are in use.
    pub fn create(&mut self) -> Result<SeqId> {
        Ok(self.engine.create_with(&self.adapters)?)
    }

    /// Appends tokens to a sequence; the rows behind the last `rows` of them go to `take`, numbered from 0,
    /// on any thread.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn append(
        &mut self,
        sequence: SeqId,
        tokens: &[u32],
        rows: usize,
        take: &(dyn Fn(usize, &[f32]) + Sync),
    ) -> Result<()> {
        let entry = SequenceTokens { sequence, tokens, logits: LogitRows::LastN(rows as u32), allowed: &[] };
        let unseen = tokens.len() - rows;
        self.engine.extend(&[entry], &|_: usize, row: LogitRow<'_>| take(row.token - unseen, row.logits))?;
        Ok(())
    }

    /// Reads a window; each row behind which a token is measured goes to `take`, with that token's number
    /// among the measured ones, on any thread.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn read(&mut self, window: &Window, take: &(dyn Fn(usize, &[f32]) + Sync)) -> Result<()> {
        let sequence = self.create()?;
        let tokens = &window.ids[..window.ids.len() - 1];
        let done = self.append(sequence, tokens, window.measured().len(), take);
        self.engine.drop_sequence(sequence);
        done
    }
}

/// A bar over this much work.
pub fn progress<'a>(options: &'a Options, work: &str, total: usize) -> Box<dyn Progress + 'a> {
    options.observer.begin(work, Unit::Count, total as u64)
}

/// The tokenizer of an opened model.
///
/// # Errors
/// When it has none, or it cannot be read.
pub fn with_tokenizer<R>(opened: &mut Opened, work: impl FnOnce(&Tokenizer) -> Result<R>) -> Result<R> {
    let none = || Error::bad_input("the model has no tokenizer, which evaluation needs");
    let handle = opened.tokenizer().ok_or_else(none)?;
    work(handle.get()?)
}

/// Logarithms of tokens' probabilities, by several workers at once.
pub struct Scorer {
    vocab: usize,
    spare: Mutex<Vec<Sampler>>,
}

impl Scorer {
    /// One for a vocabulary of this size.
    pub fn new(vocab: usize) -> Scorer {
        Scorer { vocab, spare: Mutex::new(Vec::new()) }
    }

    /// The logarithm for `token` behind a row.
    ///
    /// # Errors
    /// When a logit is not a number.
    pub fn score(&self, logits: &[f32], token: u32) -> Result<ScoredToken> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sampler = spare.map_or_else(|| Sampler::new(SamplerParams::default(), self.vocab), Ok)?;
        let found = sampler.logprobs(logits, token, 1)?;
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(sampler);
        let is_likeliest = found.top.first().is_none_or(|(_, log)| *log == found.token);
        Ok(ScoredToken { log: found.token, is_likeliest })
    }
}

/// Takes results of workers by their numbers; the first error is kept.
pub struct Slots<T>(Mutex<(Vec<Option<T>>, Option<Error>)>);

impl<T> Slots<T> {
    /// Room for so many.
    pub fn new(count: usize) -> Slots<T> {
        Slots(Mutex::new(((0..count).map(|_| None).collect(), None)))
    }

    /// Puts one in its place.
    pub fn put(&self, at: usize, found: Result<T>) {
        let (places, failed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, places.get_mut(at)) {
            (Ok(value), Some(place)) => *place = Some(value),
            (Err(error), _) => *failed = failed.take().or(Some(error)),
            (Ok(_), None) => {}
        }
    }

    /// All of them.
    ///
    /// # Errors
    /// When one failed.
    pub fn all(self) -> Result<Vec<T>> {
        let (places, failed) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let missing = || Error::failed("the engine did not hand out every row");
        failed.map_or(Ok(()), Err)?;
        places.into_iter().map(|place| place.ok_or_else(missing)).collect()
    }
}
