//! Which answers grow in the step.

use super::sheet::Sheet;
use crate::costs::StepLoad;
use crate::facts::{Class, seconds};
use crate::memory::minus;
use crate::state::{PlannedEntry, SchedulerState};
use crate::step::{EndReason, HoldReason, PreemptReason};

/// Adds an entry for every answer that grows.
pub fn place(state: &mut SchedulerState, sheet: &mut Sheet<'_>) {
    let decoders = choose(state, sheet);
    // Tokens that are known already may take several steps, so that every answer gets one.
    let room = state.config.max_batch_tokens / (decoders.len() as u32).max(1);
    let most = room.clamp(1, state.config.max_forced.saturating_add(1));
    for number in decoders {
        place_one(state, sheet, number, most);
    }
    place_drafts(state, sheet);
}

/// Answers that may grow: all interactive ones, and others as long as these keep their floor.
fn choose(state: &mut SchedulerState, sheet: &mut Sheet<'_>) -> Vec<u64> {
    let is_busy = state.is_busy();
    let is_decoding = |number: &&u64| state.requests[*number].is_decoding(state.config.max_forced);
    let answers = sheet.runners.iter().chain(&sheet.flying).filter(is_decoding).count();
    let most = answers.div_ceil(state.config.steps_in_flight as usize);
    let (mut load, mut chosen, mut held) = (StepLoad::default(), Vec::new(), Vec::new());
    let (mut interactive, mut batch) = (0, 0);
    for number in &sheet.runners {
        let request = &state.requests[number];
        if !request.is_decoding(state.config.max_forced) {
            continue;
        }
        if chosen.len() >= most {
            held.push((*number, HoldReason::Turn));
            continue;
        }
        let with = load.and(request.token_load());
        let hold = match request.class {
            Class::Interactive => None,
            Class::Batch if interactive == 0 || state.allows_width(with) => None,
            Class::Batch if batch == 0 && state.is_batch_due() => None,
            Class::Batch => Some(HoldReason::Width),
            Class::Background => is_busy.then_some(HoldReason::NotIdle),
        };
        if let Some(reason) = hold {
            held.push((*number, reason));
            continue;
        }
        load = with;
        interactive += u32::from(request.class == Class::Interactive);
        batch += u32::from(request.class == Class::Batch);
        chosen.push(*number);
    }
    for (number, reason) in held {
        sheet.hold(state, number, reason, true);
    }
    chosen
}

/// Adds the entry of one answer; those with the weakest claims make room for it.
fn place_one(state: &mut SchedulerState, sheet: &mut Sheet<'_>, number: u64, most: u32) {
    while let Some(request) = state.requests.get(&number).filter(|request| request.is_running) {
        let tokens = request.pending().min(most);
        let demand = sheet.memory.to_append(request.id, tokens);
        if sheet.fits(demand.net()) {
            sheet.place(state, number, tokens, demand);
            return;
        }
        match *sheet.runners {
            [only] if sheet.flying.is_empty() => sheet.end(state, only, EndReason::OutOfMemory),
            [_] => return sheet.hold(state, number, HoldReason::Memory, true),
            [.., last] => sheet.preempt(state, last, PreemptReason::Memory),
            [] => return,
        }
    }
}

/// Adds the drafts on offer, each as far as the step stays short and everyone keeps the floor. They share
/// the room.
fn place_drafts(state: &SchedulerState, sheet: &mut Sheet<'_>) {
    let offered = |planned: &PlannedEntry| match planned.entry.samples {
        true => state.requests[&planned.number].drafts,
        false => 0,
    };
    let mut offers = sheet.placed.iter().filter(|placed| offered(&placed.planned) > 0).count() as u32;
    for at in 0..sheet.placed.len() {
        let PlannedEntry { number, entry, .. } = sheet.placed[at].planned;
        let mut drafts = offered(&sheet.placed[at].planned);
        if drafts > 0 {
            let room = state.costs.room(sheet.load, entry.to, longest(state, sheet, number));
            drafts = drafts.min(room / offers);
            offers -= 1;
        }
        while drafts > 0 {
            let demand = sheet.memory.to_append(entry.id, entry.tokens() + drafts);
            if sheet.fits(minus(demand.net(), sheet.placed[at].blocks)) {
                sheet.add_drafts(at, drafts, demand);
                break;
            }
            drafts /= 2;
        }
    }
}

/// Seconds that a step with a draft of a request may take: any where nobody else is there.
fn longest(state: &SchedulerState, sheet: &Sheet<'_>, number: u64) -> f64 {
    if state.requests.len() == 1 {
        return f64::INFINITY;
    }
    let others = sheet.placed.iter().filter(|other| other.planned.number != number);
    let others = others.map(|other| &state.requests[&other.planned.number]);
    let interactive = others.filter(|request| request.class == Class::Interactive);
    let keeps = interactive.map(|request| (1.0 - state.config.prefill_share) / state.floor(request.computed));
    keeps.fold(seconds(state.config.max_stall), f64::min)
}
