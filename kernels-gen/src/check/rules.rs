//! Rules that operations and bodies share: matrices, adapters, heads, the KV cache.

use super::checker::{Checked, CountedRows, KernelChecker};
use crate::values::{Mat, OperandId, RowType, ValId};
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::contract::Need;
use kernmill_plan::format::{LINE, TILE_ROWS, WeightFormat, f32_row_stride};
use kernmill_plan::kv::{KvFormat, KvGeometry, LayerKind};
use kernmill_plan::limit;

/// Floats that the loops over a row take at a time.
pub(crate) const VECTOR: usize = 4;

impl KernelChecker<'_> {
    pub(crate) fn rows_are(&self, found: CountedRows, expected: CountedRows) -> Checked {
        self.ensure(found == expected, || format!("its rows are {found:?}, expected {expected:?}"))
    }

    pub(crate) fn multiple(&self, n: usize, of: usize) -> Checked {
        self.ensure(of > 0 && n > 0 && n.is_multiple_of(of), || {
            format!("{n} columns, expected a multiple of {of}")
        })
    }

    /// Whole heads, which are whole blocks of a transform.
    pub(crate) fn hadamard(&self, n: usize, head_dim: usize) -> Checked {
        let whole = (1..=limit::HEAD_DIM).contains(&head_dim) && head_dim.is_multiple_of(32);
        self.ensure(whole, || format!("heads of {head_dim}, expected a multiple of 32"))?;
        self.multiple(n, head_dim)
    }

    /// A layer's pool, of whose cache a token reads `view` positions.
    pub(crate) fn kv(&mut self, pool: usize, kind: LayerKind, geometry: KvGeometry, view: u32) -> Checked {
        let new = match self.known(pool)? {
            None => Need::Kv { geometry, kind: Some(kind), view },
            Some(Need::Kv { geometry: g, kind: k, view: seen }) if g == geometry && k == Some(kind) => {
                Need::Kv { geometry, kind: Some(kind), view: seen.max(view) }
            }
            Some(other) => return self.conflict(pool, other, "another KV pool"),
        };
        self.set(pool, new)
    }

    pub(crate) fn geometry(&self, geometry: KvGeometry) -> Checked {
        let KvGeometry { kv_heads, head_dim, v_head_dim, formats } = geometry;
        let whole = |head_dim: usize, format: KvFormat| {
            (1..=limit::HEAD_DIM).contains(&head_dim)
                && head_dim.is_multiple_of(VECTOR)
                && head_dim.is_multiple_of(format.descriptor().head_multiple)
        };
        let legal = (1..=limit::KV_HEADS).contains(&kv_heads)
            && whole(head_dim, formats.k)
            && whole(v_head_dim, formats.v);
        self.ensure(legal, || {
            format!("{kv_heads} KV heads of {head_dim} and {v_head_dim} elements in {formats}")
        })
    }

    /// A matrix and its bias. All tiles of all `experts` are read.
    pub(crate) fn matrix(&mut self, mat: &Mat, input: RowType, experts: usize) -> Checked {
        let (n, k) = (mat.n, mat.k);
        self.ensure((1..=limit::VOCAB).contains(&n) && k == input.len(), || {
            format!("a matrix of {n} rows and {k} columns, its input has {}", input.len())
        })?;
        let served = match input {
            RowType::F32(_) => true,
            RowType::Q8(_) | RowType::Q8x2(_) => mat.format.is_blocked(),
            RowType::Bf16(_) => mat.format == WeightFormat::Mxfp4,
            RowType::F16(_) | RowType::Kv(..) | RowType::Routing(_) => false,
        };
        self.ensure(served && k.is_multiple_of(mat.format.descriptor().columns()), || {
            format!("{} times {input:?}", mat.format.name())
        })?;
        self.ensure(mat.term < input.q8_terms().max(1), || {
            format!("row number {} of q8 of {input:?}", mat.term)
        })?;
        let tile = mat.format.tile(k).bytes();
        let tiles = n.div_ceil(TILE_ROWS);
        self.ensure(mat.tile_stride >= tile && is_lines(mat.tile_stride), || {
            format!("tiles of {tile} bytes are {} apart", mat.tile_stride)
        })?;
        self.ensure(is_lines(mat.expert_stride) && (experts == 1 || mat.expert_stride >= tile), || {
            format!("experts are {} bytes apart", mat.expert_stride)
        })?;
        let strides = [(tiles - 1, mat.tile_stride), (experts - 1, mat.expert_stride)];
        let bytes = strides
            .iter()
            .try_fold(tile, |sum, (count, stride)| sum.checked_add(count.checked_mul(*stride)?));
        match bytes {
            Some(bytes) => self.weights(mat.operand, bytes)?,
            None => return self.wrong("the matrix has more bytes than memory can have"),
        }
        match mat.bias {
            Some(bias) => self.bias(bias, n, experts),
            None => Ok(()),
        }
    }

    /// The adapter branch of a matrix whose shrunk rows are `rows`; `experts` is 0 for a dense one.
    pub(crate) fn adapter(&mut self, mat: &Mat, rows: CountedRows, experts: usize) -> Checked {
        let Some(branch) = &mat.adapter else { return Ok(()) };
        self.reads(branch.shrunk, RowType::F32(MAX_RANK), rows)?;
        let tiles = branch.first_tile.saturating_add(mat.n.div_ceil(TILE_ROWS));
        self.lora_target(branch.lora_target, None, tiles, experts, Some(branch.format))
    }

    /// A LoRA target.
    pub(crate) fn lora_target(
        &mut self,
        operand: usize,
        columns: Option<usize>,
        tiles: usize,
        experts: usize,
        format: Option<WeightFormat>,
    ) -> Checked {
        self.ensure(tiles <= limit::VOCAB && experts <= limit::EXPERTS, || {
            format!("a LoRA target of {tiles} tiles and {experts} experts")
        })?;
        let plain = |format: WeightFormat| !format.is_blocked();
        self.ensure(format.is_none_or(plain), || format!("adapters of {format:?}"))?;
        let columns = columns.map(|columns| columns as u32);
        let (tiles, experts) = (tiles as u32, experts as u32);
        let new = match self.known(operand)? {
            None => Need::LoraTarget { columns, tiles, experts, format },
            Some(Need::LoraTarget { columns: c, tiles: t, experts: e, format: f })
                if agree(c, columns) && agree(f, format) =>
            {
                Need::LoraTarget {
                    columns: c.or(columns),
                    tiles: t.max(tiles),
                    experts: e.max(experts),
                    format: f.or(format),
                }
            }
            Some(other) => return self.conflict(operand, other, "another LoRA target"),
        };
        self.set(operand, new)
    }

    /// Rows that are written where a token has an adapter at one of the LoRA targets, or all of them.
    pub(crate) fn kept_rows(
        &mut self,
        out: ValId,
        targets: &[OperandId],
        n: usize,
        rows: CountedRows,
    ) -> Checked {
        self.writes(out, RowType::F32(n), rows)?;
        self.ensure(rows != CountedRows::Logits || targets.is_empty(), || {
            "wanted rows have no adapters".to_owned()
        })?;
        targets.iter().try_for_each(|target| self.lora_target(*target, None, 0, 0, None))
    }

    /// A bias is read in whole tiles, those of experts one behind the other.
    pub(crate) fn bias(&mut self, operand: usize, n: usize, experts: usize) -> Checked {
        self.weights(operand, experts.max(1) * f32_row_stride(n))
    }
}

fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

/// Whether bytes from one line to another are whole lines.
fn is_lines(bytes: usize) -> bool {
    bytes.is_multiple_of(LINE)
}
