//! Highest response ratio first, and what follows from it for the time that a request waits.

use crate::figures;
use crate::world::{Job, PLENTY, Truth, World};
use kernmill_scheduler::{EntryOutcome, RequestId, Scheduler, SchedulerConfig, StepReport, Unlimited};
use std::time::Duration;

fn config() -> SchedulerConfig {
    SchedulerConfig { max_wait: [None; 3], max_queue: 10_000, ..SchedulerConfig::default() }
}

/// Random requests of one tenant and class.
fn jobs(rng: &mut fastrand::Rng, count: u64, seconds: f64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for id in 0..count {
        let prompt = if rng.u32(0..10) == 0 { rng.u32(1000..4000) } else { rng.u32(10..400) };
        jobs.push(Job::chat(id, rng.f64() * seconds, prompt, rng.u32(1..80)));
    }
    jobs
}

/// A request is passed only by those that were there before it, and by those that need less. So it waits for
/// no longer than these take one after the other, each alone on the machine, which is slower than together.
#[test]
fn nobody_waits_for_longer_than_those_who_may_pass_take() {
    let mut nearest: f64 = 0.0;
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let jobs = jobs(&mut rng, 60, 150.0);
        let truth = Truth { noise: 0.05, ..Truth::QUIET };
        let mut world = World::new(config(), PLENTY, truth, seed);
        world.run(&jobs, &[]);
        let alone = |job: &Job| truth.alone(job.arrival.prompt_tokens, job.answer, 512);
        for job in &jobs {
            let may_pass =
                |other: &&Job| other.at <= job.at || other.arrival.prompt_tokens <= job.arrival.prompt_tokens;
            let passing = jobs.iter().filter(|other| other.arrival.id != job.arrival.id).filter(may_pass);
            // A request that had ended before does not count.
            let still = passing.filter(|other| world.records[&other.arrival.id].end.unwrap().0 > job.at);
            let others: f64 = still.map(alone).sum();
            // One step may be under way, and its own prefill has its part.
            let most = 1.2 * (others + truth.alone(job.arrival.prompt_tokens, 1, 512)) + 4.0;
            let waited = world.first_token(job.arrival.id.0);
            assert!(waited <= most, "seed {seed}: {job:?} waited {waited:.1} s, at most {most:.1}");
            nearest = nearest.max(waited / most);
        }
    }
    println!("the longest wait was {nearest:.2} of its bound");
    assert!(nearest > 0.1, "the bound says something");
}

/// Every piece goes to a request with the highest claim of those that could have it.
#[test]
fn pieces_go_to_the_highest_claim() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut jobs = jobs(&mut rng, 300, 400.0);
    jobs.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut scheduler = Scheduler::new(config()).unwrap();
    let (mut now, mut next, mut compared) = (0.0, 0, 0);
    let mut left: Vec<(RequestId, u32)> = Vec::new();
    while next < jobs.len() || !scheduler.is_empty() {
        while next < jobs.len() && (jobs[next].at <= now || scheduler.is_empty()) {
            now = jobs[next].at.max(now);
            scheduler.arrive(Duration::from_secs_f64(now), &jobs[next].arrival).unwrap();
            left.push((jobs[next].arrival.id, jobs[next].answer));
            next += 1;
        }
        let step = scheduler.plan(Duration::from_secs_f64(now), &Unlimited);
        left.retain(|(id, _)| step.ended.iter().all(|ended| ended.id != *id));
        let in_step = |id: RequestId| step.entries.iter().any(|entry| entry.id == id);
        let views: Vec<_> = left.iter().map(|(id, _)| (*id, scheduler.request(*id).unwrap())).collect();
        let prefilling = |one: &&(RequestId, kernmill_scheduler::RequestView)| one.1.produced_tokens == 0;
        for (id, view) in views.iter().filter(prefilling).filter(|one| in_step(one.0)) {
            let is_started = step.started.iter().any(|started| started.id == *id);
            for (other, passed) in views.iter().filter(prefilling).filter(|one| !in_step(one.0)) {
                // A waiting request may be passed only by those that have places already.
                if passed.is_running || is_started {
                    assert!(passed.claim <= view.claim * 1.000_001, "{other:?} was passed by {id:?}");
                    compared += 1;
                }
            }
        }
        now += step.predicted.as_secs_f64();
        let outcomes = step.entries.iter().map(|entry| EntryOutcome {
            id: entry.id,
            tokens: u32::from(entry.samples),
            accepted: 0,
            drafts: 0,
            ended: false,
        });
        let report = StepReport { took: step.predicted, outcomes: outcomes.collect(), fault: None };
        scheduler.report(Duration::from_secs_f64(now), &report);
    }
    assert!(compared > 500, "only {compared} pairs");
}

#[test]
fn one_long_prompt_beside_twenty_short_chats() {
    for (seed, truth) in [(1, Truth::QUIET), (2, Truth::NOISY)] {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut jobs = vec![Job::chat(0, 0.0, 20_000, 50)];
        for id in 1..=20 {
            jobs.push(Job::chat(id, 5.0 + 100.0 * rng.f64(), rng.u32(20..150), rng.u32(20..60)));
        }
        let config = SchedulerConfig { max_sequences: 8, ..config() };
        let mut world = World::new(config, PLENTY, truth, seed);
        world.run(&jobs, &[]);
        println!("{}", figures::line("one prompt of 20,000 tokens beside 20 chats", &world));
        assert!((0..=20).all(|id| world.is_complete(id)));
        let slowest = (1..=20).map(|id| world.first_token(id)).fold(0.0, f64::max);
        let long = world.first_token(0);
        let alone = truth.alone(20_000, 1, 512);
        println!(
            "first token of a chat after at most {slowest:.1} s, of the long one after {long:.0} s, alone {alone:.0} s"
        );
        assert!(slowest < 8.0, "{slowest}");
        assert!(long < 2.5 * alone, "{long} of {alone}");
        assert!(figures::lowest_rate(&world) > 0.85, "{}", figures::lowest_rate(&world));
    }
}

#[test]
fn estimated_waits_are_of_the_right_size() {
    let (mut too_low, mut count, mut sum) = (0, 0, 0.0);
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let jobs = jobs(&mut rng, 60, 200.0);
        let mut world = World::new(config(), PLENTY, Truth::QUIET, seed);
        world.run(&jobs, &[]);
        // The first ones have no measurements behind them.
        for record in world.records.values().filter(|record| record.job.at > 20.0) {
            let prompt = record.job.arrival.prompt_tokens;
            let waited = record.first_token.unwrap() - record.job.at - Truth::QUIET.alone(prompt, 0, 512);
            too_low += u32::from(record.estimate < waited / 3.0 - 3.0);
            sum += record.estimate - waited;
            count += 1;
        }
    }
    println!(
        "{too_low} of {count} estimates were far too low; the mean error is {:.1} s",
        sum / f64::from(count)
    );
    assert!(count > 500 && too_low * 10 < count, "{too_low} of {count}");
}
