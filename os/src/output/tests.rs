use super::*;
use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, chown, symlink};
use std::os::unix::net::UnixListener;

/// A separate directory for a test, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("kernmill-output-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<OsString> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let text = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a NUL and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, contents: &[u8]) {
    let new = NewFile::create(path).unwrap();
    new.file().write_all(contents).unwrap();
    new.finish().unwrap();
}

/// A file as it is begun where there are no unnamed ones.
fn create_named(path: &Path) -> NewFile {
    let (file, state) = named(path.to_owned()).unwrap();
    NewFile { path: path.to_owned(), file, state }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn a_file_appears_when_it_is_finished_and_replaces_what_was_there() {
    let dir = Dir::new("appears");
    let path = dir.path("file");
    let unnamed = || NewFile::create(&path).unwrap();
    for (i, new) in [unnamed(), unnamed(), create_named(&path)].into_iter().enumerate() {
        new.file().write_all(&[b'0' + i as u8]).unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [b'0' + i as u8]);
    }
    for new in [unnamed(), create_named(&path)] {
        new.file().write_all(b"lost").unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"2");
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn a_file_that_cannot_be_named_after_all_is_copied() {
    let dir = Dir::new("copied");
    let path = dir.path("file");
    std::fs::write(&path, b"old").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let mut new = NewFile::create(&path).unwrap();
    new.file().write_all(b"all of the work").unwrap();
    new.copy_to_named(path.clone()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    new.finish_synced().unwrap();
    assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"all of the work".to_vec(), 0o600));
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn a_file_without_proc_has_a_name_from_the_start() {
    let dir = Dir::new("no-proc");
    let file = File::create(dir.path("file")).unwrap();
    assert!(place::can_be_named(&file, Path::new("/proc")));
    for proc in ["/no such directory", "/", "/dev"] {
        assert!(!place::can_be_named(&file, Path::new(proc)), "{proc}");
    }
}

#[test]
fn permissions_and_owners_of_replaced_files_are_kept() {
    let dir = Dir::new("modes");
    let path = dir.path("file");
    for old in [0o600, 0o640, 0o664, 0o755, 0o400] {
        std::fs::write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(old)).unwrap();
        let new = NewFile::create(&path).unwrap();
        let while_written = new.file().metadata().unwrap().mode() & 0o777;
        new.finish().unwrap();
        assert_eq!((while_written, mode(&path)), (old, old));
        std::fs::remove_file(&path).unwrap();
    }
    if is_root() {
        std::fs::write(&path, b"old").unwrap();
        chown(&path, Some(1234), Some(2345)).unwrap();
        write(&path, b"new");
        let new = std::fs::metadata(&path).unwrap();
        assert_eq!((new.uid(), new.gid()), (1234, 2345));
    }
}

#[test]
fn links_stay_and_what_they_lead_to_is_replaced() {
    let dir = Dir::new("links");
    std::fs::create_dir(dir.path("below")).unwrap();
    let file = dir.path("below/file");
    symlink("below/file", dir.path("relative")).unwrap();
    symlink(&file, dir.path("absolute")).unwrap();
    symlink("../relative", dir.path("below/chain")).unwrap();
    // The first time, the links lead nowhere yet.
    for link in ["relative", "absolute", "below/chain"] {
        write(&dir.path(link), link.as_bytes());
        assert_eq!(std::fs::read(&file).unwrap(), link.as_bytes());
        assert!(dir.path(link).is_symlink());
    }
    symlink("loop", dir.path("loop")).unwrap();
    assert!(NewFile::create(&dir.path("loop")).is_err());
    symlink("none/file", dir.path("nowhere")).unwrap();
    assert!(NewFile::create(&dir.path("nowhere")).is_err());
    assert_eq!(dir.names(), ["absolute", "below", "loop", "nowhere", "relative"]);
}

#[test]
fn pipes_and_devices_are_written_through_and_stay() {
    let dir = Dir::new("streams");
    let pipe = dir.pipe("pipe");
    symlink("pipe", dir.path("link")).unwrap();
    for name in ["pipe", "link"] {
        let from = pipe.clone();
        let reader = std::thread::spawn(move || std::fs::read(from).unwrap());
        write(&dir.path(name), b"through");
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
    symlink("/dev/null", dir.path("null")).unwrap();
    for null in [dir.path("null"), PathBuf::from("/dev/null")] {
        let new = NewFile::create(&null).unwrap();
        assert_eq!(new.directory(), None);
        new.file().write_all(b"gone").unwrap();
        new.finish_synced().unwrap();
        assert!(std::fs::metadata(&null).unwrap().file_type().is_char_device());
    }
    // Nothing is opened, or a pipe would be waited for.
    for path in [&pipe, &dir.path("link"), &dir.path("null")] {
        NewFile::check(path).unwrap();
        let error = NewFile::create_file(path).unwrap_err();
        assert!(error.to_string().starts_with("it is a pipe or a device"), "{error}");
    }
    assert_eq!(dir.names(), ["link", "null", "pipe"]);
}

#[test]
fn what_is_open_already_is_written_through() {
    let dir = Dir::new("open");
    let path = dir.path("file");
    let mut open = File::options().create_new(true).append(true).open(&path).unwrap();
    open.write_all(b"before, ").unwrap();
    let new = NewFile::through(&open, Path::new("-")).unwrap();
    new.file().write_all(b"through").unwrap();
    new.finish().unwrap();
    // By its name among the process's open files, also when it has no other one.
    write(&PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open))), b"?");
    let mut open = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before, through?");
}

#[test]
fn a_place_that_cannot_hold_a_file_is_refused() {
    let dir = Dir::new("refused");
    let _listening = UnixListener::bind(dir.path("socket")).unwrap();
    std::fs::create_dir(dir.path("below")).unwrap();
    symlink("below", dir.path("link")).unwrap();
    let places = [
        ("socket", "it is a socket"),
        ("below", "it is a directory"),
        ("link", "it is a directory"),
        ("new/", "it is the name of a directory"),
        ("none/file", "No such file or directory"),
        ("socket/file", "Not a directory"),
        ("", "it is the name of a directory"),
    ];
    for (name, says) in places {
        for new in [NewFile::create(&dir.path(name)), NewFile::create_file(&dir.path(name))] {
            let error = new.unwrap_err().to_string();
            assert!(error.starts_with(says), "{name}: {error}");
        }
    }
    assert!(NewFile::create(&dir.path(&"x".repeat(256))).is_err(), "longer than any file's name");
    assert!(NewFile::create(Path::new("..")).is_err());
    write(&dir.path(&"y".repeat(255)), b"the longest name");
    assert_eq!(dir.names().len(), 4);
    assert_eq!(directory(Path::new("file")), Path::new("."));
    assert_eq!(directory(Path::new("a/file")), Path::new("a"));
}

#[test]
fn files_of_dead_processes_are_removed_and_no_others() {
    let dir = Dir::new("abandoned");
    let path = dir.path("a.plan");
    let parent = format!(".a.plan.{}.77.unfinished", std::os::unix::process::parent_id());
    let kept = ["..unfinished", ".b.plan.4194999.0.unfinished", ".a.plan.4194999.unfinished", &parent];
    // A process may have had this one's number, as in containers.
    let own = format!(".a.plan.{}.0.unfinished", std::process::id());
    for name in kept.into_iter().chain([".a.plan.4194999.0.unfinished", &own]) {
        std::fs::write(dir.path(name), b"half").unwrap();
    }
    let locked = [".a.plan.4194999.1.unfinished".to_owned(), own.replace(".0.", ".1.")];
    let held = locked.each_ref().map(|name| File::create(dir.path(name)).unwrap());
    held.iter().for_each(|file| file.lock().unwrap());
    drop(NewFile::create(&path).unwrap());
    assert_eq!(dir.names().len(), kept.len() + held.len());
    drop(held);
    NewFile::create(&path).unwrap().finish_synced().unwrap();
    let mut expected: Vec<OsString> = kept.into_iter().chain(["a.plan"]).map(OsString::from).collect();
    expected.sort();
    assert_eq!(dir.names(), expected);
}

#[test]
fn files_that_are_being_written_are_not_abandoned() {
    let dir = Dir::new("living");
    let path = dir.path("file");
    let one = create_named(&path);
    let other = NewFile::create(&path).unwrap();
    let third = create_named(&path);
    assert_eq!(dir.names().len(), 2);
    for (new, text) in [(third, b"third"), (one, b"first"), (other, b"other")] {
        new.file().write_all(text).unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
    assert_eq!(dir.names(), ["file"]);
}

#[test]
fn pipes_links_and_files_of_others_under_temporary_names_are_in_nobodys_way() {
    let dir = Dir::new("strangers");
    let path = dir.path("a.plan");
    std::fs::write(dir.path("precious"), b"kept").unwrap();
    dir.pipe(".a.plan.4194999.0.unfinished");
    symlink("precious", dir.path(".a.plan.4194999.1.unfinished")).unwrap();
    symlink("/dev/zero", dir.path(".a.plan.4194999.2.unfinished")).unwrap();
    std::fs::create_dir(dir.path(".a.plan.4194999.3.unfinished")).unwrap();
    if is_root() {
        std::fs::write(dir.path(".a.plan.4194999.4.unfinished"), b"another user's").unwrap();
        chown(dir.path(".a.plan.4194999.4.unfinished"), Some(1234), None).unwrap();
    }
    let before = dir.names();
    write(&path, b"whole");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(dir.names(), before);
    assert_eq!(std::fs::read(dir.path("precious")).unwrap(), b"kept");
}

#[test]
fn taken_names_are_passed_over() {
    let taken = std::cell::Cell::new(0);
    let made = leftover::with_new_name(Path::new("dir/file"), |temporary| {
        taken.set(taken.get() + 1);
        if taken.get() < 5 { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(temporary.to_owned()) }
    });
    let (name, same) = made.unwrap();
    assert_eq!(name, same);
    assert_eq!(taken.get(), 5);
    let refused = leftover::with_new_name(Path::new("file"), |_| -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    });
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
}
