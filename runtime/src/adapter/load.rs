//! Loading an adapter piece by piece, beside running sequences: a piece ([`super::pieces`]) is a fraction of a millisecond of work.

use super::error::AdapterError;
use super::factors::{Factors, FromPacked, FromPeft, unpack_tiles};
use super::norms::{Quad, TileFactors, quads, row_lengths};
use super::packed::{Adapter, PackedAdapter};
use super::pieces::{PAGE, Piece, TOUCHED, pieces};
use super::room::{Reservation, Room};
use kernmill_checkpoint::peft::PeftAdapter;
use kernmill_os::float_env::FloatEnv;
use kernmill_os::memory::available_memory;
use kernmill_os::region::{RegionMut, WeightRegion};
use kernmill_plan::adapter::{Adapters, SiteLayout};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::pack::{Column, unpack_tile};
use std::path::Path;
use std::sync::{Arc, Weak};

/// Reads adapters for the program of one engine. Independent of the engine: it may be given to another thread.
#[derive(Clone, Debug)]
pub struct AdapterLoader {
    adapters: Arc<Adapters>,
    /// The base weights, which DoRA takes lengths of; `None` when the rows are to be merged, and get their lengths then.
    weights: Option<Arc<WeightRegion>>,
    /// The model's name, for messages.
    model: String,
    /// Of the store that the adapters are for.
    room: Option<Arc<Room>>,
}

/// An adapter that is being loaded.
pub struct Loading {
    loader: AdapterLoader,
    pub(super) factors: Box<dyn Factors>,
    layouts: Vec<Option<SiteLayout>>,
    memory: RegionMut,
    scales: Vec<Vec<f32>>,
    magnitudes: Vec<Option<Vec<f32>>>,
    /// Of a combination: what it is made of, with weights.
    parts: Vec<(Weak<Adapter>, f32)>,
    notes: Vec<String>,
    /// Its place in the store's budget.
    room: Option<Reservation>,
    /// What is left to do, the next piece last.
    pub(super) pieces: Vec<Piece>,
    /// The site whose rows are being measured.
    dora: Option<DoraSite>,
}

/// What the lengths of a site's rows are computed with.
struct DoraSite {
    site: usize,
    /// As packed, in the order of [`quads`].
    a: Vec<Quad>,
    /// In the checkpoint's order.
    magnitude: Vec<f32>,
    factors: Vec<f32>,
    columns: Vec<Column>,
}

impl AdapterLoader {
    /// A loader for a program's sites and its packed weights; the model's name is for messages.
    pub fn new(adapters: Arc<Adapters>, weights: Arc<WeightRegion>, model: String) -> AdapterLoader {
        AdapterLoader { adapters, weights: Some(weights), model, room: None }
    }

    /// A loader of adapters that are merged into base weights ([`Adapter::merge`]) and not run.
    pub fn for_merging(adapters: Arc<Adapters>, model: String) -> AdapterLoader {
        AdapterLoader { adapters, weights: None, model, room: None }
    }

    /// The same for adapters of a store, whose room they must find from the first on.
    pub(super) fn within(self, room: Arc<Room>) -> AdapterLoader {
        AdapterLoader { room: Some(room), ..self }
    }

    /// Whether an adapter is packed for this program.
    pub(super) fn fits(&self, adapter: &Adapter) -> bool {
        Arc::ptr_eq(&self.adapters, &adapter.sites)
    }

    /// Reads a PEFT directory's config and header, and checks that everything fits; what B A x adds is to be multiplied with `scale` besides. The path
    /// may also be that of the tensors' file.
    ///
    /// # Errors
    /// When the directory does not hold an adapter for this program, or the store has no room for it; see [`AdapterError`].
    pub fn open(&self, directory: &Path, scale: f32) -> Result<Loading, AdapterError> {
        self.start(PeftAdapter::open(directory, &self.adapters, &self.model)?, scale)
    }

    /// The same from the bytes of both files; `name` stands for the directory in messages.
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

    /// Several loaded adapters as one, each with a weight.
    ///
    /// # Errors
    /// When their ranks are too many at some site, or one is a DoRA where another has a part too.
    pub fn combine(&self, parts: &[(Arc<Adapter>, f32)]) -> Result<Loading, AdapterError> {
        parts.iter().try_for_each(|(_, weight)| check_weight(*weight))?;
        let factors = FromPacked::new(Arc::clone(&self.adapters), parts.to_vec())?;
        let mut loading = Loading::new(self.clone(), Box::new(factors), Vec::new())?;
        loading.parts = parts.iter().map(|(adapter, weight)| (Arc::downgrade(adapter), *weight)).collect();
        Ok(loading)
    }

    /// [`AdapterLoader::open`], and all the work at once.
    ///
    /// # Errors
    /// As [`AdapterLoader::open`] and [`Loading::advance`].
    pub fn load(&self, directory: &Path, scale: f32) -> Result<Adapter, AdapterError> {
        self.open(directory, scale)?.run()
    }
}

fn check_weight(weight: f32) -> Result<(), AdapterError> {
    match weight.is_finite() {
        true => Ok(()),
        false => Err(AdapterError::Combination(format!("the weight is {weight}, expected a finite number"))),
    }
}

impl Loading {
    fn new(
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
        let sites = loader.adapters.sites.iter().zip(&layouts).enumerate();
        let of_sites = sites.filter_map(|(index, (site, layout))| {
            Some(pieces(index, site, layout.as_ref()?, factors.mixed(index), measured))
        });
        let touches = (0..bytes).step_by(TOUCHED).map(|at| Piece::Touch { at });
        let mut pieces: Vec<Piece> = touches.chain(of_sites.flatten()).collect();
        pieces.reverse();
        let sites = layouts.len();
        Ok(Loading {
            memory: WeightRegion::anonymous(bytes)?,
            loader,
            factors,
            layouts,
            scales: vec![Vec::new(); sites],
            magnitudes: vec![None; sites],
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

    /// Does the next piece of work; whether there is more.
    ///
    /// # Errors
    /// When a tensor cannot be read or an element not be used. Then the adapter cannot be loaded: the piece stays the next one.
    pub fn advance(&mut self) -> Result<bool, AdapterError> {
        let _env = FloatEnv::standard();
        if let Some(piece) = self.pieces.last().cloned() {
            self.step(piece)?;
            self.pieces.pop();
        }
        Ok(!self.pieces.is_empty())
    }

    /// All the work that is left.
    ///
    /// # Errors
    /// As [`Loading::advance`].
    pub fn run(mut self) -> Result<Adapter, AdapterError> {
        while self.advance()? {}
        self.finish()
    }

    /// The adapter, after [`Loading::advance`] has said that nothing is left; does what is left otherwise.
    ///
    /// # Errors
    /// As [`Loading::advance`].
    pub fn finish(mut self) -> Result<Adapter, AdapterError> {
        while self.advance()? {}
        let packed = PackedAdapter::new(self.layouts, self.memory.freeze()?, self.room);
        Ok(Adapter {
            sites: self.loader.adapters,
            packed: Arc::new(packed),
            scales: self.scales,
            magnitudes: self.magnitudes,
            parts: self.parts,
            notes: self.notes,
        })
    }

    fn step(&mut self, piece: Piece) -> Result<(), AdapterError> {
        match piece {
            Piece::Touch { at } => {
                let bytes = self.memory.as_mut_slice();
                let end = bytes.len().min(at + TOUCHED);
                bytes[at..end].iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
                Ok(())
            }
            Piece::A { site, part } => {
                let a = self.factors.a(site, &part)?;
                let (layout, bytes) = self.site_mut(site);
                let each = a.chunks_exact(part.ranks.len() * part.columns.len());
                let packed = part.experts.zip(each).try_for_each(|(expert, a)| {
                    layout.pack_a_part(expert, part.ranks.clone(), part.columns.clone(), a, bytes)
                });
                packed.map_err(|error| self.unfit(site, "lora_A", &error))
            }
            Piece::B { site, part } => {
                let b = self.factors.b(site, &part)?;
                let (layout, bytes) = self.site_mut(site);
                let each = b.chunks_exact(part.rows.len() * layout.rank());
                let packed = part.experts.zip(each).try_for_each(|(expert, b)| {
                    layout.pack_b_part(expert, part.out, part.rows.clone(), b, bytes)
                });
                packed.map_err(|error| self.unfit(site, "lora_B", &error))
            }
            Piece::Scales { site } => {
                let scales = self.factors.scales(site);
                if let Some(scale) = scales.iter().find(|scale| !scale.is_finite()) {
                    let name = &self.loader.adapters.sites[site].name;
                    let what = format!("{name}: the weight makes the scale {scale}, expected a finite one");
                    return Err(AdapterError::Combination(what));
                }
                let (layout, bytes) = self.site_mut(site);
                layout.pack_scales(&scales, bytes);
                self.scales[site] = scales;
                Ok(())
            }
            Piece::StartLengths { site } => self.start_lengths(site),
            Piece::Lengths { out, tile } => self.lengths(out, tile),
            Piece::Factors => {
                if let Some(dora) = self.dora.take() {
                    let (layout, bytes) = self.site_mut(dora.site);
                    layout.pack_factors(&dora.factors, bytes);
                    self.magnitudes[dora.site] = Some(dora.magnitude);
                }
                Ok(())
            }
        }
    }

    fn layout(&self, site: usize) -> &SiteLayout {
        self.layouts[site].as_ref().expect("pieces are made for sites with a layout")
    }

    /// A site's layout, and the adapter's bytes.
    fn site_mut(&mut self, site: usize) -> (&SiteLayout, &mut [u8]) {
        let layout = self.layouts[site].as_ref().expect("pieces are made for sites with a layout");
        (layout, self.memory.as_mut_slice())
    }

    fn unfit(&self, site: usize, tensor: &str, error: &dyn std::fmt::Display) -> AdapterError {
        AdapterError::Element(format!("{} of {}: {error}", tensor, self.loader.adapters.sites[site].name))
    }

    fn start_lengths(&mut self, site: usize) -> Result<(), AdapterError> {
        let layout = self.layout(site);
        let adapters = &self.loader.adapters;
        let k = adapters.sites[site].k as usize;
        let a = unpack_tiles(adapters.format, layout.rank(), k, &self.memory.as_slice()[layout.a(0)]);
        let magnitude = self.factors.magnitude(site)?.unwrap_or_default();
        let factors = vec![0.0; magnitude.len()];
        let a = quads(&a, k);
        self.dora = Some(DoraSite { site, a, magnitude, factors, columns: vec![[0.0; TILE_ROWS]; k] });
        Ok(())
    }

    /// Factors of 16 rows.
    fn lengths(&mut self, out: usize, tile: usize) -> Result<(), AdapterError> {
        let (Some(dora), Some(weights)) = (&mut self.dora, &self.loader.weights) else { return Ok(()) };
        let adapters = &self.loader.adapters;
        let (site, layout) = (&adapters.sites[dora.site], &self.layouts[dora.site]);
        let Some(layout) = layout else { return Ok(()) };
        let matrix = &site.outs[out];
        let (format, k) = (matrix.weights.format, site.k as usize);
        let at = matrix.weights.offset as usize + tile * matrix.weights.tile_stride as usize;
        let weights = &weights.as_slice()[at..at + format.tile(k).bytes()];

        let padded = layout.padded_rank();
        let b_tile = adapters.format.tile(padded).bytes();
        let at = layout.b(0).start + (site.tiles_before(out) + tile) * b_tile;
        let mut b = vec![[0.0; TILE_ROWS]; padded];
        unpack_tile(adapters.format, &self.memory.as_slice()[at..at + b_tile], &mut b);
        b.truncate(layout.rank());
        for (column, scale) in b.iter_mut().zip(&self.scales[dora.site]) {
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
                    site.name
                )));
            }
            dora.factors[at] = factor;
        }
        Ok(())
    }
}
