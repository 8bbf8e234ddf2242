//! Models whose tokens see those that follow: texts run whole, and their rows have the interpreter's bits,
//! whatever texts are beside them.

use super::{Case, assert_bits, mixed, options};
use crate::harness::answers;
use kernmill::{Level, Request, SchedulerConfig};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::interp::Interpreter;
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::quant::{Preset, Quantisation};
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_compiler::testing::random_weights;
use kernmill_plan::kv::{KvFormat, KvFormats};
use kernmill_plan::vectors::{Pooling, VectorForm, VectorSum};
use kernmill_runtime::guarded::{Flush, Guarded, GuardedConfig};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, EngineError, LogitRows, SequenceTokens, Steps};
use kernmill_serve::{Serving, Wanted};

/// Layers that see all, some on either side, and themselves; heads that share keys; positions by a table and
/// by a rope.
const SPEC: &str = include_str!("encoder.toml");

/// Tokens of a step, and of the longest text, which has keys in two segments.
const CHUNK: usize = 1300;
/// Lengths of texts.
const LENGTHS: [usize; 6] = [3, 1, 1100, 16, 40, 17];

fn encoder(pooling: Pooling) -> Case {
    let mut graph = lower(&Spec::parse("encoder.toml", SPEC).unwrap()).unwrap();
    graph.vectors = Some(VectorForm { pooling, normalise: true });
    let text = graph.to_string();
    assert_eq!(text.parse::<Graph>().as_ref(), Ok(&graph), "{text}");
    let weights = random_weights(&graph, 4);
    let tokens = (0..LENGTHS.iter().sum()).map(|at: usize| (at * at * 7 % 96) as u32).collect();
    let choices = mixed(&graph);
    Case { graph, weights, tokens, choices }
}

impl Case {
    fn texts(&self, lengths: &[usize]) -> Vec<&[u32]> {
        let mut rest = &self.tokens[..];
        let mut next = |length: &usize| {
            let (text, others) = rest.split_at(*length);
            rest = others;
            text
        };
        lengths.iter().map(&mut next).collect()
    }

    /// The interpreter's rows of each text, which runs alone.
    fn rows_alone(&self, preset: Preset, kv: &KvFormats, lengths: &[usize]) -> Vec<Vec<f32>> {
        let quantisation = Quantisation { preset, choices: Some(&self.choices), kv: *kv };
        let graph = quantisation.quantise(&self.graph).unwrap();
        let mut interpreter = Interpreter::new(&graph, &self.weights.for_graph(&graph)).unwrap();
        let texts = self.texts(lengths).into_iter().enumerate();
        texts.map(|(number, text)| interpreter.extend(number, text).unwrap()).collect()
    }

    fn encoder_engine(&self, options: CompilerOptions, threads: usize, chunk: u32) -> Engine {
        let image = self.image(&self.compile(&CompilerOptions { chunk: CHUNK, ..options }));
        let pool = PoolConfig { threads: Some(threads), ..PoolConfig::default() };
        let config = EngineConfig { pool, sequences: 6, chunk: Some(chunk), ..EngineConfig::default() };
        Engine::new(&image, config).unwrap()
    }
}

/// Rows of texts that run together, as far as they fit into steps.
fn rows(engine: &mut Engine, texts: &[&[u32]], wanted: LogitRows) -> Vec<Vec<f32>> {
    let ids: Vec<_> = texts.iter().map(|_| engine.create().unwrap()).collect();
    let batch: Vec<SequenceTokens<'_>> = ids
        .iter()
        .zip(texts)
        .map(|(id, tokens)| SequenceTokens { sequence: *id, tokens, logits: wanted, allowed: &[] })
        .collect();
    let mut rows = vec![Vec::new(); texts.len()];
    engine.extend_in_order(&batch, &mut |row| rows[row.entry].extend_from_slice(row.logits)).unwrap();
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
    rows
}

#[test]
fn rows_are_the_interpreters_in_any_company_on_every_level() {
    let case = encoder(Pooling::Mean);
    let int8 = KvFormats::uniform(KvFormat::Int8);
    let cases = [
        (Preset::Exact, Preset::Exact.kv_formats()),
        (Preset::Faithful, Preset::Faithful.kv_formats()),
        (Preset::Faithful, int8),
    ];
    for (preset, kv) in cases {
        let expected = case.rows_alone(preset, &kv, &LENGTHS);
        for (turn, level) in Level::supported().into_iter().enumerate() {
            let kernels = CompilerOptions { kv: Some(kv), fuse: turn != 1, ..options(preset, level) };
            let mut engine = case.encoder_engine(kernels, 1 + turn, CHUNK as u32);
            let texts = case.texts(&LENGTHS);
            let what = format!("{}, {kv}, {}", preset.name(), level.name());
            let together = rows(&mut engine, &texts, LogitRows::All);
            for (at, text) in texts.iter().enumerate() {
                assert_bits(&together[at], &expected[at], 64, &format!("{what}, text {at}"));
                let alone = rows(&mut engine, &[text], LogitRows::All);
                assert_bits(&alone[0], &expected[at], 64, &format!("{what}, text {at} alone"));
                // One row in the last layer, of a text whose others it sees.
                for (wanted, row) in [(LogitRows::First, 0), (LogitRows::Last, text.len() - 1)] {
                    let one = rows(&mut engine, &[text], wanted);
                    let what = format!("{what}, text {at}, {wanted:?}");
                    assert_bits(&one[0], &expected[at][row * 64..][..64], 64, &what);
                }
            }
        }
    }
}

#[test]
fn kernels_stay_inside_their_operands() {
    let lengths = [3, 1, 30, 16];
    let mut case = encoder(Pooling::Mean);
    case.tokens.truncate(lengths.iter().sum());
    case.graph.max_context = 48;
    for (turn, level) in Level::supported().into_iter().enumerate() {
        for preset in [Preset::Exact, Preset::Faithful] {
            let expected = case.rows_alone(preset, &preset.kv_formats(), &lengths).concat();
            let compiled = case.compile(&CompilerOptions { chunk: 64, ..options(preset, level) });
            let weights = case.pack(&compiled);
            for flush in [Flush::End, Flush::Start] {
                let config = GuardedConfig { context: 48, sequences: 4, workers: 1 + turn as u32, flush };
                // SAFETY: the compiler of this process has just made the code.
                let mut guarded =
                    unsafe { Guarded::new(&compiled.program, weights.as_slice(), config).unwrap() };
                let texts: Vec<(u32, &[u32])> = (0..).zip(case.texts(&lengths)).collect();
                let what = format!("{}, {}, {flush:?}", preset.name(), level.name());
                assert_bits(&guarded.run(&texts).unwrap(), &expected, 64, &what);
            }
        }
    }
}

#[test]
fn texts_never_go_on_and_nothing_of_them_is_kept() {
    let case = encoder(Pooling::Mean);
    let level = *Level::supported().last().unwrap();
    let mut engine = case.encoder_engine(options(Preset::Faithful, level), 1, 40);
    assert_eq!((engine.context(), engine.chunk()), (40, 40), "a text is no longer than a step");
    let text = &case.tokens[..20];
    for _ in 0..2 {
        let begun = engine.begin(text, &[], [0; 32]).unwrap();
        assert_eq!(begun.cached_tokens, 0);
        engine.step(&[SequenceTokens::all(begun.sequence, text)], &()).unwrap();
        let on = engine.step(&[SequenceTokens::all(begun.sequence, text)], &()).unwrap_err();
        assert!(matches!(on, EngineError::GoesOn), "{on}");
        engine.checkpoint(begun.sequence).unwrap();
        engine.drop_sequence(begun.sequence);
        assert_eq!(engine.cached_tokens(text, &[], [0; 32]), 0);
        assert_eq!(engine.kv().cached, [0, 0]);
    }
    let id = engine.create().unwrap();
    let long = engine.extend(&[SequenceTokens::all(id, &case.tokens[..41])], &()).unwrap_err();
    assert!(long.to_string().contains("40"), "{long}");
}

/// Vectors of texts that the scheduler puts into steps.
#[test]
fn vectors_depend_on_nothing_but_the_text() {
    let lengths = [3, 1, 30, 16, 40, 17, 2, 39];
    let level = *Level::supported().last().unwrap();
    for pooling in Pooling::ALL {
        let case = encoder(pooling);
        let form = VectorForm { pooling, normalise: true };
        let rows = case.rows_alone(Preset::Faithful, &Preset::Faithful.kv_formats(), &lengths);
        let vector = |rows: &Vec<f32>| {
            let mut sum = VectorSum::new(form);
            rows.chunks(64).for_each(|row| sum.add(row));
            sum.finish(64)
        };
        let expected: Vec<Vec<f32>> = rows.iter().map(vector).collect();
        for (threads, chunk, sequences) in [(1, 40, 6), (2, 64, 4), (2, 200, 2)] {
            let engine = case.encoder_engine(options(Preset::Faithful, level), threads, chunk);
            let config = SchedulerConfig { max_batch_tokens: 7, ..SchedulerConfig::default() };
            let mut serving = Serving::new(engine, config.with_sequences(sequences)).unwrap();
            for _ in 0..2 {
                let request =
                    |text: &[u32]| Request::values(text.to_vec(), Wanted::Vector { dimensions: None });
                let requests = case.texts(&lengths).into_iter().map(request).collect();
                let found: Vec<_> = answers(&mut serving, requests).into_iter().map(|it| it.values).collect();
                assert_eq!(found, expected, "{pooling:?}, {threads} threads, {chunk} tokens a step");
            }
            let long = Request::values(vec![1; chunk as usize + 1], Wanted::Vector { dimensions: None });
            let what = serving.submit(long).unwrap_err().to_string();
            assert!(what.contains(&format!("{} tokens", chunk + 1)) && what.contains("--chunk"), "{what}");
            let text = serving.submit(Request::greedy(vec![1; 5], 3)).unwrap_err().to_string();
            assert!(text.contains("no texts"), "{text}");
        }
    }
}
