//! Texts from the toy program.

use super::tests::{config, engine, tokens};
use super::{MAX_CONTEXT, VOCAB, expected, image, image_with_tokenizer};
use crate::engine::{DEFAULT_CONTEXT, Engine};
use crate::generate::{GenerateParams, StopReason};
use crate::sampler::SamplerParams;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn generation_streams_text_until_it_stops() {
    let image = image_with_tokenizer();
    let mut engine = Engine::new(&image, config(2, 1, None)).unwrap();
    let prompt = tokens(30, 5);
    // What greedy choice gives, ASCII letters only so that every token is text.
    let logit_bias: Vec<(u32, f32)> =
        (0..VOCAB).filter(|t| !(97..123).contains(t)).map(|t| (t, f32::NEG_INFINITY)).collect();
    let params = |max_tokens, stop: &[&str]| GenerateParams {
        adapters: Vec::new(),
        written: Vec::new(),
        max_tokens,
        sampler: SamplerParams { logit_bias: logit_bias.clone(), ..SamplerParams::default() },
        stop: stop.iter().map(ToString::to_string).collect(),
        stop_tokens: vec![256],
        shows_special: false,
        guide: None,
        drafter: None,
    };
    let mut history = prompt.clone();
    for _ in 0..40 {
        let logits = expected(&history);
        let best = (97..123u32).rev().max_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]));
        history.push(best.unwrap());
    }
    let full: String = history[30..].iter().map(|t| char::from(*t as u8)).collect();
    let mut run = |params: &GenerateParams| {
        let mut text = String::new();
        let summary = engine
            .generate(&prompt, params, &mut |piece| {
                text += piece;
                if text.len() == 25 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        (text, summary)
    };
    let (text, summary) = run(&params(20, &[]));
    assert_eq!((text.as_str(), summary.stop.clone()), (&full[..20], StopReason::MaxTokens));
    assert_eq!((summary.prompt_tokens, summary.tokens.len(), summary.decoded), (30, 20, 19));
    assert!(summary.decode_rate() > 0.0 && summary.prefill_rate() > 0.0);

    let stop = &full[10..14];
    let at = full.find(stop).unwrap();
    let (text, summary) = run(&params(20, &[stop]));
    assert_eq!((text.as_str(), summary.stop), (&full[..at], StopReason::Text(stop.to_owned())));
    // A start of a stop string that the end cuts short is text.
    let cut = format!("{}~", &full[17..20]);
    assert_eq!(run(&params(20, &[&cut])).0, full[..20]);

    let (text, summary) = run(&params(400, &[]));
    assert_eq!((text.len(), summary.stop), (25, StopReason::Caller));

    let mut ended = params(20, &[]);
    ended.stop_tokens = vec![history[30]];
    let (text, summary) = run(&ended);
    assert_eq!((text.as_str(), summary.tokens.len()), ("", 0));
    assert_eq!(summary.stop, StopReason::Token(history[30]));
}

#[test]
fn generation_ends_with_the_context() {
    let mut engine = engine(1, 1, None);
    let params = GenerateParams { max_tokens: 1000, ..GenerateParams::default() };
    let summary = engine.generate(&tokens(195, 0), &params, &mut |_| ControlFlow::Continue(())).unwrap();
    // Five tokens fill the context; one more is known, but not run.
    assert_eq!((summary.tokens.len(), summary.stop), (6, StopReason::Context));
    assert_eq!(engine.context(), MAX_CONTEXT.min(DEFAULT_CONTEXT));
}

#[test]
fn callers_are_asked_at_every_token_and_their_panics_free_the_sequence() {
    // Bytes that begin a character, special tokens, both: there is no text before the end.
    for (image, silent) in [
        (image(), &[0xe4][..]),
        (image_with_tokenizer(), &[0xe4]),
        (image_with_tokenizer(), &[256]),
        (image_with_tokenizer(), &[0xe4, 256]),
    ] {
        let mut engine = Engine::new(&image, config(1, 1, None)).unwrap();
        let bias = (0..VOCAB).filter(|t| !silent.contains(t)).map(|t| (t, f32::NEG_INFINITY)).collect();
        let sampler = SamplerParams { logit_bias: bias, ..SamplerParams::default() };
        let params = GenerateParams { max_tokens: 50, sampler, ..GenerateParams::default() };
        let mut calls = 0;
        let summary = engine.generate(&[7], &params, &mut |_| {
            calls += 1;
            if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let summary = summary.unwrap();
        assert_eq!((summary.stop, summary.tokens.len()), (StopReason::Caller, 3));
        // At the first token, within, and when the last text comes out.
        for at in [1, 2, 17, 50] {
            let mut calls = 0;
            let caught = catch_unwind(AssertUnwindSafe(|| {
                engine.generate(&[7], &params, &mut |_| {
                    calls += 1;
                    assert!(calls < at, "the caller's");
                    ControlFlow::Continue(())
                })
            }));
            assert!(caught.is_err() && calls == at, "call {at} of {calls}");
            let again = engine.generate(&[7], &params, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(again.tokens.len(), 50);
        }
    }
}

#[test]
fn a_stop_string_that_is_a_special_token_stops_there() {
    let mut engine = Engine::new(&image_with_tokenizer(), config(1, 1, None)).unwrap();
    let bias = (0..VOCAB).filter(|t| *t != 256).map(|t| (t, f32::NEG_INFINITY)).collect();
    let sampler = SamplerParams { logit_bias: bias, ..SamplerParams::default() };
    let mut params = GenerateParams { max_tokens: 5, sampler, ..GenerateParams::default() };
    let mut run = |params: &GenerateParams| {
        let mut text = String::new();
        let mut show = |piece: &str| {
            text += piece;
            ControlFlow::Continue(())
        };
        let stop = engine.generate(&[7], params, &mut show).unwrap().stop;
        (text, stop)
    };
    assert_eq!(run(&params), (String::new(), StopReason::MaxTokens));
    params.shows_special = true;
    assert_eq!(run(&params), ("</s>".repeat(5), StopReason::MaxTokens));
    params.stop = vec!["s></".to_owned()];
    assert_eq!(run(&params), ("</".to_owned(), StopReason::Text("s></".to_owned())));
    params.stop = vec!["</s>".to_owned()];
    for shows_special in [false, true] {
        params.shows_special = shows_special;
        assert_eq!(run(&params), (String::new(), StopReason::Text("</s>".to_owned())));
    }
}
