use super::*;

fn params() -> SamplerParams {
    SamplerParams { temperature: 1.0, seed: Some(7), ..SamplerParams::default() }
}

/// Tokens drawn from fixed logits, without penalties.
fn drawn(params: SamplerParams, logits: &[f32], times: usize) -> Vec<u32> {
    let mut sampler = Sampler::new(params, logits.len()).unwrap();
    (0..times).map(|position| sampler.sample(logits, position as u64).unwrap()).collect()
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
    let mut sampler = Sampler::new(SamplerParams { frequency_penalty: 1.0, ..greedy.clone() }, 3).unwrap();
    let tokens: Vec<u32> = (0..4).map(|n| sampler.sample(&[2.5, 2.0, -9.0], n).unwrap()).collect();
    assert_eq!(tokens, [0, 1, 0, 1]);

    let mut sampler = Sampler::new(SamplerParams { repetition_penalty: 2.0, ..greedy.clone() }, 3).unwrap();
    sampler.prompt(&[0]);
    assert_eq!(sampler.sample(&[2.5, 2.0, 1.9], 0), Ok(1));
    assert_eq!(sampler.sample(&[2.5, 2.0, 1.9], 0), Ok(2));

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
    assert_eq!(sampler.sample(&[0.0, f32::NAN], 0), Err(SamplerError::Nan { token: 1 }));
    assert_eq!(sampler.sample(&[f32::NEG_INFINITY; 2], 0), Err(SamplerError::NoneLeft));
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
    let best = drawn(SamplerParams::default(), &logits, 1)[0];
    for temperature in [1e-30, 1e-37, 3e-38, 1e-38, 1e-40, f32::from_bits(1)] {
        for (top_k, top_p) in [(None, 1.0), (Some(40), 1.0), (None, 0.9)] {
            let cold = SamplerParams { temperature, top_k, top_p, ..params() };
            assert!(drawn(cold, &logits, 50).iter().all(|t| *t == best), "{temperature} {top_k:?} {top_p}");
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

/// Logits of `n` tokens, roughly normal, with ties.
fn rough(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| ((0..6).map(|_| rng.f32()).sum::<f32>() * 40.0).round() / 10.0).collect()
}

/// The probabilities of all tokens, in f64, by sorting: the definition.
fn probabilities(p: &SamplerParams, logits: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
    order.truncate(p.top_k.unwrap_or(usize::MAX));
    let largest = f64::from(logits[order[0]]);
    let weight = |token: usize| ((f64::from(logits[token]) - largest) / f64::from(p.temperature)).exp();
    let total: f64 = order.iter().map(|token| weight(*token)).sum();
    let mut sum = 0.0;
    let kept = order.iter().position(|token| {
        sum += weight(*token);
        sum >= f64::from(p.top_p) * total
    });
    order.truncate(kept.map_or(order.len(), |last| last + 1));
    order.retain(|token| weight(*token) >= f64::from(p.min_p));
    let total: f64 = order.iter().map(|token| weight(*token)).sum();
    let mut all = vec![0.0; logits.len()];
    order.into_iter().for_each(|token| all[token] = weight(token) / total);
    all
}

#[test]
fn tokens_have_the_probabilities_of_the_sorted_list() {
    const DRAWS: usize = 20_000;
    let logits = rough(150, 3);
    let base = SamplerParams { temperature: 1.3, ..params() };
    for p in [
        base.clone(),
        SamplerParams { top_p: 0.5, ..base.clone() },
        SamplerParams { top_p: 0.05, ..base.clone() },
        SamplerParams { top_p: 0.9, min_p: 0.2, ..base.clone() },
        SamplerParams { min_p: 0.1, ..base.clone() },
        SamplerParams { top_k: Some(7), ..base.clone() },
        SamplerParams { top_k: Some(90), top_p: 0.6, min_p: 0.05, ..base },
    ] {
        let expected = probabilities(&p, &logits);
        let mut counts = vec![0usize; logits.len()];
        drawn(p.clone(), &logits, DRAWS).into_iter().for_each(|token| counts[token as usize] += 1);
        for (token, (count, probability)) in counts.iter().zip(&expected).enumerate() {
            let mean = probability * DRAWS as f64;
            let far = (*count as f64 - mean).abs();
            assert!(
                far <= 5.0 * mean.sqrt() + f64::from(u8::from(mean > 0.0)),
                "{p:?}: token {token} {count} times, expected {mean:.1}"
            );
        }
    }
}

#[test]
fn what_is_drawn_depends_on_seed_and_position_alone() {
    let logits = rough(1000, 5);
    let p = SamplerParams { top_p: 0.8, ..params() };
    let forwards = drawn(p.clone(), &logits, 50);
    let mut sampler = Sampler::new(p.clone(), 1000).unwrap();
    let backwards: Vec<u32> = (0..50).rev().map(|n| sampler.sample(&logits, n).unwrap()).collect();
    assert!(forwards.iter().eq(backwards.iter().rev()));
    let other = drawn(SamplerParams { seed: Some(8), ..p }, &logits, 50);
    assert_ne!(forwards, other);
}

#[test]
fn masks_forbid_and_change_nothing_else() {
    let logits = rough(300, 9);
    for p in [
        params(),
        SamplerParams { top_k: Some(3), ..params() },
        SamplerParams { temperature: 0.0, ..params() },
    ] {
        let mut mask = TokenMask::new(300, false);
        [299, 64, 3].into_iter().for_each(|token| mask.set(token, true));
        let mut sampler = Sampler::new(p, 300).unwrap();
        for position in 0..100 {
            let token = sampler.choose(&logits, position, Some(&mask)).unwrap();
            assert!(mask.allows(token), "{token}");
            let all = TokenMask::new(300, true);
            let free = sampler.choose(&logits, position, None);
            assert_eq!(sampler.choose(&logits, position, Some(&all)), free);
        }
        assert_eq!(
            sampler.choose(&logits, 0, Some(&TokenMask::new(300, false))),
            Err(SamplerError::NoneLeft)
        );
    }
}

#[test]
fn logprobs_are_those_of_the_untouched_row() {
    let logits = rough(1000, 11);
    let p = SamplerParams { logit_bias: vec![(5, 9.0)], temperature: 0.1, ..params() };
    let mut sampler = Sampler::new(p, 1000).unwrap();
    let expected = probabilities(&params(), &logits);
    let found = sampler.logprobs(&logits, 5, 20).unwrap();
    assert!((f64::from(found.token) - expected[5].ln()).abs() < 1e-5);
    let likelier = |token: usize| {
        (0..1000)
            .filter(|other| {
                logits[*other] > logits[token] || logits[*other] == logits[token] && *other < token
            })
            .count()
    };
    assert_eq!(found.rank as usize, likelier(5));
    assert_eq!(found.top.len(), 20);
    for (place, (token, logprob)) in found.top.iter().enumerate() {
        assert_eq!(likelier(*token as usize), place);
        assert!((f64::from(*logprob) - expected[*token as usize].ln()).abs() < 1e-5);
    }
}

/// The passes with AVX2 and those without give the same bits: a sum of weights is as it is defined.
#[test]
fn sums_of_weights_have_one_order() {
    let logits = rough(1000, 13);
    let row = Row::new(&logits, &[], None);
    let (mut maxima, mut sums) = (Vec::new(), Vec::new());
    let largest = simd::scan(&row, &mut maxima).unwrap();
    let weights = simd::TokenWeights::new(largest, 0.7);
    let wanted = simd::WantedWeights { least: 0.0, all: true };
    let total = simd::weigh(&row, weights, wanted, &maxima, &mut [], &mut sums).all;
    let mut expected = 0.0;
    for (block, sum) in logits.chunks(64).zip(&sums) {
        let mut lanes = [0.0f32; 16];
        block.iter().enumerate().for_each(|(i, logit)| lanes[i % 16] += weights.of(*logit));
        for width in [8, 4, 2, 1] {
            (0..width).for_each(|lane| lanes[lane] += lanes[lane + width]);
        }
        assert_eq!(lanes[0].to_bits(), sum.to_bits());
        expected += f64::from(lanes[0]);
    }
    assert_eq!(total.to_bits(), expected.to_bits());
}
