//! Choosing the next token from a row of logits.
//!
//! The order, each stage working on the last one's result: repetition, presence and frequency penalties; logit bias;
//! temperature; top-k; top-p; min-p; one draw. Ties go to the lower token id, so that a seed gives the same tokens
//! everywhere.

use kernmill_os::float_env::FloatEnv;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// How to sample. The default is greedy.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerParams {
    /// 0 takes the largest logit; otherwise logits are divided by it.
    pub temperature: f32,
    /// Keeps the k likeliest tokens; `None` keeps all.
    pub top_k: Option<usize>,
    /// Keeps the likeliest tokens that together reach this probability; in (0, 1], 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less likely than this times the likeliest; in [0, 1], 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output; above 0, 1 is none.
    pub repetition_penalty: f32,
    /// Subtracted once from logits of tokens seen in the output.
    pub presence_penalty: f32,
    /// Subtracted per occurrence from logits of tokens seen in the output.
    pub frequency_penalty: f32,
    /// Added to the logits of these tokens; minus infinity bans one.
    pub logit_bias: Vec<(u32, f32)>,
    /// Seed of the draws; `None` takes a fresh one.
    pub seed: Option<u64>,
}

impl Default for SamplerParams {
    fn default() -> SamplerParams {
        SamplerParams {
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: None,
        }
    }
}

/// Why parameters are refused or no token could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// A parameter is out of range.
    #[error("{name} is {found}, expected {expected}")]
    Param {
        /// Parameter.
        name: &'static str,
        /// Its value.
        found: String,
        /// What is legal.
        expected: &'static str,
    },
    /// A biased token is not in the vocabulary.
    #[error("logit_bias names token {token}, expected less than {vocab}")]
    BiasToken {
        /// Token id.
        token: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// The model produced a NaN.
    #[error("the logit of token {token} is not a number: the model's weights or activations are damaged")]
    Nan {
        /// First such token.
        token: u32,
    },
    /// Every logit is minus infinity.
    #[error("no token can be chosen: every logit is minus infinity")]
    NoneLeft,
}

impl SamplerParams {
    /// Checks every parameter against its range, for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn check(&self, vocab: usize) -> Result<(), SamplerError> {
        let range = |name, value: f32, legal: bool, expected| {
            if legal { Ok(()) } else { Err(SamplerError::Param { name, found: value.to_string(), expected }) }
        };
        let t = self.temperature;
        range("temperature", t, t.is_finite() && t >= 0.0, "a finite number of at least 0")?;
        if self.top_k == Some(0) {
            return Err(SamplerError::Param { name: "top_k", found: "0".to_owned(), expected: "at least 1" });
        }
        let p = self.top_p;
        range("top_p", p, p > 0.0 && p <= 1.0, "more than 0 and at most 1")?;
        range("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "0 to 1")?;
        let r = self.repetition_penalty;
        range("repetition_penalty", r, r.is_finite() && r > 0.0, "a finite number above 0")?;
        let (presence, frequency) = (self.presence_penalty, self.frequency_penalty);
        range("presence_penalty", presence, presence.is_finite(), "a finite number")?;
        range("frequency_penalty", frequency, frequency.is_finite(), "a finite number")?;
        for (token, bias) in &self.logit_bias {
            if *token as usize >= vocab {
                return Err(SamplerError::BiasToken { token: *token, vocab });
            }
            range("logit_bias", *bias, !bias.is_nan() && *bias != f32::INFINITY, "a number or -inf")?;
        }
        Ok(())
    }
}

/// A sampler with the history of one sequence.
#[derive(Debug)]
pub struct Sampler {
    params: SamplerParams,
    rng: fastrand::Rng,
    /// Tokens of prompt and output.
    seen: HashSet<u32>,
    /// Occurrences in the output.
    output: HashMap<u32, u32>,
    /// `[vocab]` logits after penalties and bias.
    logits: Vec<f32>,
    /// Tokens still in the running.
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    token: u32,
    /// Logit over temperature.
    logit: f32,
    /// exp(logit - largest).
    weight: f64,
}

/// How many of the likeliest tokens top-p looks at first; four times as many when they do not suffice.
const TOP_P_START: usize = 256;

impl Sampler {
    /// A sampler for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(params: SamplerParams, vocab: usize) -> Result<Sampler, SamplerError> {
        params.check(vocab)?;
        let rng = params.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Ok(Sampler {
            params,
            rng,
            seen: HashSet::new(),
            output: HashMap::new(),
            logits: Vec::with_capacity(vocab),
            candidates: Vec::new(),
        })
    }

    /// Tells it the prompt, which the repetition penalty counts.
    pub fn prompt(&mut self, tokens: &[u32]) {
        if self.params.repetition_penalty != 1.0 {
            self.seen.extend(tokens);
        }
    }

    /// Chooses a token and remembers it.
    ///
    /// # Errors
    /// On NaN, and when nothing can be chosen.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32, SamplerError> {
        let _env = FloatEnv::standard();
        if let Some(token) = logits.iter().position(|logit| logit.is_nan()) {
            return Err(SamplerError::Nan { token: token as u32 });
        }
        self.logits.clear();
        self.logits.extend_from_slice(logits);
        self.penalise();
        let token = if self.params.temperature == 0.0 { greedy(&self.logits)? } else { self.draw()? };
        self.remember(token);
        Ok(token)
    }

    fn penalise(&mut self) {
        let p = &self.params;
        let logits = &mut self.logits[..];
        if p.repetition_penalty != 1.0 {
            for token in &self.seen {
                if let Some(logit) = logits.get_mut(*token as usize) {
                    *logit = if *logit > 0.0 {
                        *logit / p.repetition_penalty
                    } else {
                        *logit * p.repetition_penalty
                    };
                }
            }
        }
        for (token, count) in &self.output {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit -= p.presence_penalty + p.frequency_penalty * *count as f32;
            }
        }
        for (token, bias) in &p.logit_bias {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += bias;
            }
        }
    }

    fn remember(&mut self, token: u32) {
        if self.params.repetition_penalty != 1.0 {
            self.seen.insert(token);
        }
        if self.params.presence_penalty != 0.0 || self.params.frequency_penalty != 0.0 {
            *self.output.entry(token).or_insert(0) += 1;
        }
    }

    fn draw(&mut self) -> Result<u32, SamplerError> {
        self.candidates()?;
        let total = self.weigh();
        if self.params.top_p < 1.0 {
            self.top_p(total);
        }
        if self.params.min_p > 0.0 {
            // The likeliest has weight 1.
            let least = f64::from(self.params.min_p);
            self.candidates.retain(|c| c.weight >= least);
        }
        let total: f64 = self.candidates.iter().map(|c| c.weight).sum();
        let mut left = self.rng.f64() * total;
        for c in &self.candidates {
            left -= c.weight;
            if left < 0.0 {
                return Ok(c.token);
            }
        }
        // Rounding may leave a remainder: the last token with any weight.
        let last = self.candidates.iter().rev().find(|c| c.weight > 0.0);
        last.map(|c| c.token).ok_or(SamplerError::NoneLeft)
    }

    /// The tokens that top-k keeps, logits divided by the temperature.
    fn candidates(&mut self) -> Result<(), SamplerError> {
        let scaled = Scaled::new(&self.logits, self.params.temperature);
        self.candidates.clear();
        self.candidates.extend(
            self.logits.iter().enumerate().filter(|(_, l)| **l > f32::NEG_INFINITY).map(|(token, logit)| {
                Candidate { token: token as u32, logit: scaled.of(*logit), weight: 0.0 }
            }),
        );
        if self.candidates.is_empty() {
            return Err(SamplerError::NoneLeft);
        }
        if let Some(k) = self.params.top_k.filter(|k| *k < self.candidates.len()) {
            self.candidates.select_nth_unstable_by(k - 1, likelier);
            self.candidates.truncate(k);
            // In a fixed order, so that the draw does not depend on the selection's.
            self.candidates.sort_unstable_by(likelier);
        }
        Ok(())
    }

    /// Fills in the weights; their sum.
    fn weigh(&mut self) -> f64 {
        let largest = self.candidates.iter().map(|c| c.logit).fold(f32::MIN, f32::max);
        let mut total = 0.0;
        for c in &mut self.candidates {
            c.weight = libm::exp(f64::from(c.logit) - f64::from(largest));
            total += c.weight;
        }
        total
    }

    /// Keeps the likeliest tokens whose weights reach top-p of the total. Sorts only as many as it needs.
    fn top_p(&mut self, total: f64) {
        let target = f64::from(self.params.top_p) * total;
        let mut sorted = TOP_P_START.min(self.candidates.len());
        loop {
            if sorted < self.candidates.len() {
                self.candidates.select_nth_unstable_by(sorted - 1, likelier);
            }
            self.candidates[..sorted].sort_unstable_by(likelier);
            let mut sum = 0.0;
            let reached = self.candidates[..sorted].iter().position(|c| {
                sum += c.weight;
                sum >= target
            });
            if let Some(last) = reached {
                self.candidates.truncate(last + 1);
                return;
            }
            if sorted == self.candidates.len() {
                return;
            }
            sorted = (sorted * 4).min(self.candidates.len());
        }
    }
}

/// How logits are divided by a temperature.
enum Scaled {
    /// As they are.
    Plain { temperature: f32 },
    /// Some would be past f32: the largest is subtracted first, which changes no probability.
    Shifted { temperature: f32, largest: f32 },
}

impl Scaled {
    fn new(logits: &[f32], temperature: f32) -> Scaled {
        let finite = logits.iter().copied().filter(|logit| logit.is_finite());
        if finite.clone().all(|logit| (logit / temperature).is_finite()) {
            return Scaled::Plain { temperature };
        }
        let largest = logits.iter().copied().fold(f32::MIN, f32::max).min(f32::MAX);
        Scaled::Shifted { temperature, largest }
    }

    /// A logit over the temperature, infinite ones as the largest finite value.
    fn of(&self, logit: f32) -> f32 {
        match *self {
            Scaled::Plain { temperature } => (logit / temperature).clamp(f32::MIN, f32::MAX),
            Scaled::Shifted { temperature, largest } => {
                let below = f64::from(logit.min(f32::MAX)) - f64::from(largest);
                (below / f64::from(temperature)).max(f64::from(f32::MIN)) as f32
            }
        }
    }
}

fn likelier(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token))
}

fn greedy(logits: &[f32]) -> Result<u32, SamplerError> {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, logit) in logits.iter().enumerate() {
        if *logit > best.1 {
            best = (token, *logit);
        }
    }
    if best.1 == f32::NEG_INFINITY { Err(SamplerError::NoneLeft) } else { Ok(best.0 as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> SamplerParams {
        SamplerParams { temperature: 1.0, seed: Some(7), ..SamplerParams::default() }
    }

    /// Tokens drawn from fixed logits, without penalties.
    fn drawn(params: SamplerParams, logits: &[f32], times: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(params, logits.len()).unwrap();
        (0..times).map(|_| sampler.sample(logits).unwrap()).collect()
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(drawn(SamplerParams::default(), &[0.0, 3.0, 3.0, -1.0], 2), [1, 1]);
    }

    #[test]
    fn draws_follow_the_softmax_and_the_seed() {
        let logits = [0.0, 2f32.ln(), f32::NEG_INFINITY];
        let tokens = drawn(params(), &logits, 3000);
        assert_eq!(tokens, drawn(params(), &logits, 3000));
        let ones = tokens.iter().filter(|t| **t == 1).count();
        assert!((1850..2150).contains(&ones) && !tokens.contains(&2), "{ones}");
    }

    #[test]
    fn cuts_keep_what_they_say() {
        let logits: Vec<f32> = [0.1f32, 0.4, 0.2, 0.3].iter().map(|p| p.ln()).collect();
        let kept = |params| {
            let mut tokens = drawn(params, &logits, 500);
            tokens.sort_unstable();
            tokens.dedup();
            tokens
        };
        assert_eq!(kept(SamplerParams { top_k: Some(2), ..params() }), [1, 3]);
        assert_eq!(kept(SamplerParams { top_p: 0.6, ..params() }), [1, 3]);
        assert_eq!(kept(SamplerParams { top_p: 0.71, ..params() }), [1, 2, 3]);
        assert_eq!(kept(SamplerParams { min_p: 0.6, ..params() }), [1, 3]);
        assert_eq!(kept(SamplerParams { top_k: Some(1), ..params() }), [1]);
        // A flat temperature changes what min-p sees: it comes later.
        assert_eq!(kept(SamplerParams { min_p: 0.6, temperature: 100.0, ..params() }), [0, 1, 2, 3]);
    }

    #[test]
    fn penalties_and_bias() {
        let greedy = SamplerParams::default();
        let mut sampler =
            Sampler::new(SamplerParams { frequency_penalty: 1.0, ..greedy.clone() }, 3).unwrap();
        let tokens: Vec<u32> = (0..4).map(|_| sampler.sample(&[2.5, 2.0, -9.0]).unwrap()).collect();
        assert_eq!(tokens, [0, 1, 0, 1]);

        let mut sampler =
            Sampler::new(SamplerParams { repetition_penalty: 2.0, ..greedy.clone() }, 3).unwrap();
        sampler.prompt(&[0]);
        assert_eq!(sampler.sample(&[2.5, 2.0, 1.9]), Ok(1));
        assert_eq!(sampler.sample(&[2.5, 2.0, 1.9]), Ok(2));

        let logit_bias = vec![(0, f32::NEG_INFINITY), (2, 1.0)];
        assert_eq!(drawn(SamplerParams { logit_bias, ..greedy }, &[2.5, 2.0, 1.9], 1), [2]);
    }

    #[test]
    fn faults_are_typed() {
        let check = |change: fn(&mut SamplerParams)| {
            let mut p = params();
            change(&mut p);
            p.check(10)
        };
        for change in [
            |p: &mut SamplerParams| p.temperature = -1.0,
            |p: &mut SamplerParams| p.temperature = f32::NAN,
            |p: &mut SamplerParams| p.top_k = Some(0),
            |p: &mut SamplerParams| p.top_p = 0.0,
            |p: &mut SamplerParams| p.top_p = 1.5,
            |p: &mut SamplerParams| p.min_p = f32::NAN,
            |p: &mut SamplerParams| p.repetition_penalty = 0.0,
            |p: &mut SamplerParams| p.presence_penalty = f32::INFINITY,
            |p: &mut SamplerParams| p.logit_bias = vec![(1, f32::NAN)],
        ] {
            assert!(matches!(check(change), Err(SamplerError::Param { .. })));
        }
        assert_eq!(
            check(|p| p.logit_bias = vec![(10, 1.0)]),
            Err(SamplerError::BiasToken { token: 10, vocab: 10 })
        );
        let mut sampler = Sampler::new(params(), 2).unwrap();
        assert_eq!(sampler.sample(&[0.0, f32::NAN]), Err(SamplerError::Nan { token: 1 }));
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY; 2]), Err(SamplerError::NoneLeft));
    }

    #[test]
    fn large_vocabularies_and_tiny_temperatures() {
        let logits: Vec<f32> = (0..201_088).map(|i| ((i * 7919) % 1000) as f32 * 1e-3).collect();
        let flat = SamplerParams { top_p: 0.9, ..params() };
        let tokens = drawn(flat, &logits, 3);
        assert!(tokens.iter().all(|t| (*t as usize) < logits.len()));
        let cold = SamplerParams { temperature: 1e-40, ..params() };
        let largest = logits.iter().copied().fold(0.0, f32::max);
        assert!(drawn(cold, &[0.0, largest, -1.0], 20).iter().all(|t| *t == 1));
    }

    #[test]
    fn temperatures_whose_quotients_are_past_f32_take_the_likeliest() {
        let logits: Vec<f32> = (0..300).map(|i| 9.0 + ((i * 37) % 300) as f32 * 0.03).collect();
        let best = greedy(&logits).unwrap();
        for temperature in [1e-30, 1e-37, 3e-38, 1e-38, 1e-40, f32::from_bits(1)] {
            for (top_k, top_p) in [(None, 1.0), (Some(40), 1.0), (None, 0.9)] {
                let cold = SamplerParams { temperature, top_k, top_p, ..params() };
                assert!(
                    drawn(cold, &logits, 50).iter().all(|t| *t == best),
                    "{temperature} {top_k:?} {top_p}"
                );
            }
        }
        // Two that are equal stay equal.
        let even = SamplerParams { temperature: 1e-40, ..params() };
        let ones = drawn(even, &[20.0, 19.0, 20.0], 1000).iter().filter(|t| **t == 0).count();
        assert!((400..600).contains(&ones), "{ones}");
    }

    #[test]
    fn infinite_logits_are_the_largest_at_any_temperature() {
        for temperature in [1.0, 1e-40] {
            let p = SamplerParams { temperature, ..params() };
            let seen = drawn(p.clone(), &[f32::MAX, f32::INFINITY, 3.0, f32::NEG_INFINITY], 100);
            assert!(seen.iter().all(|t| *t < 2), "{seen:?}");
            assert_eq!(drawn(p, &[f32::NEG_INFINITY, 1.0, f32::MIN], 3), [1; 3]);
        }
    }
}
