//! Loading an adapter, on whatever thread its caller chooses.

use super::error::AdapterError;
use super::factors::{Factors, FromPeft, unpack_tiles};
use super::norms::{TileFactors, quads, row_lengths};
use super::packed::{Adapter, PackedAdapter};
use super::room::{AdapterBudget, Reservation};
use kernmill_checkpoint::peft::PeftAdapter;
use kernmill_os::float_env::FloatEnv;
use kernmill_os::memory::available_memory;
use kernmill_os::region::{RegionMut, WeightRegion};
use kernmill_plan::adapter::{Adapters, LoraTargetLayout};
use kernmill_plan::format::{PackError, TILE_ROWS, unpack_tile};
use std::path::Path;
use std::sync::{Arc, Weak};

/// Reads adapters for the program of one engine. Independent of the engine: it may be given to another
/// thread.
#[derive(Clone, Debug)]
pub struct AdapterLoader {
    pub(super) adapters: Arc<Adapters>,
    /// The base weights, which DoRA takes lengths of; `None` when the rows are to be merged, and get their
    /// lengths then.
    weights: Option<Arc<WeightRegion>>,
    /// The model's name, for messages.
    model: String,
    /// Room of the store that the adapters are for.
    room: Option<Arc<AdapterBudget>>,
}

/// An adapter whose files are open and checked, with its place in memory.
pub struct Loading {
    loader: AdapterLoader,
    factors: Box<dyn Factors>,
    layouts: Vec<Option<LoraTargetLayout>>,
    memory: RegionMut,
    scales: Vec<Vec<f32>>,
    magnitudes: Vec<Option<Vec<f32>>>,
    /// The adapters of a combination, with weights; empty for an adapter from files.
    pub(super) parts: Vec<(Weak<Adapter>, f32)>,
    notes: Vec<String>,
    /// Place of the adapter in the store's budget.
    room: Option<Reservation>,
}

impl AdapterLoader {
    /// A loader for a program's LoRA targets and its packed weights; the model's name is for messages.
    pub fn new(adapters: Arc<Adapters>, weights: Arc<WeightRegion>, model: String) -> AdapterLoader {
        AdapterLoader { adapters, weights: Some(weights), model, room: None }
    }

    /// A loader of adapters that are merged into base weights ([`Adapter::merge`]) and not run.
    pub fn for_merging(adapters: Arc<Adapters>, model: String) -> AdapterLoader {
        AdapterLoader { adapters, weights: None, model, room: None }
    }

    /// This loader for adapters of a store, whose room they must find from the first on.
    pub(super) fn within(self, room: Arc<AdapterBudget>) -> AdapterLoader {
        AdapterLoader { room: Some(room), ..self }
    }

    /// Whether an adapter is packed for this program.
    pub(super) fn fits(&self, adapter: &Adapter) -> bool {
        Arc::ptr_eq(&self.adapters, &adapter.lora_targets)
    }

    /// Reads a PEFT directory's config and header, and checks that everything fits; what B A x adds is to be
    /// multiplied with `scale` besides. The path may also be that of the tensors' file.
    ///
    /// # Errors
    /// When the directory does not hold an adapter for this program, or the store has no room for it; see
    /// [`AdapterError`].
    pub fn open(&self, directory: &Path, scale: f32) -> Result<Loading, AdapterError> {
        self.start(PeftAdapter::open(directory, &self.adapters, &self.model)?, scale)
    }

    /// Opens an adapter from the bytes of its config and its tensors' file; `name` stands for the directory
    /// in messages. Otherwise as [`AdapterLoader::open`].
    ///
    /// # Errors
    /// As [`AdapterLoader::open`].
    pub fn open_bytes(
        &self,
        name: &Path,
        config: &str,
        tensors: Vec<u8>,
        scale: f32,
    ) -> Result<Loading, AdapterError> {
        let adapter = PeftAdapter::from_bytes(name, config, tensors, &self.adapters, &self.model)?;
        self.start(adapter, scale)
    }

    fn start(&self, mut adapter: PeftAdapter, scale: f32) -> Result<Loading, AdapterError> {
        check_weight(scale)?;
        let notes = std::mem::take(&mut adapter.notes);
        let factors = FromPeft::new(Arc::clone(&self.adapters), adapter, scale);
        Loading::new(self.clone(), Box::new(factors), notes)
    }

    /// [`AdapterLoader::open`], and all the work at once.
    ///
    /// # Errors
    /// As [`AdapterLoader::open`] and [`Loading::run`].
    pub fn load(&self, directory: &Path, scale: f32) -> Result<Adapter, AdapterError> {
        self.open(directory, scale)?.run()
    }
}

pub(super) fn check_weight(weight: f32) -> Result<(), AdapterError> {
    match weight.is_finite() {
        true => Ok(()),
        false => Err(AdapterError::Combination(format!("the weight is {weight}, expected a finite number"))),
    }
}

impl Loading {
    pub(super) fn new(
        loader: AdapterLoader,
        factors: Box<dyn Factors>,
        notes: Vec<String>,
    ) -> Result<Loading, AdapterError> {
        let shapes = factors.shapes();
        let (layouts, bytes) = loader.adapters.layout(&shapes);
        match available_memory() {
            Some(available) if bytes as u64 > available => {
                return Err(AdapterError::Memory { needed: bytes as u64, available });
            }
            _ => {}
        }
        let room =
            loader.room.as_ref().map(|room| room.reserve("the adapter to load", bytes as u64)).transpose()?;
        let lora_targets = layouts.len();
        Ok(Loading {
            memory: WeightRegion::anonymous(bytes)?,
            loader,
            factors,
            layouts,
            scales: vec![Vec::new(); lora_targets],
            magnitudes: vec![None; lora_targets],
            parts: Vec::new(),
            notes,
            room,
        })
    }

    /// Bytes that the adapter takes.
    pub fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Reads, rounds and packs the adapter, on this thread: give it to one of its own beside running
    /// sequences.
    ///
    /// # Errors
    /// When a tensor cannot be read or an element not be used.
    pub fn run(mut self) -> Result<Adapter, AdapterError> {
        let _env = FloatEnv::standard();
        for lora_target in 0..self.layouts.len() {
            if let Some(layout) = self.layouts[lora_target].clone() {
                self.pack(lora_target, &layout)?;
            }
        }
        let packed = PackedAdapter::new(self.layouts, self.memory.freeze()?, self.room);
        Ok(Adapter {
            lora_targets: self.loader.adapters,
            packed: Arc::new(packed),
            scales: self.scales,
            magnitudes: self.magnitudes,
            parts: self.parts,
            notes: self.notes,
        })
    }

    /// Packs the adapter's part at one LoRA target.
    fn pack(&mut self, index: usize, layout: &LoraTargetLayout) -> Result<(), AdapterError> {
        let lora_target = &self.loader.adapters.lora_targets[index];
        let unfit = |tensor: &str, error: PackError| {
            AdapterError::Element(format!("{tensor} of {}: {error}", lora_target.name))
        };
        let bytes = self.memory.as_mut_slice();
        let a = self.factors.a(index)?;
        for (expert, a) in a.chunks_exact(layout.rank() * lora_target.k as usize).enumerate() {
            layout.pack_a(expert, a, bytes).map_err(|error| unfit("lora_A", error))?;
        }
        drop(a);
        let b = self.factors.b(index)?;
        for (expert, b) in b.chunks_exact(layout.rank() * lora_target.rows()).enumerate() {
            layout.pack_b(expert, b, bytes).map_err(|error| unfit("lora_B", error))?;
        }
        drop(b);
        let scales = self.factors.scales(index);
        if let Some(scale) = scales.iter().find(|scale| !scale.is_finite()) {
            let name = &lora_target.name;
            let what = format!("{name}: the weight makes the scale {scale}, expected a finite one");
            return Err(AdapterError::Combination(what));
        }
        layout.pack_scales(&scales, bytes);
        self.scales[index] = scales;
        if layout.has_factors() {
            let magnitude = self.factors.magnitude(index)?.unwrap_or_default();
            let factors = self.row_factors(index, layout, &magnitude)?;
            layout.pack_factors(&factors, self.memory.as_mut_slice());
            self.magnitudes[index] = Some(magnitude);
        }
        Ok(())
    }

    /// DoRA's factors of a LoRA target's rows, whose A, B and scales are packed; zeros where rows are merged.
    fn row_factors(
        &self,
        index: usize,
        layout: &LoraTargetLayout,
        magnitude: &[f32],
    ) -> Result<Vec<f32>, AdapterError> {
        let adapters = &self.loader.adapters;
        let mut factors = vec![0.0; magnitude.len()];
        let Some(weights) = &self.loader.weights else { return Ok(factors) };
        let (lora_target, packed) = (&adapters.lora_targets[index], self.memory.as_slice());
        let k = lora_target.k as usize;
        let a = quads(&unpack_tiles(adapters.format, layout.rank(), k, &packed[layout.a(0)]), k);
        let mut columns = vec![[0.0; TILE_ROWS]; k];
        let mut b = vec![[0.0; TILE_ROWS]; layout.padded_rank()];
        let mut b_tiles = packed[layout.b(0)].chunks(adapters.format.tile(layout.padded_rank()).bytes());
        for matrix in &lora_target.outs {
            let format = matrix.weights.format;
            for (tile, first) in (0..matrix.rows as usize).step_by(TILE_ROWS).enumerate() {
                let at = matrix.weights.offset as usize + tile * matrix.weights.tile_stride as usize;
                let weights = &weights.as_slice()[at..at + format.tile(k).bytes()];
                unpack_tile(adapters.format, b_tiles.next().expect("every tile of rows has B"), &mut b);
                let b = &mut b[..layout.rank()];
                for (column, scale) in b.iter_mut().zip(&self.scales[index]) {
                    column.iter_mut().for_each(|b| *b *= scale);
                }
                let lengths = row_lengths(format, weights, &TileFactors { a: &a, b }, &mut columns);
                for (row, length) in (first..matrix.rows as usize).zip(lengths) {
                    let at = matrix.first as usize + row * matrix.step as usize;
                    factors[at] = magnitude[at] / length;
                    if !factors[at].is_finite() {
                        return Err(AdapterError::Element(format!(
                            "{}: row {at} of base and adapter together has length {length}, which no \
                             magnitude can scale",
                            lora_target.name
                        )));
                    }
                }
            }
        }
        Ok(factors)
    }
}
