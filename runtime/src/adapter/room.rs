//! The budget of a store, as its loaders see it: they may run on other threads.

use super::error::AdapterError;
use kernmill_plan::limit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limits of a store, what cannot be given up of it, and what is being loaded for it.
#[derive(Debug)]
pub(super) struct AdapterBudget(Mutex<BudgetState>);

#[derive(Debug, Default)]
struct BudgetState {
    /// Bytes that adapters may take.
    budget: u64,
    /// Bytes and number of those in use.
    in_use: (u64, usize),
    /// Bytes and number of those being loaded.
    loading: (u64, usize),
}

/// Room for an adapter that is being loaded, until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    room: Arc<AdapterBudget>,
    bytes: u64,
}

impl AdapterBudget {
    /// An empty store's.
    pub(super) fn new(budget: u64) -> Arc<AdapterBudget> {
        Arc::new(AdapterBudget(Mutex::new(BudgetState { budget, ..BudgetState::default() })))
    }

    /// Notes what the store has become: bytes and number of adapters in use.
    pub(super) fn update(&self, budget: u64, in_use: (u64, usize)) {
        let mut state = self.state();
        (state.budget, state.in_use) = (budget, in_use);
    }

    /// Error unless an adapter of so many bytes finds room beside those in use or being loaded.
    pub(super) fn check(&self, what: &str, needed: u64) -> Result<(), AdapterError> {
        self.state().check(what, needed, (0, 0))
    }

    /// Error as of [`AdapterBudget::check`], for something that has a reservation of this room already, if
    /// `own` is one.
    pub(super) fn check_reserved(
        &self,
        what: &str,
        needed: u64,
        own: Option<&Reservation>,
    ) -> Result<(), AdapterError> {
        let own = own.filter(|own| std::ptr::eq(&*own.room, self)).map_or((0, 0), |own| (own.bytes, 1));
        self.state().check(what, needed, own)
    }

    /// Room for an adapter that is to be loaded.
    pub(super) fn reserve(
        self: &Arc<AdapterBudget>,
        what: &str,
        bytes: u64,
    ) -> Result<Reservation, AdapterError> {
        let mut state = self.state();
        state.check(what, bytes, (0, 0))?;
        state.loading.0 += bytes;
        state.loading.1 += 1;
        Ok(Reservation { room: Arc::clone(self), bytes })
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    fn check(&self, what: &str, needed: u64, own: (u64, usize)) -> Result<(), AdapterError> {
        let loading = (self.loading.0.saturating_sub(own.0), self.loading.1.saturating_sub(own.1));
        let taken = self.in_use.0.saturating_add(loading.0);
        if needed.saturating_add(taken) > self.budget {
            return Err(AdapterError::Budget {
                what: what.to_owned(),
                needed,
                budget: self.budget,
                in_use: taken,
                loading: loading.1 > 0,
            });
        }
        match self.in_use.1 + loading.1 >= limit::ADAPTERS {
            true => Err(AdapterError::Count { what: what.to_owned(), most: limit::ADAPTERS }),
            false => Ok(()),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.loading.0 = state.loading.0.saturating_sub(self.bytes);
        state.loading.1 = state.loading.1.saturating_sub(1);
    }
}
