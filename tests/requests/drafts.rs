//! Drafts in a crowd. The clock of these tests gives every step the same time, so that wide steps always pay.

use super::*;
use kernmill_runtime::DraftStats;

/// A text that is drawn, with little in it that repeats itself.
fn drawn(tenant: u64) -> Request {
    let sampler = SamplerParams { temperature: 1.5, top_p: 1.0, seed: Some(11), ..SamplerParams::default() };
    Request { sampler, tenant, ..Request::greedy(vec![30, 31, 32, 33], 100) }
}

#[test]
fn a_request_may_be_without_drafts() {
    let mut serving = serve_on(engine(256, 1, None), SchedulerConfig::default());
    // Ten tokens again and again, which the model goes on with.
    let prompt: Vec<u32> = (0..120).map(|n| 40 + n % 10).collect();
    let bias = (0..3072).filter(|token| !(40..50).contains(token)).map(|token| (token, -100.0)).collect();
    let sampler = SamplerParams { logit_bias: bias, ..SamplerParams::default() };
    let with = Request { sampler, ..Request::greedy(prompt, 100) };
    let without = Request { drafts: false, ..with.clone() };
    let answers = answers_in_turn(&mut serving, &[without, with]);
    assert_eq!(answers[0].tokens, answers[1].tokens);
    assert_eq!(answers[0].drafts, DraftStats::default());
    assert!(answers[1].drafts.accepted > 50, "{:?}", answers[1].drafts);
    assert_eq!(serving.stats().drafts, answers[1].drafts);
    assert_eq!(serving.stats().generated, 200);
}

#[test]
fn predictions_and_earlier_answers_of_the_tenant_make_texts_come_faster() {
    let mut serving = serve_on(engine(256, 1, None), SchedulerConfig::default());
    let first = answers_in_turn(&mut serving, &[drawn(1)]).remove(0);
    let predicted = Request { prediction: first.tokens.clone(), ..drawn(2) };
    // Another answer lies between the two of tenant 1, and others ask what it asked.
    let other = Request { prompt: vec![50, 51, 52], ..drawn(1) };
    let requests = [predicted, other, drawn(1), drawn(3)];
    let answers = answers_in_turn(&mut serving, &requests);
    for (answer, request) in answers.iter().zip(&requests).filter(|(_, request)| request.prompt.len() == 4) {
        assert_eq!(answer.tokens, first.tokens, "tenant {}", request.tenant);
    }
    let accepted = |answer: &Answer| answer.drafts.accepted;
    assert!(accepted(&first) < 20, "{:?}", first.drafts);
    assert!(accepted(&answers[0]) > 80, "by a prediction: {:?}", answers[0].drafts);
    assert!(accepted(&answers[2]) > 80, "by an answer before: {:?}", answers[2].drafts);
    // Drafts from other tenants' texts make nothing faster: the time would tell it.
    assert_eq!(answers[3].drafts, first.drafts);
}
