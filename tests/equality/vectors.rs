//! Models whose output is vectors: rows have the interpreter's bits, and vectors the same ones however the
//! work is cut up.

use super::{Case, PRESETS, assert_bits, engine, logits, options, shapes};
use crate::hostile::targets::small_model::{ModelShape, build};
use kernmill::{Level, Request, SchedulerConfig};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::vectors::{Pooling, VectorForm, VectorSum};
use kernmill_runtime::PlanImage;
use kernmill_serve::{RequestEvent, Serving, Wanted};
use std::collections::BTreeMap;

/// The model of a shape without its unembedding.
fn headless(shape: &ModelShape, pooling: Pooling) -> Graph {
    let mut graph = build(shape).unwrap();
    let last = graph.nodes.pop().unwrap();
    graph.values.pop();
    graph.output = last.inputs[0];
    graph.vectors = Some(VectorForm { pooling, normalise: true });
    graph.verify().unwrap();
    graph
}

#[test]
fn rows_have_the_interpreters_bits_on_every_level() {
    for (name, shape) in shapes().into_iter().take(2) {
        let case = Case::of(headless(&shape, Pooling::Last), 5, 20);
        for preset in PRESETS {
            let expected = case.expected(preset);
            for level in Level::supported() {
                for fuse in [true, false] {
                    let image =
                        case.image(&case.compile(&CompilerOptions { fuse, ..options(preset, level) }));
                    let width = image.program().model.row_width();
                    let actual = logits(&mut engine(&image, 2, 1, None), &case.tokens, &[1, 30]);
                    let what = format!("{name}, {}, {}, fuse {fuse}", preset.name(), level.name());
                    assert_bits(&actual, &expected, width, &what);
                }
            }
        }
    }
}

/// The vectors of texts that arrive together.
fn vectors(image: &PlanImage, threads: usize, chunk: u32, texts: &[&[u32]], cut: u32) -> Vec<Vec<f32>> {
    let engine = engine(image, threads, 4, Some(chunk));
    let mut serving = Serving::new(engine, SchedulerConfig::default().with_sequences(4)).unwrap();
    let wanted = Wanted::Vector { dimensions: (cut > 0).then_some(cut) };
    // Twice, so that the second finds what it may in the prefix cache.
    let mut ids = Vec::new();
    let mut found = BTreeMap::new();
    for _ in 0..2 {
        for text in texts {
            ids.push(serving.submit(Request::values(text.to_vec(), wanted.clone())).unwrap());
        }
        while !serving.is_empty() {
            serving
                .tick(&mut |id, event| {
                    if let RequestEvent::Done(answer) = event {
                        assert!(answer.tokens.is_empty());
                        found.insert(id, answer.values);
                    }
                })
                .unwrap();
        }
    }
    let mut all: Vec<Vec<f32>> = ids.iter().map(|id| found[id].clone()).collect();
    let again = all.split_off(texts.len());
    assert_eq!(all, again, "the prefix cache changes bits");
    all
}

#[test]
fn vectors_depend_on_nothing_but_the_text() {
    for pooling in Pooling::ALL {
        let case = Case::of(headless(&ModelShape::mini_gpt_oss(), pooling), 3, 150);
        let texts = [&case.tokens[..40], &case.tokens[..], &case.tokens[5..6], &case.tokens[..90]];
        for preset in PRESETS {
            let images = Level::supported()
                .into_iter()
                .map(|level| case.image(&case.compile(&options(preset, level))));
            let mut images = images.collect::<Vec<_>>();
            let first = images.remove(0);
            for cut in [0, 7] {
                // By definition, of the interpreter's rows.
                let rows = case.expected(preset);
                let width = first.program().model.row_width();
                let whole = {
                    let mut sum = VectorSum::new(first.program().model.vectors().unwrap());
                    match pooling {
                        Pooling::Last => rows.chunks(width).last().into_iter().for_each(|row| sum.add(row)),
                        _ => rows.chunks(width).for_each(|row| sum.add(row)),
                    }
                    sum.finish(if cut > 0 { cut as usize } else { width })
                };
                let expected = vectors(&first, 1, 32, &texts, cut);
                assert_eq!(expected[1], whole, "{pooling:?}, {}", preset.name());
                let length = whole.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                assert!((length - 1.0).abs() < 1e-5, "{length}");
                for (threads, chunk) in [(1, 7), (2, 32), (3, 20)] {
                    assert_eq!(vectors(&first, threads, chunk, &texts, cut), expected, "{threads}, {chunk}");
                }
                for (at, text) in texts.iter().enumerate() {
                    assert_eq!(vectors(&first, 2, 32, &[text], cut), [expected[at].clone()]);
                }
                for other in &images {
                    assert_eq!(vectors(other, 2, 32, &texts, cut), expected);
                }
            }
        }
    }
}

#[test]
fn models_do_what_they_make() {
    let shape = ModelShape::mini_llama();
    let level = *Level::supported().first().unwrap();
    let case = Case::of(headless(&shape, Pooling::Last), 2, 9);
    let preset = PRESETS[0];
    let image = case.image(&case.compile(&options(preset, level)));
    let mut serving = Serving::new(engine(&image, 1, 2, None), SchedulerConfig::default()).unwrap();
    let refused = |serving: &mut Serving, request: Request| serving.submit(request).unwrap_err().to_string();
    let text = Request::greedy(case.tokens.clone(), 4);
    assert!(refused(&mut serving, text.clone()).contains("`kernmill embed`"));
    let width = image.program().model.row_width() as u32;
    let wide = Wanted::Vector { dimensions: Some(width + 1) };
    let what = refused(&mut serving, Request::values(case.tokens.clone(), wide));
    assert_eq!(
        what,
        format!("{} dimensions: expected 1 to {width}, which the model's vectors have", width + 1)
    );

    let case = Case::new(&shape, 2, 9);
    let image = case.image(&case.compile(&options(preset, level)));
    let mut serving = Serving::new(engine(&image, 1, 2, None), SchedulerConfig::default()).unwrap();
    let vector = Request::values(case.tokens.clone(), Wanted::Vector { dimensions: None });
    assert!(refused(&mut serving, vector).contains("--vectors last"));
    // Logits of some tokens are those of the whole row.
    let picks = vec![7, 3, shape.vocab as u32 - 1];
    serving.submit(Request::values(case.tokens.clone(), Wanted::Logits(picks.clone()))).unwrap();
    let mut found = Vec::new();
    while !serving.is_empty() {
        serving
            .tick(&mut |_, event| {
                if let RequestEvent::Done(answer) = event {
                    found = answer.values;
                }
            })
            .unwrap();
    }
    let all = case.expected(preset);
    let last = &all[all.len() - shape.vocab..];
    let expected: Vec<f32> = picks.iter().map(|token| last[*token as usize]).collect();
    assert_bits(&found, &expected, 3, "picked logits");
}
