//! Random scripts: arrivals, cancels, faults, tight memory. The world checks every plan, every block and that
//! every request ends.

use crate::figures;
use crate::world::{Event, Faults, How, Job, Truth, World, is_all_there};
use kernmill_scheduler::{
    AdapterId, BlockCounts, Class, EndReason, PlannedStep, RefusalReason, RequestId, SchedulerConfig,
    TenantId,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// Scripts of a run of the property test.
fn scripts() -> u32 {
    std::env::var("KERNMILL_SCRIPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(3000)
}

struct Script {
    config: SchedulerConfig,
    blocks: BlockCounts,
    truth: Truth,
    faults: Faults,
    jobs: Vec<Job>,
    others: Vec<(f64, Event)>,
}

/// A script from a seed.
fn script(seed: u64) -> Script {
    let mut rng = fastrand::Rng::with_seed(seed);
    let max_batch_tokens = rng.choice([8, 32, 64, 512]).unwrap();
    let config = SchedulerConfig {
        max_batch_tokens,
        max_sequences: rng.u32(1..=8),
        max_queue: rng.choice([4, 256]).unwrap(),
        max_wait: [None, None, rng.bool().then(|| Duration::from_secs(rng.u64(5..60)))],
        growth: rng.choice([1, 16, 256]).unwrap(),
        max_forced: rng.choice([0, 16]).unwrap(),
        share_lag: Duration::from_secs(rng.u64(1..10)),
        tenant_weights: BTreeMap::from([(TenantId(1), 0.5 + rng.f64())]),
        ..SchedulerConfig::default()
    };
    let tight = rng.u64(8..60);
    let blocks =
        if rng.bool() { [tight, rng.u64(14..40) + u64::from(max_batch_tokens / 16)] } else { [400, 400] };
    let faults = if rng.bool() {
        Faults { memory: rng.u32(0..30), other: rng.u32(0..30), pins: rng.u32(0..100) }
    } else {
        Faults::default()
    };
    let seconds = rng.choice([1.0, 20.0, 100.0]).unwrap();
    let mut others: Vec<(f64, Event)> = Vec::new();
    for adapter in 0..3 {
        let at = if rng.bool() { 0.0 } else { rng.f64() * seconds };
        others.push((at, Event::Adapter(AdapterId(adapter))));
    }
    // One adapter never comes; that it does not is known late.
    others.push((seconds * 2.0, Event::AdapterGone(AdapterId(3))));
    if rng.u32(0..10) == 0 {
        let at = rng.f64() * seconds;
        others.push((at, Event::Drain(at + rng.f64() * 20.0)));
    }
    let count = rng.u64(1..30);
    let jobs = (0..count).map(|id| job(&mut rng, id, seconds)).collect();
    Script { config, blocks, truth: Truth::NOISY, faults, jobs, others }
}

fn job(rng: &mut fastrand::Rng, id: u64, seconds: f64) -> Job {
    let at = rng.f64() * seconds;
    let prompt = if rng.u32(0..8) == 0 { rng.u32(300..1200) } else { rng.u32(1..120) };
    let most = rng.u32(1..100);
    let class = rng.choice(Class::ALL).unwrap();
    let mut job = Job::chat(id, at, prompt, most).of(rng.u64(0..4), class);
    job.answer = rng.u32(1..=most);
    job.arrival.priority = rng.i32(-6..=6);
    job.arrival.adapter = rng.bool().then(|| AdapterId(rng.u64(0..4)));
    let deadline = rng.u32(0..4) == 0;
    job.arrival.deadline = deadline.then(|| Duration::from_secs_f64(at + rng.f64() * 60.0));
    job.cancel_at = (rng.u32(0..4) == 0).then(|| at + rng.f64() * 30.0);
    if rng.u32(0..3) == 0 && prompt > 32 {
        job.family = Some((rng.u32(0..2), 32));
        job.arrival.cached_tokens = 32;
    }
    job.forced = rng.choice([0, 50]).unwrap();
    job.drafts = rng.choice([0, 500]).unwrap();
    job
}

fn run(script: &Script, seed: u64) -> World {
    let mut world = World::new(script.config.clone(), script.blocks, script.truth, seed);
    world.faults = script.faults;
    world.steps = Some(Vec::new());
    world.run(&script.jobs, &script.others);
    world
}

/// The reason that a request's end must have by the script.
fn check_end(script: &Script, world: &World, id: RequestId) {
    let record = &world.records[&id];
    let arrival = record.job.arrival;
    let (at, how) = record.end.unwrap();
    let has_drain = script.others.iter().any(|other| matches!(other.1, Event::Drain(_)));
    match how {
        How::Finished => assert_eq!(record.produced, record.job.answer),
        How::Ended(EndReason::MaxTokens) => assert_eq!(record.produced, arrival.max_tokens),
        How::Ended(EndReason::Cancelled) => assert!(record.job.cancel_at.unwrap() <= at),
        How::Ended(EndReason::Expired) => assert!(arrival.deadline.unwrap().as_secs_f64() <= at + 1e-6),
        How::Ended(EndReason::Unreachable) => assert!(arrival.deadline.is_some() && record.produced == 0),
        How::Ended(EndReason::AdapterGone) => assert_eq!(arrival.adapter, Some(AdapterId(3))),
        How::Ended(EndReason::Draining) => assert!(has_drain),
        How::Ended(EndReason::TooLarge | EndReason::OutOfMemory) => {
            let is_large = (arrival.prompt_tokens + arrival.max_tokens) / 16 + 14 > script.blocks[0] as u32;
            let is_wide = script.blocks[1] < 400;
            assert!(is_large || is_wide || script.faults.memory + script.faults.pins > 0, "{record:?}");
        }
        How::Refused(refusal) => match refusal.reason {
            RefusalReason::Draining => assert!(has_drain),
            RefusalReason::TooLongWait => assert!(refusal.retry_after > script.config.max_wait[2].unwrap()),
            RefusalReason::QueueFull => assert_eq!(script.config.max_queue, 4),
            RefusalReason::Unreachable => assert!(arrival.deadline.is_some()),
            RefusalReason::Duplicate | RefusalReason::Empty => panic!("{refusal:?}"),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: scripts(), max_shrink_iters: 0,
        ..ProptestConfig::default() })]

    #[test]
    fn every_request_of_a_random_script_ends_for_a_reason(seed in any::<u64>()) {
        let script = script(seed);
        let world = run(&script, seed);
        for id in world.records.keys() {
            check_end(&script, &world, *id);
        }
        if script.faults.pins == 0 {
            assert!(is_all_there(&world.pool, script.blocks), "blocks are lost");
        }
    }
}

/// Scripts that once found faults: requests that took the memory from each other forever, and one that
/// started with blocks of another that lost its place later in the same plan.
#[test]
fn scripts_that_found_faults_end() {
    for seed in [27_854, 69_755, 164_028, 186_278] {
        let script = script(seed);
        let world = run(&script, seed);
        world.records.keys().for_each(|id| check_end(&script, &world, *id));
    }
}

/// Other names for requests and tenants, in another order.
fn renamed(script: &Script) -> Script {
    let name = |id: u64| 1_000_000 - id * 7;
    let mut jobs = script.jobs.clone();
    for job in &mut jobs {
        job.arrival.id = RequestId(name(job.arrival.id.0));
        job.arrival.tenant = TenantId(name(job.arrival.tenant.0));
    }
    let mut config = script.config.clone();
    let weights = script.config.tenant_weights.iter();
    config.tenant_weights = weights.map(|(tenant, weight)| (TenantId(name(tenant.0)), *weight)).collect();
    Script { config, jobs, others: script.others.clone(), ..*script }
}

/// A plan with the names of requests as they were before [`renamed`].
fn named_back(mut step: PlannedStep) -> PlannedStep {
    let back = |id: &mut RequestId| id.0 = (1_000_000 - id.0) / 7;
    step.ended.iter_mut().for_each(|one| back(&mut one.id));
    step.preempted.iter_mut().for_each(|one| back(&mut one.id));
    step.started.iter_mut().for_each(|one| back(&mut one.id));
    step.entries.iter_mut().for_each(|one| back(&mut one.id));
    step.held.iter_mut().for_each(|one| back(&mut one.id));
    step
}

#[test]
fn plans_do_not_depend_on_names() {
    let mut count = 0;
    for seed in 0..400 {
        let script = script(seed);
        let one = run(&script, seed).steps.unwrap();
        let other = run(&renamed(&script), seed).steps.unwrap();
        assert_eq!(one.len(), other.len(), "seed {seed}");
        for (step, other) in one.into_iter().zip(other) {
            assert_eq!(step, named_back(other), "seed {seed}");
            count += 1;
        }
    }
    assert!(count > 10_000, "{count} plans");
}

#[test]
fn ten_thousand_cancels_leave_nothing_behind() {
    let mut rng = fastrand::Rng::with_seed(11);
    let blocks = [300, 120];
    let config = SchedulerConfig { max_sequences: 6, max_queue: 64, ..SchedulerConfig::default() };
    let mut world = World::new(config, blocks, Truth::NOISY, 11);
    let mut jobs = Vec::new();
    let mut at = 0.0;
    for id in 0..10_000 {
        at += rng.f64() * 2.0;
        let mut job = job(&mut rng, id, 1.0);
        job.arrival.deadline = None;
        job.arrival.adapter = None;
        job.at = at;
        job.cancel_at = Some(at + rng.f64() * rng.f64() * 60.0);
        jobs.push(job);
    }
    world.run(&jobs, &[]);
    println!("{}", figures::line("10,000 cancels", &world));
    assert!(is_all_there(&world.pool, blocks));
    let ends = figures::ends(&world);
    assert!(ends["cancelled"] > 2000, "{ends:?}");
    assert!(world.scheduler.is_empty());
}
