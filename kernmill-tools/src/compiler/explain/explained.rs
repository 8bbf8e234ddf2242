//! Findings about a compiled model, and their text on one screen.

use super::crowds::CrowdSpeeds;
use super::everything::everything;
use super::facts::PageContent;
use super::json;
use super::kinds::{BatchShape, StepKind};
use crate::compiler::estimate::{Host, MemoryEstimate};
use crate::compiler::machine::Description;
use kernmill::Result;
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::fuse::{Missed, missed};
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::simulate::SimulatedMachine;
use kernmill_compiler::weights::grown;
use kernmill_os::text::size;
use serde_json::Value;
use std::fmt::Write;

/// The questions about a model beside the model itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainOptions<'a> {
    /// The machine that it is explained for; `None` is the compiler's own idea of one.
    pub machine: Option<&'a Description>,
    /// Workers that speeds are shown for; `None` is all that the machine was measured with.
    pub workers: Option<usize>,
    /// Context that memory and speed are shown for, in tokens; `None` is 4096 if the model can.
    pub context: Option<u32>,
    /// Whether preset `fast` has made its choices without weights.
    pub assumed: bool,
    /// Bytes of the weights in their files, if these are at hand.
    pub stored: Option<u64>,
}

/// A compiled model, explained.
pub struct Explained<'a> {
    graph: &'a Graph,
    compiled: &'a Compiled,
    how: ExplainOptions<'a>,
    memory: MemoryEstimate,
    /// Decoding at the start, decoding in a full context, a prompt of a chunk.
    batches: [BatchShape; 3],
    simulated: SimulatedMachine,
    crowds: Vec<CrowdSpeeds>,
    missed: Vec<Missed>,
}

impl<'a> Explained<'a> {
    /// Explains `compiled`, which was made of `graph`.
    ///
    /// # Errors
    /// When the context is longer than the model's longest.
    pub fn new(graph: &'a Graph, compiled: &'a Compiled, how: ExplainOptions<'a>) -> Result<Explained<'a>> {
        let host = how.machine.map_or(Host::Here(compiled.model.machine().workers), Host::Described);
        let memory = MemoryEstimate::of(&compiled.program, how.context, host)?;
        let chunk = compiled.program.classes.last().map_or(1, |class| class.max_tokens);
        let chunk = chunk.min(memory.context) as usize;
        let simulated = match how.machine {
            Some(machine) => {
                SimulatedMachine::described(machine, how.workers.unwrap_or(machine.workers().threads))
            }
            None => SimulatedMachine::new(compiled.model.machine()),
        };
        let batches = [(1, 0), (1, memory.context as usize - 1), (chunk, 0)]
            .map(|(tokens, depth)| BatchShape::new(compiled, &simulated, tokens, depth));
        let crowds = how
            .machine
            .map_or_else(Vec::new, |machine| CrowdSpeeds::all(compiled, machine, simulated.workers, chunk));
        let missed = missed(&compiled.fused, &compiled.report);
        Ok(Explained { graph, compiled, how, memory, batches, simulated, crowds, missed })
    }

    fn facts(&self) -> PageContent<'_> {
        PageContent {
            graph: self.graph,
            compiled: self.compiled,
            machine: self.how.machine,
            assumed: self.how.assumed,
            grown: self.how.stored.and_then(|stored| {
                let model = &self.compiled.program.model;
                grown(self.graph, stored, &model.preset, self.compiled.program.weight_bytes)
            }),
            memory: &self.memory,
            batches: &self.batches,
            simulated: &self.simulated,
            crowds: &self.crowds,
            missed: &self.missed,
        }
    }

    /// Everything on one screen; and, if `all` is asked for, what each group, kernel and micro-kernel became.
    pub fn text(&self, all: bool) -> String {
        let mut text = screen(&self.facts(), all);
        if all {
            text.push('\n');
            text.push_str(&everything(self.graph, self.compiled, self.how.assumed));
        }
        text
    }

    /// All of it as one JSON object. If the IR was kept, it has every function's IR and assembly.
    pub fn json(&self) -> Value {
        json::json(&self.facts())
    }
}

/// Columns of the screen.
const COLUMNS: usize = 100;
/// Kinds of steps and near misses that are shown; what is left is counted.
const KINDS: usize = 8;
const MISSED: usize = 3;

/// The screen. `all` says that the rest follows.
pub fn screen(facts: &PageContent<'_>, all: bool) -> String {
    let mut text = String::new();
    head(&mut text, facts);
    speeds(&mut text, facts);
    if facts.crowds.len() > 1 {
        text.push_str(&CrowdSpeeds::text(facts.crowds));
    }
    text.push('\n');
    steps(&mut text, facts);
    ukernels(&mut text, facts);
    near_misses(&mut text, facts.missed, all);
    if !all {
        text.push_str(
            "--all shows every group, kernel and micro-kernel, with what else they could have been\n",
        );
    }
    text
}

// Writing to a String cannot fail.

fn head(text: &mut String, facts: &PageContent<'_>) {
    let (compiled, program) = (facts.compiled, &facts.compiled.program);
    let graph = facts.graph;
    let layers = program.model.kv.layers.len();
    let _ = writeln!(
        text,
        "{}: {layers} layers, vocabulary {}, context up to {}; {} nodes in {} groups",
        cut(&graph.name, 30),
        graph.vocab,
        graph.max_context,
        compiled.fused.graph.nodes.len(),
        compiled.fused.groups.len()
    );
    let kernels = compiled.kernels.list.len();
    let code = size(program.code.bytes.len() as u64);
    let (level, preset) = (program.level.name(), &program.model.preset);
    let _ = writeln!(text, "target: {level}, preset {preset}; {kernels} kernels, {code} of code");
    if program.model.vectors().is_some() {
        let _ = writeln!(text, "makes {}", program.model.output);
    }
    if facts.assumed {
        let _ = writeln!(text, "  assuming that every tensor that may have 4 bits does");
    }
    let (machine, workers) = (compiled.model.machine(), facts.simulated.workers);
    let name = facts.machine.map_or("assumed (--machine takes a measured one)", |machine| &machine.cpu);
    let plural = if workers == 1 { "worker" } else { "workers" };
    let _ = writeln!(
        text,
        "machine: {}: {workers} {plural}, {:.1} GB/s, {:.1} us a step",
        cut(name, 45),
        facts.simulated.rates.attainable(workers),
        machine.barrier / 1e3
    );
    if let Some(machine) = facts.machine {
        if machine.nodes > 1 {
            let _ = writeln!(text, "  {} nodes of memory: workers and weights are shared out", machine.nodes);
        }
        if machine.hidden_pairs > 0 {
            let _ = writeln!(text, "  {} pairs of its CPUs are a core each", machine.hidden_pairs);
        }
    }
    let memory = facts.memory;
    let _ = writeln!(text, "memory: {} with a context of {}", size(memory.total()), memory.context);
    let _ = writeln!(
        text,
        "  weights {}; KV {}, {} a token; arena {} and {} besides",
        size(memory.weights),
        size(memory.kv),
        size(facts.kv_token_bytes()),
        size(program.arena_bytes),
        size(memory.working.saturating_sub(program.arena_bytes))
    );
    if let Some(note) = &facts.grown {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(verdict) = memory.verdict().strip_prefix("; ") {
        let _ = writeln!(text, "  {}", cut(verdict, COLUMNS - 2));
    }
}

fn speeds(text: &mut String, facts: &PageContent<'_>) {
    let [first, deep, prompt] = facts.batches;
    let _ = writeln!(
        text,
        "decode: {:.1} tokens/s at the start (memory allows {:.1}), {:.1} at {} ({:.1}); limit: {}",
        first.tokens_per_second(),
        first.memory_bound(),
        deep.tokens_per_second(),
        facts.memory.context,
        deep.memory_bound(),
        deep.limit().name()
    );
    let bound = facts
        .peak()
        .map_or_else(String::new, |peak| format!(" (int8 allows {:.1})", prompt.arithmetic_bound(peak)));
    let _ = writeln!(
        text,
        "prompts: {:.1} tokens/s in chunks of {}{bound}; limit: {}",
        prompt.tokens_per_second(),
        prompt.tokens,
        prompt.limit().name()
    );
}

fn steps(text: &mut String, facts: &PageContent<'_>) {
    let [_, deep, prompt] = facts.batches;
    let _ = writeln!(
        text,
        "{:19} {:>4} {:>8} {:>9} {:>5} {:10} {:>10} {:>5} limit",
        "steps", "n", "MB", "ms", "%", "limit", "ms", "%"
    );
    let _ = writeln!(
        text,
        "{:24} {:>34} {:>19}",
        "",
        format!("a token at {}", facts.memory.context),
        format!("a prompt of {}", prompt.tokens)
    );
    let mut kinds: Vec<&StepKind> = deep.kinds.iter().collect();
    if kinds.len() > KINDS {
        // The longest stay, in the order of the steps.
        let mut times: Vec<f64> = kinds.iter().map(|kind| kind.times.ns).collect();
        times.sort_by(|a, b| b.total_cmp(a));
        let least = times[KINDS - 1];
        let mut left = KINDS;
        kinds.retain(|kind| {
            let stays = kind.times.ns >= least && left > 0;
            left -= usize::from(stays);
            stays
        });
    }
    for kind in &kinds {
        let same = prompt.kinds.iter().find(|other| other.name == kind.name);
        line(
            text,
            &kind.name,
            kind.steps,
            [(sum(&[kind]), deep), (sum(&same.into_iter().collect::<Vec<_>>()), prompt)],
            [kind.limit.name(), same.map_or("-", |same| same.limit.name())],
        );
        let members = Some(facts.members(&kind.name)).filter(|members| *members != kind.name);
        let weights = facts.weights_of(&kind.name);
        let weights = weights.iter().map(|(format, bytes)| format!("{format} {}", size(*bytes)));
        let weights = weights.collect::<Vec<_>>().join(", ");
        let most = COLUMNS - 4 - if weights.is_empty() { 0 } else { weights.len() + 2 };
        let parts = [members.map_or_else(String::new, |members| cut(&members, most)), weights];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            let _ = writeln!(text, "    {}", cut(&parts.join("; "), COLUMNS - 4));
        }
    }
    let shown = |name: &str| kinds.iter().any(|kind| kind.name == name);
    let rest = [deep, prompt]
        .map(|batch| batch.kinds.iter().filter(|kind| !shown(&kind.name)).collect::<Vec<&StepKind>>());
    if rest.iter().any(|rest| !rest.is_empty()) {
        let count = rest[0].iter().map(|kind| kind.steps).sum();
        line(text, "others", count, [(sum(&rest[0]), deep), (sum(&rest[1]), prompt)], ["-", "-"]);
        let mut names: Vec<&str> = rest.iter().flatten().map(|kind| kind.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let _ = writeln!(text, "    {}", cut(&names.join(" "), COLUMNS - 4));
    }
    let adapters = facts.for_adapters();
    if !adapters.is_empty() {
        let count: usize = adapters.values().sum();
        let kinds: Vec<&str> = adapters.keys().copied().collect();
        let _ = writeln!(
            text,
            "{}",
            cut(&format!("only for adapters: {count} steps ({})", kinds.join(", ")), COLUMNS)
        );
    }
}

/// Bytes and ns of some kinds.
fn sum(kinds: &[&StepKind]) -> (f64, f64) {
    // The sum of no numbers by `Iterator::sum` is -0.0, and is shown so.
    kinds.iter().fold((0.0, 0.0), |(bytes, ns), kind| {
        (bytes + kind.weight_bytes + kind.cache_bytes, ns + kind.times.ns)
    })
}

fn line(text: &mut String, name: &str, steps: usize, of: [((f64, f64), &BatchShape); 2], limits: [&str; 2]) {
    let [((bytes, first), decode), ((_, second), prompt)] = of;
    let _ = writeln!(
        text,
        "{:19} {steps:>4} {:>8.1} {:>9.3} {:>5.1} {:10} {:>10.3} {:>5.1} {}",
        cut(name, 19),
        bytes / 1e6,
        first / 1e6,
        first / decode.ns() * 100.0,
        limits[0],
        second / 1e6,
        second / prompt.ns() * 100.0,
        limits[1]
    );
}

/// Adds the micro-kernels with the kinds of steps that use them.
fn ukernels(text: &mut String, facts: &PageContent<'_>) {
    let [_, deep, prompt] = facts.batches;
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for kind in &deep.kinds {
        let Some(one) = kind.ukernel else { continue };
        let many = prompt.kinds.iter().find(|other| other.name == kind.name).and_then(|other| other.ukernel);
        let both = match many.filter(|many| *many != one) {
            Some(many) => format!("{one}, {many}"),
            None => one.to_owned(),
        };
        match lines.iter_mut().find(|(known, _)| *known == both) {
            Some((_, kinds)) => kinds.push(&kind.name),
            None => lines.push((both, vec![&kind.name])),
        }
    }
    if !lines.is_empty() {
        text.push_str("micro-kernels, for a token and for a prompt:\n");
    }
    for (both, kinds) in lines.iter().take(4) {
        let _ = writeln!(text, "  {}", cut(&format!("{both}: {}", kinds.join(" ")), COLUMNS - 2));
    }
}

fn near_misses(text: &mut String, missed: &[Missed], all: bool) {
    let worth = missed.iter().filter(|one| one.steps > 0).count();
    let Some(shown) = (!missed.is_empty()).then(|| worth.min(MISSED)) else {
        text.push_str("near misses: none\n");
        return;
    };
    let left = missed.len() - shown;
    let rest = match left {
        0 => String::new(),
        _ if all => format!(" ({left} more that save less, below)"),
        _ => format!(" ({left} more that save less: --all)"),
    };
    let _ = writeln!(text, "near misses, by what they would save{rest}:");
    for one in &missed[..shown] {
        let without = match one.without.as_slice() {
            [] => String::new(),
            names => format!(" without {}", names.join(", ")),
        };
        let (steps, bytes) = (one.steps, one.bytes);
        let place = format!("{}{without} at %{}: {steps} steps, {bytes} bytes a token", one.rule, one.value);
        let _ = writeln!(text, "  {}", cut(&place, COLUMNS - 2));
        let _ = writeln!(text, "    {}", cut(&one.reason.replace('\n', " "), COLUMNS - 4));
    }
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}
