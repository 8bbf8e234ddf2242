//! Loading an adapter, on whatever thread its caller chooses. Between two pieces ([`super::pieces`]) it can
//! be stopped.

use super::error::AdapterError;
use super::factors::{Factors, FromPeft, unpack_tiles};
use super::norms::{Quad, TileFactors, quads, row_lengths};
use super::packed::{Adapter, PackedAdapter};
use super::pieces::{PAGE, Piece, TOUCHED, pieces};
use super::room::{Reservation, Room};
use kernmill_checkpoint::peft::PeftAdapter;
use kernmill_os::float_env::FloatEnv;
use kernmill_os::memory::available_memory;
use kernmill_os::region::{RegionMut, WeightRegion};
use kernmill_plan::adapter::{Adapters, LoraTargetLayout};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::format::{Column, unpack_tile};
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
    room: Option<Arc<Room>>,
}

/// How far a loading has come, in pieces of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pieces done.
    pub done: usize,
    /// Pieces in all.
    pub all: usize,
}

/// An adapter whose files are open and checked, with its place in memory.
pub struct Loading {
    loader: AdapterLoader,
    pub(super) factors: Box<dyn Factors>,
    layouts: Vec<Option<LoraTargetLayout>>,
    memory: RegionMut,
    scales: Vec<Vec<f32>>,
    magnitudes: Vec<Option<Vec<f32>>>,
    /// What a combination is made of, with weights; empty for an adapter from files.
    pub(super) parts: Vec<(Weak<Adapter>, f32)>,
    notes: Vec<String>,
    /// Place of the adapter in the store's budget.
    room: Option<Reservation>,
    /// The work, in order.
    pub(super) pieces: Vec<Piece>,
    /// The LoRA target whose rows are being measured.
    dora: Option<DoraLoraTarget>,
}

/// What the lengths of a LoRA target's rows are computed with.
struct DoraLoraTarget {
    lora_target: usize,
    /// Factors A as packed, in the order of [`quads`].
    a: Vec<Quad>,
    /// Magnitudes of DoRA in the checkpoint's order.
    magnitude: Vec<f32>,
    factors: Vec<f32>,
    columns: Vec<Column>,
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
    pub(super) fn within(self, room: Arc<Room>) -> AdapterLoader {
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
        let measured = loader.weights.is_some();
        let lora_targets = loader.adapters.lora_targets.iter().zip(&layouts).enumerate();
        let of_lora_targets = lora_targets.filter_map(|(index, (lora_target, layout))| {
            Some(pieces(index, lora_target, layout.as_ref()?, factors.mixed(index), measured))
        });
        let touches = (0..bytes).step_by(TOUCHED).map(|at| Piece::Touch { at });
        let pieces: Vec<Piece> = touches.chain(of_lora_targets.flatten()).collect();
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
            pieces,
            dora: None,
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
    pub fn run(self) -> Result<Adapter, AdapterError> {
        let all = self.run_while(&mut |_| true)?;
        Ok(all.expect("nothing stops it"))
    }

    /// Works as [`Loading::run`] does, as long as `go_on` says so, which is asked before every piece of the
    /// work: a fraction of a millisecond, or a few where the system has to find memory. `None` when it says
    /// no; then nothing is left of the work.
    ///
    /// # Errors
    /// As [`Loading::run`].
    pub fn run_while(
        mut self,
        go_on: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Adapter>, AdapterError> {
        let pieces = std::mem::take(&mut self.pieces);
        let all = pieces.len();
        for (done, piece) in pieces.into_iter().enumerate() {
            if !go_on(Progress { done, all }) {
                return Ok(None);
            }
            let _env = FloatEnv::standard();
            self.step(piece)?;
        }
        let packed = PackedAdapter::new(self.layouts, self.memory.freeze()?, self.room);
        Ok(Some(Adapter {
            lora_targets: self.loader.adapters,
            packed: Arc::new(packed),
            scales: self.scales,
            magnitudes: self.magnitudes,
            parts: self.parts,
            notes: self.notes,
        }))
    }

    fn step(&mut self, piece: Piece) -> Result<(), AdapterError> {
        match piece {
            Piece::Touch { at } => {
                let bytes = self.memory.as_mut_slice();
                let end = bytes.len().min(at + TOUCHED);
                bytes[at..end].iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
                Ok(())
            }
            Piece::A { lora_target, part } => {
                let a = self.factors.a(lora_target, &part)?;
                let (layout, bytes) = self.lora_target_mut(lora_target);
                let each = a.chunks_exact(part.ranks.len() * part.columns.len());
                let packed = part.experts.zip(each).try_for_each(|(expert, a)| {
                    layout.pack_a_part(expert, part.ranks.clone(), part.columns.clone(), a, bytes)
                });
                packed.map_err(|error| self.unfit(lora_target, "lora_A", &error))
            }
            Piece::B { lora_target, part } => {
                let b = self.factors.b(lora_target, &part)?;
                let (layout, bytes) = self.lora_target_mut(lora_target);
                let each = b.chunks_exact(part.rows.len() * layout.rank());
                let packed = part.experts.zip(each).try_for_each(|(expert, b)| {
                    layout.pack_b_part(expert, part.out, part.rows.clone(), b, bytes)
                });
                packed.map_err(|error| self.unfit(lora_target, "lora_B", &error))
            }
            Piece::Scales { lora_target } => {
                let scales = self.factors.scales(lora_target);
                if let Some(scale) = scales.iter().find(|scale| !scale.is_finite()) {
                    let name = &self.loader.adapters.lora_targets[lora_target].name;
                    let what = format!("{name}: the weight makes the scale {scale}, expected a finite one");
                    return Err(AdapterError::Combination(what));
                }
                let (layout, bytes) = self.lora_target_mut(lora_target);
                layout.pack_scales(&scales, bytes);
                self.scales[lora_target] = scales;
                Ok(())
            }
            Piece::StartLengths { lora_target } => self.start_lengths(lora_target),
            Piece::Lengths { out, tile } => self.lengths(out, tile),
            Piece::Factors => {
                if let Some(dora) = self.dora.take() {
                    let (layout, bytes) = self.lora_target_mut(dora.lora_target);
                    layout.pack_factors(&dora.factors, bytes);
                    self.magnitudes[dora.lora_target] = Some(dora.magnitude);
                }
                Ok(())
            }
        }
    }

    fn layout(&self, lora_target: usize) -> &LoraTargetLayout {
        self.layouts[lora_target].as_ref().expect("pieces are made for LoRA targets with a layout")
    }

    /// A LoRA target's layout, and the adapter's bytes.
    fn lora_target_mut(&mut self, lora_target: usize) -> (&LoraTargetLayout, &mut [u8]) {
        let layout =
            self.layouts[lora_target].as_ref().expect("pieces are made for LoRA targets with a layout");
        (layout, self.memory.as_mut_slice())
    }

    fn unfit(&self, lora_target: usize, tensor: &str, error: &dyn std::fmt::Display) -> AdapterError {
        AdapterError::Element(format!(
            "{} of {}: {error}",
            tensor, self.loader.adapters.lora_targets[lora_target].name
        ))
    }

    fn start_lengths(&mut self, lora_target: usize) -> Result<(), AdapterError> {
        let layout = self.layout(lora_target);
        let adapters = &self.loader.adapters;
        let k = adapters.lora_targets[lora_target].k as usize;
        let a = unpack_tiles(adapters.format, layout.rank(), k, &self.memory.as_slice()[layout.a(0)]);
        let magnitude = self.factors.magnitude(lora_target)?.unwrap_or_default();
        let factors = vec![0.0; magnitude.len()];
        let a = quads(&a, k);
        self.dora =
            Some(DoraLoraTarget { lora_target, a, magnitude, factors, columns: vec![[0.0; TILE_ROWS]; k] });
        Ok(())
    }

    /// Factors of 16 rows.
    fn lengths(&mut self, out: usize, tile: usize) -> Result<(), AdapterError> {
        let (Some(dora), Some(weights)) = (&mut self.dora, &self.loader.weights) else { return Ok(()) };
        let adapters = &self.loader.adapters;
        let (lora_target, layout) =
            (&adapters.lora_targets[dora.lora_target], &self.layouts[dora.lora_target]);
        let Some(layout) = layout else { return Ok(()) };
        let matrix = &lora_target.outs[out];
        let (format, k) = (matrix.weights.format, lora_target.k as usize);
        let at = matrix.weights.offset as usize + tile * matrix.weights.tile_stride as usize;
        let weights = &weights.as_slice()[at..at + format.tile(k).bytes()];

        let padded = layout.padded_rank();
        let b_tile = adapters.format.tile(padded).bytes();
        let at = layout.b(0).start + (lora_target.tiles_before(out) + tile) * b_tile;
        let mut b = vec![[0.0; TILE_ROWS]; padded];
        unpack_tile(adapters.format, &self.memory.as_slice()[at..at + b_tile], &mut b);
        b.truncate(layout.rank());
        for (column, scale) in b.iter_mut().zip(&self.scales[dora.lora_target]) {
            column.iter_mut().for_each(|b| *b *= scale);
        }

        let lengths = row_lengths(format, weights, &TileFactors { a: &dora.a, b: &b }, &mut dora.columns);
        let first = tile * TILE_ROWS;
        for (row, length) in (first..matrix.rows as usize).zip(lengths) {
            let at = matrix.first as usize + row * matrix.step as usize;
            let factor = dora.magnitude[at] / length;
            if !factor.is_finite() {
                return Err(AdapterError::Element(format!(
                    "{}: row {at} of base and adapter together has length {length}, which no magnitude can scale",
                    lora_target.name
                )));
            }
            dora.factors[at] = factor;
        }
        Ok(())
    }
}
