//! The adapters of an engine: by name in memory, by slot where sequences use them.
//!
//! Sequences keep what they use: an adapter that is replaced or dropped serves those that began with it until
//! they end. All adapters in memory count in the budget, once each, and so do those that are being loaded.
//! Those in a slot, because sequences use them or somebody placed them there, stay; the others give way, the
//! longest unused first, when a new one would pass the budget or there are too many ([`limit::ADAPTERS`]). An
//! adapter that finds no room even so is refused, and nothing has changed.

use super::error::AdapterError;
use super::load::{AdapterLoader, Loading};
use super::packed::{Adapter, PackedAdapter};
use super::room::AdapterBudget;
use super::table::AdapterTable;
use super::tally::Tally;
use kernmill_plan::limit;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Bytes that a store's adapters may take unless told otherwise.
pub const DEFAULT_BUDGET: u64 = 4 << 30;

/// One of the adapters of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterUse {
    /// Name of the adapter in the store.
    pub name: String,
    /// Factor for what the adapter adds.
    pub weight: f32,
}

impl AdapterUse {
    /// The adapter called `name`, with weight 1.
    pub fn of(name: impl Into<String>) -> AdapterUse {
        AdapterUse { name: name.into(), weight: 1.0 }
    }
}

/// The adapters of an engine.
#[derive(Debug)]
pub struct AdapterStore {
    loader: Option<AdapterLoader>,
    /// By slot of the engine's table; slots that the store has not filled have no users.
    slots: Vec<AdapterSlot>,
    loaded: BTreeMap<AdapterKey, StoredAdapter>,
    /// Keys of `loaded` by their last use.
    order: BTreeMap<u64, AdapterKey>,
    /// How many of `loaded` are combinations.
    combinations: usize,
    tally: Tally,
    /// The budget, which its loaders share.
    room: Arc<AdapterBudget>,
    budget: u64,
    /// Counts uses, so that the least recent one is known.
    clock: u64,
}

#[derive(Clone, Debug, Default)]
struct AdapterSlot {
    /// The adapter that the table has there.
    adapter: Option<Arc<PackedAdapter>>,
    /// Sequences, and the one who placed it.
    users: u32,
}

/// The key of a loaded adapter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AdapterKey {
    Name(String),
    /// Several, or one with a weight: names and bits of the weights, in the order in which they were asked
    /// for.
    Combination(Vec<(String, u32)>),
}

#[derive(Debug)]
struct StoredAdapter {
    adapter: Arc<Adapter>,
    /// When it was last used.
    used: u64,
}

impl AdapterStore {
    /// An empty store; without a loader the engine's plan takes no adapters.
    pub(crate) fn new(loader: Option<AdapterLoader>) -> AdapterStore {
        let room = AdapterBudget::new(DEFAULT_BUDGET);
        AdapterStore {
            loader: loader.map(|loader| loader.within(Arc::clone(&room))),
            slots: Vec::new(),
            loaded: BTreeMap::new(),
            order: BTreeMap::new(),
            combinations: 0,
            tally: Tally::default(),
            room,
            budget: DEFAULT_BUDGET,
            clock: 0,
        }
    }

    /// The reader of adapters for this engine.
    ///
    /// # Errors
    /// When its plan takes none.
    pub fn loader(&self) -> Result<AdapterLoader, AdapterError> {
        self.loader.clone().ok_or(AdapterError::NoLoraTargets)
    }

    /// Names of the loaded adapters, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.loaded.keys().filter_map(|key| match key {
            AdapterKey::Name(name) => Some(name.as_str()),
            AdapterKey::Combination(_) => None,
        })
    }

    /// Hash of the contents that a name has now; `None` if no adapter has the name. Equal contents give equal
    /// results.
    pub fn contents(&self, name: &str) -> Option<[u8; 32]> {
        let loaded = self.loaded.get(&AdapterKey::Name(name.to_owned()))?;
        Some(*loaded.adapter.packed.digest())
    }

    /// Bytes of all adapters in memory: those with a name, combinations, placed ones, and those that are only
    /// kept for running sequences.
    pub fn bytes(&self) -> u64 {
        self.tally.bytes()
    }

    /// Bytes that adapters may take.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Sets the budget; adapters that are not in use give way to it, at once or when the last sequence with
    /// them ends.
    pub fn set_budget(&mut self, bytes: u64) {
        self.budget = bytes;
        self.make_room();
    }

    /// Error unless an adapter of so many bytes ([`Loading::bytes`]) would find room beside those in use and
    /// those being loaded.
    ///
    /// # Errors
    /// [`AdapterError::Budget`], [`AdapterError::Count`].
    pub fn check_room(&self, name: &str, bytes: u64) -> Result<(), AdapterError> {
        self.room.check(&format!("adapter `{name}`"), bytes)
    }

    /// Gives a loaded adapter a name. One that has it is replaced: sequences that use it keep it until they
    /// end.
    ///
    /// # Errors
    /// When it belongs to another program, or there is no room beside the adapters in use; then nothing has
    /// changed.
    pub fn insert(&mut self, name: &str, adapter: Adapter) -> Result<(), AdapterError> {
        let loader = self.loader.as_ref().ok_or(AdapterError::NoLoraTargets)?;
        if !loader.fits(&adapter) {
            return Err(AdapterError::Combination(format!(
                "adapter `{name}` was loaded for another program"
            )));
        }
        self.check_adapter(&format!("adapter `{name}`"), &adapter)?;
        self.remove(name);
        self.keep(AdapterKey::Name(name.to_owned()), adapter);
        Ok(())
    }

    /// Forgets an adapter, and combinations that it is part of: whether there was one. Sequences that use it
    /// keep it until they end.
    pub fn remove(&mut self, name: &str) -> bool {
        let named = AdapterKey::Name(name.to_owned());
        let mut gone: Vec<AdapterKey> =
            self.loaded.contains_key(&named).then_some(named).into_iter().collect();
        if self.combinations > 0 {
            let has = |key: &&AdapterKey| {
                matches!(key,
                AdapterKey::Combination(parts) if parts.iter().any(|(part, _)| part == name))
            };
            gone.extend(self.loaded.keys().filter(has).cloned());
        }
        gone.iter().for_each(|key| self.forget(key));
        self.publish();
        !gone.is_empty()
    }

    /// The work that is left before sequences can use these adapters together, to be done and given to
    /// [`AdapterStore::insert_combination`]; `None` when nothing is left to do.
    ///
    /// # Errors
    /// When one is not loaded, or they cannot be combined.
    pub fn prepare(&mut self, uses: &[AdapterUse]) -> Result<Option<Loading>, AdapterError> {
        let Some(AdapterKey::Combination(parts)) = self.key(uses) else {
            return uses.iter().try_for_each(|u| self.find(&u.name).map(drop)).map(|()| None);
        };
        if self.loaded.contains_key(&AdapterKey::Combination(parts)) {
            return Ok(None);
        }
        let mut adapters = Vec::new();
        for AdapterUse { name, weight } in uses {
            adapters.push((self.find(name)?, *weight));
        }
        self.loader()?.combine(&adapters).map(Some)
    }

    /// Keeps what [`AdapterStore::prepare`] began.
    ///
    /// # Errors
    /// When one of the adapters is not what it was when `prepare` was called, or it was called for others; as
    /// [`AdapterStore::insert`].
    pub fn insert_combination(&mut self, uses: &[AdapterUse], adapter: Adapter) -> Result<(), AdapterError> {
        let names: Vec<&str> = uses.iter().map(|u| u.name.as_str()).collect();
        let names = names.join(" + ");
        if !self.is_combination(uses, &adapter) {
            return Err(AdapterError::Combination(format!(
                "{names}: one of them has been replaced or removed meanwhile, or others were combined: \
                 prepare them anew"
            )));
        }
        self.check_adapter(&format!("adapter `{names}`"), &adapter)?;
        if let Some(key) = self.key(uses) {
            self.keep(key, adapter);
        }
        Ok(())
    }

    /// Whether it is one of the adapters that have these names now.
    fn is_combination(&self, uses: &[AdapterUse], adapter: &Adapter) -> bool {
        let same = |(u, (part, weight)): (&AdapterUse, &(Weak<Adapter>, f32))| {
            let loaded = self.loaded.get(&AdapterKey::Name(u.name.clone()));
            u.weight.to_bits() == weight.to_bits()
                && loaded.is_some_and(|loaded| Arc::downgrade(&loaded.adapter).ptr_eq(part))
        };
        adapter.parts.len() == uses.len() && uses.iter().zip(&adapter.parts).all(same)
    }

    /// The slot of `table` with these adapters, for one more sequence; 0 for none. Combines them at once if
    /// that has not been prepared.
    pub(crate) fn acquire(
        &mut self,
        uses: &[AdapterUse],
        table: &mut AdapterTable,
    ) -> Result<u32, AdapterError> {
        if let Some(loading) = self.prepare(uses)? {
            self.insert_combination(uses, loading.run()?)?;
        }
        let Some(key) = self.key(uses) else { return Ok(0) };
        let Some(loaded) = self.use_now(&key) else { return Err(unknown(&uses[0].name)) };
        let adapter = Arc::clone(&loaded.adapter.packed);
        let index = match self.slots.iter().position(|slot| slot.holds(&adapter)) {
            Some(index) => index,
            None => self.fill_slot(adapter, table),
        };
        self.slots[index].users += 1;
        Ok(index as u32)
    }

    /// Hash of the contents of loaded adapters together, zeros for none; `None` if they are not there.
    pub(crate) fn digest_of(&self, uses: &[AdapterUse]) -> Option<[u8; 32]> {
        if uses.is_empty() {
            return Some([0; 32]);
        }
        Some(*self.loaded.get(&self.key(uses)?)?.adapter.packed.digest())
    }

    /// Hash of the contents of the adapter in a slot; zeros for none.
    pub(crate) fn digest(&self, slot: u32) -> [u8; 32] {
        let adapter = self.slots.get(slot as usize).and_then(|slot| slot.adapter.as_ref());
        adapter.map_or([0; 32], |adapter| *adapter.digest())
    }

    /// A free slot, with an adapter from now on.
    fn fill_slot(&mut self, adapter: Arc<PackedAdapter>, table: &mut AdapterTable) -> usize {
        let index = (1..table.len()).find(|slot| table.get(*slot).is_none()).unwrap_or(table.len());
        table.grow(index + 1);
        table.set(index, Some(Arc::clone(&adapter)));
        self.slots.resize(table.len(), AdapterSlot::default());
        self.tally.hold(&adapter);
        self.publish();
        self.slots[index] = AdapterSlot { adapter: Some(adapter), users: 0 };
        index
    }

    /// A separate slot for an adapter without a name, which is in use from now on: others may give way.
    pub(crate) fn place(
        &mut self,
        adapter: Arc<PackedAdapter>,
        table: &mut AdapterTable,
    ) -> Result<u32, AdapterError> {
        if !table.takes(&adapter) {
            return Err(self.loader().err().unwrap_or_else(|| {
                AdapterError::Combination("the adapter is packed for another program".to_owned())
            }));
        }
        if !self.tally.is_held(&adapter) {
            adapter.check_room(&self.room, "the adapter to place")?;
        }
        let index = self.fill_slot(adapter, table);
        self.slots[index].users = 1;
        self.make_room();
        Ok(index as u32)
    }

    /// One more sequence uses the slot: whether there is anything in it.
    pub(crate) fn share(&mut self, slot: u32) -> bool {
        let of = self.slots.get_mut(slot as usize).filter(|slot| slot.users > 0);
        of.map(|slot| slot.users += 1).is_some()
    }

    /// A sequence does not use the slot any more.
    pub(crate) fn release(&mut self, slot: u32, table: &mut AdapterTable) {
        let Some(of) = self.slots.get_mut(slot as usize).filter(|slot| slot.users > 0) else { return };
        of.users -= 1;
        if of.users == 0 {
            if let Some(adapter) = of.adapter.take() {
                self.tally.let_go(&adapter);
            }
            table.set(slot as usize, None);
            self.make_room();
        }
    }

    fn key(&self, uses: &[AdapterUse]) -> Option<AdapterKey> {
        match uses {
            [] => None,
            [one] if one.weight == 1.0 => Some(AdapterKey::Name(one.name.clone())),
            _ => Some(AdapterKey::Combination(
                uses.iter().map(|u| (u.name.clone(), u.weight.to_bits())).collect(),
            )),
        }
    }

    fn find(&mut self, name: &str) -> Result<Arc<Adapter>, AdapterError> {
        match self.use_now(&AdapterKey::Name(name.to_owned())) {
            Some(loaded) => Ok(Arc::clone(&loaded.adapter)),
            None => Err(unknown(name)),
        }
    }

    /// The adapter that is loaded under the key; it counts as used last from now on.
    fn use_now(&mut self, key: &AdapterKey) -> Option<&StoredAdapter> {
        let loaded = self.loaded.get_mut(key)?;
        self.clock += 1;
        if let Some(key) = self.order.remove(&loaded.used) {
            self.order.insert(self.clock, key);
        }
        loaded.used = self.clock;
        Some(loaded)
    }

    fn keep(&mut self, key: AdapterKey, adapter: Adapter) {
        self.forget(&key);
        self.clock += 1;
        self.tally.load(&adapter.packed);
        self.combinations += usize::from(matches!(key, AdapterKey::Combination(_)));
        self.order.insert(self.clock, key.clone());
        self.loaded.insert(key, StoredAdapter { adapter: Arc::new(adapter), used: self.clock });
        self.make_room();
    }

    fn forget(&mut self, key: &AdapterKey) {
        let Some(loaded) = self.loaded.remove(key) else { return };
        self.order.remove(&loaded.used);
        self.combinations -= usize::from(matches!(key, AdapterKey::Combination(_)));
        self.tally.unload(&loaded.adapter.packed);
    }

    /// Tells the loaders what cannot be given up.
    fn publish(&self) {
        self.room.update(self.budget, self.tally.in_use());
    }

    fn check_adapter(&self, what: &str, adapter: &Adapter) -> Result<(), AdapterError> {
        match self.tally.is_held(&adapter.packed) {
            true => Ok(()),
            false => adapter.packed.check_room(&self.room, what),
        }
    }

    /// Drops adapters that are not in use, the longest unused first, until the others are within the budget
    /// and not too many.
    fn make_room(&mut self) {
        while self.tally.bytes() > self.budget || self.tally.count() > limit::ADAPTERS {
            let held = |key: &AdapterKey| {
                self.loaded.get(key).is_some_and(|loaded| self.tally.is_held(&loaded.adapter.packed))
            };
            let Some(key) = self.order.values().find(|key| !held(key)).cloned() else { break };
            self.forget(&key);
        }
        self.publish();
    }
}

fn unknown(name: &str) -> AdapterError {
    AdapterError::Unknown { name: name.to_owned() }
}

impl AdapterSlot {
    fn holds(&self, adapter: &Arc<PackedAdapter>) -> bool {
        self.adapter.as_ref().is_some_and(|other| Arc::ptr_eq(other, adapter))
    }
}
