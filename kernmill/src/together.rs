//! Loading models: first it is found out whether all of them have room, then their weights are read.

use crate::adapters;
use crate::error::{Error, Result};
use crate::memory::check_lock;
use crate::model::{Loaded, Origin, Prepared};
use crate::options::Options;
use kernmill_runtime::claim::{MemoryClaim, WeightsIn, check_claims, size_caches};
use kernmill_runtime::kv::KvShape;

/// Loads models that run in one process at the same time, in their order: each by its name, with its options,
/// for texts of so many tokens, and so many of them at once. They have one budget of memory, the least
/// [`Options::max_memory`] of all. It is counted before anything is read: weights and working
/// memory of all models first, then their KV caches.
///
/// # Errors
/// When memory is short, an adapter does not fit, or weights cannot be read or used.
pub fn load_together(models: Vec<(Prepared, &str, &Options, [u32; 2])>) -> Result<Vec<Loaded>> {
    let shapes = shapes(&models)?;
    let each = models.into_iter().zip(shapes);
    each.map(|((prepared, _, options, _), shape)| prepared.load_with(options, shape)).collect()
}

impl Prepared {
    /// Checks that there is memory enough, reads the weights, and starts an engine for `sequences` sequences
    /// of up to `context` tokens.
    ///
    /// # Errors
    /// When memory is short, an adapter does not fit, or weights cannot be read or used.
    pub fn load(self, options: &Options, context: u32, sequences: u32) -> Result<Loaded> {
        let name = self.program().model.name.clone();
        let mut loaded = load_together(vec![(self, &name, options, [context, sequences])])?;
        Ok(loaded.remove(0))
    }
}

/// By model, the sizes that it runs with.
fn shapes(models: &[(Prepared, &str, &Options, [u32; 2])]) -> Result<Vec<KvShape>> {
    let each = models.iter().map(|(prepared, name, options, sizes)| claim(prepared, name, options, *sizes));
    let mut claims = each.collect::<Result<Vec<_>>>()?;
    let locked = models.iter().filter(|it| it.2.mlock).map(|it| it.0.program().weight_bytes);
    check_lock(locked.fold(0, u64::saturating_add))?;
    let limit = models.iter().filter_map(|it| it.2.max_memory).min();
    size_caches(&mut claims, limit);
    check_claims(&claims, limit).map_err(Error::bad_input)?;
    let all = claims.iter().map(MemoryClaim::total).fold(0, u64::saturating_add);
    for ((prepared, _, options, _), claim) in models.iter().zip(&claims) {
        if let (Origin::Plan(plan), None) = (prepared.origin(), &claim.share)
            && let Some(note) = plan.too_large_for_memory(all - claim.weight_bytes())
        {
            options.observer.note(&note);
        }
    }
    Ok(claims.into_iter().map(|claim| claim.shape).collect())
}

/// The memory that a model asks for, if it can be loaded so.
fn claim<'a>(
    prepared: &'a Prepared,
    name: &'a str,
    options: &Options,
    [context, sequences]: [u32; 2],
) -> Result<MemoryClaim<'a>> {
    let program = prepared.program();
    adapters::check_fit(&options.adapters, program)?;
    options.check_stage()?;
    let weights_in = match prepared.origin() {
        Origin::Plan(_) => WeightsIn::File,
        Origin::Compiled(..) => WeightsIn::Memory,
    };
    let largest = program.classes.last().map_or(1, |class| class.max_tokens);
    let largest = options.chunk.unwrap_or(largest).min(largest);
    // Where texts run whole, a run has several.
    let chunk = if program.model.whole_texts { largest } else { largest.min(context) };
    let shape = KvShape { context, sequences, chunk, budget: options.kv_budget() };
    let share = options.stage.as_ref().map(|stage| stage.share(program)).transpose()?;
    let yields = options.kv_yields && options.kv_memory.is_none();
    Ok(MemoryClaim { name, program, shape, threads: options.threads(), yields, weights_in, share })
}
