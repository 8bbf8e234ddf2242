//! Refusals by the system: threads, and code that was generated.

use super::Sandbox;
use super::confined::{Refusal, refuse};
use super::outputs::make_pipe;
use crate::harness::{program, shell};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Has the system make no thread for a command.
type Deny = fn(&mut Command);

/// Ways in which a system makes no thread.
const WITHOUT_THREADS: [(&str, Deny); 2] = [
    // No address space has room for such a stack.
    ("no memory", |command| {
        command.env("RUST_MIN_STACK", (1u64 << 60).to_string());
    }),
    // As where a container has no more processes left.
    ("no processes", |command| {
        for call in [libc::SYS_clone, libc::SYS_clone3] {
            refuse(command, Refusal { call, argument: None, answer: libc::EAGAIN });
        }
    }),
];

/// Runs the program where no thread can be made.
fn without_threads(sandbox: &Sandbox, deny: Deny, args: &[&str]) -> Output {
    let mut command = program();
    command.args(args).current_dir(sandbox.dir.path());
    deny(&mut command);
    command.output().unwrap()
}

#[test]
fn work_is_done_by_one_thread_where_the_system_makes_no_more() {
    let sandbox = Sandbox::of("gptoss-base");
    let compile = ["compile", "-q", "--target", "x86-64-v3", "-o"];
    sandbox.run(&[&compile[..], &["nano.plan"]].concat()).text();
    let expected = fs::read(sandbox.path("nano.plan")).unwrap();
    sandbox.run(&["synth", "spec.toml", "-o", "same"]).text();
    let weights = |dir: &str| fs::read(sandbox.path(dir).join("model.safetensors")).unwrap();
    for (why, deny) in WITHOUT_THREADS {
        for preset in ["faithful", "fast"] {
            let more = ["again.plan", "--preset", preset, "--threads", "4"];
            let output = without_threads(&sandbox, deny, &[&compile[..], &more].concat());
            assert!(output.status.success(), "{why}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(fs::read(sandbox.path("again.plan")).unwrap() == expected, preset == "faithful");
        }
        let commands: [&[&str]; 5] = [
            &["run", "nano.plan", "--prompt", "A slice is", "-n", "9", "-q", "--threads", "1"],
            &["run", "-n", "5", "-q", "--threads", "1"],
            &["run", "--prompt", "A slice is", "-n", "5", "-q", "--threads", "1", "--preset", "fast"],
            &["inspect", "nano.plan", "--verify", "--threads", "4"],
            &["synth", "spec.toml", "-o", why],
        ];
        for args in commands {
            let output = without_threads(&sandbox, deny, args);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{why}, {args:?}: {errors}");
            if args[0] != "synth" {
                assert_eq!(String::from_utf8(output.stdout).unwrap(), sandbox.run(args).text());
            }
        }
        assert!(weights(why) == weights("same"), "{why}");
    }
}

#[test]
fn kernels_that_need_more_threads_than_there_are_end_in_a_message() {
    let sandbox = Sandbox::of("gptoss-base");
    let logits = ["logits", "--tokens", "ids.json", "--out", "x.safetensors", "--threads", "3"];
    for args in [&["run", "-n", "5", "--threads", "2"][..], &logits] {
        for (why, deny) in WITHOUT_THREADS {
            let output = without_threads(&sandbox, deny, args);
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{why}: {message}");
            // A note may come first, that three threads are more than there are CPUs.
            let error = message.lines().last().unwrap_or_default();
            assert!(error.starts_with("error: ") && error.contains("thread"), "{why}: {message}");
        }
    }
}

#[test]
fn small_stacks_are_refused_at_the_start() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let run = |script: &str, args: &[&str]| {
        let mut command = shell(&format!("{script} exec \"$0\" \"$@\""));
        command.args(args).current_dir(sandbox.dir.path()).output().unwrap()
    };
    let commands: [&[&str]; 4] = [
        &["run", "a.plan", "--tokens", "ids.json", "-n", "2", "-q", "--threads", "3"],
        &["compile", ".", "-o", "b.plan", "-q", "--threads", "2"],
        &["import", "."],
        &["--help"],
    ];
    for args in commands {
        for (script, says) in [
            ("ulimit -s 64;", "the stack may have 65536 bytes"),
            ("ulimit -s 200;", "ulimit -s 1024"),
            ("ulimit -s 1023;", "ulimit -s 1024"),
            ("RUST_MIN_STACK=4096", "RUST_MIN_STACK is 4096, expected at least 1048576"),
            ("RUST_MIN_STACK=0", "RUST_MIN_STACK is 0"),
            ("RUST_MIN_STACK=1000000", "RUST_MIN_STACK is 1000000"),
        ] {
            let output = run(script, args);
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{script} {args:?}: {message}");
            assert!(message.starts_with("error: ") && message.contains(says), "{script}: {message}");
        }
        for script in ["ulimit -s 1024;", "RUST_MIN_STACK=1048576"] {
            let output = run(script, args);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{script}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn a_process_that_may_make_no_code_executable_is_told_so() {
    const PR_SET_MDWE: libc::c_int = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "spec.toml", "--weights", ".", "-o", "a.plan"]).text();
    let run = |args: &[&str]| {
        let mut command = program();
        command.args(args).current_dir(sandbox.dir.path());
        let (on, zero): (_, libc::c_ulong) = (PR_MDWE_REFUSE_EXEC_GAIN, 0);
        // SAFETY: prctl may be called between fork and exec, and touches nothing of this process.
        unsafe {
            command.pre_exec(move || match libc::prctl(PR_SET_MDWE, on, zero, zero, zero) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        command.output()
    };
    for args in [&["run", "-n", "1"][..], &["run", "a.plan", "--tokens", "ids.json", "-n", "1"]] {
        match run(args) {
            Ok(output) => {
                let message = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(1), "{message}");
                assert!(
                    message.starts_with("error: ") && message.contains("MemoryDenyWriteExecute"),
                    "{message}"
                );
            }
            // Linux before 6.3 cannot be told to refuse.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}"),
        }
    }
}

#[test]
fn inputs_that_never_end_or_are_never_written_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    let endless: [&[&str]; 4] = [
        &["run", "--weights", ".", "--spec", "/dev/zero", "--tokens", "ids.json"],
        &["run", "--weights", ".", "--tokens", "/dev/zero"],
        &["run", "--prompt-file", "/dev/zero"],
        &["explain", "spec.toml", "--fused", "/dev/zero"],
    ];
    for args in endless {
        let output = program().args(args).current_dir(sandbox.dir.path()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains("/dev/zero: it "), "{message}");
    }
    // Nobody writes to these pipes, which lie in directories.
    for name in ["specs", "model"] {
        fs::create_dir(sandbox.path(name)).unwrap();
    }
    make_pipe(&sandbox.path("specs/a.toml"));
    make_pipe(&sandbox.path("model/kernmill.toml"));
    sandbox
        .run(&["explain", "spec.toml", "--fused", "specs"])
        .refused(&["specs/a.toml: it is a pipe or a device", "expected a regular file"]);
    sandbox.run(&["run", "model", "--tokens", "ids.json"]).refused(&["model/kernmill.toml: it is a pipe"]);
}
