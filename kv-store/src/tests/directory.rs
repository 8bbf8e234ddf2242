//! Permissions of a store's files, and which files belong to it.

use super::{SMALL, StoreDir, block, files, holds, open, options, place, put, segments};
use crate::directory::OpenError;
use crate::event::StoreEvent;
use crate::format::checksum;
use crate::store::Store;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn nobody_else_can_see_a_stores_files() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    (0..20).for_each(|n| put(&store, block(n, SMALL)));
    assert_eq!(mode(&dir), 0o700);
    let files = files(&dir);
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|(path, _)| mode(path) == 0o600), "{files:?}");
}

#[test]
fn directories_that_others_may_use_are_refused() {
    let StoreDir { dir, _base } = place();
    std::fs::create_dir(&dir).unwrap();
    for wrong in [0o755, 0o710, 0o701, 0o770, 0o777] {
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(wrong)).unwrap();
        let error = Store::open(&dir, options(1 << 20)).unwrap_err();
        assert!(matches!(error, OpenError::Mode { mode, .. } if mode == wrong), "{error}");
        assert!(error.to_string().contains("chmod 700"), "{error}");
    }
    assert_eq!(files(&dir), []);
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
    drop(open(&dir, 1 << 20));
    if std::os::unix::fs::chown(&dir, Some(1234), None).is_ok() {
        let error = Store::open(&dir, options(1 << 20)).unwrap_err();
        assert!(matches!(error, OpenError::Owner { owner: 1234, .. }), "{error}");
    }
}

#[test]
fn what_is_no_directory_is_refused() {
    let StoreDir { dir, _base } = place();
    std::fs::write(&dir, b"a file").unwrap();
    let error = Store::open(&dir, options(1 << 20)).unwrap_err();
    assert!(matches!(error, OpenError::NotADirectory { .. }), "{error}");
    let error = Store::open(&dir.join("below"), options(1 << 20)).unwrap_err();
    assert!(matches!(error, OpenError::System { .. }), "{error}");
    assert_eq!(std::fs::read(&dir).unwrap(), b"a file");
}

#[test]
fn foreign_files_are_left_alone() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    put(&store, block(1, SMALL));
    drop(store);
    let sound = std::fs::read(&segments(&dir)[0]).unwrap();
    let name = |n: u64| dir.join(format!("kernmill-kv-{n:016x}.segment"));
    // A segment of another version, which is whole.
    let mut newer = sound.clone();
    newer[8] = 2;
    let sum = checksum(&newer[..4088]).to_le_bytes();
    newer[4088..4096].copy_from_slice(&sum);
    let foreign = [
        (name(5), b"a text".to_vec()),
        (name(6), vec![7; 10_000]),
        (name(7), newer),
        (dir.join("notes.txt"), b"notes".to_vec()),
        (dir.join("kernmill-kv-1.segment"), sound.clone()),
    ];
    for (path, bytes) in &foreign {
        std::fs::write(path, bytes).unwrap();
    }
    std::fs::write(dir.join("target"), &sound).unwrap();
    symlink("target", name(8)).unwrap();
    std::fs::create_dir(name(9)).unwrap();
    let store = open(&dir, 300_000);
    let events = store.take_events();
    let is_foreign = |event: &StoreEvent| matches!(event, StoreEvent::Foreign { .. });
    assert!(events.len() == 5 && events.iter().all(is_foreign), "{events:?}");
    assert!(
        events[2].to_string().ends_with("it has version 2, expected 1, expected a segment of the KV store")
    );
    for n in 0..100 {
        put(&store, block(n, SMALL));
    }
    assert!(holds(&store, &block(99, SMALL)));
    drop(store);
    for (path, bytes) in &foreign {
        assert!(std::fs::read(path).unwrap() == *bytes, "{}", path.display());
    }
    assert!(name(8).is_symlink() && name(9).is_dir());
    assert_eq!(std::fs::read(dir.join("target")).unwrap(), sound);
}

#[test]
fn files_that_were_just_begun_and_damaged_segments_are_removed() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    (0..9).for_each(|n| put(&store, block(n, SMALL)));
    drop(store);
    let name = |n: u64| dir.join(format!("kernmill-kv-{n:016x}.segment"));
    std::fs::write(name(5), b"").unwrap();
    std::fs::write(name(6), vec![0; 9000]).unwrap();
    std::fs::write(name(7), b"\x89KMKV").unwrap();
    std::fs::write(name(8), &std::fs::read(name(0)).unwrap()[..4000]).unwrap();
    let mut damaged = std::fs::read(name(0)).unwrap();
    damaged[17] ^= 1;
    std::fs::write(name(0), damaged).unwrap();
    let store = open(&dir, 1 << 20);
    assert!(matches!(&store.take_events()[..], [StoreEvent::Removed { file, .. }] if *file == name(0)));
    assert_eq!(segments(&dir), [name(1)]);
    let kept = (0..9).filter(|n| holds(&store, &block(*n, SMALL))).count();
    assert_eq!(kept, 2);
}
