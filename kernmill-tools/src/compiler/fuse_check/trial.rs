//! The trials of a fused-op spec in a separate process: `kernmill fuse check` starts it for every spec
//! and watches it. A crash, a hang and too much memory are verdicts.

use super::costs::SpecCosts;
use super::differ::{self, CurrentTrial, DiffOutcome};
use kernmill::{Error, Result};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, sample, sample_function};
use kernmill_compiler::passes::quant::Preset;
use kernmill_plan::target::Level;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The trial that a process is to run.
#[derive(Serialize, Deserialize)]
pub struct TrialRequest {
    /// Names and texts of the specs.
    pub specs: Vec<(String, String)>,
    /// Index of the spec that is tried.
    pub spec: usize,
    /// Number of the first random model.
    pub seed: u64,
    /// How many random models there are.
    pub samples: u32,
    /// Levels to try, by name.
    pub levels: Vec<String>,
    /// Text of the graph that costs are of, and its preset; otherwise they are of a random model.
    pub model: Option<(String, String)>,
    /// Whether costs are wanted.
    pub costs: bool,
    /// Bytes that the process may take.
    pub memory: u64,
    /// The machine that costs are for.
    pub machine: Option<Description>,
}

/// The outcome of a trial.
#[derive(Default, Serialize, Deserialize)]
pub struct TrialReply {
    /// The outcome of the comparisons.
    pub outcome: DiffOutcome,
    /// The spec's savings, if they were asked for.
    pub costs: Option<SpecCosts>,
}

/// A line that the process writes.
#[derive(Serialize, Deserialize)]
enum TrialLine {
    At(CurrentTrial),
    Done(Box<TrialReply>),
}

/// How the process ended, where that was not as it should be.
pub struct Crash {
    /// The trial that ran.
    pub at: CurrentTrial,
    /// The message about the end.
    pub verdict: String,
    /// Text of the model's graph.
    pub graph: Option<String>,
}

/// Tries a spec in the process that `command` starts, which calls [`serve`] and may be silent for `limit`.
///
/// # Errors
/// When the process cannot be started.
pub fn run(
    command: Command,
    request: &TrialRequest,
    spec: &FusedSpec,
    limit: Duration,
) -> Result<std::result::Result<TrialReply, Crash>> {
    let input = serde_json::json!(request).to_string();
    let start =
        CurrentTrial { model: None, function: None, what: "the start".to_owned(), level: String::new() };
    let (mut at, mut reply) = (start, None);
    let end = watch(command, input.as_bytes(), limit, &mut |line| match serde_json::from_str(line) {
        Ok(TrialLine::At(now)) => at = now,
        Ok(TrialLine::Done(done)) => reply = Some(*done),
        Err(_) => {}
    })?;
    let verdict = match (end, reply) {
        (End::Done, Some(reply)) => return Ok(Ok(reply)),
        (End::Done, None) => "ended without an answer".to_owned(),
        (End::Broken(verdict), _) => verdict,
    };
    let graph = at.model.and_then(|seed| match &at.function {
        Some(name) => {
            let function = spec.functions.iter().find(|function| function.name == *name)?;
            sample_function(function, seed).ok()
        }
        None => sample(spec.rule.as_ref()?, seed).ok(),
    });
    Ok(Err(Crash { at, verdict, graph: graph.map(|graph| graph.to_string()) }))
}

/// The process itself: does what the text of a request asks for. `say` writes a line to who asked, and tells
/// whether that is still there; if not, the process ends.
///
/// # Errors
/// When the request cannot be read.
pub fn serve(text: &str, say: &dyn Fn(&str) -> bool) -> Result<()> {
    let bad = |error: &dyn std::fmt::Display| Error::bad_input(format!("the request: {error}"));
    let request: TrialRequest = serde_json::from_str(text).map_err(|error| bad(&error))?;
    limit_memory(request.memory);
    let parsed = request.specs.iter().map(|(name, text)| FusedSpec::parse(name, text));
    let specs = parsed.collect::<std::result::Result<Vec<_>, _>>()?;
    let spec = specs.get(request.spec).cloned();
    let spec = spec.ok_or_else(|| bad(&"there is no such spec"))?;
    let set = FusedSet::builtin().with(specs)?;
    let supported = Level::supported().into_iter();
    let levels: Vec<Level> =
        supported.filter(|level| request.levels.iter().any(|name| name == level.name())).collect();
    let seeds = request.seed..request.seed.saturating_add(u64::from(request.samples));
    let say = |line: &TrialLine| say(&format!("{}\n", serde_json::json!(line)));
    // Nobody listens any more: there is nothing left to do.
    let mut at = |at: CurrentTrial| {
        if !say(&TrialLine::At(at)) {
            std::process::exit(1);
        }
    };
    let (outcome, example) = differ::run(&spec, &set, seeds, &levels, &mut at);
    let of = match &request.model {
        Some((graph, preset)) => {
            let graph = graph.parse::<Graph>().map_err(|error| bad(&error))?;
            Preset::from_name(preset).map(|preset| (graph, preset))
        }
        None => example,
    };
    let costs = match (of, levels.last()) {
        (Some((graph, preset)), Some(level)) if request.costs && spec.rule.is_some() => {
            let what = format!("costs in model {}", graph.name);
            at(CurrentTrial { model: None, function: None, what, level: level.name().to_owned() });
            SpecCosts::of(&spec.name.value, &graph, preset, &set, (*level, request.machine.as_ref()))
        }
        _ => None,
    };
    say(&TrialLine::Done(Box::new(TrialReply { outcome, costs })));
    Ok(())
}

/// How a child process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with status 0.
    Done,
    /// In another way: which, and the last line that it wrote to standard error.
    Broken(String),
}

/// Runs a child, gives it `input`, and hands its lines to `line` until it ends, or says nothing for `limit`.
///
/// # Errors
/// When it cannot be started.
pub fn watch(mut command: Command, input: &[u8], limit: Duration, line: &mut dyn FnMut(&str)) -> Result<End> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let refused =
        |error| Error::failed(format!("the process that runs the trials cannot be started: {error}"));
    let mut child = command.spawn().map_err(refused)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that ends before it has read all says so in its own way.
        let _ = stdin.write_all(input);
    }
    let read = read(&mut child, limit, line);
    if read.is_err() {
        // It may have ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_err(refused)?;
    Ok(match read {
        Err(silent) => End::Broken(silent),
        Ok(_) if status.success() => End::Done,
        Ok(last) => End::Broken(verdict(status, &last)),
    })
}

/// Reads both outputs to their ends; the last line of standard error. An error says that the child was silent
/// for too long.
fn read(
    child: &mut Child,
    limit: Duration,
    line: &mut dyn FnMut(&str),
) -> std::result::Result<String, String> {
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Ok(String::new());
    };
    let (mut text, mut errors) = (Vec::new(), Vec::new());
    let mut polled =
        [out.as_raw_fd(), err.as_raw_fd()].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let mut heard = Instant::now();
    let mut buffer = vec![0; 1 << 16];
    while polled.iter().any(|one| one.fd >= 0) {
        let left = limit.saturating_sub(heard.elapsed());
        if left.is_zero() {
            return Err(format!("no answer within {} s", limit.as_secs()));
        }
        let wait = left.as_millis().clamp(1, 1000) as libc::c_int;
        // SAFETY: two entries, of files that are open or negative and passed over.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, wait) };
        for (which, one) in polled.iter_mut().enumerate() {
            if one.fd < 0 || one.revents == 0 {
                continue;
            }
            let read = if which == 0 { out.read(&mut buffer) } else { err.read(&mut buffer) };
            match read {
                Ok(0) | Err(_) => one.fd = -1,
                Ok(bytes) => {
                    heard = Instant::now();
                    let to = if which == 0 { &mut text } else { &mut errors };
                    to.extend_from_slice(&buffer[..bytes]);
                }
            }
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = text.drain(..=end).collect();
            line(String::from_utf8_lossy(&whole).trim_end());
        }
        let surplus = errors.len().saturating_sub(1 << 12);
        errors.drain(..surplus);
    }
    let errors = String::from_utf8_lossy(&errors);
    Ok(errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
}

/// The meaning of a status other than success.
fn verdict(status: ExitStatus, last: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => match name(signal) {
            Some(name) => format!("ended by signal {signal} ({name})"),
            None => format!("ended by signal {signal}"),
        },
        (_, Some(code)) => format!("ended with status {code}"),
        _ => "ended".to_owned(),
    };
    if last.is_empty() { how } else { format!("{how}: {last}") }
}

fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGSEGV => "SIGSEGV: memory that is not there",
        libc::SIGBUS => "SIGBUS: memory that is not there",
        libc::SIGILL => "SIGILL: no instruction of this CPU",
        libc::SIGFPE => "SIGFPE: arithmetic",
        libc::SIGABRT => "SIGABRT: given up",
        libc::SIGKILL => "SIGKILL: killed, perhaps for its memory",
        _ => return None,
    })
}

/// Bounds this process's memory, and keeps it from leaving its memory on disk when it crashes.
pub fn limit_memory(bytes: u64) {
    let set = |resource, bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: the limit is read during the call only. One that the system refuses changes nothing.
        unsafe { libc::setrlimit(resource, &raw const limit) };
    };
    set(libc::RLIMIT_AS, bytes);
    set(libc::RLIMIT_CORE, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (End, Vec<String>) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let mut lines = Vec::new();
        let end = watch(command, b"input\n", limit, &mut |line| lines.push(line.to_owned())).unwrap();
        (end, lines)
    }

    #[test]
    fn a_child_is_given_its_input_and_its_lines_are_heard() {
        let (end, lines) = shell("read x; echo one; echo $x; exit 0", Duration::from_secs(20));
        assert_eq!((end, lines), (End::Done, vec!["one".to_owned(), "input".to_owned()]));
    }

    #[test]
    fn signals_states_and_silence_are_verdicts() {
        for (script, verdict) in [
            ("echo at; kill -SEGV $$", "ended by signal 11 (SIGSEGV: memory that is not there)"),
            (
                "echo at; echo 'out of it' >&2; kill -ABRT $$",
                "ended by signal 6 (SIGABRT: given up): out of it",
            ),
            ("echo at; echo why >&2; exit 101", "ended with status 101: why"),
            ("echo at; exec sleep 100", "no answer within 1 s"),
        ] {
            let (end, lines) = shell(script, Duration::from_secs(1));
            assert_eq!((end, lines), (End::Broken(verdict.to_owned()), vec!["at".to_owned()]), "{script}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_cannot_be_started() {
        let error = watch(Command::new("/no/such/program"), b"", Duration::from_secs(1), &mut |_| {});
        assert!(matches!(error, Err(message) if message.to_string().contains("cannot be started")));
    }
}
