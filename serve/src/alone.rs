//! The step of a request that is the only one: the shortest way from one token to the next.

use crate::error::Result;
use crate::event::RequestEvent;
use crate::flight::EntryInFlight;
use crate::serving::Serving;
use kernmill_runtime::draft::DraftCheck;
use kernmill_runtime::{Guided, LogitRow, SequenceTokens};
use kernmill_scheduler::RequestId;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

impl Serving {
    /// Runs the next step of the only request, if it goes on without a plan; whether it has run. `start` is
    /// the time now.
    pub(crate) fn step_alone(
        &mut self,
        start: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) -> Result<bool> {
        if !self.flights.is_empty() || self.engine.most_in_flight() > 1 {
            return Ok(false);
        }
        let Some(planned) = self.scheduler.alone() else { return Ok(false) };
        let Some(active) = self.active.get_mut(&planned.id) else { return Ok(false) };
        let Some(sequence) = active.sequence.filter(|_| active.values.is_none()) else { return Ok(false) };
        if self.engine.length(sequence).ok() != Some(planned.from) {
            return Ok(false);
        }
        active.draft.truncate(planned.drafts as usize);
        let (from, to, drafts) = (planned.from as usize, planned.to as usize, active.draft.tokens().len());
        let known = &active.known[from..to];
        let drafted = if drafts == 0 { Vec::new() } else { [known, active.draft.tokens()].concat() };
        let tokens = if drafts == 0 { known } else { &drafted };
        let allowed = active.masks(from, drafts);
        let logits = active.rows(from, true, drafts);
        let entry = SequenceTokens { sequence, tokens, logits, allowed: &allowed };
        // A step that cannot begin has changed nothing: a plan makes room for it.
        if self.engine.begin_step(&[entry]).is_err() {
            return Ok(false);
        }
        let allowed = active.guided.as_ref().map(Guided::allowed);
        let logprobs = active.request.logprobs;
        let check = DraftCheck::new(&mut active.sampler, &active.draft, allowed, to as u64, logprobs);
        let check = Mutex::new(check);
        let take = |_: usize, row: LogitRow<'_>| {
            let mut check = check.lock().unwrap_or_else(PoisonError::into_inner);
            check.take(row.token + 1 - (to - from), row.logits);
        };
        let ran = self.engine.end_step(&take);
        let chosen = check.into_inner().unwrap_or_else(PoisonError::into_inner);
        let part = EntryInFlight { id: planned.id, sequence, from, to, samples: true, drafts };
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => return self.failed(&[part], error, on_event).map(|()| true),
        };
        let chosen = chosen.finish();
        let now = (self.clock)();
        let given = (to - from == 1).then_some(chosen.len() as u64);
        self.note_step(start, now, 1, ran, given);
        let outcome = self.outcome(&part, Some(chosen), 0, now, on_event);
        self.scheduler.went_on(now, &planned, &outcome, now.saturating_sub(start));
        Ok(true)
    }
}
