//! Time to generate all kernels of a model: `cargo bench --bench generate [-- SPEC]`, by default the 20B, for
//! every level.

#![allow(clippy::print_stdout)]

use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::target::Level;
use std::path::Path;

const REPETITIONS: usize = 7;

fn main() {
    let spec = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/gpt-oss-20b.toml");
    let path = spec.map_or(default, Into::into);
    let text = std::fs::read_to_string(&path).expect("a readable spec");
    let graph =
        lower(&Spec::parse(&path.display().to_string(), &text).expect("a good spec")).expect("a good spec");
    for level in Level::ALL {
        let mut runs: Vec<_> = (0..REPETITIONS)
            .map(|_| compile(&graph, &CompilerOptions::new(level)).expect("it compiles"))
            .map(|compiled| {
                (compiled.times.iter().map(|(_, time)| time.as_secs_f64()).sum::<f64>(), compiled)
            })
            .collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (total, compiled) = &runs[REPETITIONS / 2];
        let generate =
            compiled.times.iter().find(|(name, _)| *name == "generate").map_or(0.0, |(_, t)| t.as_secs_f64());
        println!(
            "{{\"spec\": \"{}\", \"level\": \"{}\", \"kernels\": {}, \"functions\": {}, \"code_bytes\": {}, \
             \"generate_seconds\": {generate:.4}, \"all_passes_seconds\": {total:.4}}}",
            compiled.program.model.name,
            level.name(),
            compiled.kernels.list.len(),
            compiled.program.code.symbols.len(),
            compiled.program.code.bytes.len()
        );
    }
}
