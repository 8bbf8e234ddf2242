//! Steps that prefill, decode and check drafts at once, each entry with other rows of logits.

use super::{Case, PRESETS, engine, options, shapes};
use kernmill_plan::target::Level;
use kernmill_runtime::{Engine, LogitRow, LogitRows, SeqId, SequenceTokens, Steps};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

/// Logits of rows, by entry and token.
type Rows = BTreeMap<(usize, usize), Vec<f32>>;

/// The tokens that an entry appends: tokens of the text, then wrong ones of a draft, which are taken back
/// after the step.
#[derive(Clone)]
struct Turn {
    text: Range<usize>,
    wrong: usize,
    logits: LogitRows,
}

fn turn(text: Range<usize>, wrong: usize, logits: LogitRows) -> Turn {
    Turn { text, wrong, logits }
}

/// The actions of four sequences in each step: one is prefilled in silence and then decodes, one is prefilled
/// with every row, two have drafts of some tokens, of which the first are right.
fn script() -> Vec<[Turn; 4]> {
    let (none, last, all) = (LogitRows::None, LogitRows::Last, LogitRows::All);
    vec![
        [turn(0..17, 0, none), turn(0..9, 0, all), turn(0..2, 3, LogitRows::LastN(4)), turn(0..1, 0, last)],
        [turn(17..18, 0, last), turn(9..20, 0, all), turn(2..5, 1, LogitRows::LastN(3)), turn(1..2, 7, all)],
        [
            turn(18..19, 0, last),
            turn(20..21, 0, none),
            turn(5..13, 0, LogitRows::LastN(8)),
            turn(2..3, 0, none),
        ],
        [
            turn(19..20, 2, LogitRows::LastN(3)),
            turn(21..40, 0, last),
            turn(13..14, 0, all),
            turn(3..4, 4, last),
        ],
        [
            turn(20..21, 0, all),
            turn(40..41, 4, all),
            turn(14..31, 0, LogitRows::LastN(2)),
            turn(4..5, 0, last),
        ],
    ]
}

/// How many of an entry's rows are asked for.
fn asked(logits: LogitRows, tokens: usize) -> usize {
    match logits {
        LogitRows::None => 0,
        LogitRows::Last => 1,
        LogitRows::LastN(n) => n as usize,
        LogitRows::All => tokens,
        LogitRows::First => 1,
    }
}

/// Runs a turn of every sequence in one step, and takes the wrong tokens back.
fn step(engine: &mut Engine, ids: &[SeqId], turns: &[Turn], text: &[u32], vocab: u32) -> Rows {
    let tokens = |turn: &Turn| -> Vec<u32> {
        let wrong = (0..turn.wrong).map(|i| (text[turn.text.end + i] + 1) % vocab);
        text[turn.text.clone()].iter().copied().chain(wrong).collect()
    };
    let tokens: Vec<Vec<u32>> = turns.iter().map(tokens).collect();
    let entries: Vec<SequenceTokens<'_>> = (0..turns.len())
        .map(|i| SequenceTokens {
            sequence: ids[i],
            tokens: &tokens[i],
            logits: turns[i].logits,
            allowed: &[],
        })
        .collect();
    let rows = Mutex::new(Rows::new());
    let stats = engine
        .step(&entries, &|_: usize, row: LogitRow<'_>| {
            let twice = rows.lock().unwrap().insert((row.entry, row.token), row.logits.to_vec());
            assert!(twice.is_none(), "row {} of entry {} came twice", row.token, row.entry);
        })
        .unwrap();
    assert_eq!(stats.tokens as usize, tokens.iter().map(Vec::len).sum::<usize>());
    for (id, turn) in ids.iter().zip(turns) {
        engine.truncate(*id, turn.text.end as u32).unwrap();
    }
    rows.into_inner().unwrap()
}

#[test]
fn prefill_decode_and_drafts_in_one_step_are_as_alone() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 11, 60);
        let vocab = case.graph.vocab;
        for preset in PRESETS {
            let expected = case.expected(preset);
            let image = case.image(&case.compile(&options(preset, level)));
            for threads in [1, 3] {
                let mut mixed = engine(&image, threads, 4, None);
                let mut alone = engine(&image, 1, 1, None);
                let ids = [(); 4].map(|()| mixed.create().unwrap());
                for (n, turns) in script().iter().enumerate() {
                    let rows = step(&mut mixed, &ids, turns, &case.tokens, vocab as u32);
                    for (entry, turn) in turns.iter().enumerate() {
                        let what =
                            format!("{name}, {}, {threads} threads, step {n}, entry {entry}", preset.name());
                        let given = turn.text.len() + turn.wrong;
                        let first = given - asked(turn.logits, given);
                        let came: Vec<usize> =
                            rows.keys().filter(|key| key.0 == entry).map(|key| key.1).collect();
                        assert_eq!(came, (first..given).collect::<Vec<_>>(), "{what}");
                        // The same alone: the text before it, then this turn.
                        let id = alone.create().unwrap();
                        if turn.text.start > 0 {
                            alone
                                .extend(&[SequenceTokens::silent(id, &case.tokens[..turn.text.start])], &())
                                .unwrap();
                        }
                        let own = Turn { logits: LogitRows::All, ..turn.clone() };
                        let own = step(&mut alone, &[id], &[own], &case.tokens, vocab as u32);
                        alone.drop_sequence(id);
                        for token in first..given {
                            let row = &rows[&(entry, token)];
                            super::assert_bits(row, &own[&(0, token)], vocab, &what);
                            if token < turn.text.len() {
                                let at = (turn.text.start + token) * vocab;
                                super::assert_bits(row, &expected[at..at + vocab], vocab, &what);
                            }
                        }
                    }
                }
            }
        }
    }
}
