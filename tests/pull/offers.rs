//! A command that is given the name of a model which is not there: who is at a terminal is asked, and nothing
//! is fetched before there is a yes.

use super::hub::Hub;
use super::{MODEL, PullDir, checkpoint, program, sound};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::Stdio;
use std::ptr::{null, null_mut};

/// Runs `kernmill run MODEL` at a terminal, where somebody types `answer`; what is shown there, and the
/// status.
fn at_terminal(place: &PullDir, hub: &Hub, answer: &str, more: &[&str]) -> (String, Option<i32>) {
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: both places are written to, and nothing else is asked for.
    let made = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null_mut(), null(), null()) };
    assert_eq!(made, 0);
    // SAFETY: the two are open, and nobody else has them.
    let [mut ours, theirs] = [ours, theirs].map(|fd| unsafe { File::from_raw_fd(fd) });
    let mut command = program();
    command.args(["run", MODEL, "--tokens", "ids.json", "-n", "2", "--temp", "0"]).args(more);
    let mut command = place.with(command, hub);
    command.stdin(theirs.try_clone().unwrap()).stderr(theirs).stdout(Stdio::null());
    ours.write_all(answer.as_bytes()).unwrap();
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    // A terminal that nobody has open any more gives an error in place of an end.
    while let Ok(bytes @ 1..) = ours.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..bytes]);
    }
    (String::from_utf8_lossy(&shown).into_owned(), child.wait().unwrap().code())
}

fn place() -> PullDir {
    let place = PullDir::new();
    fs::write(place.path("ids.json"), "[1, 2, 3]").unwrap();
    place
}

const QUESTION: &str = "acme/tiny is not here. Fetch it from http://127.0.0.1:";
const HINT: &str = "`kernmill pull acme/tiny` fetches it";

#[test]
fn who_is_at_a_terminal_is_asked() {
    let (place, hub) = (place(), Hub::start(&checkpoint(), sound));
    for answer in ["n\n", "\n", "\u{4}"] {
        let (shown, status) = at_terminal(&place, &hub, answer, &[]);
        assert!(shown.contains(QUESTION) && shown.contains(HINT), "{shown}");
        assert_eq!(status, Some(2));
    }
    for more in [&["--offline"][..], &["--hf-cache"]] {
        let (shown, status) = at_terminal(&place, &hub, "y\n", more);
        assert!(!shown.contains(QUESTION) && shown.contains(HINT), "{shown}");
        assert_eq!(status, Some(2));
    }
    assert!(hub.asked().is_empty() && !place.path("cache").exists());
    let (shown, status) = at_terminal(&place, &hub, "y\n", &[]);
    assert!(shown.contains(QUESTION) && status == Some(0), "{shown}");
    let (shown, status) = at_terminal(&place, &hub, "", &[]);
    assert!(!shown.contains(QUESTION) && status == Some(0), "it is there now: {shown}");
}

#[test]
fn nobody_is_asked_without_a_terminal() {
    let (place, hub) = (place(), Hub::start(&checkpoint(), sound));
    for command in ["run", "chat", "serve", "compile"] {
        let output: &[&str] = if command == "compile" { &["-o", "x.plan"] } else { &[] };
        place.run(&hub, &[&[command, MODEL], output].concat()).failed(2, &["acme/tiny: No such file", HINT]);
        place
            .run(&hub, &[&[command, "acme/tiny:Q4_0"], output].concat())
            .failed(2, &["`kernmill pull acme/tiny:Q4_0`"]);
    }
    assert!(hub.asked().is_empty() && !place.path("cache").exists());
}
