//! Outputs that are no plain files, or are not named for the first time: what is there is written through,
//! kept or refused.

use super::Sandbox;
use crate::harness::{program, shell};
use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

/// Commands whose output is written from front to back, up to the name of the output. With a described
/// machine, what is explained does not depend on the memory that this one has left.
const STREAMING: [&[&str]; 4] = [
    &["explain", "spec.toml", "-q", "--target", "x86-64-v3", "--machine", "host.json", "--html"],
    IMPORT,
    &["logits", "--weights", ".", "--tokens", "ids.json", "--out"],
    &["compile", "spec.toml", "--target", "x86-64-v3", "--emit", "obj", "-o"],
];
const IMPORT: &[&str] = &["import", ".", "-o"];
const COMPILE: &[&str] = &["compile", "spec.toml", "--weights", ".", "-q", "-o"];

pub fn make_pipe(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with a NUL and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn pipes_get_what_files_would_and_stay_pipes() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
    make_pipe(&sandbox.path("pipe"));
    symlink("pipe", sandbox.path("link")).unwrap();
    for command in STREAMING {
        sandbox.run(&[command, &["file"]].concat()).text();
        let expected = fs::read(sandbox.path("file")).unwrap();
        fs::remove_file(sandbox.path("file")).unwrap();
        for name in ["pipe", "link"] {
            let pipe = sandbox.path("pipe");
            let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
            sandbox.run(&[command, &[name]].concat()).text();
            assert!(reader.join().unwrap() == expected, "{command:?}");
            assert!(fs::metadata(sandbox.path("pipe")).unwrap().file_type().is_fifo());
        }
        assert!(sandbox.path("link").is_symlink());
    }
    // Files in a directory are not what was named.
    fs::create_dir(sandbox.path("stages")).unwrap();
    make_pipe(&sandbox.path("stages/graph.txt"));
    let stages = ["explain", "spec.toml", "-q", "--emit", "graph", "--emit-dir", "stages"];
    sandbox.run(&stages).refused(&["stages/graph.txt: it is a pipe or a device"]);
    // A plan is not written from front to back. Nobody reads the pipe: it must not be waited for.
    for name in ["pipe", "link"] {
        sandbox
            .run(&[COMPILE, &[name]].concat())
            .refused(&["it is a pipe or a device", "the name of a file"]);
    }
}

#[test]
fn devices_sockets_and_directories_are_never_replaced() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
    let _listening = UnixListener::bind(sandbox.path("socket")).unwrap();
    fs::create_dir(sandbox.path("below")).unwrap();
    let mut devices = vec!["null"];
    symlink("/dev/null", sandbox.path("null")).unwrap();
    let node = CString::new(sandbox.path("node").as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with a NUL and lives through the call. Only root may do it, and not everywhere.
    if unsafe { libc::mknod(node.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(1, 3)) } == 0 {
        devices.push("node");
    }
    let before = sandbox.files();
    for command in STREAMING {
        for device in &devices {
            sandbox.run(&[command, &[device]].concat()).text();
        }
        sandbox.run(&[command, &["socket"]].concat()).refused(&["socket: it is a socket"]);
        sandbox.run(&[command, &["below"]].concat()).refused(&["below: it is a directory"]);
        sandbox.run(&[command, &["new/"]].concat()).refused(&["new/: it is the name of a directory"]);
    }
    for device in &devices {
        sandbox.run(&[COMPILE, &[device]].concat()).refused(&["it is a pipe or a device"]);
        assert!(fs::metadata(sandbox.path(device)).unwrap().file_type().is_char_device());
    }
    sandbox.run(&[COMPILE, &["socket"]].concat()).refused(&["it is a socket"]);
    assert_eq!(sandbox.files(), before);
}

#[test]
fn what_links_lead_to_is_replaced_and_permissions_stay() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
    fs::create_dir(sandbox.path("below")).unwrap();
    symlink("below/real", sandbox.path("link")).unwrap();
    for command in STREAMING.into_iter().chain([COMPILE]) {
        if command == IMPORT {
            // A spec may have been changed by hand.
            fs::write(sandbox.path("below/real"), "old").unwrap();
            sandbox.run(&[command, &["link"]].concat()).refused(&["link: it is there already"]);
            assert_eq!(sandbox.read("below/real"), "old");
            fs::remove_file(sandbox.path("below/real")).unwrap();
            continue;
        }
        for old in [0o600, 0o640] {
            fs::write(sandbox.path("below/real"), "old").unwrap();
            fs::set_permissions(sandbox.path("below/real"), Permissions::from_mode(old)).unwrap();
            sandbox.run(&[command, &["link"]].concat()).text();
            assert!(sandbox.path("link").is_symlink());
            assert!(fs::read(sandbox.path("below/real")).unwrap() != b"old");
            assert_eq!(mode(&sandbox.path("below/real")), old, "{command:?}");
        }
        // The link leads nowhere yet.
        fs::remove_file(sandbox.path("below/real")).unwrap();
        sandbox.run(&[command, &["link"]].concat()).text();
        assert!(sandbox.path("below/real").is_file() && sandbox.path("link").is_symlink());
    }
}

#[test]
fn a_dash_is_standard_output() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
    let before = sandbox.files();
    for command in STREAMING {
        sandbox.run(&[command, &["file"]].concat()).text();
        let expected = fs::read(sandbox.path("file")).unwrap();
        fs::remove_file(sandbox.path("file")).unwrap();
        for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
            let output = program().args(command).arg(name).current_dir(sandbox.dir.path()).output().unwrap();
            assert!(output.status.success() && output.stdout == expected, "{command:?} {name}");
            // After what is there already.
            let mut file = File::create(sandbox.path("file")).unwrap();
            std::io::Write::write_all(&mut file, b"before").unwrap();
            let status = program()
                .args(command)
                .arg(name)
                .current_dir(sandbox.dir.path())
                .stdout(Stdio::from(file))
                .status();
            assert!(status.unwrap().success());
            assert!(fs::read(sandbox.path("file")).unwrap() == [b"before", &expected[..]].concat());
            fs::remove_file(sandbox.path("file")).unwrap();
        }
    }
    sandbox.run(&[COMPILE, &["-"]].concat()).refused(&["is standard output", "the name of a file"]);
    sandbox
        .run(&["logits", "--tokens", "ids.json", "--out", "-", "--emit", "graph"])
        .refused(&["--emit", "--emit-dir"]);
    assert_eq!(sandbox.files(), before);
}

#[test]
fn leftovers_of_any_kind_keep_nobody_from_writing() {
    let sandbox = Sandbox::of("gptoss-base");
    let before = sandbox.files();
    make_pipe(&sandbox.path(".a.plan.4194999.0.unfinished"));
    symlink("/dev/zero", sandbox.path(".a.plan.4194999.1.unfinished")).unwrap();
    fs::create_dir(sandbox.path(".a.plan.4194999.2.unfinished")).unwrap();
    let strange = sandbox.files();
    sandbox.run(&[COMPILE, &["a.plan"]].concat()).text();
    // A process with the number of the one that left them, as in containers; the second time there is a plan
    // to replace.
    let script = r#"for n in 0 1 2 3; do echo half > ".a.plan.$$.$n.unfinished"; done
        exec "$0" compile spec.toml --weights . -q -o a.plan"#;
    for _ in 0..2 {
        let status = shell(script).current_dir(sandbox.dir.path()).status();
        assert!(status.unwrap().success());
        sandbox.run(&["inspect", "a.plan", "--verify"]).text();
    }
    fs::remove_file(sandbox.path("a.plan")).unwrap();
    assert_eq!(sandbox.files(), strange);
    assert_ne!(strange, before);
}
