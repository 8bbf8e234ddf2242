//! An adapter in memory, packed once.

use super::error::AdapterError;
use super::room::{AdapterBudget, Reservation};
use kernmill_os::region::{RegionError, WeightRegion};
use kernmill_plan::adapter::{Adapters, LoraTargetLayout, LoraTargetShape};
use kernmill_plan::format::PackError;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// An adapter, packed for the LoRA targets of a program; never written again.
#[derive(Debug)]
pub struct PackedAdapter {
    pub(super) layouts: Vec<Option<LoraTargetLayout>>,
    pub(super) memory: Arc<WeightRegion>,
    /// Place of the adapter in a store's budget, from when it began to be loaded until the store has it.
    pub(super) room: Mutex<Option<Reservation>>,
    /// BLAKE3 hash of layouts and contents, once it was asked for.
    digest: OnceLock<[u8; 32]>,
}

/// A loaded adapter.
#[derive(Debug)]
pub struct Adapter {
    /// The LoRA targets that it is packed for.
    pub(super) lora_targets: Arc<Adapters>,
    pub(super) packed: Arc<PackedAdapter>,
    /// By LoRA target, the scale of every rank.
    pub(super) scales: Vec<Vec<f32>>,
    /// By LoRA target, DoRA's magnitudes, rows in the checkpoint's order.
    pub(super) magnitudes: Vec<Option<Vec<f32>>>,
    /// The adapters of a combination, with weights; empty for an adapter from files.
    pub(super) parts: Vec<(Weak<Adapter>, f32)>,
    pub(super) notes: Vec<String>,
}

impl Adapter {
    /// Packed form of the adapter.
    pub fn packed(&self) -> &Arc<PackedAdapter> {
        &self.packed
    }

    /// Bytes of memory, but for some vectors.
    pub fn bytes(&self) -> u64 {
        self.packed.bytes() as u64
    }

    /// Notes for the user about the adapter.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Packs one LoRA target of an adapter: its index, its layout, and the whole adapter's bytes.
pub type PackTarget<'f, E> = dyn FnMut(usize, &LoraTargetLayout, &mut [u8]) -> Result<(), E> + 'f;

/// Why an adapter could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum AdapterPackError {
    /// The system refused the memory.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// An element is unusable.
    #[error(transparent)]
    Pack(#[from] PackError),
}

impl PackedAdapter {
    /// Takes memory for an adapter of these shapes (one per LoRA target, `None` where it has nothing) and
    /// lets `fill` pack each LoRA target.
    ///
    /// # Errors
    /// The system's, or those of `fill`.
    ///
    /// # Panics
    /// When there are not as many shapes as LoRA targets, or a rank is out of range.
    pub fn pack<E: From<RegionError>>(
        adapters: &Adapters,
        shapes: &[Option<LoraTargetShape>],
        fill: &mut PackTarget<'_, E>,
    ) -> Result<PackedAdapter, E> {
        let (layouts, bytes) = adapters.layout(shapes);
        let mut memory = WeightRegion::anonymous(bytes)?;
        for (lora_target, layout) in layouts.iter().enumerate() {
            if let Some(layout) = layout {
                fill(lora_target, layout, memory.as_mut_slice())?;
            }
        }
        Ok(PackedAdapter::new(layouts, memory.freeze()?, None))
    }

    /// One whose LoRA targets are packed in `memory` by `layouts`.
    pub(super) fn new(
        layouts: Vec<Option<LoraTargetLayout>>,
        memory: Arc<WeightRegion>,
        room: Option<Reservation>,
    ) -> PackedAdapter {
        PackedAdapter { layouts, memory, room: Mutex::new(room), digest: OnceLock::new() }
    }

    /// Place of the adapter in a store's budget, while it has one.
    pub(super) fn room(&self) -> MutexGuard<'_, Option<Reservation>> {
        // Nothing panics while it holds the lock.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the adapter's memory.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.memory.as_slice()
    }

    /// BLAKE3 hash of what the adapter does: of its layouts, and of its packed factors and scales. The first
    /// call takes as long as reading its memory.
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut hash = blake3::Hasher::new();
            hash.update(format!("{:?}", self.layouts).as_bytes()).update(self.as_slice());
            *hash.finalize().as_bytes()
        })
    }

    /// Whether the adapter is packed for these LoRA targets.
    pub fn fits(&self, adapters: &Adapters) -> bool {
        let mut pairs = self.layouts.iter().zip(&adapters.lora_targets);
        let fits = |layout: &LoraTargetLayout, lora_target| layout.fits(lora_target, adapters.format);
        self.layouts.len() == adapters.lora_targets.len()
            && pairs
                .all(|(layout, lora_target)| layout.as_ref().is_none_or(|layout| fits(layout, lora_target)))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Layout of the adapter at each LoRA target; `None` where it has nothing.
    pub fn layouts(&self) -> &[Option<LoraTargetLayout>] {
        &self.layouts
    }

    /// Largest rank at any LoRA target.
    pub fn rank(&self) -> usize {
        self.layouts.iter().flatten().map(LoraTargetLayout::rank).max().unwrap_or(0)
    }

    /// Error unless `room` has room for it, which may be one of those being loaded.
    pub(super) fn check_room(&self, room: &AdapterBudget, what: &str) -> Result<(), AdapterError> {
        room.check_reserved(what, self.bytes() as u64, self.room().as_ref())
    }
}
