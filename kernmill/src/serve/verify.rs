//! A share of the prompts that are found in the prefix cache is computed anew, and compared.

use super::{Event, Finish, Serving, tenant_salt};
use crate::error::{Error, Result};
use kernmill_runtime::EngineError;
use kernmill_runtime::kv::KvError;
use kernmill_scheduler::RequestId;

/// Which hits are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verifier {
    /// Of every hit, the part of a comparison that it is worth.
    share: f64,
    /// Comparisons that are due.
    due: f64,
}

impl Verifier {
    /// # Errors
    /// When the share is not from 0 to 100.
    pub(super) fn new(percent: f64) -> Result<Verifier> {
        if !(0.0..=100.0).contains(&percent) {
            let what = format!("the share of cached prompts to compare is {percent}, expected 0 to 100");
            return Err(Error::BadInput(what));
        }
        let share = percent / 100.0;
        // The first hit is compared.
        Ok(Verifier { share, due: 1.0 - share })
    }
}

impl Serving {
    /// A start has found something in the cache: compares it, if it is one of those that are compared. Ends
    /// the request if the bits are others.
    ///
    /// # Errors
    /// When the engine fails for another reason than want of room.
    pub(super) fn hit(&mut self, id: RequestId, on_event: &mut dyn FnMut(RequestId, Event)) -> Result<()> {
        self.stats.hits += 1;
        if self.verifier.share == 0.0 {
            return Ok(());
        }
        self.verifier.due += self.verifier.share;
        // Sums of shares are rounded.
        if self.verifier.due < 1.0 - 1e-9 {
            return Ok(());
        }
        self.verifier.due -= 1.0;
        let Some(active) = self.active.get(&id) else { return Ok(()) };
        let tenant = tenant_salt(active.request.tenant);
        match self.engine.verify_prefix(&active.known, &active.request.adapters, tenant) {
            Ok(true) => self.stats.verified += 1,
            Ok(false) => {
                (self.stats.verified, self.stats.mismatches) =
                    (self.stats.verified + 1, self.stats.mismatches + 1);
                let why = format!(
                    "request {}: what the prefix cache has of its {} tokens gives other logits than computing them (this \
                     is a defect of kernmill: please report it)",
                    id.0,
                    active.known.len()
                );
                self.scheduler.cancel(id);
                let now = (self.clock)();
                self.end(id, Finish::Failed(why), now, on_event);
            }
            Err(error) if is_want_of_room(&error) => self.stats.unverified += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn is_want_of_room(error: &EngineError) -> bool {
    match error {
        EngineError::Entry { source, .. } => is_want_of_room(source),
        EngineError::Kv(error) => {
            matches!(error, KvError::OutOfBlocks { .. } | KvError::NoFreeSequence { .. })
        }
        _ => false,
    }
}
