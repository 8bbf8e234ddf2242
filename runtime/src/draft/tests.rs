//! Drafts against plain ways of finding and checking them.

use super::index::{Occurrence, SuffixIndex};
use super::odds::Odds;
use super::{Draft, DraftCheck, Drafter, Drafting, Guess, History, MAX_DRAFT, StepCosts, SuffixDrafter};
use crate::sampler::{Sampler, SamplerParams};

/// Tokens that repeat themselves now and then.
fn text(rng: &mut fastrand::Rng, tokens: usize) -> Vec<u32> {
    let mut text: Vec<u32> = Vec::new();
    while text.len() < tokens {
        if text.len() > 8 && rng.u8(..) < 128 {
            let from = rng.usize(..text.len() - 4);
            let to = (from + rng.usize(4..40)).min(text.len());
            text.extend_from_within(from..to);
        } else {
            text.push(rng.u32(..6));
        }
    }
    text.truncate(tokens);
    text
}

/// The occurrence that [`SuffixIndex::find`] describes, by looking everywhere.
fn plain_search(all: &[u32], end: &[u32]) -> Option<Occurrence> {
    let agree = |next: usize| {
        let pairs = all[..next].iter().rev().zip(end.iter().rev());
        pairs.take(64).take_while(|(a, b)| a == b).count() as u32
    };
    let latest = (3..all.len()).rev().filter(|next| agree(*next) >= 3).take(8);
    let found = latest.map(|next| Occurrence { next, length: agree(next) });
    found.reduce(|best, one| if one.length > best.length { one } else { best })
}

#[test]
fn the_end_of_a_text_is_found_where_a_plain_search_finds_it() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut found = 0;
    for _ in 0..200 {
        let length = rng.usize(0..300);
        let text = text(&mut rng, length);
        let mut index = SuffixIndex::new(1000);
        index.extend(&text);
        let expected = plain_search(&text, &text);
        assert_eq!(index.find(&text), expected, "{text:?}");
        found += usize::from(expected.is_some());
        let other = &text[..rng.usize(0..=length)];
        assert_eq!(index.find(other), plain_search(&text, other));
    }
    assert!(found > 100, "{found}");
}

#[test]
fn an_index_keeps_its_limit_and_its_latest_tokens() {
    let mut rng = fastrand::Rng::with_seed(4);
    let text = text(&mut rng, 1000);
    let mut index = SuffixIndex::new(100);
    for (n, token) in text.iter().enumerate() {
        index.extend(&[*token]);
        let kept = index.tokens();
        assert!(kept.len() <= 100 && kept.len() >= (n + 1).min(50));
        assert_eq!(kept, &text[n + 1 - kept.len()..=n]);
        assert_eq!(index.find(kept), plain_search(kept, kept));
    }
}

#[test]
fn guesses_go_on_with_what_followed_before_and_with_themselves() {
    let guess = |history: &[&[u32]], text: &[u32]| {
        let earlier = History::default();
        history.iter().for_each(|text| earlier.add(text));
        let mut drafter = SuffixDrafter::with_history(earlier);
        drafter.follow(text);
        let mut tokens = Vec::new();
        let Guess { evidence } = drafter.guess(6, &mut tokens);
        (tokens, evidence)
    };
    assert_eq!(guess(&[], &[1, 2, 3, 4, 5, 9, 1, 2, 3]), (vec![4, 5, 9, 1, 2, 3], 3));
    // Two tokens in turn go on in turn.
    assert_eq!(guess(&[], &[1, 2, 1, 2, 1, 2]), (vec![1, 2, 1, 2, 1, 2], 4));
    assert_eq!(guess(&[], &[1, 2, 3, 4]), (vec![], 0));
    // Earlier texts end where they end, and matches do not reach over their borders.
    assert_eq!(guess(&[&[7, 1, 2, 3, 4, 5], &[6, 6]], &[8, 1, 2, 3]), (vec![4, 5], 3));
    assert_eq!(guess(&[&[7, 1, 2], &[3, 4, 5]], &[8, 1, 2, 3]), (vec![], 0));
    assert_eq!(guess(&[&[1, 2, 3]], &[8, 1, 2, 3]), (vec![], 0));
    // The longer match counts.
    assert_eq!(guess(&[&[9, 1, 2, 3, 4, 5]], &[1, 2, 3, 6, 9, 1, 2, 3]), (vec![4, 5], 4));
    assert_eq!(guess(&[&[1, 2, 3, 4, 5]], &[1, 2, 3, 6, 9, 1, 2, 3]), (vec![6, 9, 1, 2, 3, 6], 3));
}

#[test]
fn checking_a_draft_chooses_what_is_chosen_one_by_one() {
    const VOCAB: usize = 90;
    let mut rng = fastrand::Rng::with_seed(5);
    let mut lengths = [0; 6];
    for round in 0..300 {
        let params = SamplerParams {
            temperature: if round % 3 == 0 { 0.0 } else { 0.7 },
            top_p: if round % 2 == 0 { 0.9 } else { 1.0 },
            repetition_penalty: if round % 5 == 0 { 1.3 } else { 1.0 },
            frequency_penalty: if round % 7 == 0 { 0.5 } else { 0.0 },
            seed: Some(round),
            ..SamplerParams::default()
        };
        let rows: Vec<Vec<f32>> = (0..6).map(|_| (0..VOCAB).map(|_| 8.0 * rng.f32()).collect()).collect();
        let position = rng.u64(..100);
        let sampler = || {
            let mut sampler = Sampler::new(params.clone(), VOCAB).unwrap();
            sampler.prompt(&[3, 4, 5]);
            sampler.resume(&[(5, 2), (6, 1)]);
            sampler
        };
        // The right continuation, and the same with one wrong token.
        let mut plain = sampler();
        let mut tokens: Vec<u32> = (position..)
            .zip(&rows[..5])
            .map(|(position, row)| plain.sample(row, position).unwrap())
            .collect();
        if let Some(token) = tokens.get_mut(rng.usize(0..8)) {
            *token = (*token + 1) % VOCAB as u32;
        }
        let mut one_by_one = sampler();
        let mut expected = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            expected.push(one_by_one.sample(row, position + at as u64).unwrap());
            if tokens.get(at) != expected.last() {
                break;
            }
        }

        let draft = Draft::of(tokens);
        let mut sampler = sampler();
        let mut check = DraftCheck::new(&mut sampler, &draft, None, position, None);
        let mut order: Vec<usize> = (0..6).collect();
        rng.shuffle(&mut order);
        order.iter().for_each(|row| check.take(*row, &rows[*row]));
        let chosen: Vec<u32> = check.finish().into_iter().map(|chosen| chosen.unwrap().0).collect();
        assert_eq!(chosen, expected);
        lengths[expected.len() - 1] += 1;
        // Nothing is remembered that was not accepted.
        chosen.iter().for_each(|token| sampler.accept(*token));
        let last = position + chosen.len() as u64;
        assert_eq!(
            sampler.choose(&rows[0], last, None).unwrap(),
            one_by_one.choose(&rows[0], last, None).unwrap()
        );
    }
    assert!(lengths.iter().all(|count| *count > 10), "{lengths:?}");
}

#[test]
fn costs_are_those_measured_and_sensible_between_and_beyond() {
    let mut costs = StepCosts::default();
    assert_eq!(costs.curve()(1), None);
    costs.note(1, 1, 0.1);
    assert!((costs.curve()(1).unwrap() - 0.1).abs() < 1e-9);
    // Wider steps are expected to take longer, and less a token.
    let wide = costs.curve()(8).unwrap();
    assert!(wide > 0.2 && wide < 0.8, "{wide}");
    costs.note(9, 9, 0.3);
    // Between lines with logarithms and without, but for what the first has aged.
    let between = costs.curve()(3).unwrap();
    assert!((between - (0.15 * 0.1 * 3f64.sqrt()).sqrt()).abs() < 0.001, "{between}");
    // A measurement fades, and is gone in the end.
    for _ in 0..20 {
        costs.note(1, 1, 0.1);
    }
    assert!(costs.curve()(9).unwrap() < 0.29);
    for _ in 0..300 {
        costs.note(1, 1, 0.1);
    }
    assert!((costs.curve()(9).unwrap() - 0.1 * 9f64.powf(0.7)).abs() < 0.01);
}

#[test]
fn a_prompt_tells_what_wide_steps_cost() {
    let mut costs = StepCosts::default();
    let is = |seconds: Option<f64>, expected: f64| {
        assert!(
            seconds.is_some_and(|seconds| (seconds / expected - 1.0).abs() < 0.02),
            "{seconds:?}, {expected}"
        );
    };
    // A chunk alone says nothing of a text's steps.
    costs.note(400, 1, 2.0);
    assert_eq!(costs.curve()(400), None);
    costs.note(1, 1, 0.1);
    // Rows of logits are taken to be a quarter of a chunk's tokens until one was measured.
    is(costs.curve()(400), 2.5);
    is(costs.curve()(20), (0.5_f64 * (0.1 + 2.4 * 19.0 / 399.0)).sqrt());
    // Some rows of logits make neither a chunk nor a text.
    costs.note(400, 200, 9.0);
    is(costs.curve()(400), 2.5);
    // A measurement with all logits counts more, and tells of other chunks too.
    costs.note(400, 400, 2.8);
    is(costs.curve()(400), 2.8);
    costs.note(100, 0, 0.7);
    is(costs.curve()(100), 0.7 + 100.0 * 0.8 / 400.0);
    // A chunk stays known while the texts' wide steps are forgotten.
    for _ in 0..300 {
        costs.note(1, 1, 0.1);
    }
    is(costs.curve()(400), 2.8);
    // A chunk that waited for the disk does not make drafts dear.
    let mut late = StepCosts::default();
    late.note(400, 1, 90.0);
    late.note(1, 1, 0.1);
    is(late.curve()(400), 0.1 * 400f64.powf(0.7));
}

#[test]
fn odds_follow_what_came() {
    let mut odds = Odds::default();
    let before = odds.likelihood(5);
    (0..20).for_each(|_| odds.note(5, true));
    assert!(odds.likelihood(5) > before && odds.likelihood(5) > 0.9);
    assert!(odds.likelihood(2) < 0.5, "other evidence is not touched");
    (0..60).for_each(|_| odds.note(5, false));
    assert!(odds.likelihood(5) < 0.4);
    let expected: Vec<f64> = Odds::default().tokens(0, 4).collect();
    assert_eq!(expected.len(), 5);
    assert!(expected[0] == 1.0 && expected.is_sorted() && expected[4] < 2.0);
}

/// A drafter that is told what comes, and says so for the first `right` tokens of each guess.
#[derive(Clone, Debug)]
struct ForesightDrafter {
    text: Vec<u32>,
    at: usize,
    right: usize,
    is_free: bool,
    evidence: u32,
    calls: usize,
}

impl Drafter for ForesightDrafter {
    fn follow(&mut self, tokens: &[u32]) {
        self.at += tokens.len();
    }
    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
        self.calls += 1;
        let rest = self.text[self.at..].iter().take(most).enumerate();
        tokens.extend(rest.map(|(n, token)| if n < self.right { *token } else { token + 1 }));
        Guess { evidence: self.evidence }
    }
    fn is_free(&self) -> bool {
        self.is_free
    }
    fn fork(&self) -> Box<dyn Drafter> {
        Box::new(self.clone())
    }
}

/// Makes a text of a thousand tokens with steps that take `cost` of their tokens; the time, and the tokens of
/// drafts.
fn simulate(right: usize, is_free: bool, cost: impl Fn(u32) -> f64) -> (f64, u64) {
    let text: Vec<u32> = (0..1000).map(|n| n % 50).collect();
    let told = ForesightDrafter { text: text.clone(), at: 0, right, is_free, evidence: 4, calls: 0 };
    let mut drafting = Drafting::new(Box::new(told));
    let mut costs = StepCosts::default();
    let (mut at, mut time, mut followed) = (0, 0.0, 0);
    while at < text.len() {
        drafting.follow(&text[followed..at]);
        followed = at;
        let most = text.len() - at - 1;
        let draft = drafting.draft(None, &costs, 0, most, 60);
        let accepted = draft.tokens().iter().zip(&text[at..]).take_while(|(a, b)| a == b).count();
        drafting.note(draft.tokens().len(), accepted);
        let tokens = 1 + draft.tokens().len() as u32;
        costs.note(tokens, tokens, cost(tokens));
        time += cost(tokens);
        at += accepted + 1;
    }
    (time, drafting.stats().tokens)
}

#[test]
fn drafts_are_made_where_they_pay_and_left_where_they_do_not() {
    // As steps of a mixture of experts: two tokens take 1.6 times what one takes, 64 tokens 12 times.
    let moe = |tokens: u32| 0.4 + 0.6 * f64::from(tokens).powf(0.75);
    let (plain, drafted) = simulate(0, true, moe);
    assert!(plain < 1.02 * 1000.0 && drafted < 100, "{plain}, {drafted}");
    let (copied, _) = simulate(usize::MAX, true, moe);
    assert!(copied < 0.3 * 1000.0, "{copied}");
    // Guesses that are right for two tokens pay only where a step of three is cheap.
    let (two, _) = simulate(2, true, moe);
    assert!(two < 1.02 * 1000.0, "{two}");
    let (two, _) = simulate(2, true, |tokens| if tokens <= 3 { 1.1 } else { 1.1 * f64::from(tokens) });
    assert!(two < 0.45 * 1000.0, "{two}");
    // Where every token takes as long in a wide step, none is drafted in the long run.
    let (linear, _) = simulate(usize::MAX, true, f64::from);
    assert!(linear < 1.1 * 1000.0, "{linear}");
}

#[test]
fn a_drafter_that_takes_time_is_asked_where_it_pays() {
    let moe = |tokens: u32| 0.4 + 0.6 * f64::from(tokens).powf(0.75);
    let (plain, drafted) = simulate(0, false, moe);
    assert!(plain < 1.03 * 1000.0 && drafted < 50, "{plain}, {drafted}");
    let (copied, _) = simulate(usize::MAX, false, moe);
    assert!(copied < 0.35 * 1000.0, "{copied}");
}

#[test]
fn tokens_past_the_vocabulary_end_a_draft() {
    let text = vec![1, 2, 3, 99, 4];
    let told = ForesightDrafter { text, at: 0, right: 5, is_free: true, evidence: 4, calls: 0 };
    let mut drafting = Drafting::new(Box::new(told));
    let mut costs = StepCosts::default();
    for tokens in [1, 2, 4, 8] {
        costs.note(tokens, tokens, 1.0);
    }
    assert_eq!(drafting.draft(None, &costs, 0, 5, 99).tokens(), [1, 2, 3]);
    assert_eq!(drafting.draft(None, &costs, 0, 2, 99).tokens(), [1, 2]);
    assert!(drafting.draft(None, &costs, 0, 0, 99).tokens().is_empty());
}

#[test]
fn a_long_match_begins_with_wide_drafts_which_grow_to_the_widest() {
    let moe = |tokens: u32| 0.4 + 0.6 * f64::from(tokens).powf(0.75);
    let text: Vec<u32> = (0..1000).map(|n| n % 50).collect();
    let lengths = |evidence| -> Vec<usize> {
        let told = ForesightDrafter {
            text: text.clone(),
            at: 0,
            right: usize::MAX,
            is_free: true,
            evidence,
            calls: 0,
        };
        let (mut drafting, mut costs) = (Drafting::new(Box::new(told)), StepCosts::default());
        costs.note(512, 1, moe(512) / 1.25);
        costs.note(1, 1, moe(1));
        let (mut at, mut lengths) = (0, Vec::new());
        while at + 257 < text.len() {
            let length = drafting.draft(None, &costs, 0, 1000, 60).tokens().len();
            costs.note(1 + length as u32, 1 + length as u32, moe(1 + length as u32));
            drafting.follow(&text[at..=at + length]);
            at += length + 1;
            lengths.push(length);
        }
        lengths
    };
    let (short, long) = (lengths(6), lengths(24));
    assert!(short[0] < 16, "{short:?}");
    assert!((48..128).contains(&long[0]) && long.contains(&MAX_DRAFT), "{long:?}");
    assert!(long.len() < 7 && long.len() < short.len(), "{long:?}, {short:?}");
}
