//! Programs that nobody has read, run by bubblewrap: without network, with a root that cannot be written, in
//! a process space of their own, for a limited time and in limited memory.

#[cfg(test)]
mod tests;

use kernmill::{Error, Result};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The trusted beginning of every program.
const DRIVER: &str = include_str!("driver.py");
/// Bytes of what a program may say at its end.
const MOST_SAID: u64 = 4096;
/// Bytes of all files of a program together.
const FILES: u64 = 64 << 20;
/// The user and group that have nothing.
const NOBODY: u32 = 65534;

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLimits {
    /// Seconds of computing of each process.
    pub cpu_seconds: u32,
    /// The time until the program is ended, with all of its processes.
    pub wall: Duration,
    /// Bytes of memory of each process.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u32,
}

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// The program ran to its end, all checks included.
    Passed,
    /// The program ended with this exception.
    Failed(String),
    /// The time was over.
    TimedOut,
    /// The program ended in another way: by a signal, or by itself before its checks were done.
    Ended,
}

/// Runs programs in Python.
#[derive(Clone, Debug)]
pub struct ProgramSandbox {
    bwrap: PathBuf,
    python: PathBuf,
    limits: ProgramLimits,
    /// Whether bubblewrap is run as another user, as root has no limit of processes.
    is_root: bool,
}

impl ProgramEnd {
    /// The end as a word or two.
    pub fn said(&self) -> &str {
        match self {
            ProgramEnd::Passed => "passed",
            ProgramEnd::Failed(why) => why,
            ProgramEnd::TimedOut => "timed out",
            ProgramEnd::Ended => "ended before its checks were done",
        }
    }
}

impl ProgramSandbox {
    /// Finds what is needed, and sees whether a program can be run.
    ///
    /// # Errors
    /// When bubblewrap or Python is missing, or the system lets no sandbox be made.
    pub fn find(limits: ProgramLimits) -> Result<ProgramSandbox> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let bwrap = std::env::split_paths(&paths).map(|dir| dir.join("bwrap")).find(|path| path.is_file());
        let missing = "bwrap is missing, in which programs run without network and files: install bubblewrap, \
            by apt-get install bubblewrap for example";
        let bwrap = bwrap.ok_or_else(|| Error::bad_input(missing))?;
        let python = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
        let missing = || Error::bad_input("/usr/bin/python3 is missing, which runs the programs");
        let python = python.into_iter().find(|path| path.is_file()).ok_or_else(missing)?;
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let sandbox = ProgramSandbox { bwrap, python, limits, is_root };
        // The first start reads Python from the disk.
        let patient =
            ProgramLimits { wall: limits.wall.max(Duration::from_secs(30)), cpu_seconds: 30, ..limits };
        let trial = ProgramSandbox { limits: patient, ..sandbox.clone() };
        let (end, errors) = trial.run_with("assert 1 + 1 == 2", Stdio::piped())?;
        match end {
            ProgramEnd::Passed => Ok(sandbox),
            end => {
                let why = errors.lines().next().unwrap_or(end.said()).to_owned();
                let what = format!("bwrap makes no sandbox here (version 0.8 or later is needed): {why}");
                Err(Error::bad_input(what))
            }
        }
    }

    /// Runs a program to its end, or to that of its time.
    ///
    /// # Errors
    /// When bubblewrap cannot be started.
    pub fn run(&self, program: &str) -> Result<ProgramEnd> {
        Ok(self.run_with(program, Stdio::null())?.0)
    }

    /// Runs programs, so many at once; their ends, in their order. `on_end` hears of each.
    ///
    /// # Errors
    /// When bubblewrap cannot be started.
    pub fn run_all(
        &self,
        programs: &[String],
        jobs: usize,
        on_end: &mut dyn FnMut(),
    ) -> Result<Vec<ProgramEnd>> {
        let next = AtomicUsize::new(0);
        let (told, ends) = channel();
        let mut found: Vec<Option<ProgramEnd>> = vec![None; programs.len()];
        scope(|scope| -> Result<()> {
            let start = || {
                let (told, next) = (told.clone(), &next);
                let work = move || {
                    while let Some((at, program)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        programs.get(at).map(|program| (at, program))
                    } {
                        if told.send((at, self.run(program))).is_err() {
                            return;
                        }
                    }
                };
                Builder::new().spawn_scoped(scope, work).map(drop).map_err(no_thread)
            };
            let started = (0..jobs.clamp(1, programs.len().max(1))).try_for_each(|_| start());
            drop(told);
            let ended = started.and_then(|()| {
                ends.iter().try_for_each(|(at, end)| {
                    found[at] = Some(end?);
                    on_end();
                    Ok(())
                })
            });
            // After an error nobody listens, and each worker stops behind its program.
            drop(ends);
            ended
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    fn run_with(&self, program: &str, stderr: Stdio) -> Result<(ProgramEnd, String)> {
        let mut word = [0; 16];
        let random = SystemRandom::new().fill(&mut word);
        random.map_err(|_| Error::failed("the system gives no random numbers"))?;
        let word: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut command = self.command();
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn();
        let mut child =
            started.map_err(|error| Error::failed(format!("{}: {error}", self.bwrap.display())))?;
        let followed = self.follow(&mut child, &word, program);
        // A program that has told its end ends its process space, and bwrap waits for it.
        if followed.as_ref().is_ok_and(|(end, _)| *end != ProgramEnd::TimedOut) {
            wait_a_while(&mut child);
        }
        // With bwrap all of its process space ends.
        let _ = child.kill();
        let _ = child.wait();
        let (end, errors) = followed?;
        let mut said = String::new();
        if let Some(errors) = errors {
            let _ = errors.take(MOST_SAID).read_to_string(&mut said);
        }
        Ok((end, said))
    }

    fn follow(
        &self,
        child: &mut Child,
        word: &str,
        program: &str,
    ) -> Result<(ProgramEnd, Option<std::process::ChildStderr>)> {
        let ProgramLimits { cpu_seconds, wall, memory, processes } = self.limits;
        let errors = child.stderr.take();
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok((ProgramEnd::Ended, errors));
        };
        let (told, end) = sync_channel(1);
        Builder::new().spawn(move || told.send(read_end(stdout))).map_err(no_thread)?;
        let head = format!("{word} {memory} {cpu_seconds} {FILES} {processes}\n{program}");
        // Where bwrap has ended nothing is read; what it says at its end tells why.
        let _ = stdin.write_all(head.as_bytes());
        drop(stdin);
        let Ok(said) = end.recv_timeout(wall) else { return Ok((ProgramEnd::TimedOut, errors)) };
        let said = said.strip_prefix(word).and_then(|said| said.strip_suffix('\n'));
        let end = match said.map(str::trim_start) {
            Some("passed") => ProgramEnd::Passed,
            Some(other) => {
                ProgramEnd::Failed(other.strip_prefix("failed ").unwrap_or("unreadable").to_owned())
            }
            None => ProgramEnd::Ended,
        };
        Ok((end, errors))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.bwrap);
        let [nobody, size] = [NOBODY.to_string(), FILES.to_string()];
        command.args(["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]);
        command.args(["--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session"]);
        command.args(["--cap-drop", "ALL", "--uid", &nobody, "--gid", &nobody, "--hostname", "sandbox"]);
        command.args(["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp"]);
        command.args(["--setenv", "LANG", "C.UTF-8", "--setenv", "OPENBLAS_NUM_THREADS", "1"]);
        command.args(["--ro-bind", "/usr", "/usr"]);
        for path in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
            match std::fs::read_link(path) {
                Ok(to) => command.arg("--symlink").arg(to).arg(path),
                Err(_) if Path::new(path).is_dir() => command.args(["--ro-bind", path, path]),
                Err(_) => &mut command,
            };
        }
        for path in ["/etc/ld.so.cache", "/etc/alternatives"] {
            command.args(["--ro-bind-try", path, path]);
        }
        command.args(["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]);
        command.args(["--size", &size, "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/", "--"]);
        command.arg(&self.python).args(["-I", "-B", "-c", DRIVER]);
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        // Where it stands must be a place that any user may enter.
        command.current_dir("/");
        command
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::failed(format!("no thread can be started: {error}"))
}

/// Waits for the end of a process that is about to end.
fn wait_a_while(child: &mut Child) {
    for _ in 0..500 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The words at the end, as far as they are read.
fn read_end(stdout: ChildStdout) -> String {
    let mut said = Vec::new();
    let _ = stdout.take(MOST_SAID).read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}
