//! The costs of batches, by kinds of steps.

use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::simulate::{SimulatedMachine, SimulatedStep, StepRows, StepTimes, simulate};
use kernmill_kernels_gen::generate;
use kernmill_kernels_gen::kernel::{Body, Kernel};
use kernmill_plan::program::{Routing, StepWork};

/// All steps of a kind, whatever the layer.
pub struct StepKind {
    /// Label of the steps without the layer.
    pub name: String,
    /// Steps.
    pub steps: usize,
    /// Times of the steps on the simulated machine, barriers included.
    pub times: StepTimes,
    /// Bytes of weights that are read.
    pub weight_bytes: f64,
    /// Bytes of cached keys and values that are read.
    pub cache_bytes: f64,
    /// Multiply-adds of matrices and attention.
    pub macs: f64,
    /// The limit that takes most of the time.
    pub limit: Limit,
    /// The version of the micro-kernel that does most of the arithmetic; none for plain rows.
    pub ukernel: Option<&'static str>,
}

/// A limit of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes from memory.
    Memory,
    /// Arithmetic.
    Arithmetic,
    /// Workers that wait for each other.
    Barriers,
}

impl Limit {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Arithmetic => "arithmetic",
            Limit::Barriers => "barriers",
        }
    }

    fn of(times: &StepTimes, barriers: f64) -> Limit {
        let (ns, memory, barriers) = (times.ns, times.reads, barriers + times.waits);
        match () {
            () if barriers >= ns / 2.0 => Limit::Barriers,
            () if memory >= (ns - barriers) / 2.0 => Limit::Memory,
            () => Limit::Arithmetic,
        }
    }
}

/// A batch of tokens of one sequence, of whose last one the logits are wanted.
pub struct BatchShape {
    /// Tokens.
    pub tokens: usize,
    /// Tokens of the sequence before them.
    pub depth: usize,
    /// By kind of step, in the order of the steps. Steps for adapters alone are left out.
    pub kinds: Vec<StepKind>,
    /// Bytes per ns that all workers read.
    bandwidth: f64,
}

impl BatchShape {
    /// A batch of `tokens` tokens after `depth` others, on a simulated machine.
    pub fn new(compiled: &Compiled, machine: &SimulatedMachine, tokens: usize, depth: usize) -> BatchShape {
        let bandwidth = machine.rates.attainable(machine.workers);
        let mut batch = BatchShape { tokens, depth, kinds: Vec::new(), bandwidth };
        simulate(compiled, machine, tokens, depth).iter().for_each(|step| batch.add(compiled, step));
        let barrier = machine.arrival.ns(machine.workers);
        for kind in &mut batch.kinds {
            kind.limit = Limit::of(&kind.times, kind.steps as f64 * barrier);
        }
        batch
    }

    fn add(&mut self, compiled: &Compiled, simulated: &SimulatedStep<'_>) {
        let SimulatedStep { step, routings, rows: StepRows { tokens: rows, depth }, times } = simulated;
        let kernel = compiled.kernels.kernel(step.kernel);
        let (weight_bytes, mut macs) = weights(&step.work, routings, *rows);
        let mut cache_bytes = 0.0;
        if let Body::Attention(body) = &kernel.body {
            let seen = |at: usize| body.window.map_or(at, |window| at.min(window as usize)) as f64;
            let pairs: f64 = (depth + 1..=depth + rows).map(seen).sum();
            cache_bytes = seen(depth + rows) * body.geometry.token_bytes() as f64;
            macs += pairs * (2 * body.heads * body.geometry.head_dim) as f64;
        }
        let name = kind(&step.label);
        let index = self.kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| {
            self.kinds.push(StepKind {
                name: name.to_owned(),
                steps: 0,
                times: StepTimes::default(),
                weight_bytes: 0.0,
                cache_bytes: 0.0,
                macs: 0.0,
                limit: Limit::Memory,
                ukernel: ukernel(compiled, kernel, *rows),
            });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[index];
        kind.steps += 1;
        kind.times.add(times);
        kind.weight_bytes += weight_bytes;
        kind.cache_bytes += cache_bytes;
        kind.macs += macs;
    }

    /// The times of all steps.
    pub fn times(&self) -> StepTimes {
        let mut all = StepTimes::default();
        self.kinds.iter().for_each(|kind| all.add(&kind.times));
        all
    }

    /// Nanoseconds on the simulated machine.
    pub fn ns(&self) -> f64 {
        self.times().ns
    }

    /// Bytes that are read, of weights and of the cache.
    pub fn bytes(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.weight_bytes + kind.cache_bytes).sum()
    }

    /// Multiply-adds.
    pub fn macs(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.macs).sum()
    }

    /// Tokens per second on the simulated machine.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.ns() * 1e9
    }

    /// Tokens per second that the memory allows.
    pub fn memory_bound(&self) -> f64 {
        self.tokens as f64 / (self.bytes() / self.bandwidth) * 1e9
    }

    /// Tokens per second that an integer peak of so many operations per second allows.
    pub fn arithmetic_bound(&self, ops: f64) -> f64 {
        self.tokens as f64 / (2.0 * self.macs() / ops)
    }

    /// The limit that takes most of the time.
    pub fn limit(&self) -> Limit {
        let time =
            |limit| self.kinds.iter().filter(|kind| kind.limit == limit).map(|kind| kind.times.ns).sum();
        let times: [(f64, Limit); 3] =
            [Limit::Memory, Limit::Arithmetic, Limit::Barriers].map(|limit| (time(limit), limit));
        times.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Limit::Memory, |most| most.1)
    }
}

/// Bytes of weights and multiply-adds of a step over so many rows. Experts are as likely as each other.
fn weights(work: &StepWork, routings: &[Routing], rows: usize) -> (f64, f64) {
    let rows = rows as f64;
    let (mut bytes, mut macs) =
        (work.shared_bytes as f64 + work.row_bytes as f64 * rows, work.row_macs as f64 * rows);
    if let Some(routing) = work.routing.and_then(|index| routings.get(index as usize)) {
        let (experts, top_k) = (f64::from(routing.experts), f64::from(routing.top_k));
        let chosen = experts * (1.0 - (1.0 - (top_k / experts).min(1.0)).powf(rows));
        bytes += work.expert_bytes as f64 * chosen;
        macs += work.expert_macs as f64 * top_k * rows;
    }
    (bytes, macs)
}

/// A step's label without its layer: `layers.3.qkv` is a `qkv`.
pub fn kind(label: &str) -> &str {
    let numbered = label.strip_prefix("layers.").and_then(|rest| rest.split_once('.'));
    numbered.filter(|(layer, _)| layer.parse::<u32>().is_ok()).map_or(label, |(_, kind)| kind)
}

/// The version of the micro-kernel that does most of a kernel's arithmetic for so many rows.
fn ukernel(compiled: &Compiled, kernel: &Kernel, rows: usize) -> Option<&'static str> {
    let one = [(String::new(), kernel.clone())];
    let called = generate::ukernels(&one, compiled.model.level());
    let by_panels = kernel.tiling.least_rows().is_some_and(|least| rows >= least);
    // Small matrices of a prologue are multiplied with f32 rows: the large ones come first.
    let kinds: &[(&str, &str)] = match by_panels {
        true => &[("gemm", ""), ("dot", "_q8_"), ("dot", "")],
        false => &[("dot", "_q8_"), ("gemm", ""), ("score", ""), ("dot", "")],
    };
    let named = |(start, part): &(&str, &str)| {
        called.iter().find(|one| {
            let name = one.to_string();
            name.starts_with(*start) && name.contains(*part)
        })
    };
    let ukernel = kinds.iter().find_map(named)?;
    let choice = compiled.ukernels.iter().find(|choice| choice.ukernel == *ukernel)?;
    choice.versions.get(choice.pick).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lose_their_layer() {
        for (label, expected) in [("layers.3.qkv", "qkv"), ("logits", "logits"), ("layers.x.q", "layers.x.q")]
        {
            assert_eq!(kind(label), expected);
        }
    }

    #[test]
    fn chosen_experts_are_counted_once_a_batch() {
        let work = StepWork { expert_bytes: 100, expert_macs: 10, routing: Some(0), ..StepWork::default() };
        let routings = [Routing { step: 0, buffer: 0, top_k: 4, experts: 32 }];
        assert_eq!(weights(&work, &routings, 1), (400.0, 40.0));
        let (bytes, macs) = weights(&work, &routings, 512);
        assert!((3199.0..=3200.0).contains(&bytes) && macs == 40.0 * 512.0, "{bytes} {macs}");
        let dense = StepWork { shared_bytes: 7, row_bytes: 2, row_macs: 3, ..StepWork::default() };
        assert_eq!(weights(&dense, &[], 5), (17.0, 15.0));
    }

    #[test]
    fn what_takes_half_of_the_time_is_the_limit() {
        let limit = |reads: f64, waits: f64, barriers: f64| {
            Limit::of(&StepTimes { ns: 100.0, reads, waits, arithmetic: 0.0 }, barriers)
        };
        assert_eq!(limit(20.0, 10.0, 50.0), Limit::Barriers);
        assert_eq!(limit(60.0, 10.0, 0.0), Limit::Memory);
        assert_eq!(limit(40.0, 0.0, 10.0), Limit::Arithmetic);
    }
}
