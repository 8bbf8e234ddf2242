//! Recordings of what workers do, over the toy program.

use super::tests::{allocations, config, engine, tokens};
use super::{image, wide_image};
use crate::engine::{Engine, SequenceTokens, Steps};
use crate::profile::{Detail, kind};
use crate::trace::{Activity, Trace};
use std::collections::BTreeMap;

/// Labels of a worker's steps in a batch.
fn labels(trace: &Trace, worker: usize, batch: usize) -> Vec<String> {
    let program = image().program().clone();
    let class = &program.classes[trace.batches[batch].class];
    let all: Vec<&str> =
        class.steps.iter().chain(&class.logit_steps).map(|step| step.label.as_str()).collect();
    let calls = trace.workers[worker].iter().filter(|call| call.batch == batch);
    let steps = calls.filter_map(|call| match call.activity {
        Activity::Step(at) => Some(all[trace.steps[at].step].to_owned()),
        Activity::Gather | Activity::Rows => None,
    });
    steps.collect()
}

#[test]
fn every_worker_has_every_step_in_order_and_none_overlap() {
    let mut engine = engine(2, 3, None);
    let (a, b) = (engine.create().unwrap(), engine.create().unwrap());
    assert!(engine.stop_trace().is_none());
    engine.start_meter(Detail::Steps);
    engine.start_trace(4);
    engine.extend(&[SequenceTokens::last(b, &tokens(20, 1))], &()).unwrap();
    engine.step(&[SequenceTokens::last(a, &[5]), SequenceTokens::last(b, &[6])], &()).unwrap();
    engine.step(&[SequenceTokens::silent(a, &[7])], &()).unwrap();
    let (trace, profile) = (engine.stop_trace().unwrap(), engine.stop_meter());
    let sizes: Vec<(usize, u32)> = trace.batches.iter().map(|batch| (batch.class, batch.tokens)).collect();
    assert_eq!((sizes, trace.left_out), (vec![(2, 20), (1, 2), (0, 1)], 0));
    let program = image().program().clone();
    let mut calls = BTreeMap::<String, u64>::new();
    for (worker, all) in trace.workers.iter().enumerate() {
        for (n, batch) in trace.batches.iter().enumerate() {
            let class = &program.classes[batch.class];
            let logits = if n < 2 { &class.logit_steps[..] } else { &[] };
            let expected: Vec<&str> =
                class.steps.iter().chain(logits).map(|step| step.label.as_str()).collect();
            assert_eq!(labels(&trace, worker, n), expected, "worker {worker}, batch {n}");
            expected.iter().for_each(|label| *calls.entry(kind(label).to_owned()).or_default() += 1);
        }
        let mut end = 0;
        for call in all {
            assert!(end <= call.begin && call.begin <= call.done && call.done <= call.passed, "{call:?}");
            let batch = &trace.batches[call.batch];
            assert!(batch.begin <= call.begin && call.passed <= batch.end, "{call:?} in {batch:?}");
            end = call.passed;
        }
        let rows = all.iter().filter(|call| call.activity == Activity::Rows);
        assert_eq!(rows.map(|call| call.batch).collect::<Vec<_>>(), [0, 1, 2]);
    }
    // The profile counts a step once for both workers, and the work of the recording is the same.
    let counted: BTreeMap<String, u64> =
        profile.steps.iter().map(|step| (step.name.clone(), 2 * step.calls)).collect();
    assert_eq!(calls, counted);
    let bytes: u64 = trace.steps.iter().map(|step| step.work.bytes()).sum();
    assert_eq!(bytes, profile.total.bytes());
    // By layer it is the same once more.
    let of = |steps: &[crate::profile::StepProfile]| {
        steps.iter().fold((0, 0), |(calls, bytes), step| (calls + step.calls, bytes + step.work.bytes()))
    };
    assert_eq!(of(&profile.layers), of(&profile.steps));
}

#[test]
fn a_recording_takes_its_memory_before_and_leaves_out_what_has_no_room() {
    let mut engine = engine(1, 1, None);
    let a = engine.create().unwrap();
    engine.extend(&[SequenceTokens::all(a, &tokens(60, 0))], &()).unwrap();
    engine.start_trace(3);
    let before = allocations();
    for n in 0..5 {
        engine.step(&[SequenceTokens::last(a, &[n])], &()).unwrap();
    }
    assert_eq!(allocations(), before);
    let trace = engine.stop_trace().unwrap();
    assert_eq!((trace.batches.len(), trace.left_out), (3, 2));
    assert!((0..3).all(|batch| !labels(&trace, 0, batch).is_empty()));
    // Two slabs of logits need more room than one batch was given.
    let mut engine = Engine::new(&wide_image(), config(1, 1, None)).unwrap();
    let a = engine.create().unwrap();
    engine.start_trace(1);
    engine.step(&[SequenceTokens::all(a, &tokens(70, 1))], &()).unwrap();
    let trace = engine.stop_trace().unwrap();
    assert_eq!((trace.batches.len(), trace.workers[0].len(), trace.left_out), (0, 0, 1));
}
