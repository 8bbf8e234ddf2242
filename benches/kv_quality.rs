//! The cost in quality of formats of keys and values: `cargo bench --bench kv_quality -- [MODEL|nano] [CHUNK]
//! [CHUNKS] [FORMAT..]`.
//!
//! The held-out text of the nano model is cut into chunks of CHUNK tokens (1024, or what the context holds),
//! each evaluated from an empty context. Of every format, one line of JSON: bits per byte, how much more that
//! is than with `f32`, the mean KL divergence from it in nats, and the mean -ln p of a needle's tokens: a
//! number that is said once, at nine depths of a chunk, and asked for at its end. Formats are those of
//! `--kv-format`; without any, all.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill::{Loaded, Opened, Options, locate};
use kernmill_plan::kv::KvFormat;
use kernmill_runtime::{Engine, SequenceTokens, Steps, Tokenizer};
use std::path::Path;

/// The hidden sentence, and the question about it.
const NEEDLE: &str = " The number of the lighthouse is 4 8 2 1 3.";
const QUESTION: &str = " The number of the lighthouse is";
const ANSWER: &str = " 4 8 2 1 3.";
/// Depths at which the needle lies, in tenths of a chunk.
const DEPTHS: std::ops::RangeInclusive<usize> = 1..=9;

/// Sums over positions.
#[derive(Default)]
struct Sums {
    nats: f64,
    kl: f64,
    needle: f64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [model, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!(
            "usage: cargo bench --bench kv_quality -- [MODEL|nano] [CHUNK] [CHUNKS] [FORMAT..]"
        );
    };
    let mut numbers = rest.iter().map_while(|arg| arg.parse::<usize>().ok());
    let (chunk, most) = (numbers.next().unwrap_or(1024), numbers.next().unwrap_or(usize::MAX));
    let mut formats: Vec<String> = rest.iter().filter(|arg| arg.parse::<usize>().is_err()).cloned().collect();
    if formats.is_empty() {
        formats = KvFormat::ALL.iter().map(|format| format.name().to_owned()).collect();
    }
    let mut reference = open(model, "f32", chunk);
    let text = include_str!("../model-specs/nano/heldout.txt");
    let (ids, needle, question, answer) = {
        let tokenizer = tokenizer(&reference);
        let encode = |text| tokenizer.encode(text, false).expect("tokens");
        (encode(text), encode(NEEDLE), encode(QUESTION), encode(ANSWER))
    };
    let chunks: Vec<&[u32]> = ids.chunks(chunk).take(most).collect();
    let scored: usize = chunks.iter().map(|ids| ids.len() - 1).sum();
    let bytes: usize = chunks.iter().map(|ids| tokenizer(&reference).decode(ids).expect("text").len()).sum();
    let haystacks: Vec<Vec<u32>> = DEPTHS
        .map(|depth| {
            let filler = &ids[..chunk.min(ids.len()) - needle.len() - question.len() - answer.len()];
            let (before, after) = filler.split_at(filler.len() * depth / 10);
            [before, &needle, after, &question, &answer].concat()
        })
        .collect();
    let mut engines: Vec<Engine> = formats.iter().map(|format| open(model, format, chunk).engine).collect();
    let mut sums: Vec<Sums> = formats.iter().map(|_| Sums::default()).collect();
    let mut base = Sums::default();
    for ids in &chunks {
        let expected = logits(&mut reference.engine, ids);
        base.nats +=
            expected.iter().zip(&ids[1..]).map(|(row, id)| -f64::from(row[*id as usize])).sum::<f64>();
        for (engine, sums) in engines.iter_mut().zip(&mut sums) {
            each_row(engine, ids, &mut |at, row| {
                let Some(next) = ids.get(at + 1) else { return };
                sums.nats -= f64::from(row[*next as usize]);
                sums.kl += divergence(&expected[at], row);
            });
        }
    }
    for haystack in &haystacks {
        let first = haystack.len() - answer.len();
        let score = |engine: &mut Engine| {
            let mut nats = 0.0;
            each_row(engine, haystack, &mut |at, row| {
                if let Some(next) = haystack.get(at + 1).filter(|_| at + 1 >= first) {
                    nats -= f64::from(row[*next as usize]);
                }
            });
            nats
        };
        base.needle += score(&mut reference.engine);
        for (engine, sums) in engines.iter_mut().zip(&mut sums) {
            sums.needle += score(engine);
        }
    }
    let bits = |nats: f64| nats / std::f64::consts::LN_2 / bytes as f64;
    let asked = (haystacks.len() * answer.len()) as f64;
    for (format, sums) in formats.iter().zip(&sums) {
        println!(
            "{{\"format\": \"{format}\", \"chunk\": {chunk}, \"tokens\": {scored}, \"bits_per_byte\": {:.5}, \
             \"more_percent\": {:.4}, \"kl_nats\": {:.3e}, \"needle_nats\": {:.4}, \"needle_nats_f32\": {:.4}}}",
            bits(sums.nats),
            100.0 * (sums.nats / base.nats - 1.0),
            sums.kl / scored as f64,
            sums.needle / asked,
            base.needle / asked
        );
    }
}

fn open(model: &str, format: &str, context: usize) -> Loaded {
    let mut options = Options::default();
    options.compile.kv = format.parse().expect("a format of --kv-format");
    let located = match model {
        "nano" => locate::nano(),
        path => locate::locate(Path::new(path)).expect("a model"),
    };
    let mut opened = Opened::open(located, &options).expect("a model");
    opened.tokenizer();
    let prepared = opened.prepare(&options).expect("code for this CPU");
    prepared.load(&options, context as u32, 1).expect("memory")
}

fn tokenizer(loaded: &Loaded) -> &Tokenizer {
    let tokenizer = loaded.image.tokenizer().expect("a tokenizer");
    tokenizer.get().expect("a tokenizer that can be read")
}

/// The logarithms of the probabilities behind every token.
fn logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    each_row(engine, ids, &mut |_, row| rows.push(row.to_vec()));
    rows
}

/// Calls `take` with the number of every token, and the logarithms of the probabilities behind it.
fn each_row(engine: &mut Engine, ids: &[u32], take: &mut dyn FnMut(usize, &[f32])) {
    let id = engine.create().expect("a sequence");
    let mut log = Vec::new();
    let mut on_row = |row: kernmill_runtime::LogitRow<'_>| {
        let largest = row.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.logits.iter().map(|x| f64::from(x - largest).exp()).sum();
        let norm = f64::from(largest) + sum.ln();
        log.clear();
        log.extend(row.logits.iter().map(|x| (f64::from(*x) - norm) as f32));
        take(row.token, &log);
    };
    engine.extend_in_order(&[SequenceTokens::all(id, ids)], &mut on_row).expect("logits");
    engine.drop_sequence(id);
}

/// The Kullback-Leibler divergence of `actual` from `expected`, logarithms of probabilities, in nats.
fn divergence(expected: &[f32], actual: &[f32]) -> f64 {
    expected.iter().zip(actual).map(|(e, a)| f64::from(*e).exp() * f64::from(e - a)).sum()
}
