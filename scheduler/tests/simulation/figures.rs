//! Figures of a run.

use crate::world::{How, Record, World};
use kernmill_scheduler::Class;
use std::collections::BTreeMap;

/// The lowest rate of an interactive answer over the floor's window, as a part of the floor that it should
/// have. Tokens after a preemption count as another answer.
pub fn lowest_rate(world: &World) -> f64 {
    let interactive = world.records.values().filter(|one| one.job.arrival.class == Class::Interactive);
    let mut lowest = f64::INFINITY;
    for record in interactive {
        let mut rest = &record.tokens[..];
        for preempted in &record.preempted {
            let (before, after) = rest.split_at(rest.partition_point(|token| token.0 <= *preempted));
            lowest = lowest.min(lowest_of(world, record, before));
            rest = after;
        }
        lowest = lowest.min(lowest_of(world, record, rest));
    }
    lowest
}

fn lowest_of(world: &World, record: &Record, tokens: &[(f64, u32)]) -> f64 {
    let window = world.config.floor_window.as_secs_f64();
    let mut lowest = f64::INFINITY;
    let (mut first, mut within) = (0, 0);
    // The worst windows end just before a token comes.
    for (last, (end, count)) in tokens.iter().enumerate() {
        let start = end - window;
        while tokens[first].0 <= start && first < last {
            within -= tokens[first].1;
            first += 1;
        }
        if start >= tokens[0].0 {
            lowest = lowest.min(f64::from(within) / window / due(world, record, start, *end));
        }
        within += count;
    }
    lowest
}

/// The floor of an answer within a window, as the machine was then: less if it could not give that to all.
fn due(world: &World, record: &Record, start: f64, end: f64) -> f64 {
    let from = world.paces.partition_point(|pace| pace.0 <= start);
    let until = world.paces.partition_point(|pace| pace.0 <= end);
    let depth = f64::from(record.known);
    let paces = world.paces[from..until].iter();
    let floors = paces.map(|(_, drift, answers)| {
        let alone = 1.0 / (world.truth.step(1, depth) * drift);
        let together = world.truth.step(*answers, depth * f64::from(*answers)) * drift;
        let floor = world.config.floor_rate.max(world.config.floor_fraction * alone);
        floor.min((1.0 - world.config.prefill_share) / together)
    });
    floors.fold(f64::INFINITY, f64::min)
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

/// The worst cases of a run, as a line of text.
pub fn line(name: &str, world: &World) -> String {
    format!(
        "{name}: {:.0} s, busy {:.0} %, {} steps; worst ratio {:.1}, worst stall {:.2} s, \
         lowest rate {:.2} of the floor; preempted {:?}; {:?}",
        world.now,
        100.0 * world.busy / world.now,
        world.ran,
        worst_ratio(world),
        world.longest_stall,
        lowest_rate(world),
        world.preemptions,
        ends(world),
    )
}
