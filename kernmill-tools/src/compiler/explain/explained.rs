//! Findings about a compiled model.

use super::everything::everything;
use super::facts::PageContent;
use super::json;
use super::kinds::BatchShape;
use super::screen::screen;
use crate::compiler::estimate::{Host, MemoryEstimate};
use crate::compiler::machine::Description;
use kernmill::Result;
use kernmill_compiler::fuse::{Missed, missed};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::weights::grown;
use serde_json::Value;

/// The questions about a model beside the model itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainOptions<'a> {
    /// The machine that it is explained for; `None` is the compiler's own idea of one.
    pub machine: Option<&'a Description>,
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
        let batches = [(1, 0), (1, memory.context as usize - 1), (chunk, 0)]
            .map(|(tokens, depth)| BatchShape::new(compiled, tokens, depth));
        let missed = missed(&compiled.fused, &compiled.report);
        Ok(Explained { graph, compiled, how, memory, batches, missed })
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
