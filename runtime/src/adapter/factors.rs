//! Where A and B come from: the tensors of a PEFT directory, or adapters that are packed already.

use super::error::AdapterError;
use super::peft::{PeftAdapter, PeftPart};
use super::{Adapter, PackedAdapter};
use kernmill_plan::adapter::{Adapters, MAX_RANK, SiteShape};
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use kernmill_plan::pack::unpack_tile;
use kernmill_plan::tensor_file::TensorEntry;
use std::sync::Arc;

/// The factors of an adapter, by site of the program and expert (0 for a dense matrix).
pub(super) trait Factors: Send {
    /// What the adapter has at each site.
    fn shapes(&self) -> Vec<Option<SiteShape>>;

    /// `[rank][k]`.
    fn a(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError>;

    /// `[rows][rank]`, rows in the checkpoint's order.
    fn b(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError>;

    /// `[rank]`.
    fn scales(&self, site: usize) -> Vec<f32>;

    /// DoRA's `[rows]` in the checkpoint's order.
    fn magnitude(&self, site: usize) -> Result<Option<Vec<f32>>, AdapterError>;
}

/// Those of a PEFT directory, every scale times `scale`.
pub(super) struct FromPeft {
    adapter: PeftAdapter,
    scale: f32,
    /// By site, the index of its part, and of the site in the part's target.
    sites: Vec<Option<(usize, usize)>>,
    /// The tensors of experts that were read last: the part's index, A's file order, B's.
    cached: Option<(usize, Vec<f32>, Vec<f32>)>,
}

impl FromPeft {
    pub(super) fn new(adapter: PeftAdapter, scale: f32, sites: usize) -> FromPeft {
        let mut of_site = vec![None; sites];
        for (index, part) in adapter.parts.iter().enumerate() {
            for (n, site) in part.target.parts.iter().enumerate() {
                of_site[site.site] = Some((index, n));
            }
        }
        FromPeft { adapter, scale, sites: of_site, cached: None }
    }

    fn part(&self, site: usize) -> (usize, &PeftPart) {
        let (index, _) = self.sites[site].expect("asked for sites that the adapter has");
        (index, &self.adapter.parts[index])
    }

    /// Both tensors of a part with experts.
    fn experts(&mut self, site: usize) -> Result<(&PeftPart, &[f32], &[f32]), AdapterError> {
        let (index, _) = self.part(site);
        let part = &self.adapter.parts[index];
        if self.cached.as_ref().is_none_or(|(cached, ..)| *cached != index) {
            let all = |tensor: &TensorEntry| {
                self.adapter.file.floats(tensor, 0..tensor.info.shape.iter().product())
            };
            self.cached = Some((index, all(&part.a)?, all(&part.b)?));
        }
        let (_, a, b) = self.cached.as_ref().expect("just filled");
        Ok((part, a, b))
    }

    /// The rows of a target that a site has, in the site's order; `push` appends one.
    fn rows_of(&self, site: usize, width: usize, push: impl Fn(usize, &mut Vec<f32>)) -> Vec<f32> {
        let (index, n) = self.sites[site].expect("asked for sites that the adapter has");
        let target = &self.adapter.parts[index].target;
        let part = target.parts[n];
        let mut rows = Vec::with_capacity(target.rows.div_ceil(part.step) * width);
        (part.first..target.rows).step_by(part.step).for_each(|row| push(row, &mut rows));
        rows
    }
}

impl Factors for FromPeft {
    fn shapes(&self) -> Vec<Option<SiteShape>> {
        let shape = |(index, _): (usize, usize)| {
            let part = &self.adapter.parts[index];
            SiteShape { rank: part.rank, factors: part.magnitude.is_some() }
        };
        self.sites.iter().map(|site| site.map(shape)).collect()
    }

    fn a(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError> {
        let (_, part) = self.part(site);
        let (rank, k, experts) = (part.rank, part.target.k, part.target.experts);
        if experts == 0 {
            return self.adapter.file.floats(&part.a, 0..rank * k);
        }
        let (part, a, b) = self.experts(site)?;
        Ok(match part.swapped {
            // [expert, rank][k]
            false => a[expert * rank * k..][..rank * k].to_vec(),
            // [k][rank, expert]
            true => (0..rank * k).map(|i| b[(i % k) * rank * experts + (i / k) * experts + expert]).collect(),
        })
    }

    fn b(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError> {
        let (_, part) = self.part(site);
        let (rank, rows, experts) = (part.rank, part.target.rows, part.target.experts);
        if experts == 0 {
            let all = self.adapter.file.floats(&part.b, 0..rows * rank)?;
            return Ok(self.rows_of(site, rank, |row, out| out.extend_from_slice(&all[row * rank..][..rank])));
        }
        self.experts(site)?;
        let (index, a, b) = self.cached.as_ref().expect("just filled");
        Ok(match self.adapter.parts[*index].swapped {
            // [row][rank, expert]
            false => self.rows_of(site, rank, |row, out| {
                let row = &b[row * rank * experts..][..rank * experts];
                out.extend(row.chunks_exact(experts).map(|of_rank| of_rank[expert]));
            }),
            // [expert, rank][row]
            true => self.rows_of(site, rank, |row, out| {
                out.extend((0..rank).map(|r| a[(expert * rank + r) * rows + row]));
            }),
        })
    }

    fn scales(&self, site: usize) -> Vec<f32> {
        let (_, part) = self.part(site);
        vec![part.scaling * self.scale; part.rank]
    }

    fn magnitude(&self, site: usize) -> Result<Option<Vec<f32>>, AdapterError> {
        let (_, part) = self.part(site);
        let Some(tensor) = &part.magnitude else { return Ok(None) };
        let all = self.adapter.file.floats(tensor, 0..part.target.rows)?;
        Ok(Some(self.rows_of(site, 1, |row, out| out.push(all[row]))))
    }
}

/// Several packed adapters as one: their ranks one after the other, every scale times its adapter's weight.
pub(super) struct FromPacked {
    adapters: Arc<Adapters>,
    parts: Vec<(Arc<Adapter>, f32)>,
    shapes: Vec<Option<SiteShape>>,
}

impl FromPacked {
    /// Checks that they can be one.
    pub(super) fn new(
        adapters: Arc<Adapters>,
        parts: Vec<(Arc<Adapter>, f32)>,
    ) -> Result<FromPacked, AdapterError> {
        let mut shapes = Vec::new();
        for (index, site) in adapters.sites.iter().enumerate() {
            let layouts = parts.iter().filter_map(|(adapter, _)| adapter.packed.layouts()[index].as_ref());
            let (mut rank, mut count, mut factors) = (0, 0, false);
            for layout in layouts {
                (rank, count, factors) = (rank + layout.rank(), count + 1, factors || layout.has_factors());
            }
            if rank > MAX_RANK {
                return Err(AdapterError::Combination(format!(
                    "the adapters' ranks add up to {rank} at {}, expected at most {MAX_RANK}",
                    site.name
                )));
            }
            if factors && count > 1 {
                return Err(AdapterError::Combination(format!(
                    "one of the adapters is a DoRA at {}, where another one has a part too: a DoRA scales whole rows, and \
                     cannot be added to",
                    site.name
                )));
            }
            shapes.push((rank > 0).then_some(SiteShape { rank, factors }));
        }
        Ok(FromPacked { adapters, parts, shapes })
    }

    /// Those that have something at a site.
    fn at(&self, site: usize) -> impl Iterator<Item = &(Arc<Adapter>, f32)> {
        self.parts.iter().filter(move |(adapter, _)| adapter.packed.layouts()[site].is_some())
    }
}

impl Factors for FromPacked {
    fn shapes(&self) -> Vec<Option<SiteShape>> {
        self.shapes.clone()
    }

    fn a(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError> {
        let at = self.at(site);
        Ok(at.flat_map(|(adapter, _)| unpack_a(&self.adapters, &adapter.packed, site, expert)).collect())
    }

    fn b(&mut self, site: usize, expert: usize) -> Result<Vec<f32>, AdapterError> {
        let rows = self.adapters.sites[site].rows();
        let parts: Vec<(usize, Vec<f32>)> = self
            .at(site)
            .map(|(adapter, _)| {
                let rank = adapter.packed.layouts()[site].as_ref().map_or(0, |layout| layout.rank());
                (rank, unpack_b(&self.adapters, &adapter.packed, site, expert))
            })
            .collect();
        let row =
            |row: usize| parts.iter().flat_map(move |(rank, b)| b[row * rank..][..*rank].iter().copied());
        Ok((0..rows).flat_map(row).collect())
    }

    fn scales(&self, site: usize) -> Vec<f32> {
        let scaled = |(adapter, weight): &(Arc<Adapter>, f32)| -> Vec<f32> {
            adapter.scales[site].iter().map(|scale| scale * weight).collect()
        };
        self.at(site).flat_map(scaled).collect()
    }

    fn magnitude(&self, site: usize) -> Result<Option<Vec<f32>>, AdapterError> {
        Ok(self.at(site).find_map(|(adapter, _)| adapter.magnitudes[site].clone()))
    }
}

/// A of a packed adapter, `[rank][k]`; nothing where it has none.
pub(super) fn unpack_a(adapters: &Adapters, packed: &PackedAdapter, site: usize, expert: usize) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[site] else { return Vec::new() };
    let k = adapters.sites[site].k as usize;
    unpack_tiles(adapters.format, layout.rank(), k, &packed.as_slice()[layout.a(expert)])
}

/// `[rows][k]` of packed tiles.
pub(super) fn unpack_tiles(format: WeightFormat, rows: usize, k: usize, tiles: &[u8]) -> Vec<f32> {
    let mut columns = vec![[0.0; TILE_ROWS]; k];
    let mut out = Vec::with_capacity(rows * k);
    for (first, tile) in (0..rows).step_by(TILE_ROWS).zip(tiles.chunks(format.tile(k).bytes())) {
        unpack_tile(format, tile, &mut columns);
        for row in 0..TILE_ROWS.min(rows - first) {
            out.extend(columns.iter().map(|column| column[row]));
        }
    }
    out
}

/// B of a packed adapter, `[rows][rank]`, rows in the checkpoint's order; nothing where it has none.
pub(super) fn unpack_b(adapters: &Adapters, packed: &PackedAdapter, site: usize, expert: usize) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[site] else { return Vec::new() };
    let (site, rank, padded) = (&adapters.sites[site], layout.rank(), layout.padded_rank());
    let tile = adapters.format.tile(padded).bytes();
    let mut tiles = &packed.as_slice()[layout.b(expert)];
    let mut all = vec![0.0; site.rows() * rank];
    for out in &site.outs {
        let rows = out.rows as usize;
        for (row, values) in
            unpack_tiles(adapters.format, rows, padded, tiles).chunks_exact(padded).enumerate()
        {
            let at = out.first as usize + row * out.step as usize;
            all[at * rank..][..rank].copy_from_slice(&values[..rank]);
        }
        tiles = &tiles[rows.div_ceil(TILE_ROWS) * tile..];
    }
    all
}
