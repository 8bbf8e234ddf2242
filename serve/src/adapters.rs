//! The scheduler's names of adapters.

use crate::error::{Error, Result};
use kernmill_runtime::{AdapterStore, AdapterUse};
use kernmill_scheduler::AdapterId;
use std::collections::{BTreeMap, BTreeSet};

/// The name of an adapter, its contents, and the bits of its weight.
type WeightedAdapter = (String, [u8; 32], u32);

/// Adapters of the requests that are there, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterQueue {
    /// Adapters of requests that run.
    pub running: BTreeSet<String>,
    /// Adapters of requests that wait. One may be among both.
    pub waiting: BTreeSet<String>,
}

impl AdapterQueue {
    /// Adapters of requests: what each uses, and whether it runs.
    pub(crate) fn of<'a>(requests: impl Iterator<Item = (&'a [AdapterUse], bool)>) -> AdapterQueue {
        let mut queue = AdapterQueue::default();
        for (uses, runs) in requests {
            let names = if runs { &mut queue.running } else { &mut queue.waiting };
            names.extend(uses.iter().map(|one| one.name.clone()));
        }
        queue
    }
}

/// Adapters that requests ask for, one or several together, by what they have in them.
#[derive(Debug, Default)]
pub(crate) struct RequestAdapters {
    known: BTreeMap<Vec<WeightedAdapter>, AdapterId>,
    next: u64,
}

impl RequestAdapters {
    /// The scheduler's name of adapters that are loaded; `None` for none.
    pub(crate) fn of(&mut self, uses: &[AdapterUse], store: &AdapterStore) -> Result<Option<AdapterId>> {
        if uses.is_empty() {
            return Ok(None);
        }
        let part = |one: &AdapterUse| match store.contents(&one.name) {
            Some(contents) => Ok((one.name.clone(), contents, one.weight.to_bits())),
            None => {
                let loaded: Vec<&str> = store.names().collect();
                let loaded = if loaded.is_empty() { "none".to_owned() } else { loaded.join(", ") };
                let name = &one.name;
                Err(Error::BadInput(format!("no adapter `{name}` is loaded, loaded: {loaded}")))
            }
        };
        let parts = uses.iter().map(part).collect::<Result<Vec<WeightedAdapter>>>()?;
        let next = &mut self.next;
        let id = self.known.entry(parts).or_insert_with(|| {
            *next += 1;
            AdapterId(*next)
        });
        Ok(Some(*id))
    }

    /// Forgets adapters that are no longer loaded, or have other contents now; their names.
    pub(crate) fn gone(&mut self, store: &AdapterStore) -> Vec<AdapterId> {
        let is_there =
            |(name, contents, _): &WeightedAdapter| store.contents(name).as_ref() == Some(contents);
        let gone = self.known.extract_if(.., |parts, _| !parts.iter().all(is_there));
        gone.map(|(_, id)| id).collect()
    }
}
