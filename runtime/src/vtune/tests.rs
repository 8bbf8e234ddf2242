//! Tests of the reports to a collector. It is a library in C, which the interfaces' loaders find as they find
//! VTune's.

use super::announce;
use crate::engine::{Engine, EngineConfig, SequenceTokens, Steps};
use crate::toy::image;
use std::path::Path;
use std::process::Command;

/// File for the collector, in the process that is collected from.
const COLLECTED: &str = "KERNMILL_COLLECTED";

/// The lines that the collector has from a process that runs this test, with `library` as both collectors.
fn collected(library: &Path, log: &Path) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "vtune::tests::a_collector_is_told_of_kernels_and_steps"]);
    child.env(COLLECTED, log).env("INTEL_ITTNOTIFY_GROUPS", "structure");
    child.env("INTEL_JIT_PROFILER64", library).env("INTEL_LIBITTNOTIFY64", library);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Runs steps of 1, 1, and 3 tokens, and says where the code is.
fn run(log: &Path) {
    let image = image();
    let mut engine = Engine::new(&image, EngineConfig::default()).unwrap();
    announce(engine.code_address(), &image.program().code.symbols);
    let sequence = engine.create().unwrap();
    for tokens in [&[1][..], &[2], &[3, 4, 5]] {
        engine
            .extend(&[SequenceTokens::last(sequence, tokens)], &|_: usize, _: crate::LogitRow<'_>| ())
            .unwrap();
    }
    std::fs::write(log.with_extension("base"), engine.code_address().to_string()).unwrap();
}

#[test]
fn a_collector_is_told_of_kernels_and_steps() {
    if let Some(log) = std::env::var_os(COLLECTED) {
        return run(Path::new(&log));
    }
    let dir = tempfile::tempdir().unwrap();
    let (library, log) = (dir.path().join("collector.so"), dir.path().join("told"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/vtune/collector.c");
    let mut cc = Command::new("cc");
    let compiled = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let lines = collected(&library, &log);

    let base: u64 = std::fs::read_to_string(log.with_extension("base")).unwrap().parse().unwrap();
    let image = image();
    let symbols = &image.program().code.symbols;
    assert!(!symbols.is_empty());
    let method = |symbol: &kernmill_plan::program::Symbol| {
        format!("method\tkernmill:{}\t{:x}\t{:x}", symbol.name, base + symbol.offset, symbol.size)
    };
    let mut expected: Vec<String> = symbols.iter().map(method).collect();
    for name in ["step of 1 token", "step of 1 token", "step of up to 4 tokens"] {
        expected.extend([format!("kernmill\t{name}\t0\t0"), "kernmill\t\t0\t0".to_owned()]);
    }
    assert_eq!(lines, expected);

    // A collector that is not there changes nothing.
    let nowhere = dir.path().join("nothing");
    assert!(collected(&dir.path().join("none.so"), &nowhere).is_empty());
}
