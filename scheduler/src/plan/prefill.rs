//! Which prompts go on in the step, and which requests start.

use super::sheet::Sheet;
use super::start::{StartRefusal, start};
use crate::costs::StepLoad;
use crate::facts::{Class, seconds};
use crate::state::{SLACK, SchedulerState};
use crate::step::HoldReason;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Tokens of a piece at least, where answers leave less time than that takes.
const LEAST: u32 = 16;

/// How strongly a request claims the next piece.
#[derive(Clone, Copy, Debug)]
struct PrefillClaim {
    /// Order of its class.
    rank: u8,
    is_front: bool,
    /// Deficit of the request's tenant, in whole units of [`SLACK`].
    deficit: i64,
    claim: f64,
    number: u64,
}

impl Ord for PrefillClaim {
    fn cmp(&self, other: &PrefillClaim) -> Ordering {
        let key = |claim: &PrefillClaim| (claim.rank, claim.is_front, claim.deficit);
        let equal = key(self).cmp(&key(other)).then(self.claim.total_cmp(&other.claim));
        equal.then(Reverse(self.number).cmp(&Reverse(other.number)))
    }
}

impl PartialOrd for PrefillClaim {
    fn partial_cmp(&self, other: &PrefillClaim) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PrefillClaim {
    fn eq(&self, other: &PrefillClaim) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PrefillClaim {}

/// Adds pieces of prompts, those with the strongest claims first, and starts requests for it.
pub fn place(state: &mut SchedulerState, sheet: &mut Sheet<'_>) {
    let mut claims = claims(state, sheet);
    let Some(first) = claims.peek() else {
        state.starved_since = None;
        return;
    };
    let depth = state.requests[&first.number].computed;
    let pending = claims.iter().map(|claim| u64::from(state.requests[&claim.number].pending())).sum::<u64>();
    let wanted = u32::try_from(pending).unwrap_or(u32::MAX);
    let mut budget = budget(state, sheet, wanted, depth);
    let reason = if budget == 0 { HoldReason::Floor } else { HoldReason::StepFull };
    let (mut told, mut blocked) = ([false; 3], None::<Class>);
    let mut has_placed = false;
    while budget > 0
        && let Some(PrefillClaim { number, .. }) = claims.pop()
    {
        let request = &state.requests[&number];
        let (class, is_running) = (request.class, request.is_running);
        if sheet.has_piece(request.id) {
            continue;
        }
        let result = if sheet.has_lost(number) {
            Err(StartRefusal::Held(HoldReason::Preempted))
        } else if is_running {
            go_on(state, sheet, number, budget).ok_or(StartRefusal::Held(HoldReason::Memory))
        } else if blocked.is_some_and(|blocked| class <= blocked) {
            Err(StartRefusal::Held(HoldReason::Behind))
        } else if let Some(tokens) = help(state, sheet, number, budget) {
            budget -= tokens;
            has_placed |= tokens > 0;
            Err(StartRefusal::Held(HoldReason::Prefix))
        } else {
            start(state, sheet, number, budget)
        };
        match result {
            Ok(tokens) => {
                budget -= tokens;
                has_placed = true;
            }
            Err(StartRefusal::Ended(reason)) => sheet.end(state, number, reason),
            Err(StartRefusal::Held(reason)) => {
                let is_told = is_running || !std::mem::replace(&mut told[class.index()], true);
                sheet.hold(state, number, reason, is_told);
                // A request that waits for memory or a place would wait forever if others took what becomes
                // free.
                let is_for_all = matches!(reason, HoldReason::Memory | HoldReason::Sequences);
                // A prompt that runs whole has the next step first: others may fill this one.
                if !is_running && !matches!(reason, HoldReason::Prefix | HoldReason::StepFull) {
                    blocked = blocked.max(Some(if is_for_all { Class::Interactive } else { class }));
                }
            }
        }
    }
    for PrefillClaim { number, .. } in claims {
        let is_running = state.requests[&number].is_running;
        sheet.hold(state, number, reason, is_running);
    }
    state.starved_since = if has_placed { None } else { state.starved_since.or(Some(sheet.now)) };
}

/// Requests that want a piece. Those that cannot have one are held.
fn claims(state: &mut SchedulerState, sheet: &mut Sheet<'_>) -> BinaryHeap<PrefillClaim> {
    let is_busy = state.is_busy();
    let (mut claims, mut held, mut told) = (Vec::new(), Vec::new(), [false; 3]);
    for (number, request) in &state.requests {
        if request.is_decoding(state.config.max_forced) || sheet.flying.contains(number) {
            continue;
        }
        let hold = if !request.is_running && !state.is_ready(request) {
            Some(HoldReason::Adapter)
        } else if request.class == Class::Background && is_busy {
            Some(HoldReason::NotIdle)
        } else {
            sheet.has_lost(*number).then_some(HoldReason::Preempted)
        };
        if let Some(reason) = hold {
            let is_first = !std::mem::replace(&mut told[request.class.index()], true);
            held.push((*number, reason, request.is_running || is_first));
            continue;
        }
        let deficit = state.tenants[request.class.index()].deficit(request.tenant);
        let is_front = request.is_front;
        claims.push(PrefillClaim {
            rank: state.rank(request.class),
            is_front,
            deficit: if is_front { 0 } else { (deficit / SLACK).floor() as i64 },
            claim: if is_front { 0.0 } else { request.claim(&state.costs, sheet.now) },
            number: *number,
        });
    }
    for (number, reason, is_told) in held {
        sheet.hold(state, number, reason, is_told);
    }
    BinaryHeap::from(claims)
}

/// Tokens of prompts that the step has room for; 0 if answers must get theirs first.
fn budget(state: &SchedulerState, sheet: &Sheet<'_>, wanted: u32, depth: u32) -> u32 {
    let room = state.config.max_batch_tokens.saturating_sub(sheet.load.tokens);
    let requests = sheet.placed.iter().map(|placed| &state.requests[&placed.planned.number]);
    let answers: Vec<_> = requests.filter(|request| request.class == Class::Interactive).collect();
    if answers.is_empty() {
        return room;
    }
    let in_time = state.costs.room(sheet.load, depth, seconds(state.config.max_stall));
    let tokens = in_time.max(LEAST).min(room).min(wanted);
    // The step may take longer than it should, and usually does by so much.
    let took = state.costs.step(sheet.load.and(StepLoad::piece(tokens, depth)));
    let end = sheet.now + took * (1.0 + state.costs.deviation());
    let window = seconds(state.config.floor_window);
    // Where the machine cannot give everyone the floor, prompts still get their part of the time.
    let most = (1.0 - state.config.prefill_share) / state.costs.step(sheet.load);
    let keeps = answers.iter().all(|request| {
        let floor = state.floor(request.computed).min(most);
        request.pace.keeps(floor, end, window)
    });
    let is_starved = state.starved_since.is_some_and(|since| sheet.now - since >= window);
    if keeps || is_starved { tokens } else { 0 }
}

/// Adds a piece of a request that runs: as much as there is room for.
fn go_on(state: &SchedulerState, sheet: &mut Sheet<'_>, number: u64, budget: u32) -> Option<u32> {
    let request = &state.requests[&number];
    let mut piece = state.piece(request.pending(), budget)?;
    while piece > 0 {
        let demand = sheet.memory.to_append(request.id, piece);
        if sheet.fits(demand.net()) {
            sheet.place(state, number, piece, demand);
            return Some(piece);
        }
        piece = state.piece(piece, piece / 2)?;
    }
    None
}

/// If another request that runs is to compute what this one would compute too: gives that one a piece, unless
/// it has one, and returns the tokens of the piece. It inherits the claim, so that nobody waits for a weaker
/// one.
fn help(state: &SchedulerState, sheet: &mut Sheet<'_>, number: u64, budget: u32) -> Option<u32> {
    let request = &state.requests[&number];
    let is_same = |other: &u64| {
        let other = &state.requests[other];
        let is_prefilling = !other.is_decoding(state.config.max_forced) && other.class >= request.class;
        is_prefilling && sheet.memory.computes_the_same(request.id, other.id)
    };
    if sheet.flying.iter().any(is_same) {
        return Some(0);
    }
    let other = sheet.runners.iter().copied().find(is_same)?;
    match sheet.has_piece(state.requests[&other].id) {
        true => Some(0),
        false => go_on(state, sheet, other, budget),
    }
}
