//! Stores that fill up.

use super::*;
use crate::adapter::DEFAULT_BUDGET;
use kernmill_plan::limit;
use std::path::Path;

/// A store, its table, and adapters of rank 2 with their bytes.
fn store() -> (AdapterStore, AdapterTable, u64) {
    let loader = loader();
    let table = AdapterTable::new(Some(&adapters()), 1);
    let bytes = Draft::of_q().load().unwrap().bytes();
    (AdapterStore::new(Some(loader)), table, bytes)
}

fn add(store: &mut AdapterStore, name: &str) -> Result<(), AdapterError> {
    let loader = store.loader().unwrap();
    store.insert(name, Draft::of_q().load_with(&loader)?)
}

fn names(store: &AdapterStore) -> Vec<&str> {
    store.names().collect()
}

#[test]
fn idle_adapters_give_way_the_longest_unused_first() {
    let (mut store, mut table, bytes) = store();
    store.set_budget(3 * bytes);
    ["a", "b", "c"].iter().for_each(|name| add(&mut store, name).unwrap());
    assert_eq!(store.bytes(), 3 * bytes);
    let slot = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    store.release(slot, &mut table);
    add(&mut store, "d").unwrap();
    assert_eq!(names(&store), ["a", "c", "d"], "b was used before a");
    let unknown = store.acquire(&[AdapterUse::of("b")], &mut table).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no adapter `b`");
    store.set_budget(bytes);
    assert_eq!((names(&store), store.bytes()), (vec!["d"], bytes));
}

/// Others' names are not for whoever asks for a wrong one.
#[test]
fn an_unknown_name_lists_no_others() {
    let (mut store, mut table, _) = store();
    ["tenant-1", "tenant-2"].iter().for_each(|name| add(&mut store, name).unwrap());
    let both = [AdapterUse::of("tenant-1"), AdapterUse::of("mine")];
    for uses in [&[AdapterUse::of("mine")][..], &both] {
        let unknown = store.acquire(uses, &mut table).unwrap_err().to_string();
        assert_eq!(unknown, "there is no adapter `mine`");
        assert_eq!(store.prepare(uses).err().unwrap().to_string(), unknown);
    }
    // A name that is nearly an adapter's is unknown, too.
    for name in ["", "tenant", "tenant-3", "TENANT-1", "tenant-1 "] {
        let unknown = store.acquire(&[AdapterUse::of(name)], &mut table).unwrap_err().to_string();
        assert_eq!(unknown, format!("there is no adapter `{name}`"));
        let weighted = [AdapterUse { name: name.to_owned(), weight: 0.5 }];
        assert_eq!(store.acquire(&weighted, &mut table).unwrap_err().to_string(), unknown);
        assert!(!store.remove(name));
    }
    assert_eq!(names(&store), ["tenant-1", "tenant-2"]);
}

#[test]
fn what_is_being_loaded_counts() {
    let (mut store, _, bytes) = store();
    store.set_budget(3 * bytes);
    let loader = store.loader().unwrap();
    let open = || {
        let draft = Draft::of_q();
        loader.open_bytes(Path::new("dir"), &draft.config.to_string(), draft.file(), 1.0)
    };
    let loading: Vec<_> = (0..3).map(|_| open().unwrap()).collect();
    let full = open().err().expect("there is room for three").to_string();
    assert!(full.contains("of which adapters in use or being loaded take"), "{full}");
    assert!(matches!(store.check_room("d", 1), Err(AdapterError::Budget { .. })));
    // One is given up, one is put in, one keeps its room when it is finished elsewhere.
    let mut loading = loading.into_iter();
    drop(loading.next());
    store.insert("a", loading.next().unwrap().run().unwrap()).unwrap();
    let elsewhere = loading.next().unwrap().run().unwrap();
    assert_eq!(store.bytes(), bytes);
    // An idle adapter in the store gives way to a new one.
    let more = [open().unwrap(), open().unwrap()];
    assert!(open().is_err());
    drop(more);
    store.insert("b", elsewhere).unwrap();
    assert_eq!((names(&store), store.bytes()), (vec!["a", "b"], 2 * bytes));
}

#[test]
fn adapters_are_counted_and_not_only_their_bytes() {
    let (mut store, mut table, _) = store();
    let draft = Draft::of_q();
    let packed = Arc::clone(draft.load().unwrap().packed());
    // As many as there may be, all of the same memory: only the number counts then.
    let loader = store.loader().unwrap();
    let loading: Vec<_> = (0..limit::ADAPTERS)
        .map(|_| loader.open_bytes(Path::new("dir"), &draft.config.to_string(), draft.file(), 1.0).unwrap())
        .collect();
    let refused = store.place(packed, &mut table).unwrap_err();
    assert!(matches!(refused, AdapterError::Count { most: limit::ADAPTERS, .. }), "{refused}");
    drop(loading);
    add(&mut store, "a").unwrap();
}

#[test]
fn adapters_in_use_stay_and_count() {
    let (mut store, mut table, bytes) = store();
    store.set_budget(2 * bytes);
    add(&mut store, "a").unwrap();
    let first = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    let again = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    assert_eq!((first, again), (1, 1), "one slot for the same adapter");
    // Replaced: the sequences keep the old one, others get the new one.
    add(&mut store, "a").unwrap();
    let second = store.acquire(&[AdapterUse::of("a")], &mut table).unwrap();
    assert_eq!((second, store.bytes()), (2, 2 * bytes));
    let full = add(&mut store, "b").unwrap_err();
    assert_eq!(
        full.to_string(),
        format!(
            "the adapter to load takes {bytes} bytes, expected at most 0: the budget is {both}, of which \
             adapters in use take {both}; raise it or end some of their sequences",
            both = 2 * bytes
        )
    );
    assert!(store.remove("a") && !store.remove("a"));
    assert_eq!(store.bytes(), 2 * bytes, "sequences still use both");
    store.release(first, &mut table);
    assert!(table.get(1).is_some());
    store.share(first);
    [first, first, second].iter().for_each(|slot| store.release(*slot, &mut table));
    assert_eq!((store.bytes(), table.get(1).is_some(), table.get(2).is_some()), (0, false, false));
}

/// The state of the store, as far as somebody outside can see it.
fn state(store: &AdapterStore, table: &AdapterTable) -> (Vec<String>, u64, Vec<bool>) {
    let slots = (0..table.len()).map(|slot| table.get(slot).is_some()).collect();
    (store.names().map(str::to_owned).collect(), store.bytes(), slots)
}

#[test]
fn placed_adapters_count_and_what_finds_no_room_changes_nothing() {
    let (mut store, mut table, bytes) = store();
    let packed = || Arc::clone(Draft::of_q().load().unwrap().packed());
    store.set_budget(3 * bytes);
    ["a", "b", "c"].iter().for_each(|name| add(&mut store, name).unwrap());
    let mine = packed();
    let first = store.place(Arc::clone(&mine), &mut table).unwrap();
    assert_eq!((names(&store), store.bytes()), (vec!["b", "c"], 3 * bytes), "a was the longest unused");
    let again = store.place(mine, &mut table).unwrap();
    assert_eq!((names(&store), store.bytes()), (vec!["b", "c"], 3 * bytes), "the same memory");
    let of_c = store.acquire(&[AdapterUse::of("c")], &mut table).unwrap();
    let other = store.place(packed(), &mut table).unwrap();
    assert_eq!((names(&store), store.bytes()), (vec!["c"], 3 * bytes));

    // Nothing idle is left.
    let before = state(&store, &table);
    let refusal = store.place(packed(), &mut table).unwrap_err().to_string();
    assert_eq!(
        refusal,
        format!(
            "the adapter to place takes {bytes} bytes, expected at most 0: the budget is {all}, of which \
             adapters in use take {all}; raise it or end some of their sequences",
            all = 3 * bytes
        )
    );
    for name in ["c", "d"] {
        assert!(matches!(add(&mut store, name), Err(AdapterError::Budget { .. })));
        assert!(matches!(store.check_room(name, 1), Err(AdapterError::Budget { .. })));
    }
    let both = [AdapterUse::of("c"), AdapterUse { name: "c".into(), weight: 0.5 }];
    assert!(matches!(store.acquire(&both, &mut table), Err(AdapterError::Budget { .. })));
    assert_eq!(state(&store, &table), before);

    // A sequence keeps what gets free.
    store.share(other);
    store.release(other, &mut table);
    assert_eq!(store.bytes(), 3 * bytes);
    store.release(other, &mut table);
    store.release(first, &mut table);
    assert_eq!(store.bytes(), 2 * bytes, "the second place still has it");
    store.release(again, &mut table);
    store.check_room("d", 2 * bytes).unwrap();
    add(&mut store, "d").unwrap();
    store.set_budget(0);
    assert_eq!((names(&store), store.bytes()), (vec!["c"], bytes), "a sequence has it");
    store.release(of_c, &mut table);
    assert_eq!((names(&store), store.bytes()), (vec![], 0), "it was above the budget");
}

#[test]
fn an_adapter_that_is_placed_and_has_a_name_counts_once() {
    let (mut store, mut table, bytes) = store();
    store.set_budget(bytes);
    let adapter = Draft::of_q().load_with(&store.loader().unwrap()).unwrap();
    let slot = store.place(Arc::clone(adapter.packed()), &mut table).unwrap();
    store.insert("a", adapter).unwrap();
    assert_eq!((store.acquire(&[AdapterUse::of("a")], &mut table).unwrap(), store.bytes()), (slot, bytes));
    store.release(slot, &mut table);
    assert!(table.get(slot as usize).is_some(), "a sequence has it");
    store.release(slot, &mut table);
    assert_eq!((table.get(slot as usize).is_none(), store.bytes()), (true, bytes));
}

#[test]
fn combinations_are_kept_until_a_part_changes() {
    let (mut store, mut table, bytes) = store();
    add(&mut store, "a").unwrap();
    add(&mut store, "b").unwrap();
    let uses = [AdapterUse::of("a"), AdapterUse { name: "b".into(), weight: 0.5 }];
    let loading = store.prepare(&uses).unwrap().unwrap();
    store.insert_combination(&uses, loading.run().unwrap()).unwrap();
    assert!(store.prepare(&uses).unwrap().is_none());
    let slot = store.acquire(&uses, &mut table).unwrap();
    assert_eq!(table.get(slot as usize).unwrap().rank(), 4);
    assert_eq!(names(&store), ["a", "b"]);
    store.release(slot, &mut table);
    add(&mut store, "b").unwrap();
    assert_eq!(store.bytes(), 2 * bytes, "the combination went with the old b");
    assert_eq!(store.acquire(&[], &mut table).unwrap(), 0);
    let foreign = Draft::of_q().load().unwrap();
    assert!(store.insert("c", foreign).unwrap_err().to_string().contains("another program"));
}

/// A combination that is prepared beside running sequences may be out of date when it is done.
#[test]
fn a_combination_of_what_is_no_longer_there_is_refused() {
    let (mut store, mut table, bytes) = store();
    let uses = [AdapterUse::of("a"), AdapterUse { name: "b".into(), weight: 0.5 }];
    let changes: [fn(&mut AdapterStore); 3] = [
        |store| add(store, "b").unwrap(),
        |store| assert!(store.remove("a")),
        |store| store.set_budget(store.bytes() / 2),
    ];
    for change in changes {
        ["a", "b"].iter().for_each(|name| add(&mut store, name).unwrap());
        let combined = store.prepare(&uses).unwrap().unwrap().run().unwrap();
        change(&mut store);
        store.set_budget(DEFAULT_BUDGET);
        let before = store.bytes();
        let error = store.insert_combination(&uses, combined).unwrap_err().to_string();
        assert!(error.contains("has been replaced or removed meanwhile"), "{error}");
        assert_eq!(store.bytes(), before);
    }
    // Nor one of other adapters, other weights, or another program.
    ["a", "b"].iter().for_each(|name| add(&mut store, name).unwrap());
    let turned = [uses[1].clone(), uses[0].clone()];
    let combined = store.prepare(&turned).unwrap().unwrap().run().unwrap();
    assert!(store.insert_combination(&uses, combined).is_err());
    let single = Draft::of_q().load_with(&store.loader().unwrap()).unwrap();
    assert!(store.insert_combination(&uses, single).is_err());
    assert_eq!(store.bytes(), 2 * bytes);
    store.acquire(&uses, &mut table).unwrap();
}
