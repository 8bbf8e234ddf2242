//! Systems that refuse calls which outputs are usually named by, and systems without `/proc`: the work is
//! done all the same.

use super::Sandbox;
use super::outputs::make_pipe;
use crate::harness::{program, shell};
use std::ffi::CStr;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// A system call, an argument with bits that must be set for it to be refused, and the answer.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub call: libc::c_long,
    pub argument: Option<(u32, u32)>,
    pub answer: libc::c_int,
}

/// The bit that tells an unnamed file from an opened directory.
const UNNAMED: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Naming an open file without `/proc`, or where it is not allowed; unnamed files on file systems and kernels
/// that have none.
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
    // The kernel's `seccomp_data` begins with the call's number; its arguments, of 8 bytes each, begin at
    // byte 16.
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
        // SAFETY: prctl may be called between fork and exec; the program and its filters live through the
        // call.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: `install` makes system calls alone.
    unsafe { command.pre_exec(install) };
}

/// Commands that write a file, up to its name. An explanation for a described machine does not depend on
/// the memory that this one has left.
const WRITING: [&[&str]; 4] = [
    &["explain", "spec.toml", "-q", "--target", "x86-64-v3", "--machine", "host.json", "--html"],
    &["logits", ".", "--tokens", "ids.json", "-q", "--out"],
    &["compile", "spec.toml", "--target", "x86-64-v3", "--emit", "obj", "-q", "-o"],
    &["compile", ".", "--target", "x86-64-v3", "-q", "-o"],
];

#[test]
fn outputs_are_named_another_way_where_the_usual_calls_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
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

/// A process with the number of one that was killed, as in containers, on a file system without unnamed
/// files.
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
        // Only the things that were put there are left: a pipe, a directory, a link.
        assert!(
            left.clone().all(|file| file.ends_with(".0.unfinished") == file.contains(".1.0.")),
            "{refusal:?}"
        );
        assert_eq!(left.filter(|file| file.ends_with(".7.unfinished")).count(), 0, "{refusal:?}");
    }
}

/// Runs the program in a separate mount namespace after `prepare`; `is_mapped`: it keeps its user's number.
/// Where this system lets nobody but root mount anything, it says so and returns nothing: then rules and
/// refused calls are held one by one by other tests.
fn in_namespace(
    sandbox: &Sandbox,
    args: &[&str],
    is_mapped: bool,
    mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> Option<Output> {
    // SAFETY: neither call has preconditions, and neither can fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    let enter = move || {
        // SAFETY: the call may be made between fork and exec, where there is one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let maps = maps.iter().filter(|_| is_mapped);
        maps.into_iter().try_for_each(|(file, text)| fs::write(file, text))?;
        prepare()
    };
    let mut command = program();
    command.args(args).current_dir(sandbox.dir.path());
    // SAFETY: `enter` makes system calls alone; short names need no memory.
    unsafe { command.pre_exec(enter) };
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let refused = [libc::EPERM, libc::EACCES, libc::ENOSPC, libc::EUSERS, libc::ENOSYS, libc::EINVAL];
            assert!(error.raw_os_error().is_some_and(|code| refused.contains(&code)), "{error}");
            // Past what the test harness holds back of a test that succeeds.
            let _ = writeln!(io::stderr(), "NOT RUN in a namespace of its own, {error}: kernmill {args:?}");
            None
        }
    }
}

/// Mounts `source` at `place`, or a new file system in memory.
fn mount(source: Option<&CStr>, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let (source, kind) = (source.unwrap_or(c"none").as_ptr(), c"tmpfs".as_ptr());
    // SAFETY: the names end with a NUL; a file system in memory needs no data.
    match unsafe { libc::mount(source, place.as_ptr(), kind, flags, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn without_proc(sandbox: &Sandbox, args: &[&str]) -> Option<Output> {
    in_namespace(sandbox, args, true, || mount(None, c"/proc", 0))
}

#[test]
fn plans_where_nothing_is_executed_are_not_run() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    fs::create_dir(sandbox.path("mounted")).unwrap();
    let run = |args: &[&str], is_bound: bool, flags: libc::c_ulong| {
        in_namespace(
            &sandbox,
            &[&["run", "mounted/a.plan", "--tokens", "ids.json", "-n", "1", "-q"], args].concat(),
            true,
            move || {
                if !is_bound {
                    mount(None, c"mounted", flags)?;
                    return fs::copy("a.plan", "mounted/a.plan").map(drop);
                }
                mount(Some(c"."), c"mounted", libc::MS_BIND)?;
                // A bind mount takes its options from a second call.
                mount(None, c"mounted", libc::MS_BIND | libc::MS_REMOUNT | flags)
            },
        )
    };
    for (is_bound, flags) in
        [(false, libc::MS_NOEXEC), (false, libc::MS_NOEXEC | libc::MS_NODEV), (true, libc::MS_NOEXEC)]
    {
        let Some(output) = run(&[], is_bound, flags) else { return };
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{is_bound} {flags}: {message}");
        assert!(message.contains("mounted noexec") && message.contains("--regenerate"), "{message}");
        assert_eq!(run(&["--regenerate"], is_bound, flags).unwrap().status.code(), Some(0));
    }
    for (is_bound, flags) in [(false, 0), (true, libc::MS_NOSUID)] {
        let output = run(&[], is_bound, flags).expect("the same calls");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn plans_of_users_that_a_namespace_does_not_know_are_not_run() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let usual: [&[&str]; 2] = [
        &["run", "a.plan", "--tokens", "ids.json", "-n", "1"],
        &["logits", "a.plan", "--tokens", "ids.json", "--out", "x.safetensors"],
    ];
    for (args, mode) in [(usual[0], 0o644), (usual[1], 0o644), (usual[0], 0o400)] {
        fs::set_permissions(sandbox.path("a.plan"), Permissions::from_mode(mode)).unwrap();
        let Some(output) = in_namespace(&sandbox, args, false, || Ok(())) else { return };
        let message = String::from_utf8(output.stderr).unwrap();
        // Root is nobody there, and may not even read what others may not.
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains("by which this user namespace shows all users") || mode == 0o400,
            "{message}"
        );
        let known = in_namespace(&sandbox, args, true, || Ok(())).expect("the same call");
        assert_eq!(known.status.code(), Some(0), "{}", String::from_utf8_lossy(&known.stderr));
    }
}

/// The system says in `/proc/meminfo` what there is.
#[test]
fn nothing_is_compiled_with_less_memory_than_any_compilation_takes() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let compiling: [&[&str]; 4] = [
        &["compile", ".", "-o", "b.plan", "-q"],
        &["run", ".", "--tokens", "ids.json", "-n", "1"],
        &["run", "a.plan", "--regenerate", "--tokens", "ids.json", "-n", "1"],
        &["run", "-n", "1"],
    ];
    let with = |kib: u64, args: &[&str]| {
        let text = format!("MemAvailable: {kib} kB\n");
        in_namespace(&sandbox, args, true, move || {
            mount(None, c"/proc", 0)?;
            fs::write("/proc/meminfo", &text)
        })
    };
    let before = sandbox.files();
    for kib in [100, 12_000, 20_479] {
        for args in compiling {
            let Some(output) = with(kib, args) else { return };
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?} {kib}: {message}");
            assert!(message.contains("not enough memory: ") && message.contains("memory.max"), "{message}");
        }
    }
    assert_eq!(sandbox.files(), before);
    for args in
        [&["import", "."][..], &["inspect", "a.plan"], &["run", "a.plan", "--tokens", "ids.json", "-n", "1"]]
    {
        let output = with(12_000, args).expect("the same calls");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(with(1 << 20, compiling[0]).expect("the same calls").status.code(), Some(0));
}

#[test]
fn nothing_needs_proc() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
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
    if without_proc(&sandbox, commands[3]).is_none() {
        return;
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
