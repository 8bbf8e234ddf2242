//! Loading models: first it is found out whether all of them have room, then their weights are read.

use crate::adapters;
use crate::error::Result;
use crate::memory::{MemoryClaim, WeightsIn, check_claims, check_lock, size_caches};
use crate::model::{Loaded, Origin, Prepared};
use crate::options::Options;
use kernmill_runtime::kv::KvShape;

/// A model that shall run beside others in this process.
pub struct LoadRequest<'a> {
    /// Name of the model, for messages.
    pub name: &'a str,
    /// The model.
    pub prepared: Prepared,
    /// How it is run.
    pub options: &'a Options,
    /// Tokens of its sequences.
    pub context: u32,
    /// Sequences at once.
    pub sequences: u32,
}

/// Loads models that run in one process at the same time, in their order. They have one budget of memory,
/// the least [`Options::max_memory`] of all. It is counted before anything is read: weights and working
/// memory of all models first, then their KV caches.
///
/// # Errors
/// When memory is short, an adapter does not fit, or weights cannot be read or used.
pub fn load_together(requests: Vec<LoadRequest<'_>>) -> Result<Vec<Loaded>> {
    let shapes = shapes(&requests)?;
    let each = requests.into_iter().zip(shapes);
    each.map(|(it, shape)| it.prepared.load_with(it.options, shape)).collect()
}

impl Prepared {
    /// Checks that there is memory enough, reads the weights, and starts an engine for `sequences` sequences
    /// of up to `context` tokens.
    ///
    /// # Errors
    /// When memory is short, an adapter does not fit, or weights cannot be read or used.
    pub fn load(self, options: &Options, context: u32, sequences: u32) -> Result<Loaded> {
        let name = self.program().model.name.clone();
        let request = LoadRequest { name: &name, prepared: self, options, context, sequences };
        let mut loaded = load_together(vec![request])?;
        Ok(loaded.remove(0))
    }
}

/// By model, the sizes that it runs with.
fn shapes(requests: &[LoadRequest<'_>]) -> Result<Vec<KvShape>> {
    let mut claims = requests.iter().map(claim).collect::<Result<Vec<_>>>()?;
    let locked = claims.iter().filter(|claim| claim.options.mlock).map(|claim| claim.program.weight_bytes);
    check_lock(locked.fold(0, u64::saturating_add))?;
    size_caches(&mut claims);
    check_claims(&claims)?;
    let all = claims.iter().map(MemoryClaim::total).fold(0, u64::saturating_add);
    for (request, claim) in requests.iter().zip(&claims) {
        if let (Origin::Plan(plan), None) = (request.prepared.origin(), &claim.share)
            && let Some(note) = plan.too_large_for_memory(all - claim.weight_bytes())
        {
            request.options.observer.note(&note);
        }
    }
    Ok(claims.into_iter().map(|claim| claim.shape).collect())
}

/// What a model asks for, if it can be loaded so.
fn claim<'a>(request: &'a LoadRequest<'_>) -> Result<MemoryClaim<'a>> {
    let LoadRequest { name, prepared, options, context, sequences } = request;
    let program = prepared.program();
    adapters::check_fit(&options.adapters, program)?;
    options.check_stage()?;
    let (weights_in, chunk) = match prepared.origin() {
        Origin::Plan(_) => {
            let largest = program.classes.last().map_or(1, |class| class.max_tokens);
            (WeightsIn::File, options.chunk.unwrap_or(largest).min(largest))
        }
        Origin::Compiled(..) => (WeightsIn::Memory, options.chunk([program.level])),
    };
    // Where texts run whole, a run has several, and none is longer than it.
    let (context, chunk) = match program.model.whole_texts {
        true => ((*context).min(chunk), chunk),
        false => (*context, chunk.min(*context)),
    };
    let shape = KvShape { context, sequences: *sequences, chunk, budget: options.kv_budget() };
    let share = options.stage.as_ref().map(|stage| stage.share(program)).transpose()?;
    Ok(MemoryClaim { name, program, shape, options, weights_in, share })
}
