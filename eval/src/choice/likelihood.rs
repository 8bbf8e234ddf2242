//! Likelihoods of continuations. What contexts share is computed once: the beginning of all contexts of a
//! batch, and each context for all of its continuations.

use crate::measured::{Measured, ScoredToken, Scorer, Slots};
use crate::resume::Logged;
use crate::tasks::TaskItem;
use kernmill::{Error, Result};
use kernmill_runtime::{LogitRow, SeqId, SequenceTokens, Steps, Tokenizer};
use serde_json::{Value, json};

/// Sequences of a batch at most.
pub const SEQUENCES: u32 = 64;
/// Tokens that the sequences of a batch may have together.
const TOKENS: u32 = 1 << 15;
/// Tokens that the contexts of a batch share at least, for them to be computed once.
const SHARED: usize = 16;

/// A context with the continuations that the model is asked about behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedContext {
    /// Ids of the context, at least one.
    pub context: Vec<u32>,
    /// Each choice's number and ids, at least one.
    pub tails: Vec<(usize, Vec<u32>)>,
}

/// The likelihood of a continuation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihood {
    /// Logarithm of the likelihood: the tokens' logarithms, added up in their order.
    pub log: f64,
    /// Whether each token is the likeliest one.
    pub is_greedy: bool,
}

impl Logged for Vec<Likelihood> {
    /// As bits, so that nothing is rounded.
    fn to_json(&self) -> Value {
        let bits: Vec<u64> = self.iter().map(|likelihood| likelihood.log.to_bits()).collect();
        let greedy: Vec<bool> = self.iter().map(|likelihood| likelihood.is_greedy).collect();
        json!({ "bits": bits, "greedy": greedy })
    }

    fn from_json(value: &Value) -> Option<Vec<Likelihood>> {
        let (bits, greedy) = (value["bits"].as_array()?, value["greedy"].as_array()?);
        let one = |(bits, greedy): (&Value, &Value)| {
            Some(Likelihood { log: f64::from_bits(bits.as_u64()?), is_greedy: greedy.as_bool()? })
        };
        let all: Option<Vec<Likelihood>> = bits.iter().zip(greedy).map(one).collect();
        all.filter(|_| bits.len() == greedy.len())
    }
}

/// The tokens of an item, as lm-eval has them: white space at a context's end belongs to the continuation,
/// and the continuation's tokens are those of both texts together behind as many as the context has alone.
/// Contexts that are too long lose their beginning. Also how many were cut.
///
/// # Errors
/// When a context or a continuation has no tokens, or a continuation is too long.
pub fn asked(item: &TaskItem, tokenizer: &Tokenizer, longest: u32) -> Result<(Vec<AskedContext>, usize)> {
    let (mut found, mut cut): (Vec<AskedContext>, usize) = (Vec::new(), 0);
    for (choice, [context, tail]) in item.pairs.iter().enumerate() {
        let bare = context.trim_end_matches(crate::tasks::is_space);
        let mut ids = tokenizer.encode(bare, false)?;
        let both = tokenizer.encode(&format!("{context}{tail}"), false)?;
        let tail = both.get(ids.len()..).unwrap_or_default().to_vec();
        if ids.is_empty() || tail.is_empty() {
            return Err(Error::bad_input(format!("choice {choice} has no tokens, or none before it")));
        }
        // The last token is not run.
        let room = (longest as usize + 1).saturating_sub(tail.len());
        if room == 0 {
            let what = format!("choice {choice} has {} tokens, expected at most {longest}", tail.len());
            return Err(Error::bad_input(what));
        }
        cut += usize::from(ids.len() > room);
        ids.drain(..ids.len().saturating_sub(room));
        match found.iter_mut().find(|asked| asked.context == ids) {
            Some(asked) => asked.tails.push((choice, tail)),
            None => found.push(AskedContext { context: ids, tails: vec![(choice, tail)] }),
        }
    }
    Ok((found, cut))
}

/// Tokens of the longest sequence.
pub fn context(items: &[Vec<AskedContext>]) -> u32 {
    let sizes = items
        .iter()
        .flatten()
        .flat_map(|asked| asked.tails.iter().map(|(_, tail)| asked.context.len() + tail.len() - 1));
    sizes.max().unwrap_or(1) as u32
}

/// Sequences that an engine for these items has.
pub fn sequences(items: &[Vec<AskedContext>]) -> u32 {
    let most = items.iter().map(|item| of_item(item)).max().unwrap_or(1) as u32 + 1;
    (TOKENS / context(items)).clamp(most, SEQUENCES.max(most))
}

/// Sequences that an item takes.
fn of_item(item: &[AskedContext]) -> usize {
    item.iter().map(|asked| 1 + asked.tails.len()).sum()
}

/// Numbers of the items of each batch, of so many sequences.
pub fn batches(items: &[Vec<AskedContext>], sequences: u32) -> Vec<std::ops::Range<usize>> {
    let (mut batches, mut from, mut taken) = (Vec::new(), 0, 1);
    for (at, item) in items.iter().enumerate() {
        if at > from && taken + of_item(item) > sequences as usize {
            batches.push(from..at);
            (from, taken) = (at, 1);
        }
        taken += of_item(item);
    }
    if from < items.len() {
        batches.push(from..items.len());
    }
    batches
}

/// Likelihoods of every choice of some items, in their order; and how many tokens were run.
///
/// # Errors
/// When the engine fails.
pub fn likelihoods(
    model: &mut Measured,
    scorer: &Scorer,
    items: &[Vec<AskedContext>],
) -> Result<(Vec<Vec<Likelihood>>, u64)> {
    let mut open = Vec::new();
    let done = run(model, scorer, items, &mut open);
    open.into_iter().for_each(|sequence| model.engine.drop_sequence(sequence));
    done
}

fn run(
    model: &mut Measured,
    scorer: &Scorer,
    items: &[Vec<AskedContext>],
    open: &mut Vec<SeqId>,
) -> Result<(Vec<Vec<Likelihood>>, u64)> {
    let groups: Vec<&AskedContext> = items.iter().flatten().collect();
    let mut tokens = 0;

    let shared = if groups.len() > 1 { shared(&groups) } else { 0 };
    let trunk = (shared >= SHARED).then(|| model.create()).transpose()?;
    open.extend(trunk);
    if let Some(trunk) = trunk {
        let entry = SequenceTokens::silent(trunk, &groups[0].context[..shared]);
        tokens += u64::from(model.engine.extend(&[entry], &())?.tokens);
    }
    let shared = if trunk.is_some() { shared } else { 0 };

    // The first token of every continuation stands behind its context's last row.
    let mut sequences = Vec::with_capacity(groups.len());
    for _ in &groups {
        let sequence = match trunk {
            Some(trunk) => model.engine.fork(trunk, shared as u32)?,
            None => model.create()?,
        };
        open.push(sequence);
        sequences.push(sequence);
    }
    let firsts = Slots::new(groups.len());
    let heads: Vec<SequenceTokens<'_>> = groups
        .iter()
        .zip(&sequences)
        .map(|(asked, sequence)| SequenceTokens::last(*sequence, &asked.context[shared..]))
        .collect();
    let take = |_: usize, row: LogitRow<'_>| {
        let tails = groups[row.entry].tails.iter();
        let scored: Result<Vec<ScoredToken>> =
            tails.map(|(_, tail)| scorer.score(row.logits, tail[0])).collect();
        firsts.put(row.entry, scored);
    };
    tokens += u64::from(model.engine.extend(&heads, &take)?.tokens);
    let firsts = firsts.all()?;

    // All further ones, in sequences of their own.
    let mut entries = Vec::new();
    let mut places = Vec::new();
    let mut rows = 0;
    for (asked, sequence) in groups.iter().zip(&sequences) {
        for (_, tail) in asked.tails.iter().filter(|(_, tail)| tail.len() > 1) {
            let fork = model.engine.fork(*sequence, asked.context.len() as u32)?;
            open.push(fork);
            entries.push(SequenceTokens::all(fork, &tail[..tail.len() - 1]));
            places.push((rows, tail));
            rows += tail.len() - 1;
        }
    }
    let further = Slots::new(rows);
    let take = |_: usize, row: LogitRow<'_>| {
        let (at, tail) = places[row.entry];
        further.put(at + row.token, scorer.score(row.logits, tail[row.token + 1]));
    };
    if !entries.is_empty() {
        tokens += u64::from(model.engine.extend(&entries, &take)?.tokens);
    }
    let mut further = further.all()?.into_iter();

    let mut found = Vec::with_capacity(items.len());
    let mut firsts = firsts.into_iter();
    for item in items {
        let mut choices: Vec<(usize, Likelihood)> = Vec::new();
        for asked in item {
            for ((choice, tail), first) in asked.tails.iter().zip(firsts.next().unwrap_or_default()) {
                let all = std::iter::once(first).chain(further.by_ref().take(tail.len() - 1));
                let start = Likelihood { log: 0.0, is_greedy: true };
                let add = |sum: Likelihood, token: ScoredToken| Likelihood {
                    log: sum.log + f64::from(token.log),
                    is_greedy: sum.is_greedy && token.is_likeliest,
                };
                choices.push((*choice, all.fold(start, add)));
            }
        }
        choices.sort_unstable_by_key(|(choice, _)| *choice);
        found.push(choices.into_iter().map(|(_, likelihood)| likelihood).collect());
    }
    Ok((found, tokens))
}

/// Tokens with which all contexts begin; each has one more at least.
fn shared(groups: &[&AskedContext]) -> usize {
    let first = &groups[0].context;
    let with = |asked: &&AskedContext| {
        let same = asked.context.iter().zip(first).take_while(|(a, b)| a == b).count();
        same.min(asked.context.len() - 1)
    };
    groups.iter().map(with).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{AskedContext, batches, context, sequences, shared};

    fn item(context: &[u32], tails: &[&[u32]]) -> Vec<AskedContext> {
        let tails = tails.iter().enumerate().map(|(at, tail)| (at, tail.to_vec())).collect();
        vec![AskedContext { context: context.to_vec(), tails }]
    }

    #[test]
    fn batches_hold_all_items_and_keep_to_their_sequences() {
        let items: Vec<_> = (0..50).map(|_| item(&[1, 2, 3], &[&[4], &[5, 6], &[7, 8, 9]])).collect();
        assert_eq!((context(&items), sequences(&items)), (5, 64));
        let found = batches(&items, 64);
        let all: Vec<usize> = found.iter().cloned().flatten().collect();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert!(found.iter().all(|batch| batch.len() * 4 < 64), "{found:?}");
        assert_eq!(found.len(), 4);
        // An item that takes more than all has a batch of its own.
        assert_eq!(batches(&items[..2], 3), [0..1, 1..2]);
        assert!(batches(&[], 64).is_empty());
    }

    #[test]
    fn every_context_keeps_a_token_of_its_own() {
        let groups = [item(&[1, 2, 3], &[&[4]]), item(&[1, 2, 3], &[&[5]]), item(&[1, 2, 3, 4], &[&[5]])];
        let groups: Vec<&AskedContext> = groups.iter().flatten().collect();
        assert_eq!(shared(&groups), 2);
    }
}
