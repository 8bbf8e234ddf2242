//! `--cpus`, `--pin` and `--mlock`, by what the system says of a running process.

use super::kernmill;
use crate::harness::program;
use kernmill_os::affinity::usable;
use kernmill_os::memory::lock_limit;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Number of the capability to lock any memory.
const CAP_IPC_LOCK: libc::c_ulong = 14;

/// A program that decodes for a long time with two workers.
struct Decoding(Child);

impl Decoding {
    /// Starts it, and waits until its second worker is there.
    fn start(args: &[&str]) -> Decoding {
        let long = ["bench", "-q", "--pp", "0", "--tg", "1000", "--repeat", "60000", "--threads", "2"];
        let mut command = program();
        command.args(long).args(args).stdout(Stdio::null());
        let mut running = Decoding(command.spawn().unwrap());
        while running.worker().is_none() {
            assert!(running.0.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    /// Directory of the second worker's thread.
    fn worker(&self) -> Option<PathBuf> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).ok()?;
        let is_worker = |task: &PathBuf| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "kernmill-1")
        };
        tasks.filter_map(|task| Some(task.ok()?.path())).find(is_worker)
    }

    /// A field of the second worker's status.
    fn status(&self, field: &str) -> String {
        let status = fs::read_to_string(self.worker().unwrap().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.unwrap_or_else(|| panic!("no {field} in {status}")).trim().to_owned()
    }
}

impl Drop for Decoding {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn workers_run_where_they_may() {
    let cpus = usable().cpus;
    let (first, last) = (cpus[0].to_string(), cpus[cpus.len() - 1].to_string());
    let allowed = |args: &[&str]| Decoding::start(args).status("Cpus_allowed_list:");
    let by_default = allowed(&[]);
    assert_eq!(allowed(&["--cpus", &by_default]), by_default);
    assert_eq!(allowed(&["--cpus", &last]), last);
    // Another CPU than the first worker's, where there are two.
    let own: usize = allowed(&["--pin"]).parse().unwrap();
    assert!(cpus.contains(&own) && (own != cpus[0] || cpus.len() == 1), "{own}");
    assert_eq!(allowed(&["--pin", "--cpus", &last]), last);
    assert_eq!(allowed(&["--pin", "--cpus", &format!("{first},{last}")]), last);
    assert_eq!(allowed(&["--pin", "--cpus", &last, "--numa", "off"]), last);
    kernmill(&["run", "--numa", "on"]).refused(&["--numa", "expected auto or off"]);
}

#[test]
fn cpus_that_are_not_there_are_refused() {
    let cpus = usable().cpus;
    let absent = (0..).find(|cpu| !cpus.contains(cpu)).unwrap().to_string();
    for command in ["run", "chat", "serve", "bench"] {
        kernmill(&[command, "--cpus", &absent]).refused(&[
            "--cpus",
            &format!("may not use CPU {absent}"),
            "taskset",
        ]);
    }
    kernmill(&["run", "--cpus", "3-1"]).refused(&["--cpus", "expected 1-3"]);
    kernmill(&["run", "--cpus", "all"]).refused(&["--cpus", "such as 0-3,8"]);
    kernmill(&["run", "--cpus", "5000"]).refused(&["--cpus", "below 1024"]);
    let one = ["run", "--prompt", "hi", "-n", "1", "--threads", "2", "--cpus", &cpus[0].to_string()];
    let ran = kernmill(&one);
    assert!(ran.stderr.contains("workers may use 1 CPU;"), "{}", ran.stderr);
    // By default there is a worker for each core of them.
    let report = ["run", "--prompt", "hi", "-n", "1", "--json", "--cpus", &cpus[0].to_string()];
    let report: serde_json::Value = serde_json::from_str(&kernmill(&report).text()).unwrap();
    assert_eq!(report["threads"], 1);
}

#[test]
fn locked_weights_are_locked() {
    let kib = |running: &Decoding| {
        let locked = running.status("VmLck:");
        locked.trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    assert_eq!(kib(&Decoding::start(&[])), 0);
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("nano.plan");
    let plan = plan.to_str().unwrap();
    kernmill(&["compile", "-o", plan, "-q"]).text();
    let report = kernmill(&["inspect", plan, "--json"]).text();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let weights = report["weight_bytes"].as_u64().unwrap();
    if lock_limit().is_none_or(|limit| limit > 2 * weights) {
        for args in [&["--mlock"][..], &[plan, "--mlock"]] {
            // Weights are locked when workers have been started.
            let (running, patience) = (Decoding::start(args), Instant::now() + Duration::from_secs(60));
            while kib(&running) < weights / 1024 {
                assert!(Instant::now() < patience, "{} KiB are locked", kib(&running));
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    } else {
        kernmill(&["run", plan, "--mlock"]).refused(&["--mlock: "]);
    }
    // The embedded model is compiled, and a plan is mapped: both are refused before the work.
    for given in [&[][..], &[plan]] {
        let mut command = program();
        command.args(["run", "--prompt", "hi", "--mlock"]).args(given);
        let limit = || {
            let limit = libc::rlimit { rlim_cur: 65_536, rlim_max: 65_536 };
            // SAFETY: both calls may be made between fork and exec, and touch no memory of ours. The first
            // one fails for users who have no capabilities anyway.
            match unsafe {
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
                libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit)
            } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: `limit` makes two calls, which are allowed there.
        unsafe { command.pre_exec(limit) };
        let output = command.output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in ["--mlock: ", " bytes of weights", "is 65536 bytes", "ulimit -l unlimited"] {
            assert!(message.contains(part), "`{part}` is not in {message}");
        }
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
