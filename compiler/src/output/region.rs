//! From a compiled graph and a source of weights to the weight region that the program runs over.

use crate::emit::pack::pack_weights;
use crate::pipeline::Compiled;
use crate::weights::{PackWeightsError, WeightSource};
use kernmill_os::float_env::FloatEnv;
use kernmill_os::memory::available_memory;
use kernmill_os::region::{RegionError, WeightRegion};
use std::sync::Arc;

/// Why weights could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError<E: std::error::Error + 'static> {
    /// Found before any work.
    #[error(
        "not enough memory: the packed weights need {:.2} GB, available are {:.2} GB; close other programs \
         or take a smaller model",
        *.needed as f64 / 1e9,
        *.available as f64 / 1e9
    )]
    Memory {
        /// Bytes of the weight region.
        needed: u64,
        /// Bytes that can be had.
        available: u64,
    },
    /// The system refused the memory.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A weight is unusable, or the source failed.
    #[error(transparent)]
    Pack(PackWeightsError<E>),
}

/// Packs the weights of `compiled` into fresh memory with `threads` threads; `progress` is told the bytes
/// packed since its last call.
///
/// # Errors
/// When there is not enough memory, or a weight is unusable.
pub fn build_weights<S: WeightSource>(
    compiled: &Compiled,
    source: &S,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Arc<WeightRegion>, BuildError<S::Error>> {
    let _env = FloatEnv::standard();
    let needed = compiled.layout.bytes;
    if let Some(available) = available_memory()
        && available < needed
    {
        return Err(BuildError::Memory { needed, available });
    }
    let mut region = WeightRegion::anonymous(needed as usize)?;
    let graph = &compiled.fused.graph;
    pack_weights(graph, &compiled.layout, source, region.as_mut_slice(), threads, progress)
        .map_err(BuildError::Pack)?;
    if !region.collapse() {
        // Data that was read fills the memory that the weights would have whole huge pages of.
        source.drop_cache();
        region.collapse();
    }
    Ok(region.freeze()?)
}
