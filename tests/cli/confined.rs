//! Systems that refuse calls which outputs are usually named by, and systems without `/proc`: the work is done all the same.

use super::Sandbox;
use super::outputs::make_pipe;
use crate::harness::{program, shell};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A system call, an argument with bits that must be set for it to be refused, and the answer.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub call: libc::c_long,
    pub argument: Option<(u32, u32)>,
    pub answer: libc::c_int,
}

/// The bit that tells an unnamed file from an opened directory.
const UNNAMED: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Naming an open file without `/proc`, or where it is not allowed; unnamed files on file systems and kernels that have none.
const REFUSALS: [Refusal; 5] = [
    Refusal { call: libc::SYS_linkat, argument: None, answer: libc::ENOENT },
    Refusal { call: libc::SYS_linkat, argument: None, answer: libc::EPERM },
    Refusal { call: libc::SYS_openat, argument: Some((2, UNNAMED)), answer: libc::EOPNOTSUPP },
    Refusal { call: libc::SYS_openat, argument: Some((2, UNNAMED)), answer: libc::EISDIR },
    Refusal { call: libc::SYS_openat, argument: Some((2, UNNAMED)), answer: libc::EINVAL },
];

/// Has the kernel refuse a call of the process that `command` starts, and of what it starts.
pub fn refuse(command: &mut Command, refusal: Refusal) {
    let Refusal { call, argument, answer } = refusal;
    let load = |at: u32| (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let skip_unless = |value: u32, count: u8| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, count, value);
    let skip_if = |value: u32, count: u8| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, count, 0, value);
    let end = |value: u32| (libc::BPF_RET | libc::BPF_K, 0, 0, value);
    // The kernel's `seccomp_data` begins with the call's number; its arguments, of 8 bytes each, begin at byte 16.
    let (at, bits) = argument.map_or((0, u32::MAX), |(n, bits)| (16 + 8 * n, bits));
    let mut steps = vec![load(0), skip_unless(call as u32, 4), load(at)];
    steps.push((libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, bits));
    steps.push(skip_if(0, 1));
    steps.push(end(libc::SECCOMP_RET_ERRNO | answer as u32));
    steps.push(end(libc::SECCOMP_RET_ALLOW));
    let filter = |(code, jt, jf, k)| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filters: Vec<libc::sock_filter> = steps.into_iter().map(filter).collect();
    let install = move || {
        let program = libc::sock_fprog { len: filters.len() as u16, filter: filters.as_mut_ptr() };
        let (one, zero): (libc::c_ulong, libc::c_ulong) = (1, 0);
        // SAFETY: prctl may be called between fork and exec; the program and its filters live through the call.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: `install` makes system calls alone.
    unsafe { command.pre_exec(install) };
}

/// Commands that write a file, up to its name.
const WRITING: [&[&str]; 4] = [
    &["import", ".", "-o"],
    &["logits", ".", "--tokens", "ids.json", "-q", "--out"],
    &["compile", "spec.toml", "--target", "x86-64-v3", "--emit", "obj", "-q", "-o"],
    &["compile", ".", "--target", "x86-64-v3", "-q", "-o"],
];

#[test]
fn outputs_are_named_another_way_where_the_usual_calls_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    for command in WRITING {
        sandbox.run(&[command, &["usual"]].concat()).text();
        let expected = fs::read(sandbox.path("usual")).unwrap();
        let before = [sandbox.files(), vec!["new".to_owned()]].concat();
        for refusal in REFUSALS {
            // The first time there is nothing under the name, the second time something is replaced.
            for _ in 0..2 {
                let mut confined = program();
                confined.args(command).arg("new").current_dir(sandbox.dir.path());
                refuse(&mut confined, refusal);
                let output = confined.output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(0), "{command:?} {refusal:?}: {message}");
                assert!(fs::read(sandbox.path("new")).unwrap() == expected, "{command:?} {refusal:?}");
                let mut files = sandbox.files();
                files.retain(|file| file != "new");
                files.push("new".to_owned());
                assert_eq!(files, before, "{command:?} {refusal:?}");
            }
            fs::remove_file(sandbox.path("new")).unwrap();
        }
    }
}

/// A process with the number of one that was killed, as in containers, on a file system without unnamed files.
#[test]
fn numbers_that_repeat_keep_nobody_from_writing_named_files() {
    let sandbox = Sandbox::of("gptoss-base");
    let script = r#"for n in 0 1 7 18446744073709551615; do echo half > ".a.plan.$$.$n.unfinished"; done
        mkdir ".a.plan.$$.2.unfinished"; ln -s spec.toml ".a.plan.$$.3.unfinished"
        exec "$0" compile spec.toml --weights . -q -o a.plan"#;
    make_pipe(&sandbox.path(".a.plan.1.0.unfinished"));
    for refusal in REFUSALS {
        let mut confined = shell(script);
        confined.current_dir(sandbox.dir.path());
        refuse(&mut confined, refusal);
        let output = confined.output().unwrap();
        assert!(output.status.success(), "{refusal:?}: {}", String::from_utf8_lossy(&output.stderr));
        sandbox.run(&["inspect", "a.plan", "--verify"]).text();
        let left = sandbox.files().into_iter().filter(|file| file.contains("unfinished"));
        // Those that are no files of one's own: pipe, directory, link.
        assert!(
            left.clone().all(|file| file.ends_with(".0.unfinished") == file.contains(".1.0.")),
            "{refusal:?}"
        );
        assert_eq!(left.filter(|file| file.ends_with(".7.unfinished")).count(), 0, "{refusal:?}");
    }
}

/// Runs the program where `/proc` is empty; an error where this system lets nobody but root mount anything.
fn without_proc(sandbox: &Sandbox, args: &[&str]) -> io::Result<std::process::Output> {
    // SAFETY: neither call has preconditions, and neither can fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    let hide = move || {
        // SAFETY: the call may be made between fork and exec, where there is one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        maps.iter().try_for_each(|(file, text)| fs::write(file, text))?;
        let (none, proc, kind) = (c"none".as_ptr(), c"/proc".as_ptr(), c"tmpfs".as_ptr());
        // SAFETY: the names end with a NUL; a file system of this kind needs no data.
        match unsafe { libc::mount(none, proc, kind, 0, std::ptr::null()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let mut command = program();
    command.args(args).current_dir(sandbox.dir.path());
    // SAFETY: `hide` makes system calls alone; short names need no memory.
    unsafe { command.pre_exec(hide) };
    command.output()
}

#[test]
fn nothing_needs_proc() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    sandbox.write("mish.toml", include_bytes!("../../model-specs/examples/fused/mish.toml"));
    let commands: [&[&str]; 9] = [
        &["run", "a.plan", "--tokens", "ids.json", "-n", "4", "-q"],
        &["run", ".", "--tokens", "ids.json", "-n", "4", "--threads", "2"],
        &["bench", "--pp", "4", "--tg", "2", "--repeat", "1", "--read", "1M", "-q"],
        // It starts the program's own file.
        &["fuse", "check", "mish.toml", "--samples", "1"],
        &["inspect", "a.plan", "--verify", "-q"],
        &["import", "."],
        &["explain", "spec.toml", "--emit", "graph,asm", "-q"],
        &["fuse", "list"],
        &["cpu"],
    ];
    match without_proc(&sandbox, &["import", "."]) {
        Ok(_) => {}
        Err(error) => {
            // The calls are refused one by one in the tests above.
            let refused = [libc::EPERM, libc::EACCES, libc::ENOSPC, libc::EUSERS, libc::ENOSYS, libc::EINVAL];
            eprintln!(
                "NOT RUN: cli::confined::nothing_needs_proc: this user cannot hide /proc here: {error}"
            );
            return assert!(error.raw_os_error().is_some_and(|code| refused.contains(&code)), "{error}");
        }
    }
    for args in commands {
        let output = without_proc(&sandbox, args).unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
        assert!(!message.contains("memory 0 MB"), "{message}");
        let text = String::from_utf8(output.stdout).unwrap();
        match args[0] {
            "cpu" => assert!(text.starts_with("unknown x86-64 CPU\n"), "{text}"),
            "bench" => {}
            "fuse" if args[1] == "check" => assert!(text.contains("the interpreter's bits"), "{text}"),
            _ => assert_eq!(text, sandbox.run(args).text(), "{args:?}"),
        }
    }
    for command in WRITING {
        sandbox.run(&[command, &["usual"]].concat()).text();
        for _ in 0..2 {
            let output = without_proc(&sandbox, &[command, &["new"]].concat()).unwrap();
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            let of = |name: &str| fs::read(sandbox.path(name)).unwrap();
            assert!(of("new") == of("usual"), "{command:?}");
        }
        fs::remove_file(sandbox.path("new")).unwrap();
    }
    assert!(!sandbox.files().iter().any(|file| file.contains("unfinished")));
}
