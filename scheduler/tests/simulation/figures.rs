//! Figures of a run.

use crate::world::{How, Record, World};
use kernmill_scheduler::Class;
use std::collections::BTreeMap;

/// The lowest rate of an interactive answer over the floor's window, as a part of the floor that it should
/// have. Windows with a preemption in them are left out.
pub fn lowest_rate(world: &World) -> f64 {
    let window = world.config.floor_window.as_secs_f64();
    let interactive = world.records.values().filter(|one| one.job.arrival.class == Class::Interactive);
    interactive.map(|record| lowest_of(world, record, window)).fold(f64::INFINITY, f64::min)
}

fn lowest_of(world: &World, record: &Record, window: f64) -> f64 {
    let mut lowest = f64::INFINITY;
    let depth = f64::from(record.job.arrival.prompt_tokens);
    let alone = 1.0 / world.truth.step(1, depth);
    let floor = world.config.floor_rate.max(world.config.floor_fraction * alone);
    // The worst windows end just before a token comes.
    for (end, _) in record.tokens.iter().skip(1) {
        let start = end - window;
        if start < record.tokens[0].0 || record.preempted.iter().any(|at| (start..=*end).contains(at)) {
            continue;
        }
        let within = record.tokens.iter().filter(|(at, _)| *at > start && at < end);
        let tokens: u32 = within.map(|(_, count)| count).sum();
        lowest = lowest.min(f64::from(tokens) / window / floor);
    }
    lowest
}

/// The largest response ratio of a request that had a first token: (wait + service) / service, both true.
pub fn worst_ratio(world: &World) -> f64 {
    let ratios = world.records.values().filter_map(|record| {
        let prompt = record.job.arrival.prompt_tokens;
        let service = world.truth.alone(prompt, 0, world.config.max_batch_tokens);
        Some((record.first_token? - record.job.at) / service)
    });
    ratios.fold(0.0, f64::max)
}

/// How many requests ended in which way.
pub fn ends(world: &World) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for record in world.records.values() {
        let name = match record.end {
            Some((_, How::Finished)) => "finished".to_owned(),
            Some((_, How::Refused(refusal))) => format!("refused: {:?}", refusal.reason),
            Some((_, How::Ended(reason))) => reason.to_string(),
            None => "none".to_owned(),
        };
        *ends.entry(name).or_insert(0) += 1;
    }
    ends
}

/// Prints the worst cases of a run.
pub fn print(name: &str, world: &World) {
    println!(
        "{name}: {:.0} s, busy {:.0} %, {} steps; worst ratio {:.1}, worst stall {:.2} s, lowest rate {:.2} of the floor; preempted {:?}; {:?}",
        world.now,
        100.0 * world.busy / world.now,
        world.ran,
        worst_ratio(world),
        world.longest_stall,
        lowest_rate(world),
        world.preemptions,
        ends(world),
    );
}
