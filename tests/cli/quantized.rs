//! Files of few bits a weight: works that are killed go on from their state.

use super::Sandbox;
use crate::harness::program;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

const SPEC: &str = include_str!("../../model-specs/nano/nano.toml");

#[test]
fn a_killed_quantisation_goes_on_to_the_same_file() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("nano.toml", SPEC);
    sandbox.run(&["synth", "nano.toml", "-o", "f16.gguf", "--types", "f16", "-q"]).text();
    let work = ["quantize", "f16.gguf", "-o", "a.gguf", "--bits", "5.6", "--calibration", "default"];
    let work = [&work[..], &["--tokens", "300", "--state", "state", "-q"]].concat();
    let start = Instant::now();
    sandbox.run(&work).text();
    let whole = start.elapsed();
    let expected = fs::read(sandbox.path("a.gguf")).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut killed, mut finished) = (0, 0);
    while killed < 20 {
        assert!(finished < 100, "only {killed} of the kills came before the end");
        if rng.u32(..4) == 0 {
            let _ = fs::remove_dir_all(sandbox.path("state"));
        }
        let _ = fs::remove_file(sandbox.path("a.gguf"));
        let mut child = program().args(&work).current_dir(sandbox.dir.path()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(0.6 * rng.f64()));
        child.kill().unwrap();
        if child.wait().unwrap().signal() == Some(libc::SIGKILL) {
            killed += 1;
        } else {
            finished += 1;
        }
        // A file under its name is whole.
        if sandbox.path("a.gguf").exists() {
            assert!(fs::read(sandbox.path("a.gguf")).unwrap() == expected);
        }
        if killed % 4 == 0 {
            sandbox.run(&work).text();
            assert!(fs::read(sandbox.path("a.gguf")).unwrap() == expected);
        }
    }
}
