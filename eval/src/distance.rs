//! How far a model's distribution over the next token is from a reference's.

use fastrand::Rng;
use libm::{exp, log};
use std::cmp::Ordering;

/// Tokens whose logits a record keeps.
pub const TOP: usize = 256;
/// Tokens among the others that it keeps a sample of.
pub const DRAWN: usize = 32;

/// A reference's distribution behind one token, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// All logits.
    All(Vec<f32>),
    /// The largest ones, and the sum of the others.
    Top(TopRecord),
    /// Logarithms of all probabilities in 16 bits, as llama.cpp stores them: a code times the scale, and the
    /// least.
    Coded {
        /// Difference between two codes.
        scale: f32,
        /// The logarithm of code 0, which also stands for everything below.
        least: f32,
        /// A code for each token.
        codes: Vec<u16>,
    },
}

/// The part of a distribution that a stored base keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct TopRecord {
    /// Logarithm of the sum of all exponentials of logits.
    pub log_sum: f64,
    /// Logarithm of the sum over the tokens that are not listed; minus infinity where all are.
    pub log_rest: f64,
    /// Logit of the text's next token.
    pub next: f32,
    /// The largest logits, largest first, with their tokens.
    pub top: Vec<(u32, f32)>,
    /// Logits of tokens that are drawn from the others by their probabilities: [`DRAWN`] of them, or none
    /// where the others have no probability.
    pub drawn: Vec<(u32, f32)>,
}

/// The comparison of two distributions behind one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Kullback-Leibler divergence of the model from the reference, in nats.
    pub kl: f64,
    /// The other way round; `None` where the reference's small probabilities are not known.
    pub reverse: Option<f64>,
    /// Whether both have the same likeliest token.
    pub is_same_top: bool,
    /// Loss of the model at the text's next token less the reference's, in nats.
    pub more_loss: f64,
}

/// The largest logit, with the first token that has it.
fn largest(logits: &[f32]) -> (u32, f32) {
    let all = logits.iter().enumerate();
    let (at, value) =
        all.fold((0, f32::NEG_INFINITY), |best, (at, x)| if *x > best.1 { (at, *x) } else { best });
    (at as u32, value)
}

/// Exponentials of logits over the largest one's, and their sum.
fn exponentials(logits: &[f32], largest: f32) -> (Vec<f64>, f64) {
    let all: Vec<f64> = logits.iter().map(|logit| exp(f64::from(*logit) - f64::from(largest))).collect();
    let sum = all.iter().sum();
    (all, sum)
}

impl TopRecord {
    /// The record of a row, behind which the text goes on with `next`.
    pub fn of(logits: &[f32], next: u32) -> TopRecord {
        let by_size = |a: &u32, b: &u32| -> Ordering {
            logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b))
        };
        let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
        if ids.len() > TOP {
            ids.select_nth_unstable_by(TOP, by_size);
            ids.truncate(TOP);
        }
        ids.sort_unstable_by(by_size);
        let most = f64::from(largest(logits).1);
        let (mut all, sum) = exponentials(logits, most as f32);
        ids.iter().for_each(|id| all[*id as usize] = 0.0);
        let (log_sum, rest) = (most + log(sum), all.iter().sum());
        let with_logit = |id: u32| (id, logits[id as usize]);
        TopRecord {
            log_sum,
            log_rest: most + log(rest),
            next: logits[next as usize],
            top: ids.into_iter().map(with_logit).collect(),
            drawn: draw(&all, rest, log_sum.to_bits()).into_iter().map(with_logit).collect(),
        }
    }
}

/// Numbers of weights, drawn by them: one from each of [`DRAWN`] equal shares of their sum.
fn draw(weights: &[f64], sum: f64, seed: u64) -> Vec<u32> {
    let mut rng = Rng::with_seed(seed);
    let mut drawn = Vec::with_capacity(DRAWN);
    let mut aim = rng.f64();
    let mut passed = 0.0;
    for (at, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        passed += weight;
        while drawn.len() < DRAWN && passed * DRAWN as f64 >= aim * sum {
            drawn.push(at as u32);
            aim = drawn.len() as f64 + rng.f64();
        }
    }
    // Sums are rounded: the last share may end a little later than all weights.
    if let (Some(last), true) = (drawn.last().copied(), drawn.len() < DRAWN) {
        drawn.resize(DRAWN, last);
    }
    drawn
}

impl Known {
    /// How far a model's logits are from it, where the text goes on with `next`.
    pub fn distance(&self, logits: &[f32], next: u32) -> Distance {
        match self {
            Known::All(reference) => between(reference, logits, next),
            Known::Top(record) => from_record(record, logits, next),
            Known::Coded { scale, least, codes } => from_codes(*scale, *least, codes, logits, next),
        }
    }
}

fn between(reference: &[f32], logits: &[f32], next: u32) -> Distance {
    let ((top, most), (own_top, own_most)) = (largest(reference), largest(logits));
    let (most, own_most) = (f64::from(most), f64::from(own_most));
    // Sums of exponentials, and of them times the difference of the logits.
    let (mut sum, mut own_sum, mut weighted, mut own_weighted) = (0.0, 0.0, 0.0, 0.0);
    for (logit, own) in reference.iter().zip(logits) {
        let (logit, own) = (f64::from(*logit) - most, f64::from(*own) - own_most);
        let (weight, own_weight) = (exp(logit), exp(own));
        sum += weight;
        own_sum += own_weight;
        weighted += if weight > 0.0 { weight * (logit - own) } else { 0.0 };
        own_weighted += if own_weight > 0.0 { own_weight * (own - logit) } else { 0.0 };
    }
    let apart = log(own_sum) - log(sum);
    let loss = |logit: f32, most: f64, sum: f64| most + log(sum) - f64::from(logit);
    let [at, own_at] = [reference, logits].map(|row| row[next as usize]);
    Distance {
        kl: weighted / sum + apart,
        reverse: Some(own_weighted / own_sum - apart),
        is_same_top: top == own_top,
        more_loss: loss(own_at, own_most, own_sum) - loss(at, most, sum),
    }
}

fn from_record(record: &TopRecord, logits: &[f32], next: u32) -> Distance {
    let (own_top, own_most) = largest(logits);
    let (mut all, sum) = exponentials(logits, own_most);
    let own_log_sum = f64::from(own_most) + log(sum);
    // The logarithms of both models' probabilities: for each listed token, then for all others together.
    let mut pairs: Vec<(f64, f64)> = Vec::with_capacity(record.top.len() + 1);
    for (id, logit) in &record.top {
        all[*id as usize] = 0.0;
        pairs.push((f64::from(*logit) - record.log_sum, f64::from(logits[*id as usize]) - own_log_sum));
    }
    let own_log_rest = f64::from(own_most) + log(all.iter().sum());
    pairs.push((record.log_rest - record.log_sum, own_log_rest - own_log_sum));
    let term = |of: f64, from: f64| if of == f64::NEG_INFINITY { 0.0 } else { exp(of) * (of - from) };
    let top = record.top.first().map(|(id, _)| *id);
    // The drawn tokens tell how far the others are apart among themselves. With r for the model's probability
    // over the reference's, both among the others, r - 1 - log r and r log r - r + 1 have the divergences as
    // their means. Since r has the mean 1, they vary far less than the logarithm alone.
    let (mut inner, mut own_inner) = (0.0, 0.0);
    for (id, logit) in &record.drawn {
        let log_r = f64::from(logits[*id as usize]) - own_log_rest - (f64::from(*logit) - record.log_rest);
        let r = exp(log_r);
        inner += (r - 1.0 - log_r) / record.drawn.len() as f64;
        own_inner += if r > 0.0 { r * log_r - r + 1.0 } else { 1.0 } / record.drawn.len() as f64;
    }
    let of_rest = |log_rest: f64, inner: f64| if inner == 0.0 { 0.0 } else { exp(log_rest) * inner };
    let kl: f64 = pairs.iter().map(|(of, own)| term(*of, *own)).sum();
    let reverse: f64 = pairs.iter().map(|(of, own)| term(*own, *of)).sum();
    Distance {
        kl: kl + of_rest(record.log_rest - record.log_sum, inner),
        reverse: Some(reverse + of_rest(own_log_rest - own_log_sum, own_inner)),
        is_same_top: top == Some(own_top),
        more_loss: own_log_sum - f64::from(logits[next as usize]) - (record.log_sum - f64::from(record.next)),
    }
}

/// Probabilities below e^-16 are left out, as llama.cpp leaves them out: the codes do not hold them.
fn from_codes(scale: f32, least: f32, codes: &[u16], logits: &[f32], next: u32) -> Distance {
    let (own_top, own_most) = largest(logits);
    let (_, sum) = exponentials(logits, own_most);
    let own_log_sum = f64::from(own_most) + log(sum);
    let known = |code: u16| f64::from(scale) * f64::from(code) + f64::from(least);
    let (mut kl, mut top) = (0.0, 0);
    for (at, (code, logit)) in codes.iter().zip(logits).enumerate() {
        let of = known(*code);
        if *code > codes[top] {
            top = at;
        }
        if of > -16.0 {
            kl += exp(of) * (of - (f64::from(*logit) - own_log_sum));
        }
    }
    let (at, own_at) = (codes[next as usize], logits[next as usize]);
    Distance {
        kl,
        reverse: None,
        is_same_top: top as u32 == own_top,
        more_loss: own_log_sum - f64::from(own_at) + known(at),
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, TOP, TopRecord};
    use fastrand::Rng;

    fn logits(seed: u64, tokens: usize, spread: f32) -> Vec<f32> {
        let mut rng = Rng::with_seed(seed);
        (0..tokens).map(|_| spread * (rng.f32() + rng.f32() + rng.f32() - 1.5)).collect()
    }

    #[test]
    fn distances_are_those_of_their_definition() {
        // Probabilities 1/2, 1/4, 1/4 and 1/4, 1/4, 1/2.
        let log = |all: [f32; 3]| all.map(f32::ln).to_vec();
        let (reference, own) = (log([0.5, 0.25, 0.25]), log([1.0, 1.0, 2.0]));
        let found = Known::All(reference.clone()).distance(&own, 2);
        let expected = 0.5 * 2f64.ln() + 0.25 * 0.5f64.ln();
        assert!((found.kl - expected).abs() < 1e-6 && (found.reverse.unwrap() - expected).abs() < 1e-6);
        assert!(!found.is_same_top && (found.more_loss + 2f64.ln()).abs() < 1e-6);
        let record = Known::Top(TopRecord::of(&reference, 2)).distance(&own, 2);
        assert!((record.kl - found.kl).abs() < 1e-12 && (record.more_loss - found.more_loss).abs() < 1e-12);
    }

    #[test]
    fn a_model_has_no_distance_from_itself() {
        let row = logits(1, 3000, 20.0);
        for known in [Known::All(row.clone()), Known::Top(TopRecord::of(&row, 7))] {
            let found = known.distance(&row, 7);
            assert_eq!((found.kl, found.reverse, found.more_loss), (0.0, Some(0.0), 0.0));
            assert!(found.is_same_top);
        }
    }

    #[test]
    fn records_and_codes_come_near() {
        let mut sums = [0.0; 4];
        for seed in 0..20 {
            let row = logits(seed, 20_000, 20.0);
            let noise = logits(seed + 100, 20_000, 0.3);
            let own: Vec<f32> = row.iter().zip(&noise).map(|(logit, noise)| logit + noise).collect();
            let whole = Known::All(row.clone()).distance(&own, 5);
            let record = TopRecord::of(&row, 5);
            assert_eq!(record.top.len(), TOP);
            let of_record = Known::Top(record).distance(&own, 5);
            sums[0] += whole.kl;
            sums[1] += of_record.kl;
            sums[2] += whole.reverse.unwrap();
            sums[3] += of_record.reverse.unwrap();
            assert_eq!(of_record.more_loss, whole.more_loss);

            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let log_sum = row.iter().map(|logit| f64::from(logit - most).exp()).sum::<f64>().ln() as f32;
            let least = row.iter().copied().fold(f32::MAX, f32::min).max(most - 16.0);
            let scale = (most - least) / 65535.0;
            let codes: Vec<u16> = row.iter().map(|x| ((x - least) / scale).round().max(0.0) as u16).collect();
            let of_codes = Known::Coded { scale, least: least - most - log_sum, codes }.distance(&own, 5);
            assert!((of_codes.kl / whole.kl - 1.0).abs() < 0.02, "{} of {}", of_codes.kl, whole.kl);
            assert_eq!(of_codes.is_same_top, whole.is_same_top);
        }
        let [kl, of_record, reverse, of_record_reverse] = sums;
        assert!((of_record / kl - 1.0).abs() < 0.01, "{of_record} of {kl}");
        assert!((of_record_reverse / reverse - 1.0).abs() < 0.01, "{of_record_reverse} of {reverse}");
    }
}
