//! Estimates of what a compilation would write, and how its result would run here.

use super::bench::{best, buffer, caches, limits};
use kernmill::Result;

use kernmill_compiler::machine::Description;
use kernmill_compiler::output::plan_file::PlanWriter;
use kernmill_compiler::pipeline::Compiled;
use kernmill_os::memory::available_memory;
use kernmill_os::text::size;
use kernmill_plan::file::SectionKind;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::MemoryNeed;
use kernmill_runtime::kv::{KvBudget, KvShape};
use kernmill_runtime::pool::default_threads;
use serde_json::{Value, json};
use std::fmt::Write;

/// Most bytes that are read to measure the memory's bandwidth: more than any cache has, soon done.
const READ_BYTES: u64 = 1 << 30;
const TRIES: usize = 3;

/// The machine that a plan is to run on.
#[derive(Clone, Copy, Debug)]
pub enum Host<'a> {
    /// The one at hand, with so many threads.
    Here(usize),
    /// The described one.
    Described(&'a Description),
}

impl<'a> Host<'a> {
    /// The described machine, or this one with `threads`, by default one for each core of its own.
    pub fn of(machine: Option<&'a Description>, threads: Option<usize>) -> Host<'a> {
        machine.map_or_else(|| Host::Here(threads.unwrap_or_else(default_threads)), Host::Described)
    }

    fn threads(self) -> usize {
        match self {
            Host::Here(threads) => threads,
            Host::Described(machine) => machine.workers().threads,
        }
    }

    fn available_memory(self) -> Option<u64> {
        match self {
            Host::Here(_) => available_memory(),
            Host::Described(machine) => machine.available_memory,
        }
    }

    /// Bytes per second that it reads from memory; measured now, if it is this one.
    fn bandwidth(self) -> Result<Option<f64>> {
        match self {
            Host::Here(threads) => Level::native(false).map(|level| bandwidth(level, threads)).transpose(),
            Host::Described(machine) => Ok(Some(machine.workers().gb_per_s * 1e9)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Host::Here(_) => "this machine",
            Host::Described(_) => "the described machine",
        }
    }
}

/// The size, memory and speed of a plan before it is written.
pub struct PlanEstimate {
    model: String,
    preset: String,
    plan_bytes: u64,
    sections: Vec<SectionSize>,
    memory: MemoryEstimate,
    /// Bytes of weights that a token reads.
    decode_bytes: u64,
    threads: usize,
    /// Bytes per second that the machine reads from memory, if it can run anything.
    bandwidth: Option<f64>,
    /// The machine in a sentence.
    machine: &'static str,
    notes: Vec<String>,
}

struct SectionSize {
    kind: &'static str,
    level: Option<&'static str>,
    bytes: u64,
}

/// Bytes that a run with one sequence takes.
pub(super) struct MemoryEstimate {
    pub(super) context: u32,
    pub(super) longest: u32,
    pub(super) weights: u64,
    pub(super) kv: u64,
    pub(super) working: u64,
    pub(super) available: Option<u64>,
    /// The longest context that fits what is available; nothing when not even one token does.
    pub(super) fits: Option<u32>,
}

impl PlanEstimate {
    /// The estimate for the plan of `writer`, with a context of so many tokens or the default one; `compiled`
    /// is what it is made of, the target that is looked at last. The memory's bandwidth is measured if `host`
    /// is this machine.
    ///
    /// # Errors
    /// When the context is longer than the model's longest, or the system refuses memory or threads.
    pub fn new(
        writer: &PlanWriter<'_>,
        compiled: &[Compiled],
        context: Option<u32>,
        host: Host<'_>,
        notes: Vec<String>,
    ) -> Result<Option<PlanEstimate>> {
        let Some(program) = compiled.last().map(|one| &one.program) else { return Ok(None) };
        let memory = MemoryEstimate::of(program, context, host)?;
        let sections = writer.sections().map(|(kind, target, bytes)| {
            let has_level = matches!(kind, SectionKind::Program | SectionKind::Code);
            let level = compiled.get(target as usize).filter(|_| has_level);
            SectionSize { kind: kind.name(), level: level.map(|one| one.program.level.name()), bytes }
        });
        Ok(Some(PlanEstimate {
            model: program.model.name.clone(),
            preset: program.model.preset.clone(),
            plan_bytes: writer.bytes(),
            sections: sections.collect(),
            memory,
            decode_bytes: program.model.decode_bytes,
            threads: host.threads(),
            bandwidth: host.bandwidth()?,
            machine: host.name(),
            notes,
        }))
    }
}

impl MemoryEstimate {
    pub(super) fn of(program: &Program, context: Option<u32>, host: Host<'_>) -> Result<MemoryEstimate> {
        let longest = program.model.max_context;
        let context = kernmill::context(longest, context, 0)?;
        let need = |context: u32| {
            let largest = program.classes.last().map_or(1, |class| class.max_tokens);
            let chunk = largest.min(context);
            let shape = KvShape { context, sequences: 1, chunk, budget: KvBudget::WorstCase };
            MemoryNeed::of(program, shape, host.threads())
        };
        let total = |context| need(context).total().saturating_add(program.weight_bytes);
        let available = host.available_memory();
        let fits = available.map_or(Some(longest), |bytes| {
            let contexts: Vec<u32> =
                (0..u32::BITS).map(|bit| 1 << bit).filter(|one| *one <= longest).collect();
            // The need grows with the context: its bits are found from the highest on.
            let most = contexts.iter().rev().fold(0, |sum: u32, bit| {
                let more = sum.saturating_add(*bit);
                if more <= longest && total(more) <= bytes { more } else { sum }
            });
            (most > 0).then_some(most)
        });
        let at = need(context);
        Ok(MemoryEstimate {
            context,
            longest,
            weights: program.weight_bytes,
            kv: at.kv,
            working: at.total() - at.kv,
            available,
            fits,
        })
    }

    pub(super) fn total(&self) -> u64 {
        self.weights + self.kv + self.working
    }

    /// Whether the plan fits into memory, and up to which context.
    pub(super) fn verdict(&self) -> String {
        let Some(available) = self.available else { return String::new() };
        let available = format!("{} available", size(available));
        match self.fits {
            None => format!("; {available}: it does not fit"),
            Some(fits) if fits < self.context => {
                format!("; {available}: a context of up to {fits} tokens fits")
            }
            Some(fits) if fits == self.longest => {
                format!("; {available}: it fits, also with the model's longest context, {fits}")
            }
            Some(fits) => format!("; {available}: it fits, and up to a context of {fits}"),
        }
    }
}

impl PlanEstimate {
    /// Tokens per second that the memory allows.
    fn bound(&self) -> Option<f64> {
        Some(self.bandwidth? / self.decode_bytes as f64)
    }

    /// The estimate as lines of text.
    pub fn text(&self) -> String {
        let mut text = format!("plan: {} ({} bytes)\n", size(self.plan_bytes), self.plan_bytes);
        // Writing to a String cannot fail.
        for SectionSize { kind, level, bytes } in &self.sections {
            let _ = writeln!(text, "  {kind:14} {bytes:>14} {}", level.unwrap_or_default());
        }
        let memory = &self.memory;
        let _ = writeln!(
            text,
            "memory: {} with a context of {} tokens (weights {}, KV cache {}, working memory {}){}",
            size(memory.total()),
            memory.context,
            size(memory.weights),
            size(memory.kv),
            size(memory.working),
            memory.verdict()
        );
        if let (Some(bound), Some(bandwidth)) = (self.bound(), self.bandwidth) {
            let _ = writeln!(
                text,
                "decode: at most {bound:.1} tokens/s on {}: a token reads {} of weights, {} threads read {:.1} GB/s",
                self.machine,
                size(self.decode_bytes),
                self.threads,
                bandwidth / 1e9
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// The estimate as one JSON object.
    pub fn json(&self) -> Value {
        let section = |section: &SectionSize| {
            json!({ "section": section.kind, "level": section.level,
            "bytes": section.bytes })
        };
        let memory = &self.memory;
        json!({
            "model": self.model,
            "preset": self.preset,
            "plan_bytes": self.plan_bytes,
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
            "memory": {
                "context": memory.context,
                "weights": memory.weights,
                "kv": memory.kv,
                "working": memory.working,
                "total": memory.total(),
                "available": memory.available,
                "longest_context_that_fits": memory.fits,
            },
            "decode": {
                "bytes_per_token": self.decode_bytes,
                "threads": self.threads,
                "bytes_per_second": self.bandwidth,
                "tokens_per_second_at_most": self.bound(),
            },
            "notes": self.notes,
        })
    }
}

/// Bytes per second that this machine reads from memory.
fn bandwidth(level: Level, threads: usize) -> Result<f64> {
    // Next to nothing of it is in a cache when its turn comes again. Each thread may have a last cache of its
    // own.
    let bytes = match 4 * caches().last * threads as u64 {
        0 => READ_BYTES,
        bytes => bytes.clamp(READ_BYTES / 8, READ_BYTES),
    };
    let memory = buffer(bytes)?;
    let mut limits = limits(level, threads)?;
    limits.choose_read(memory.as_slice());
    let reads: Vec<f64> = (0..TRIES).map(|_| limits.read(memory.as_slice(), bytes)).collect();
    Ok(best(&reads))
}
