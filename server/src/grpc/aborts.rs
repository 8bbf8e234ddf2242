//! Calls that can be aborted by their names.

use crate::caller::Caller;
use crate::error::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Names of calls that run, by the tenants that they are of.
type RunningCalls = HashMap<(u64, String), watch::Sender<bool>>;

/// The calls that run and have a name.
#[derive(Default)]
pub struct Aborts(Mutex<RunningCalls>);

impl Aborts {
    fn names(&self) -> MutexGuard<'_, RunningCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a call, which leaves when what is returned is dropped. A call without a name cannot be aborted.
    ///
    /// # Errors
    /// When another call of the tenant has the name.
    pub fn enter(self: &Arc<Aborts>, tenant: u64, name: &str) -> Result<CallEntry, ApiError> {
        let (sender, aborted) = watch::channel(false);
        if name.is_empty() {
            return Ok(CallEntry { aborted, _sender: Some(sender), place: None });
        }
        let key = (tenant, name.to_owned());
        let mut names = self.names();
        if names.contains_key(&key) {
            let message = format!("`request_id` is `{name}`, and a call of that name still runs");
            return Err(ApiError::conflict("request_id", message));
        }
        names.insert(key.clone(), sender);
        Ok(CallEntry { aborted, _sender: None, place: Some((self.clone(), key)) })
    }

    /// Aborts the calls of these names, as far as the caller may: its own, and an `admin` those of others. A
    /// call that does not run is passed over.
    pub fn abort(&self, caller: &Caller, wanted: &[String]) {
        for ((tenant, name), sender) in self.names().iter() {
            if (caller.is_admin || *tenant == caller.tenant) && wanted.contains(name) {
                // Where nobody listens any more, the call is about to leave.
                let _ = sender.send(true);
            }
        }
    }
}

/// A call that has entered.
pub struct CallEntry {
    /// Whether the call is aborted.
    pub aborted: watch::Receiver<bool>,
    /// Sender for a call without a name, so that it is not over before the call is.
    _sender: Option<watch::Sender<bool>>,
    place: Option<(Arc<Aborts>, (u64, String))>,
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        if let Some((aborts, key)) = self.place.take() {
            aborts.names().remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Aborts;
    use crate::caller::Caller;
    use std::sync::Arc;

    #[test]
    fn a_caller_aborts_its_own_calls_by_their_names() {
        let aborts = Arc::new(Aborts::default());
        let of = |tenant, is_admin| {
            let mut caller = Caller::default();
            (caller.tenant, caller.is_admin) = (tenant, is_admin);
            caller
        };
        let [mine, same, other] =
            [(1, "a"), (2, "a"), (1, "b")].map(|(tenant, name)| aborts.enter(tenant, name).unwrap());
        let unnamed = aborts.enter(1, "").unwrap();
        assert!(aborts.enter(1, "a").is_err() && aborts.enter(1, "").is_ok());
        let is = |entry: &super::CallEntry| *entry.aborted.borrow();
        aborts.abort(&of(1, false), &["a".to_owned(), String::new(), "none".to_owned()]);
        assert_eq!([&mine, &same, &other, &unnamed].map(is), [true, false, false, false]);
        aborts.abort(&of(9, true), &["a".to_owned()]);
        assert!(is(&same) && !is(&other));
        // A name is free again when its call has ended.
        drop(mine);
        assert!(aborts.enter(1, "a").is_ok());
    }
}
