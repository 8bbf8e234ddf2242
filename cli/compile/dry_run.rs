//! What a compilation would write, and how its result would run here.

use crate::bench::limits::{buffer, limits};
use crate::bench::stats::best;
use crate::failure::Result;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::plan_file::PlanWriter;
use kernmill_plan::file::Kind;
use kernmill_plan::memory::available_memory;
use kernmill_plan::target::Level;
use kernmill_runtime::MemoryNeed;
use kernmill_runtime::engine::DEFAULT_CONTEXT;
use kernmill_runtime::kv::KvShape;
use std::fmt::Write;

/// Bytes that are read to measure the memory's bandwidth: more than any cache has, soon done.
const READ_BYTES: u64 = 1 << 30;
const TRIES: usize = 3;

/// Sizes, memory, and tokens per second.
pub fn report(writer: &PlanWriter<'_>, compiled: &[Compiled], threads: usize) -> Result<String> {
    let mut text = format!("plan: {} bytes\n", writer.bytes());
    for (kind, target, bytes) in writer.sections() {
        let level = match kind {
            Kind::Program | Kind::Code => compiled.get(target as usize).map(|one| one.program.level.name()),
            _ => None,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:14} {bytes:>14} {}", kind.name(), level.unwrap_or_default());
    }
    let Some(program) = compiled.last().map(|one| &one.program) else { return Ok(text) };
    let context = DEFAULT_CONTEXT.min(program.model.max_context);
    let largest = program.classes.last().map_or(1, |class| class.max_tokens);
    let need =
        MemoryNeed::of(program, KvShape { context, sequences: 1, chunk: largest.min(context) }, threads);
    let _ = writeln!(
        text,
        "memory: {:.3} GB with a context of {context} tokens (weights {:.3}, KV cache {:.3}, working memory {:.3}){}",
        (program.weight_bytes + need.total()) as f64 / 1e9,
        program.weight_bytes as f64 / 1e9,
        need.kv as f64 / 1e9,
        (need.total() - need.kv) as f64 / 1e9,
        available_memory()
            .map_or_else(String::new, |bytes| format!("; {:.1} GB available", bytes as f64 / 1e9))
    );
    let Some(level) = Level::native(false) else { return Ok(text) };
    let bandwidth = bandwidth(level, threads)?;
    let decode = program.model.decode_bytes as f64;
    let _ = writeln!(
        text,
        "decode: at most {:.1} tokens/s on this machine: a token reads {:.3} GB of weights, {threads} threads read {:.1} GB/s",
        bandwidth / decode,
        decode / 1e9,
        bandwidth / 1e9
    );
    Ok(text)
}

/// Bytes per second that this machine reads from memory.
fn bandwidth(level: Level, threads: usize) -> Result<f64> {
    let memory = buffer(READ_BYTES)?;
    let mut limits = limits(level, threads)?;
    let reads: Vec<f64> = (0..TRIES).map(|_| limits.read(memory.as_slice(), READ_BYTES)).collect();
    Ok(best(&reads))
}
