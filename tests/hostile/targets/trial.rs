//! Programs that the compiler makes of a graph, run between guard pages.

use kernmill_compiler::emit::pack::pack_weights;
use kernmill_compiler::interp::{Interpreter, LoraTargetAdapter};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::testing::{RandomWeights, Rng, pack_adapter, random_adapter};
use kernmill_plan::adapter::{Adapters, LoraTargetShape};
use kernmill_runtime::guarded::{Guarded, GuardedConfig};

/// A model, its weights and some tokens.
pub struct Trial<'g> {
    pub graph: &'g Graph,
    pub weights: &'g RandomWeights,
    pub tokens: &'g [u32],
}

/// An adapter by LoRA target.
pub type Adapter = [Option<LoraTargetAdapter>];

impl Trial<'_> {
    /// The interpreter's logits of all tokens; `quantised` is the graph as it is compiled.
    pub fn expected(&self, quantised: &Graph, adapter: Option<&Adapter>) -> Vec<f32> {
        let mut interpreter = Interpreter::new(quantised, &self.weights.for_graph(quantised)).unwrap();
        if let Some(adapter) = adapter {
            interpreter.set_adapters(&[adapter.to_vec()]);
            interpreter.use_adapter(0, 1);
        }
        interpreter.extend(0, self.tokens).unwrap()
    }

    /// The logits of all tokens, given in pieces of these sizes (the last repeats) between guard pages.
    pub fn guarded(
        &self,
        compiled: &Compiled,
        adapter: Option<&Adapter>,
        pieces: &[usize],
        config: GuardedConfig,
    ) -> Result<Vec<f32>, String> {
        let mut bytes = vec![0; compiled.layout.bytes as usize];
        let source = self.weights.source(self.graph);
        pack_weights(&compiled.fused.graph, &compiled.layout, &source, &mut bytes, 1, &|_| {}).unwrap();
        // SAFETY: the compiler of this process has just made the code.
        let mut guarded = unsafe { Guarded::new(&compiled.program, &bytes, config)? };
        if let (Some(adapter), Some(lora_targets)) = (adapter, &compiled.program.model.adapters) {
            let shape =
                |one: &LoraTargetAdapter| LoraTargetShape { rank: one.rank, factors: one.factors.is_some() };
            let shapes: Vec<_> = adapter.iter().map(|one| one.as_ref().map(shape)).collect();
            let (layouts, length) = lora_targets.layout(&shapes);
            let mut packed = vec![0; length];
            for (lora_target, (one, layout)) in
                lora_targets.lora_targets.iter().zip(adapter.iter().zip(&layouts))
            {
                let (Some(one), Some(layout)) = (one, layout) else { continue };
                pack_adapter(lora_target, one, layout, &mut packed).unwrap();
            }
            guarded.use_adapter(&layouts, &packed);
        }
        let (mut out, mut rest, mut turn) = (Vec::new(), self.tokens, 0);
        while !rest.is_empty() {
            let size = pieces[turn.min(pieces.len() - 1)].min(guarded.chunk()).min(rest.len());
            let (piece, after) = rest.split_at(size);
            out.extend(guarded.run(&[(config.sequences - 1, piece)])?);
            (rest, turn) = (after, turn + 1);
        }
        Ok(out)
    }
}

/// A random adapter for some of a program's LoRA targets.
pub fn adapter(lora_targets: &Adapters, rng: &mut Rng) -> Vec<Option<LoraTargetAdapter>> {
    let mut one = |lora_target| {
        let (rank, factors) = (rng.pick(&[1, 3, 4, 16, 20]), rng.one_in(2));
        (!rng.one_in(5)).then(|| random_adapter(lora_target, rank, factors, rng))
    };
    lora_targets.lora_targets.iter().map(&mut one).collect()
}

/// The first logit that differs in a bit, NaNs aside, for messages.
pub fn difference(actual: &[f32], expected: &[f32], vocab: usize) -> Option<String> {
    if actual.len() != expected.len() {
        return Some(format!("{} logits, expected {}", actual.len(), expected.len()));
    }
    let at = actual
        .iter()
        .zip(expected)
        .position(|(a, e)| a.to_bits() != e.to_bits() && !(a.is_nan() && e.is_nan()))?;
    let (token, logit) = (at / vocab, at % vocab);
    Some(format!("token {token} logit {logit}: {} instead of {}", actual[at], expected[at]))
}
