//! A full report of each group, kernel and micro-kernel, as text.

use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::{fuse, select};
use kernmill_compiler::pipeline::Compiled;
use std::fmt::Write;

/// The fusions, the near misses with their reasons, the costs, and the picked kernels with their reasons.
/// `assumed` says that the formats of preset `fast` are not the weights' own.
pub fn everything(graph: &Graph, compiled: &Compiled, assumed: bool) -> String {
    let mut text = fuse::explain(&compiled.fused, &compiled.report);
    let program = &compiled.program;
    let model = &program.model;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "compiled for {}, preset {}:", program.level.name(), model.preset);
    if assumed {
        let _ = writeln!(text, "  assuming that every tensor that may have 4 bits does");
    }
    let _ = writeln!(text, "  vocabulary {}, longest context {}", graph.vocab, graph.max_context);
    let _ = writeln!(
        text,
        "  weights {} bytes, of which one token reads {}",
        compiled.layout.bytes, model.decode_bytes
    );
    let _ = writeln!(
        text,
        "  {} kernels, {} bytes of code; arena {} bytes, scratch {} bytes per worker",
        compiled.kernels.list.len(),
        program.code.bytes.len(),
        program.arena_bytes,
        program.scratch_bytes
    );
    for class in &program.classes {
        let logits = class.logit_steps.len();
        let adapters = class.steps.iter().filter(|step| !step.lora_targets.is_empty()).count();
        let steps = class.steps.len() - adapters;
        let more = if adapters > 0 { format!(", {adapters} more for adapters") } else { String::new() };
        let _ = writeln!(
            text,
            "  up to {} tokens: {steps} steps{more}, and {logits} for logits",
            class.max_tokens
        );
    }
    let _ = write!(text, "{}", select::explain(&compiled.model, &compiled.selections, &compiled.ukernels));
    text
}

/// How long compiling took, and its longest passes.
pub fn times(compiled: &Compiled) -> String {
    let total: f64 = compiled.times.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let mut passes: Vec<_> = compiled.times.iter().collect();
    passes.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let longest = passes.iter().take(3).map(|(name, time)| format!("{name} {:.3} s", time.as_secs_f64()));
    format!("compiled in {total:.3} s ({})", longest.collect::<Vec<_>>().join(", "))
}
