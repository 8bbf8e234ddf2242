//! Where A and B come from: the tensors of a PEFT directory (of packed adapters: `combine.rs`); and back from
//! packed tiles.

use super::error::AdapterError;
use super::packed::PackedAdapter;
use kernmill_checkpoint::peft::{PeftAdapter, PeftPart};
use kernmill_checkpoint::tensor_file::TensorEntry;
use kernmill_plan::adapter::{Adapters, LoraTargetShape};
use kernmill_plan::format::{TILE_ROWS, WeightFormat, unpack_tile};
use std::sync::Arc;

/// The factors of an adapter, by LoRA target of the program.
pub(super) trait Factors: Send {
    /// The adapter's shape at each LoRA target.
    fn shapes(&self) -> Vec<Option<LoraTargetShape>>;

    /// `[experts][rank][k]`.
    fn a(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError>;

    /// `[experts][rows][rank]`, rows in the checkpoint's order.
    fn b(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError>;

    /// `[rank]`.
    fn scales(&self, lora_target: usize) -> Vec<f32>;

    /// DoRA's `[rows]` in the checkpoint's order.
    fn magnitude(&self, lora_target: usize) -> Result<Option<Vec<f32>>, AdapterError>;
}

/// Factors of a PEFT directory, every scale times `scale`.
pub(super) struct FromPeft {
    adapters: Arc<Adapters>,
    adapter: PeftAdapter,
    scale: f32,
    /// By LoRA target, the index of its part, and of the LoRA target in the part's target.
    lora_targets: Vec<Option<(usize, usize)>>,
}

impl FromPeft {
    pub(super) fn new(adapters: Arc<Adapters>, adapter: PeftAdapter, scale: f32) -> FromPeft {
        let mut of_lora_target = vec![None; adapters.lora_targets.len()];
        for (index, part) in adapter.parts.iter().enumerate() {
            for (n, lora_target) in part.target.parts.iter().enumerate() {
                of_lora_target[lora_target.lora_target] = Some((index, n));
            }
        }
        FromPeft { adapters, adapter, scale, lora_targets: of_lora_target }
    }

    /// The directory's part for a LoRA target, and which of the target's rows are the LoRA target's: the
    /// first, and the step between them.
    fn part(&self, lora_target: usize) -> (&PeftPart, usize, usize) {
        let (index, n) = self.lora_targets[lora_target].expect("asked for LoRA targets that the adapter has");
        let part = &self.adapter.parts[index];
        let rows = part.target.parts[n];
        (part, rows.first, rows.step)
    }

    fn floats(&self, tensor: &TensorEntry) -> Result<Vec<f32>, AdapterError> {
        Ok(self.adapter.file.floats(tensor)?)
    }
}

impl Factors for FromPeft {
    fn shapes(&self) -> Vec<Option<LoraTargetShape>> {
        let shape = |(index, _): (usize, usize)| {
            let part = &self.adapter.parts[index];
            LoraTargetShape { rank: part.rank, factors: part.magnitude.is_some() }
        };
        self.lora_targets.iter().map(|lora_target| lora_target.map(shape)).collect()
    }

    fn a(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError> {
        let (part, ..) = self.part(lora_target);
        let (k, rows) = (part.target.k, part.rank * part.target.experts.max(1));
        if !part.swapped {
            // [expert, rank][k]
            return self.floats(&part.a);
        }
        // [k][rank, expert]
        let all = self.floats(&part.b)?;
        let mut a = vec![0.0; all.len()];
        for (column, values) in all.chunks_exact(rows).enumerate() {
            for (r, of_rank) in values.chunks_exact(part.target.experts).enumerate() {
                for (expert, value) in of_rank.iter().enumerate() {
                    a[(expert * part.rank + r) * k + column] = *value;
                }
            }
        }
        Ok(a)
    }

    fn b(&self, lora_target: usize) -> Result<Vec<f32>, AdapterError> {
        let (part, first, step) = self.part(lora_target);
        let (rank, rows, experts) = (part.rank, part.target.rows, part.target.experts.max(1));
        let count = self.adapters.lora_targets[lora_target].rows();
        let chosen = (0..count).map(|row| first + row * step);
        let mut b = vec![0.0; experts * count * rank];
        if part.swapped {
            // [expert, rank][row]
            let all = self.floats(&part.a)?;
            for (b, of_expert) in b.chunks_exact_mut(count * rank).zip(all.chunks_exact(rank * rows)) {
                for (b, row) in b.chunks_exact_mut(rank).zip(chosen.clone()) {
                    b.iter_mut().enumerate().for_each(|(r, b)| *b = of_expert[r * rows + row]);
                }
            }
            return Ok(b);
        }
        // [row][rank, expert]
        let all = self.floats(&part.b)?;
        for (to, row) in chosen.enumerate() {
            for (r, of_rank) in
                all[row * rank * experts..][..rank * experts].chunks_exact(experts).enumerate()
            {
                for (expert, value) in of_rank.iter().enumerate() {
                    b[(expert * count + to) * rank + r] = *value;
                }
            }
        }
        Ok(b)
    }

    fn scales(&self, lora_target: usize) -> Vec<f32> {
        let (part, ..) = self.part(lora_target);
        vec![part.scaling * self.scale; part.rank]
    }

    fn magnitude(&self, lora_target: usize) -> Result<Option<Vec<f32>>, AdapterError> {
        let (part, first, step) = self.part(lora_target);
        let Some(tensor) = &part.magnitude else { return Ok(None) };
        let all = self.floats(tensor)?;
        Ok(Some(all[first..].iter().step_by(step).copied().collect()))
    }
}

/// A of a packed adapter, `[rank][k]`; nothing where it has none.
pub(super) fn unpack_a(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[lora_target] else { return Vec::new() };
    let k = adapters.lora_targets[lora_target].k as usize;
    unpack_tiles(adapters.format, layout.rank(), k, &packed.as_slice()[layout.a(expert)])
}

/// B of a packed adapter, `[rows][rank]`, rows in the checkpoint's order; nothing where it has none.
pub(super) fn unpack_b(
    adapters: &Adapters,
    packed: &PackedAdapter,
    lora_target: usize,
    expert: usize,
) -> Vec<f32> {
    let Some(layout) = &packed.layouts()[lora_target] else { return Vec::new() };
    let (rank, padded) = (layout.rank(), layout.padded_rank());
    let mut all = vec![0.0; adapters.lora_targets[lora_target].rows() * rank];
    let mut tiles = &packed.as_slice()[layout.b(expert)];
    for out in &adapters.lora_targets[lora_target].outs {
        let rows = out.rows as usize;
        let values = unpack_tiles(adapters.format, rows, padded, tiles);
        for (row, values) in values.chunks_exact(padded).enumerate() {
            let at = out.first as usize + row * out.step as usize;
            all[at * rank..][..rank].copy_from_slice(&values[..rank]);
        }
        tiles = &tiles[rows.div_ceil(TILE_ROWS) * adapters.format.tile(padded).bytes()..];
    }
    all
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
