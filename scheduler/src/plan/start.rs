//! Whether a request that waits gets a sequence, and who loses one for it.

use super::sheet::Sheet;
use crate::costs::StepLoad;
use crate::facts::{Class, seconds};
use crate::memory::{BlockCounts, Demand, fits, plus};
use crate::state::SchedulerState;
use crate::step::{EndReason, HoldReason, PreemptReason};

/// Why a request does not start.
pub enum StartRefusal {
    /// The request waits on.
    Held(HoldReason),
    /// The request can never start.
    Ended(EndReason),
}

/// Starts a request with a first piece of at most `budget` tokens; the tokens of the piece.
pub fn start(
    state: &mut SchedulerState,
    sheet: &mut Sheet<'_>,
    number: u64,
    budget: u32,
) -> Result<u32, StartRefusal> {
    let mut victims: Vec<u64> = Vec::new();
    let mut has_share_victim = false;
    let promise = loop {
        let shortage = match shortage(state, sheet, number, &victims) {
            Ok(promise) => break promise,
            Err(shortage) => shortage,
        };
        if let StartRefusal::Ended(_) = shortage {
            return Err(shortage);
        }
        let is_width = matches!(shortage, StartRefusal::Held(HoldReason::Width));
        // Those of lower classes do not count for the width.
        let lower = if is_width { None } else { lower_victim(state, sheet, number, &victims) };
        let victim = lower.or_else(|| {
            let victim = if has_share_victim { None } else { share_victim(state, sheet, number) };
            has_share_victim |= victim.is_some();
            victim
        });
        match victim {
            Some(victim) => victims.push(victim),
            None => return Err(shortage),
        }
    };
    let request = &state.requests[&number];
    let cached = sheet.memory.cached(request.id).min(request.known - 1);
    let id = request.id;
    let taken = sheet.taken_without(&victims);
    let full = StartRefusal::Held(HoldReason::StepFull);
    let mut piece = state.piece(request.known - cached, budget).ok_or(full)?;
    let demand = loop {
        let demand = sheet.memory.to_start(id, cached + piece);
        if fits(plus(taken, demand.takes), sheet.there(state, &victims, demand.shares)) {
            break demand;
        }
        let less = state.piece(piece, piece / 2).filter(|less| *less > 0);
        piece = less.ok_or(StartRefusal::Held(HoldReason::Memory))?;
    };
    for victim in victims {
        let class = state.requests[&victim].class;
        let is_lower = class < state.requests[&number].class;
        let reason = if is_lower { PreemptReason::Class } else { PreemptReason::Share };
        sheet.preempt(state, victim, reason);
    }
    sheet.start(state, number, promise, demand.shares);
    sheet.place(state, number, piece, Demand { takes: demand.takes, frees: [0; 2] });
    Ok(piece)
}

/// The shortage that remains when `victims` are preempted; without one, the blocks to promise.
fn shortage(
    state: &SchedulerState,
    sheet: &mut Sheet<'_>,
    number: u64,
    victims: &[u64],
) -> Result<BlockCounts, StartRefusal> {
    let request = &state.requests[&number];
    let runners = sheet.runners.iter().chain(&sheet.flying).copied();
    let stay: Vec<u64> = runners.filter(|other| !victims.contains(other)).collect();
    if stay.len() >= state.config.max_sequences as usize {
        return Err(StartRefusal::Held(HoldReason::Sequences));
    }
    // A request that takes the place of one like it makes nothing slower.
    let is_swap = victims.iter().any(|victim| state.requests[victim].class == request.class);
    if !is_swap && !is_narrow(state, number, &stay) {
        return Err(StartRefusal::Held(HoldReason::Width));
    }
    // A lone request has the whole budget: it may run until nothing is left.
    let is_alone = stay.is_empty();
    let tokens = if is_alone { request.known + 1 } else { request.promised(state.config.growth) };
    let promise = sheet.memory.to_start(request.id, tokens);
    let there = sheet.there(state, victims, promise.shares);
    match fits(plus(sheet.promised(state, victims), promise.takes), there) {
        true => Ok(promise.takes),
        false if is_alone => Err(StartRefusal::Ended(EndReason::TooLarge)),
        false => Err(StartRefusal::Held(HoldReason::Memory)),
    }
}

/// Whether the interactive answers keep their floor if a request joins those that stay.
fn is_narrow(state: &SchedulerState, number: u64, stay: &[u64]) -> bool {
    let request = &state.requests[&number];
    let others = stay.iter().map(|other| &state.requests[other]);
    let counted: Vec<_> = match request.class {
        // Others do not run while it does, as far as that is needed.
        Class::Interactive => others.filter(|other| other.class == Class::Interactive).collect(),
        Class::Batch | Class::Background => others.filter(|other| other.class > Class::Background).collect(),
    };
    let has_interactive =
        request.class == Class::Interactive || counted.iter().any(|other| other.class == Class::Interactive);
    let is_first_batch = !counted.iter().any(|other| other.class == Class::Batch);
    if !has_interactive || (request.class == Class::Batch && is_first_batch && state.is_batch_due()) {
        return true;
    }
    let load = |depth: u32| StepLoad::piece(1, depth);
    state.allows_width(counted.iter().fold(load(request.known), |sum, other| sum.and(load(other.known))))
}

/// The newest request of the lowest class, if that is lower than the class of `number`.
fn lower_victim(state: &SchedulerState, sheet: &Sheet<'_>, number: u64, victims: &[u64]) -> Option<u64> {
    let class = state.requests[&number].class;
    let last = sheet.runners.iter().rev().copied().find(|other| !victims.contains(other))?;
    let lowest = &state.requests[&last];
    let is_due = lowest.class == Class::Batch && state.is_batch_due();
    (lowest.class < class && !is_due && !sheet.has_started(lowest.id)).then_some(last)
}

/// The newest request of the tenant that is most ahead of its share, if that is far enough ahead of the
/// tenant of `number`: see [`lag`](crate::request::ScheduledRequest::lag). A plan takes one place
/// so.
fn share_victim(state: &SchedulerState, sheet: &Sheet<'_>, number: u64) -> Option<u64> {
    let request = &state.requests[&number];
    if request.is_front || sheet.step.preempted.iter().any(|one| one.reason == PreemptReason::Share) {
        return None;
    }
    let shares = &state.tenants[request.class.index()];
    let same = sheet.runners.iter().rev().copied().filter(|other| {
        let other = &state.requests[other];
        other.class == request.class && other.tenant != request.tenant && !sheet.has_started(other.id)
    });
    let lag = seconds(state.config.share_lag);
    let due = same.map(|number| {
        let other = &state.requests[&number];
        (shares.deficit(other.tenant) + other.lag(lag), number)
    });
    // If as much is due from several, the first one is the newest.
    let (due, victim) = due.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (shares.deficit(request.tenant) >= due).then_some(victim)
}
