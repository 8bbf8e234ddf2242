//! Programs that end as they should, and programs that try to leave something behind.

use super::{DRIVER, ProgramEnd, ProgramLimits, ProgramSandbox};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::{Duration, Instant};

/// Hostile programs, where `KERNMILL_HOSTILE_PROGRAMS` says no other number.
const HOSTILE: usize = 96;

/// A sandbox, where there is one. Otherwise everybody is told that `test` checks nothing.
fn sandbox(test: &str, seconds: u32) -> Option<ProgramSandbox> {
    let limits = ProgramLimits {
        cpu_seconds: seconds,
        wall: Duration::from_secs(u64::from(seconds)),
        memory: 256 << 20,
        processes: 16,
    };
    ProgramSandbox::find(limits)
        .inspect_err(|error| {
            // Written past the capture of the test's output, so that everybody sees it.
            let _ = std::io::stderr().write_all(format!("NOT RUN: {test}: {error}\n").as_bytes());
        })
        .ok()
}

#[test]
fn programs_end_as_they_should() {
    let Some(sandbox) = sandbox("sandbox::programs_end_as_they_should", 20) else { return };
    let failed = |what: &str| ProgramEnd::Failed(what.to_owned());
    for (program, expected) in [
        ("import math, hashlib, typing\nassert math.prod([2, 3]) == 6", ProgramEnd::Passed),
        ("assert 1 == 2", failed("AssertionError: ")),
        ("assert 1 == 2, 'one\\ntwo'", failed("AssertionError: one")),
        ("def f(:", failed("SyntaxError: invalid syntax (program, line 1)")),
        ("raise SystemExit(0)", failed("SystemExit: 0")),
        ("print('a' * 100000)\nimport sys\nsys.stderr.write('b')", ProgramEnd::Passed),
        ("import os\nos._exit(0)", ProgramEnd::Ended),
        ("import os\nif os.fork() == 0: raise ValueError\nos.wait()", ProgramEnd::Passed),
        ("b = bytearray(1 << 30)", failed("MemoryError: ")),
        (
            "f = open('/tmp/a', 'w')\nf.write('x')\nf.close()\nassert open('/tmp/a').read() == 'x'",
            ProgramEnd::Passed,
        ),
        // Each has files of its own.
        ("import os\nassert not os.path.exists('/tmp/a')", ProgramEnd::Passed),
        ("input()", failed("EOFError: EOF when reading a line")),
    ] {
        assert_eq!(sandbox.run(program).unwrap(), expected, "{program}");
    }
    let quick = ProgramSandbox {
        limits: ProgramLimits { wall: Duration::from_millis(700), ..sandbox.limits },
        ..sandbox.clone()
    };
    let began = Instant::now();
    assert_eq!(quick.run("import time\ntime.sleep(600)").unwrap(), ProgramEnd::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(300));
    let programs: Vec<String> = (0..9).map(|at| format!("assert {at} % 3 == 0")).collect();
    let mut heard = 0;
    let ends = sandbox.run_all(&programs, 4, &mut || heard += 1).unwrap();
    let passed: Vec<bool> = ends.iter().map(|end| *end == ProgramEnd::Passed).collect();
    assert_eq!(passed, (0..9).map(|at| at % 3 == 0).collect::<Vec<_>>());
    assert_eq!(heard, 9);
}

/// Where a hostile program finds something outside.
struct Outside {
    port: u16,
    socket: String,
    dir: String,
    mark: String,
    process: u32,
}

/// Folders in which programs try to write.
const PLACES: [&str; 12] = [
    "/tmp", "/var/tmp", "/dev/shm", "/", "/etc", "/usr", "/usr/bin", "/root", "/home", "/run", "/proc",
    "/dev",
];

/// A program that passes only if it got out, or one that is to be ended.
fn hostile(random: &mut fastrand::Rng, outside: &Outside) -> String {
    let templates: Vec<&str> = include_str!("hostile.txt").split("===\n").collect();
    let places = [&PLACES[..], &[&outside.dir]].concat();
    let values = [
        ("{port}", outside.port.to_string()),
        ("{socket}", outside.socket.clone()),
        ("{dir}", outside.dir.clone()),
        ("{mark}", outside.mark.clone()),
        ("{process}", outside.process.to_string()),
        ("{size}", random.u32(1..64).to_string()),
        ("{signal}", random.choice([1, 2, 9, 15, 19]).unwrap().to_string()),
        ("{place}", (*random.choice(&places).unwrap()).to_owned()),
    ];
    let template = random.choice(&templates).unwrap();
    let program = values.iter().fold((*template).to_owned(), |text, (name, value)| text.replace(name, value));
    format!("import os, sys, time, socket, signal, ctypes, threading, subprocess\n{program}")
}

/// Whether a program of [`hostile`] may pass though nothing is left: what it began is ended with it.
fn may_pass(program: &str) -> bool {
    program.contains("os.setsid()")
}

/// Processes of any program.
fn processes() -> Vec<String> {
    let beginning = DRIVER.lines().next().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let of_program = |path: &Path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(beginning) || line.contains("sleep 600")).then_some(line)
    };
    entries.filter_map(|path| of_program(&path)).collect()
}

/// Names in a folder that have a mark.
fn marked(dir: &str, mark: &str) -> Vec<String> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|it| it.contains(mark))
        .collect()
}

#[test]
fn hostile_programs_leave_nothing_outside() {
    let Some(sandbox) = sandbox("sandbox::hostile_programs_leave_nothing_outside", 1) else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let process = std::process::id();
    let socket = format!("kernmill-eval-{process}");
    let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket).unwrap()).unwrap();
    unix.set_nonblocking(true).unwrap();
    let mark = format!("kernmill-mark-{process}-");
    let port = tcp.local_addr().unwrap().port();
    let outside = Outside { port, socket, dir: dir.path().to_str().unwrap().to_owned(), mark, process };
    let shared = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();

    let count = std::env::var("KERNMILL_HOSTILE_PROGRAMS").map_or(HOSTILE, |count| count.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(54);
    let programs: Vec<String> = (0..count).map(|_| hostile(&mut random, &outside)).collect();
    let ends = sandbox.run_all(&programs, 4, &mut || {}).unwrap();
    assert_eq!(ends.len(), count);
    for (program, end) in programs.iter().zip(&ends) {
        assert!(may_pass(program) || *end != ProgramEnd::Passed, "it got out:\n{program}");
    }
    // The sandbox still does its work.
    assert_eq!(sandbox.run("assert True").unwrap(), ProgramEnd::Passed);

    // The kernel ends a process space a moment after its first process.
    let began = Instant::now();
    while !processes().is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(processes(), Vec::<String>::new());
    assert!(tcp.accept().is_err() && unix.accept().is_err(), "a socket was reached");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    for place in PLACES.into_iter().filter(|place| *place != "/proc") {
        assert_eq!(marked(place, &outside.mark), Vec::<String>::new(), "{place}");
    }
    assert_eq!(fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default(), shared);
}
