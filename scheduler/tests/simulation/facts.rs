//! Single facts and their consequences.

use crate::world::{Event, How, Job, PLENTY, Truth, World, secs};
use kernmill_scheduler::{
    AdapterId, BlockCounts, Class, Demand, EndReason, EntryOutcome, HoldReason, Memory, PlannedStep,
    RefusalReason, RequestId, Scheduler, SchedulerConfig, StartDemand, StepReport, Unlimited,
};
use std::time::Duration;

fn world(config: SchedulerConfig) -> World {
    World::new(config, PLENTY, Truth::QUIET, 0)
}

fn end(world: &World, id: u64) -> How {
    world.records[&RequestId(id)].end.expect("it has ended").1
}

#[test]
fn a_drain_finishes_what_has_begun() {
    let mut jobs: Vec<Job> = (0..4).map(|id| Job::chat(id, 0.0, 100, 20)).collect();
    jobs.push(Job::chat(4, 0.0, 100, 3000));
    jobs.push(Job::chat(5, 0.0, 4000, 3000));
    jobs.push(Job::chat(6, 8.5, 10, 1));
    let config = SchedulerConfig { max_sequences: 5, ..SchedulerConfig::default() };
    let mut world = world(config);
    world.run(&jobs, &[(8.0, Event::Drain(60.0))]);
    assert!((0..4).all(|id| world.is_complete(id)));
    assert_eq!(end(&world, 4), How::Ended(EndReason::Draining));
    let cut = world.records[&RequestId(4)].clone();
    assert!(cut.produced > 100 && cut.end.unwrap().0 < 62.0, "it is cut at the end of the drain");
    assert!(matches!(end(&world, 6), How::Refused(refusal) if refusal.reason == RefusalReason::Draining));
}

#[test]
fn a_drain_ends_what_waits_at_once() {
    let config = SchedulerConfig { max_sequences: 1, max_wait: [None; 3], ..SchedulerConfig::default() };
    let mut world = world(config);
    world.run(&[Job::chat(0, 0.0, 20, 50), Job::chat(1, 0.0, 400, 50)], &[(2.0, Event::Drain(500.0))]);
    assert!(world.is_complete(0));
    assert_eq!(end(&world, 1), How::Ended(EndReason::Draining));
    assert!(world.records[&RequestId(1)].end.unwrap().0 < 3.0);
}

#[test]
fn deadlines_that_cannot_be_met_cost_nothing() {
    let mut jobs: Vec<Job> = (0..4).map(|id| Job::chat(id, 0.0, 30, 400)).collect();
    // Much too little time for the prompt.
    jobs.push(Job::chat(4, 1.0, 20_000, 10));
    jobs[4].arrival.deadline = Some(secs(10.0));
    // Enough time if the places were free.
    jobs.push(Job::chat(5, 1.0, 1000, 10));
    jobs[5].arrival.deadline = Some(secs(9.0));
    // Enough for the prompt, not for the answer.
    jobs[0].arrival.deadline = Some(secs(15.0));
    let mut world = world(SchedulerConfig::default());
    world.run(&jobs, &[]);
    assert!(matches!(end(&world, 4), How::Refused(refusal) if refusal.reason == RefusalReason::Unreachable));
    assert_eq!(end(&world, 5), How::Ended(EndReason::Unreachable));
    let waited = world.records[&RequestId(5)].clone();
    assert!(waited.end.unwrap().0 < 9.0 && waited.produced == 0, "it ends before its deadline");
    assert_eq!(end(&world, 0), How::Ended(EndReason::Expired));
    assert!(world.records[&RequestId(0)].produced > 20);
    assert!((1..4).all(|id| world.is_complete(id)));
}

#[test]
fn priorities_go_first_and_do_not_starve_others() {
    let config = SchedulerConfig { max_sequences: 1, max_wait: [None; 3], ..SchedulerConfig::default() };
    let mut jobs: Vec<Job> = (0..30).map(|id| Job::chat(id, 0.01 * id as f64, 100, 20)).collect();
    jobs[20].arrival.priority = 3;
    let mut world = world(config);
    world.run(&jobs, &[]);
    let before = (0..30).filter(|id| world.first_token(*id) < world.first_token(20)).count();
    assert!(before <= 2, "{before} requests came before the one with priority");
    assert!((0..30).all(|id| world.is_complete(id)));
}

#[test]
fn a_full_queue_has_room_for_tenants_that_use_little_of_it() {
    let config = SchedulerConfig { max_queue: 20, max_wait: [None; 3], ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config).unwrap();
    let mut arrive = |id: u64, tenant: u64| {
        let job = Job::chat(id, 0.0, 10, 10).of(tenant, Class::Interactive);
        scheduler.arrive(Duration::ZERO, &job.arrival).map_err(|refusal| refusal.reason)
    };
    assert!((0..20).all(|id| arrive(id, 1).is_ok()));
    assert_eq!(arrive(20, 1), Err(RefusalReason::QueueFull));
    assert!((21..31).all(|id| arrive(id, 2).is_ok()));
    assert_eq!(arrive(31, 2), Err(RefusalReason::QueueFull));
    assert_eq!(arrive(5, 3), Err(RefusalReason::Duplicate));
}

/// A scheduler that has measured some steps, which took as long as it had expected.
fn measured() -> Scheduler {
    let mut scheduler = Scheduler::new(SchedulerConfig::default()).unwrap();
    scheduler.arrive(Duration::ZERO, &Job::chat(1000, 0.0, 1, 5).arrival).unwrap();
    for _ in 0..5 {
        let step = scheduler.plan(Duration::ZERO, &Unlimited);
        let outcome =
            EntryOutcome { id: step.entries[0].id, tokens: 1, accepted: 0, drafts: 0, ended: false };
        let report = StepReport { took: step.predicted, outcomes: vec![outcome], fault: None };
        scheduler.report(Duration::ZERO, &report);
    }
    assert!(scheduler.plan(Duration::ZERO, &Unlimited).is_idle());
    scheduler
}

#[test]
fn waits_that_are_too_long_are_refused_with_the_estimate() {
    let mut scheduler = measured();
    let mut arrive = |id, prompt| scheduler.arrive(Duration::ZERO, &Job::chat(id, 0.0, prompt, 10).arrival);
    // 3.9 s for 512 tokens: 60 s are about 8,000 tokens.
    assert!(arrive(0, 5000).unwrap().wait < secs(1.0));
    assert!(arrive(1, 6000).unwrap().wait > secs(30.0));
    let refusal = arrive(2, 6000).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::TooLongWait);
    assert!(refusal.retry_after > secs(60.0) && refusal.retry_after < secs(150.0), "{refusal:?}");
    assert_eq!(refusal.to_string(), "the wait would be too long: try again later");
    // A short one would pass them.
    assert!(arrive(3, 20).unwrap().wait < secs(10.0));
}

#[test]
fn nothing_is_refused_by_a_guess() {
    let mut jobs: Vec<Job> = (0..5).map(|id| Job::chat(id, 0.0, 6000, 10)).collect();
    // 20,000 tokens take 150 s on the machine of the configuration.
    jobs[4] = Job::chat(4, 0.0, 20_000, 10);
    jobs[4].arrival.deadline = Some(secs(10.0));
    let refusals = |scheduler: &mut Scheduler| -> Vec<RefusalReason> {
        let arrive = |job: &Job| scheduler.arrive(Duration::ZERO, &job.arrival);
        jobs.iter().map(arrive).filter_map(|admitted| Some(admitted.err()?.reason)).collect()
    };
    let mut new = Scheduler::new(SchedulerConfig::default()).unwrap();
    assert_eq!(refusals(&mut new), [], "the machine may be a fast one");
    assert!(new.plan(Duration::ZERO, &Unlimited).ended.is_empty());
    let expected = [RefusalReason::TooLongWait, RefusalReason::TooLongWait, RefusalReason::Unreachable];
    assert_eq!(refusals(&mut measured()), expected);
}

/// 256 tokens, which an answer has before any has ended, would take the last ones minutes.
#[test]
fn short_answers_make_short_waits() {
    let mut scheduler = measured();
    let mut waits = Vec::new();
    for id in 0..60 {
        let arrival = Job::chat(id, 0.0, 6, 8).arrival;
        waits.push(scheduler.arrive(Duration::ZERO, &arrival).unwrap().wait);
        // The first ones have got all places when the others come.
        scheduler.plan(Duration::ZERO, &Unlimited);
    }
    assert!(waits[59] > secs(5.0) && waits[59] < secs(60.0), "{waits:?}");
}

#[test]
fn a_request_waits_for_its_adapter_alone() {
    let adapter = Some(AdapterId(4));
    let mut jobs = vec![Job::chat(0, 0.0, 50, 20), Job::chat(1, 0.0, 50, 20), Job::chat(2, 0.0, 50, 20)];
    jobs[0].arrival.adapter = adapter;
    let mut scheduler = Scheduler::new(SchedulerConfig::default()).unwrap();
    for job in &jobs {
        scheduler.arrive(Duration::ZERO, &job.arrival).unwrap();
    }
    let step = scheduler.plan(Duration::ZERO, &Unlimited);
    let ids: Vec<u64> = step.entries.iter().map(|entry| entry.id.0).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(scheduler.request(RequestId(0)).unwrap().hold, Some(HoldReason::Adapter));
    assert_eq!(step.held[0].reason.to_string(), "adapter loading");
    // The same plan again: what was not reported has not run.
    let again = scheduler.plan(Duration::ZERO, &Unlimited);
    assert_eq!((again.entries, again.started), (step.entries, Vec::new()));
    scheduler.adapter_ready(AdapterId(4));
    let step = scheduler.plan(Duration::ZERO, &Unlimited);
    assert_eq!(step.entries.iter().map(|entry| entry.id.0).collect::<Vec<_>>(), [1, 2, 0]);
}

#[test]
fn a_prompt_that_no_memory_holds_ends_and_others_go_on() {
    let jobs = [Job::chat(0, 0.0, 3000, 10), Job::chat(1, 0.1, 100, 10), Job::chat(2, 0.2, 600, 2000)];
    let mut world = World::new(SchedulerConfig::default(), [60, 80], Truth::QUIET, 0);
    world.run(&jobs, &[]);
    assert_eq!(end(&world, 0), How::Ended(EndReason::TooLarge));
    assert!(world.is_complete(1));
    assert_eq!(end(&world, 2), How::Ended(EndReason::OutOfMemory));
    // 60 blocks of 16 tokens.
    assert_eq!(world.records[&RequestId(2)].known, 961);
}

#[test]
fn a_lone_prompt_takes_the_largest_steps() {
    let mut world = world(SchedulerConfig::default());
    world.steps = Some(Vec::new());
    world.run(&[Job::chat(0, 0.0, 5000, 1)], &[]);
    let tokens: Vec<u32> = world.steps.unwrap().iter().map(|step| step.tokens()).filter(|n| *n > 0).collect();
    assert_eq!(tokens.len(), 10);
    assert!(tokens[..9].iter().all(|tokens| *tokens == 512), "{tokens:?}");
}

/// Blocks that a dropped sequence shares with one that starts are not free for a third.
#[test]
fn shared_blocks_of_a_dropped_sequence_count_once() {
    let mut jobs = [Job::chat(0, 0.0, 64, 100), Job::chat(1, 0.1, 60, 1), Job::chat(2, 0.2, 44, 1)];
    jobs[0].family = Some((0, 32));
    jobs[1].family = Some((0, 32));
    jobs[0].cancel_at = Some(1.0);
    let mut world = World::new(SchedulerConfig::default(), [6, 60], Truth::QUIET, 0);
    world.steps = Some(Vec::new());
    world.run(&jobs, &[]);
    let steps = world.steps.as_ref().expect("they are kept");
    let second = steps.iter().find(|step| step.started.iter().any(|one| one.id.0 == 1)).expect("it starts");
    assert_eq!((second.ended[0].id, second.started[0].cached), (RequestId(0), 32));
    assert_eq!(second.entries.len(), 1, "the third does not fit beside it");
    assert!(world.is_complete(1) && world.is_complete(2));
}

#[test]
fn a_prefix_that_many_share_is_computed_once() {
    let mut jobs: Vec<Job> = (0..6).map(|id| Job::chat(id, 0.0, 640 + id as u32, 20)).collect();
    jobs.iter_mut().for_each(|job| job.family = Some((0, 608)));
    jobs.push(Job::chat(6, 0.0, 50, 20));
    let mut world = world(SchedulerConfig { max_sequences: 8, ..SchedulerConfig::default() });
    world.steps = Some(Vec::new());
    world.run(&jobs, &[]);
    assert!((0..7).all(|id| world.is_complete(id)));
    let steps = world.steps.take().expect("they are kept");
    let entries = steps.iter().flat_map(|step| &step.entries).filter(|entry| entry.to - entry.from > 1);
    let tokens: u32 = entries.map(|entry| entry.to - entry.from).sum();
    assert!(tokens <= 608 + (32..38).sum::<u32>() + 50, "{tokens} tokens of prompts were run");
    // The one with another prompt did not wait for it.
    assert!(world.first_token(6) <= world.first_token(1));
    let has_waited = |step: &PlannedStep| step.held.iter().any(|held| held.reason == HoldReason::Prefix);
    assert!(steps.iter().any(has_waited));
}

/// A cache that promises 100 tokens of every prompt.
struct Promises;

impl Memory for Promises {
    fn free(&self) -> BlockCounts {
        Unlimited.free()
    }

    fn evictable(&self) -> BlockCounts {
        [0; 2]
    }

    fn held(&self, _: RequestId) -> BlockCounts {
        [0; 2]
    }

    fn cached(&self, _: RequestId) -> u32 {
        100
    }

    fn to_start(&self, _: RequestId, _: u32) -> StartDemand {
        StartDemand::default()
    }

    fn to_append(&self, _: RequestId, _: u32) -> Demand {
        Demand::default()
    }

    fn to_grow(&self, _: RequestId, _: u32) -> BlockCounts {
        [0; 2]
    }
}

/// Tokens that a start did not find in the cache are run by the plans that follow.
#[test]
fn a_start_that_finds_less_than_planned_goes_on_from_there() {
    let mut scheduler = Scheduler::new(SchedulerConfig::default()).expect("the default is in range");
    let id = RequestId(7);
    scheduler.arrive(secs(0.0), &Job::chat(7, 0.0, 200, 3).arrival).expect("there is room");
    let step = scheduler.plan(secs(0.0), &Promises);
    assert_eq!((step.started[0].cached, step.entries[0].from, step.entries[0].to), (100, 100, 200));
    scheduler.found(id, 37);
    scheduler.report(secs(0.1), &StepReport::default());
    let step = scheduler.plan(secs(0.1), &Promises);
    assert_eq!((step.started.len(), step.entries[0].from, step.entries[0].to), (0, 37, 200));
    assert!(step.entries[0].samples);
    // More than it has is no news.
    scheduler.found(id, 150);
    let ran = EntryOutcome { id, tokens: 1, accepted: 0, drafts: 0, ended: false };
    scheduler.report(secs(0.2), &StepReport { took: secs(0.1), outcomes: vec![ran], fault: None });
    let step = scheduler.plan(secs(0.2), &Promises);
    assert_eq!((step.entries[0].from, step.entries[0].to), (200, 201));
    scheduler.found(RequestId(8), 0);
}

/// Steps overlap as in a pipeline of stages: whatever a plan does, it leaves alone what is on its way.
#[test]
fn steps_in_flight_share_the_answers_and_leave_each_other_alone() {
    for depth in [2_u32, 3] {
        let config =
            SchedulerConfig { steps_in_flight: depth, max_sequences: 6, ..SchedulerConfig::default() };
        let mut scheduler = Scheduler::new(config).unwrap();
        for id in 0..6 {
            let job = Job::chat(id, 0.0, 40 + 7 * id as u32, 30);
            scheduler.arrive(secs(0.0), &job.arrival).unwrap();
        }
        let mut away: std::collections::VecDeque<PlannedStep> = std::collections::VecDeque::new();
        let (mut now, mut widest, mut both) = (0.0, 0, 0);
        let mut cancelled = false;
        while !scheduler.is_empty() {
            let step = scheduler.plan(secs(now), &Unlimited);
            let busy: Vec<RequestId> =
                away.iter().flat_map(|step| &step.entries).map(|entry| entry.id).collect();
            assert!(step.entries.iter().all(|entry| !busy.contains(&entry.id)), "one request, two steps");
            assert!(step.ended.iter().all(|ended| !busy.contains(&ended.id)), "it ends while it is away");
            assert!(step.preempted.iter().all(|one| !busy.contains(&one.id)), "it is away");
            if !cancelled && busy.contains(&RequestId(3)) && now > 1.0 {
                // It ends when its step is back.
                cancelled = scheduler.cancel(RequestId(3));
            }
            let answers = step.entries.iter().filter(|entry| entry.samples && entry.tokens() == 1).count();
            widest = widest.max(answers);
            let is_idle = step.is_idle();
            if !is_idle {
                away.push_back(step);
            }
            both += usize::from(away.len() == depth as usize);
            if (is_idle || away.len() == depth as usize)
                && let Some(step) = away.pop_front()
            {
                now += 0.1;
                let outcome = |entry: &kernmill_scheduler::StepEntry| EntryOutcome {
                    id: entry.id,
                    tokens: u32::from(entry.samples),
                    accepted: 0,
                    drafts: 0,
                    ended: false,
                };
                let outcomes = step.entries.iter().map(outcome).collect();
                scheduler.report(secs(now), &StepReport { took: secs(0.1), outcomes, fault: None });
            }
        }
        assert!(cancelled && away.is_empty());
        assert!(widest as u32 <= 6_u32.div_ceil(depth), "{widest} answers in a step of {depth} in flight");
        assert!(both > 20, "the pipeline was full {both} times");
    }
}

/// A fault is about the latest plan; the one before it goes on.
#[test]
fn a_step_that_cannot_begin_leaves_the_one_before_it() {
    let config = SchedulerConfig { steps_in_flight: 2, ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config).unwrap();
    for id in 0..2 {
        scheduler.arrive(secs(0.0), &Job::chat(id, 0.0, 400, 5).arrival).unwrap();
    }
    let first = scheduler.plan(secs(0.0), &Unlimited);
    let id = first.entries[0].id;
    scheduler.arrive(secs(0.0), &Job::chat(2, 0.0, 40, 5).arrival).unwrap();
    let second = scheduler.plan(secs(0.0), &Unlimited);
    assert!(!second.is_idle() && second.entries.iter().all(|entry| entry.id != id), "{first:?}, {second:?}");
    let fault = Some(kernmill_scheduler::StepFault::Other);
    scheduler.report(secs(0.0), &StepReport { fault, ..StepReport::default() });
    let again = scheduler.plan(secs(0.0), &Unlimited);
    assert_eq!(again.entries, second.entries, "what did not run is planned again");
    let before = scheduler.request(id).unwrap().computed_tokens;
    let outcomes = vec![EntryOutcome { id, tokens: 0, accepted: 0, drafts: 0, ended: false }];
    scheduler.report(secs(0.1), &StepReport { took: secs(0.1), outcomes, fault: None });
    assert!(
        scheduler.request(id).unwrap().computed_tokens > before,
        "the first step is the one that is reported"
    );
}
