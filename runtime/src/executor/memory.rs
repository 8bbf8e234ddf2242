//! The memory of an executor.

use super::error::LoadError;
use super::need::{MemoryNeed, scratch_stride};
use super::rope;
use crate::image::PlanImage;
use crate::kv::KvShape;
use crate::pool::{IdleWork, Pool};
use kernmill_os::numa;
use kernmill_os::region::{REGION_ALIGN, RegionError, RegionMut, WeightRegion};
use kernmill_plan::kv::{KvLayers, LayerKind};
use std::ops::Range;

/// The memory that an executor owns besides weights and code.
pub(super) struct ExecutorMemory {
    pub arena: RegionMut,
    pub scratch: RegionMut,
    pub scratch_stride: usize,
    _ropes: Vec<RegionMut>,
    pub kv: RegionMut,
    /// Byte offset in `kv` of the pool of each layer that runs here.
    pub kv_offsets: Vec<Option<usize>>,
}

impl ExecutorMemory {
    /// Takes it all, for the attention layers `own`, and says where each rotary table is.
    pub fn new(
        image: &PlanImage,
        shape: KvShape,
        workers: &Pool<impl IdleWork>,
        own: &Range<usize>,
    ) -> Result<(ExecutorMemory, Vec<u64>), LoadError> {
        let (program, threads) = (image.program(), workers.count());
        let need = MemoryNeed::of_layers(program, shape, threads, own.clone());
        match kernmill_os::memory::available_memory() {
            Some(available) if need.total() > available => {
                return Err(LoadError::Memory { needed: need.total(), kv: need.kv, available });
            }
            _ => {}
        }
        let mut ropes = Vec::new();
        let mut rope_bases = Vec::new();
        for table in &program.model.ropes {
            let rows = shape.context as usize * rope::row_len(table);
            let mut region = WeightRegion::anonymous(rows * 4)?;
            let base = region.as_mut_ptr();
            // SAFETY: the region has `rows * 4` zeroed bytes at an aligned address, borrowed by nobody else.
            rope::fill(table, unsafe { std::slice::from_raw_parts_mut(base.cast::<f32>(), rows) });
            rope_bases.push(base as u64);
            ropes.push(region);
        }
        let blocks = shape.blocks(&program.model.kv);
        let mut end = 0usize;
        let mut kv_offsets = Vec::new();
        for (number, layer) in program.model.kv.layers.iter().enumerate() {
            if !own.contains(&number) {
                kv_offsets.push(None);
                continue;
            }
            kv_offsets.push(Some(end));
            let block_bytes = program.model.kv.geometry(layer.kind).block_bytes();
            let bytes = (blocks[layer.kind.index()] as usize).checked_mul(block_bytes);
            // More than there are addresses is refused by the system, as all that is too much.
            end = bytes.and_then(|bytes| end.checked_add(bytes)).unwrap_or(usize::MAX);
        }
        let stride = scratch_stride(program.scratch_bytes) as usize;
        let memory = ExecutorMemory {
            arena: WeightRegion::anonymous(program.arena_bytes as usize)?,
            scratch: WeightRegion::anonymous(stride.saturating_mul(threads))?,
            scratch_stride: stride,
            _ropes: ropes,
            kv: pool(end, own.len())?,
            kv_offsets,
        };
        memory.lay_out(workers.nodes());
        Ok((memory, rope_bases))
    }

    /// Before it is touched: lays each worker's scratch on its node, by the nodes of all workers. Keys,
    /// values and activations are written by one worker and read by any, and lie on all nodes in turns. Where
    /// the system refuses, memory lies where it is touched first.
    fn lay_out(&self, nodes: &[usize]) {
        let mut from = 0;
        for of_node in nodes.chunk_by(|a, b| a == b) {
            let bytes = of_node.len() * self.scratch_stride;
            let _ = numa::prefer(&self.scratch.as_slice()[from..][..bytes], of_node[0]);
            from += bytes;
        }
        let mut all = nodes.to_vec();
        all.dedup();
        for shared in [&self.kv, &self.arena].into_iter().filter(|_| !all.is_empty()) {
            let _ = numa::interleave(shared.as_slice(), &all);
        }
    }
}

/// Memory for the keys and values of `layers` layers. A text begins in each layer's part, so that where
/// parts are small, the first token would take most of the memory with pages of 2 MiB.
fn pool(bytes: usize, layers: usize) -> Result<RegionMut, RegionError> {
    let region = WeightRegion::anonymous(bytes)?;
    Ok(if bytes < layers * 2 * REGION_ALIGN { region.on_small_pages() } else { region })
}

/// Where the pools of a kind's layers begin, as far as these run here.
pub(super) fn pools<'a>(
    layers: &'a KvLayers,
    offsets: &'a [Option<usize>],
    kind: LayerKind,
) -> impl Iterator<Item = usize> + 'a {
    let all = layers.layers.iter().zip(offsets);
    all.filter(move |(layer, _)| layer.kind == kind).filter_map(|(_, base)| *base)
}
