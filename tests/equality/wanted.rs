//! Of the last layer only the wanted rows are computed, with the bits that all rows have.

use super::{Case, PRESETS, engine, options, shapes};
use kernmill_plan::target::Level;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, LogitRow, LogitRows, SeqId, SequenceTokens, Steps};
use std::sync::Mutex;

/// Tokens of the text: several of the small class, more of the large one.
const TOKENS: usize = 50;

/// Logits of the wanted tokens of each entry, and the multiply-adds of the step.
fn step(engine: &mut Engine, batch: &[(SeqId, &[u32], LogitRows)]) -> (Vec<(usize, usize, Vec<f32>)>, u64) {
    let entries: Vec<SequenceTokens<'_>> = batch
        .iter()
        .map(|(sequence, tokens, logits)| SequenceTokens {
            sequence: *sequence,
            tokens,
            logits: *logits,
            allowed: &[],
        })
        .collect();
    let rows = Mutex::new(Vec::new());
    engine.start_meter(Detail::Totals);
    engine
        .step(&entries, &|_: usize, row: LogitRow<'_>| {
            rows.lock().unwrap().push((row.entry, row.token, row.logits.to_vec()));
        })
        .unwrap();
    let macs = engine.stop_meter().total.macs;
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|(entry, token, _)| (*entry, *token));
    (rows, macs)
}

#[test]
fn rows_that_nobody_wants_do_not_change_the_others() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 17, TOKENS);
        for preset in PRESETS {
            let image = case.image(&case.compile(&options(preset, level)));
            let expected = case.expected(preset);
            let vocab = case.graph.vocab;
            for (threads, tokens) in [(1, 6), (2, 8), (3, 30), (2, 32)] {
                let what = format!("{name}, {}, {threads} threads, {tokens} tokens", preset.name());
                let wanted = [LogitRows::All, LogitRows::Last, LogitRows::LastN(3), LogitRows::None];
                let macs = wanted.map(|logits| {
                    let mut engine = engine(&image, threads, 2, None);
                    let ids = [engine.create().unwrap(), engine.create().unwrap()];
                    // The second sequence always wants its last row: rows move past those of the first.
                    let (first, second) = case.tokens[..tokens].split_at(tokens / 2);
                    let batch =
                        [(ids[0], first, logits), (ids[1], &case.tokens[..second.len()], LogitRows::Last)];
                    let (rows, macs) = step(&mut engine, &batch);
                    for (entry, token, logits) in &rows {
                        assert_eq!(logits, &expected[token * vocab..][..vocab], "{what}: {entry}, {token}");
                    }
                    // Both go on as if every row had been computed.
                    let (next, _) = step(
                        &mut engine,
                        &[
                            (ids[0], &case.tokens[first.len()..][..2], LogitRows::All),
                            (ids[1], &case.tokens[second.len()..][..1], LogitRows::All),
                        ],
                    );
                    for (entry, token, logits) in &next {
                        let at = token + if *entry == 0 { first.len() } else { second.len() };
                        assert_eq!(
                            logits,
                            &expected[at * vocab..][..vocab],
                            "{what}: next of {entry}, {token}"
                        );
                    }
                    macs
                });
                assert!(macs[0] > macs[2] || tokens / 2 <= 3, "{what}: {macs:?}");
                assert!(macs[2] > macs[1] && macs[1] > macs[3], "{what}: {macs:?}");
            }
        }
    }
}

#[test]
fn steps_in_silence_leave_the_last_layer_out() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let (name, shape) = &shapes()[0];
    let case = Case::new(shape, 5, TOKENS);
    let image = case.image(&case.compile(&options(PRESETS[1], level)));
    let program = image.program();
    for class in &program.classes {
        let from = class.wanted_only.as_ref().expect("steps behind the last cache write");
        let labels: Vec<&str> =
            class.steps[from.step as usize..].iter().map(|step| step.label.as_str()).collect();
        let last = format!("layers.{}.", program.model.kv.layers.len() - 1);
        assert!(labels.iter().all(|label| label.starts_with(&last)), "{name}: {labels:?}");
        // Queries are among them where no worker computes what comes before them.
        let queries = labels.iter().filter(|label| label.ends_with("qkv")).count();
        assert_eq!(queries, usize::from(class.max_tokens > 8), "{name}: {labels:?}");
        assert!(!from.rows.is_empty());
    }
    let mut engine = engine(&image, 2, 1, None);
    let id = engine.create().unwrap();
    engine.start_meter(Detail::Steps);
    engine.step(&[SequenceTokens::silent(id, &case.tokens[..30])], &()).unwrap();
    let profile = engine.stop_meter();
    let layers = program.model.kv.layers.len() as u64;
    let calls = |kind: &str| profile.steps.iter().find(|step| step.name == kind).map_or(0, |step| step.calls);
    assert_eq!((calls("attention"), calls("moe_down"), calls("logits")), (layers - 1, layers - 1, 0));
}
