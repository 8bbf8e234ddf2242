//! Traffic: what answers get under load, and adapters.

use crate::figures;
use crate::world::{Event, Job, PLENTY, Truth, World};
use kernmill_scheduler::{AdapterId, SchedulerConfig};

/// Requests that arrive at random, `rate` a second.
fn arrivals(rng: &mut fastrand::Rng, count: u64, rate: f64) -> Vec<Job> {
    let mut at = 0.0;
    let mut jobs = Vec::new();
    for id in 0..count {
        at -= (1.0 - rng.f64()).ln() / rate;
        let prompt = if rng.u32(0..12) == 0 { rng.u32(1000..3000) } else { rng.u32(20..300) };
        jobs.push(Job::chat(id, at, prompt, rng.u32(20..200)));
    }
    jobs
}

#[test]
fn answers_keep_their_floor_under_load() {
    let (mut lowest, mut ratio, mut stall) = (f64::INFINITY, 0.0_f64, 0.0_f64);
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rate = [0.05, 0.1, 0.3][seed as usize % 3];
        let truth =
            Truth { factor: [1.0, 0.2, 0.01, 2.0][seed as usize % 4], noise: 0.1, drift: 0.3, late: None };
        let jobs = arrivals(&mut rng, 150, rate / truth.factor);
        let config = SchedulerConfig { max_sequences: 8, ..SchedulerConfig::default() };
        let mut world = World::new(config, PLENTY, truth, seed);
        world.run(&jobs, &[]);
        println!("{}", figures::line(&format!("load {rate} at speed {}", 1.0 / truth.factor), &world));
        lowest = lowest.min(figures::lowest_rate(&world));
        ratio = ratio.max(figures::worst_ratio(&world));
        // The first step knows nothing of the machine.
        stall = stall.max(world.longest_stall / (1.0 + truth.drift));
    }
    println!(
        "under load: lowest rate {lowest:.2} of the floor, worst ratio {ratio:.0}, worst stall {stall:.2} s"
    );
    assert!(lowest > 0.8, "{lowest}");
}

#[test]
fn adapters_by_zipf_are_mixed_in_steps() {
    let mut rng = fastrand::Rng::with_seed(21);
    let mut jobs = arrivals(&mut rng, 200, 0.3);
    // The first of 16 adapters is asked for 16 times as often as the last.
    let weights: Vec<f64> = (1..=16).map(|rank| 1.0 / f64::from(rank)).collect();
    let sum: f64 = weights.iter().sum();
    for job in &mut jobs {
        let mut at = rng.f64() * sum;
        let adapter = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        job.arrival.adapter = Some(AdapterId(adapter.unwrap_or(15) as u64));
    }
    // They are loaded while others run; the last one cannot be.
    let mut events: Vec<(f64, Event)> =
        (0..15).map(|n| (10.0 * n as f64, Event::Adapter(AdapterId(n)))).collect();
    events.extend([400.0, 2000.0].map(|at| (at, Event::AdapterGone(AdapterId(15)))));
    let config = SchedulerConfig { max_sequences: 6, max_wait: [None; 3], ..SchedulerConfig::default() };
    let mut world = World::new(config, PLENTY, Truth::NOISY, 21);
    world.steps = Some(Vec::new());
    world.run(&jobs, &events);
    println!("{}", figures::line("16 adapters", &world));
    let steps = world.steps.take().unwrap();
    let mixed = steps.iter().filter(|step| {
        step.entries.first().map(|entry| entry.adapter) != step.entries.last().map(|entry| entry.adapter)
    });
    assert!(mixed.count() > 1000);
    for job in &jobs {
        let is_last = job.arrival.adapter == Some(AdapterId(15));
        assert_eq!(world.is_complete(job.arrival.id.0), !is_last, "{job:?}");
    }
}

#[test]
fn memory_for_half_of_the_work_is_enough() {
    let mut rng = fastrand::Rng::with_seed(31);
    let mut jobs = arrivals(&mut rng, 120, 0.3);
    jobs.iter_mut().for_each(|job| job.arrival.prompt_tokens = job.arrival.prompt_tokens.min(600));
    let config =
        SchedulerConfig { max_sequences: 8, max_wait: [None; 3], growth: 16, ..SchedulerConfig::default() };
    let mut world = World::new(config, [70, 200], Truth::NOISY, 31);
    world.run(&jobs, &[]);
    println!("{}", figures::line("tight memory", &world));
    assert!(jobs.iter().all(|job| world.is_complete(job.arrival.id.0)));
    assert!(world.preemptions["memory"] > 5, "{:?}", world.preemptions);
}
