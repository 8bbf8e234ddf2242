//! Bodies: matrices by work items, experts, shrinks.

use super::scratch::panel_bytes;
use super::{Checked, CountedRows, KernelChecker, RowAccess, is_lines};
use crate::kernel::{Body, LoraInput, Mat, MatrixPart, OperandId, RowType, ShrinkLoraTarget, Tiling, ValId};
use crate::panel_kind::PanelKind;
use crate::ukernel::gemm_tiles::TileElement;
use kernmill_plan::adapter::RANK_STEP;
use kernmill_plan::contract::Need;
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use kernmill_plan::limit;

/// Experts that a body chooses from, and the routing by which it does.
#[derive(Clone, Copy)]
pub(super) struct RoutedExperts {
    pub routing: ValId,
    pub experts: usize,
    pub top_k: usize,
}

impl KernelChecker<'_> {
    pub(super) fn body(&mut self) -> Checked {
        let kernel = self.kernel;
        match &kernel.body {
            Body::Rows { domain, row_ops } => {
                "rows".clone_into(&mut self.place);
                row_ops.iter().try_for_each(|row_op| self.row_op(row_op, CountedRows::from(*domain)))
            }
            Body::Matmul { domain, input, parts } => {
                let rows = CountedRows::from(*domain);
                "matmul".clone_into(&mut self.place);
                self.access(*input, rows, RowAccess::Read)?;
                self.lists(rows)?;
                let input = self.row(*input)?;
                self.ensure(!parts.is_empty(), || "no matrices".to_owned())?;
                self.ensure(matches!(input, RowType::F32(_) | RowType::Q8(_)), || {
                    format!("its input is {input:?}, expected f32 or q8")
                })?;
                for (index, part) in parts.iter().enumerate() {
                    self.place = format!("matmul, part {index}");
                    self.part(part, input, None)?;
                    self.epilogue(part, rows, None)?;
                }
                self.filled_panels(input, parts.iter().map(|part| part.mats[0].format), 1)
            }
            Body::Panels { domain, input, routed, panels } => {
                "panels".clone_into(&mut self.place);
                let rows = CountedRows::from(*domain);
                let experts = match *routed {
                    Some((routing, experts, top_k)) => {
                        let slots = CountedRows::Slots(top_k);
                        self.ensure(matches!(rows, CountedRows::Tokens) || rows == slots, || {
                            format!(
                                "its rows are {rows:?}, expected those of tokens or of {top_k} slots each"
                            )
                        })?;
                        self.routed_input(*input, rows == slots, RoutedExperts { routing, experts, top_k })?;
                        experts
                    }
                    None => {
                        self.access(*input, rows, RowAccess::Read)?;
                        self.lists(rows)?;
                        1
                    }
                };
                panels.iter().try_for_each(|(operand, kind)| self.panels(*operand, *kind, *input, experts))
            }
            Body::Experts { input, input_slots, routing, experts, top_k, part, even_rows } => {
                "experts".clone_into(&mut self.place);
                let routed = RoutedExperts { routing: *routing, experts: *experts, top_k: *top_k };
                let rows = self.routed_input(*input, *input_slots, routed)?;
                self.ensure((1..=limit::BATCH).contains(even_rows), || {
                    format!("items as long as with one row up to {even_rows} rows")
                })?;
                self.part(part, rows, Some(routed))?;
                self.filled_panels(rows, [part.mats[0].format], *experts)?;
                self.epilogue(part, CountedRows::Slots(*top_k), Some(routed))
            }
            Body::ExpertDown { input, routing, experts, top_k, mat, rows_per_item, residual, out } => {
                "expert_down".clone_into(&mut self.place);
                let routed = RoutedExperts { routing: *routing, experts: *experts, top_k: *top_k };
                let input = self.routed_input(*input, true, routed)?;
                let part = MatrixPart::down(mat, *rows_per_item);
                self.part(&part, input, Some(routed))?;
                self.filled_panels(input, [mat.format], *experts)?;
                self.adapter(mat, CountedRows::Slots(*top_k), *experts)?;
                if let Some(residual) = residual {
                    self.is(*residual, RowType::F32(mat.n))?;
                    self.access(*residual, CountedRows::Tokens, RowAccess::Read)?;
                }
                self.is(*out, RowType::F32(mat.n))?;
                self.access(*out, CountedRows::Tokens, RowAccess::Write)
            }
            Body::Shrink { input, routed, input_slots, lora_targets, row_ops, by_rows } => {
                "shrink".clone_into(&mut self.place);
                self.ensure(*by_rows || row_ops.is_empty(), || {
                    "stages of its own, although its items are tiles".to_owned()
                })?;
                row_ops.iter().try_for_each(|row_op| self.row_op(row_op, CountedRows::Tokens))?;
                let routed =
                    routed.map(|(routing, experts, top_k)| RoutedExperts { routing, experts, top_k });
                self.shrink(*input, routed, *input_slots, lora_targets)
            }
            Body::Attention(body) => {
                "attention".clone_into(&mut self.place);
                self.attention(body)
            }
        }
    }

    /// The panels that a step before has filled, if there are any: one for each kind in turn.
    fn filled_panels(
        &mut self,
        input: RowType,
        formats: impl IntoIterator<Item = WeightFormat>,
        experts: usize,
    ) -> Checked {
        let kernel = self.kernel;
        if kernel.panels.is_empty() {
            return Ok(());
        }
        let mut kinds: Vec<_> =
            formats.into_iter().filter_map(|format| kernel.tiling.panels(input, format)).collect();
        kinds.dedup();
        self.ensure(kinds.len() == kernel.panels.len(), || {
            format!("{} buffers of panels, expected {}", kernel.panels.len(), kinds.len())
        })?;
        kernel.panels.iter().zip(kinds).try_for_each(|(operand, kind)| {
            self.panel_buffer(
                *operand,
                panel_bytes(kind, input.len(), kernel.max_rows, experts),
                RowAccess::Read,
            )
        })
    }

    /// A buffer of panels that the kernel fills.
    fn panels(&mut self, operand: OperandId, kind: PanelKind, input: ValId, experts: usize) -> Checked {
        let row = self.row(input)?;
        let fits = match kind {
            PanelKind::Bf16 => matches!(row, RowType::Bf16(_)),
            PanelKind::Q8 { .. } | PanelKind::Tiles(_) => matches!(row, RowType::Q8(_)),
        };
        self.ensure(fits, || format!("panels of {} made of {row:?}", kind.name()))?;
        let bytes = panel_bytes(kind, row.len(), self.kernel.max_rows, experts);
        self.panel_buffer(operand, bytes, RowAccess::Write)
    }

    /// The rows that experts read, and the routing. The lists have room for a row of each slot.
    fn routed_input(&mut self, input: ValId, slots: bool, routed: RoutedExperts) -> Checked<RowType> {
        self.routing(routed)?;
        let rows = if slots { CountedRows::Slots(routed.top_k) } else { CountedRows::Tokens };
        self.access(input, rows, RowAccess::Read)?;
        self.lists(CountedRows::Slots(routed.top_k))?;
        self.row(input)
    }

    fn routing(&mut self, RoutedExperts { routing, experts, top_k }: RoutedExperts) -> Checked {
        let legal = (1..=limit::TOP_K).contains(&top_k) && (1..=limit::EXPERTS).contains(&experts);
        self.ensure(legal, || format!("the best {top_k} of {experts} experts"))?;
        self.is(routing, RowType::Routing(top_k))?;
        self.access(routing, CountedRows::Tokens, RowAccess::Read)
    }

    /// Matrices whose rows are computed together: every item's rows lie inside each of them.
    fn part(&mut self, part: &MatrixPart, input: RowType, routed: Option<RoutedExperts>) -> Checked {
        let Some(first) = part.mats.first() else { return self.wrong("no matrix") };
        for mat in &part.mats {
            self.matrix(mat, input, routed)?;
            self.ensure(mat.n == first.n, || format!("matrices of {} and of {} rows meet", first.n, mat.n))?;
        }
        let rows = first.n.next_multiple_of(TILE_ROWS);
        let rows_per_item = part.rows_per_item;
        self.ensure(
            rows_per_item > 0
                && rows_per_item.is_multiple_of(TILE_ROWS)
                && rows.is_multiple_of(rows_per_item),
            || {
                format!(
                    "items of {rows_per_item} rows, expected a multiple of {TILE_ROWS} that divides {rows}"
                )
            },
        )?;
        self.tiling(part, input)?;
        if part.interleaved {
            self.interleaved(part)?;
        }
        Ok(())
    }

    /// Panels hold q8 rows and one format at a time, or bf16 rows. Those for tiles hold q8 rows.
    fn tiling(&self, part: &MatrixPart, input: RowType) -> Checked {
        let alike = part.mats.iter().all(|mat| mat.format == part.mats[0].format);
        let bf16 = matches!(input, RowType::Bf16(_));
        match self.kernel.tiling {
            Tiling::Dot => self.ensure(!bf16, || "bf16 rows by dots".to_owned()),
            Tiling::Gemm { least_rows, .. } => {
                let legal = least_rows > 0 && alike && matches!(input, RowType::Q8(_) | RowType::Bf16(_));
                self.ensure(legal, || format!("panels of {input:?}, or of several formats at once"))
            }
            Tiling::Tiles { least_rows } => {
                let served = part.mats.iter().all(|mat| TileElement::serves(mat.format));
                let legal = least_rows > 0 && alike && served && matches!(input, RowType::Q8(_));
                self.ensure(legal, || format!("tiles of {input:?}, or of several formats at once"))
            }
        }
    }

    /// Two matrices that are read tile by tile in turn, from the first one's start.
    fn interleaved(&mut self, part: &MatrixPart) -> Checked {
        let [first, second] = part.mats.as_slice() else {
            return self.wrong(format!("{} matrices alternate, expected two", part.mats.len()));
        };
        let tile = first.format.tile(first.k).bytes();
        let alike = (first.format, first.k) == (second.format, second.k)
            && (first.tile_stride, first.expert_stride) == (second.tile_stride, second.expert_stride);
        self.ensure(alike && first.tile_stride == 2 * tile, || {
            format!("two matrices alternate whose tiles are {} bytes apart", first.tile_stride)
        })?;
        self.behind(second.operand, first.operand, tile)
    }

    /// A matrix, all tiles of all experts of which are read, and its bias.
    pub(super) fn matrix(&mut self, mat: &Mat, input: RowType, routed: Option<RoutedExperts>) -> Checked {
        let (n, k) = (mat.n, mat.k);
        self.ensure((1..=limit::VOCAB).contains(&n) && k == input.len(), || {
            format!("a matrix of {n} rows and {k} columns, its input has {}", input.len())
        })?;
        let served = match input {
            RowType::F32(_) => true,
            RowType::Q8(_) => mat.format.is_blocked(),
            RowType::Bf16(_) => mat.format == WeightFormat::Mxfp4,
            RowType::F16(_) | RowType::Kv(..) | RowType::Routing(_) => false,
        };
        self.ensure(served && k.is_multiple_of(mat.format.descriptor().columns()), || {
            format!("{} times {input:?}", mat.format.name())
        })?;
        let tile = mat.format.tile(k).bytes();
        let tiles = n.div_ceil(TILE_ROWS);
        self.ensure(mat.tile_stride >= tile && is_lines(mat.tile_stride), || {
            format!("tiles of {tile} bytes are {} apart", mat.tile_stride)
        })?;
        let experts = routed.map_or(1, |routed| routed.experts);
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
    pub(super) fn adapter(&mut self, mat: &Mat, rows: CountedRows, experts: usize) -> Checked {
        let Some(branch) = &mat.adapter else { return Ok(()) };
        self.is_shrunk(branch.shrunk)?;
        self.access(branch.shrunk, rows, RowAccess::Read)?;
        let tiles = branch.first_tile.saturating_add(mat.n.div_ceil(TILE_ROWS));
        self.lora_target(branch.lora_target, None, tiles, experts, Some(branch.format))
    }

    /// A LoRA target.
    pub(super) fn lora_target(
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

    /// Rows that are kept for adapters.
    pub(super) fn lora_input(&mut self, lora_input: &LoraInput, n: usize, rows: CountedRows) -> Checked {
        self.is(lora_input.out, RowType::F32(n))?;
        self.access(lora_input.out, rows, RowAccess::Write)?;
        self.ensure(rows != CountedRows::Logits || lora_input.lora_targets.is_empty(), || {
            "wanted rows have no adapters".to_owned()
        })?;
        lora_input
            .lora_targets
            .iter()
            .try_for_each(|lora_target| self.lora_target(*lora_target, None, 0, 0, None))
    }

    fn shrink(
        &mut self,
        input: ValId,
        routed: Option<RoutedExperts>,
        input_slots: bool,
        lora_targets: &[ShrinkLoraTarget],
    ) -> Checked {
        let k = self.f32(input)?;
        self.multiple(k, RANK_STEP)?;
        let top_k = match routed {
            Some(routed) => {
                self.routing(routed)?;
                Some(routed.top_k)
            }
            None => None,
        };
        let input_rows = match (input_slots, top_k) {
            (true, Some(top_k)) => CountedRows::Slots(top_k),
            (true, None) => return self.wrong("slots without a routing"),
            (false, _) => CountedRows::Tokens,
        };
        self.access(input, input_rows, RowAccess::Read)?;
        for lora_target in lora_targets {
            self.is_shrunk(lora_target.out)?;
            self.access(
                lora_target.out,
                top_k.map_or(CountedRows::Tokens, CountedRows::Slots),
                RowAccess::Write,
            )?;
            let experts = routed.map_or(0, |routed| routed.experts);
            self.lora_target(lora_target.lora_target, Some(k), 0, experts, Some(lora_target.format))?;
        }
        Ok(())
    }
}

fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}
