//! Bodies: matrices by work items, experts, shrinks.

use super::checker::{Checked, CountedRows, KernelChecker, RowAccess};
use super::scratch::{one_after_the_other, panel_bytes};
use crate::kernel::{
    Body, Home, Kernel, MatrixPart, OperandId, RowOp, RowType, ShrinkLoraTarget, Tiling, ValId,
};
use crate::panel_kind::PanelKind;
use crate::row_op::site::{CheckedItem, CheckedSite};
use crate::ukernel::gemm_tiles::TileElement;
use kernmill_plan::adapter::{MAX_RANK, RANK_STEP};
use kernmill_plan::format::{TILE_ROWS, WeightFormat};
use kernmill_plan::limit;

/// Experts that a body chooses from, and the routing by which it does.
#[derive(Clone, Copy)]
struct RoutedExperts {
    routing: ValId,
    experts: usize,
    top_k: usize,
}

impl KernelChecker<'_> {
    /// The stages that every worker runs before the body.
    pub(super) fn prologue(&mut self, kernel: &Kernel) -> Checked {
        "prologue".clone_into(&mut self.place);
        if kernel.prologue.is_empty() {
            return Ok(());
        }
        let rows = match &kernel.body {
            Body::Matmul { domain, .. } => CountedRows::from(*domain),
            Body::Experts { .. } | Body::ExpertDown { .. } | Body::Shrink { .. } => CountedRows::Tokens,
            Body::Rows { .. } | Body::Panels { .. } | Body::Attention(_) => {
                return self.wrong("such a body has none");
            }
        };
        for row_op in &kernel.prologue {
            // All workers run it, each for itself.
            let own = row_op.facts().out.is_some_and(|out| {
                kernel.vals.get(*out).is_some_and(|val| !matches!(val.home, Home::Operand(_)))
            });
            self.ensure(own, || format!("{} writes no value of the worker's own", row_op.facts().name))?;
            self.row_op(row_op, CheckedSite { rows, item: None })?;
        }
        Ok(())
    }

    /// Operations on such rows.
    fn row_ops(&mut self, row_ops: &[RowOp], rows: CountedRows) -> Checked {
        row_ops.iter().try_for_each(|row_op| self.row_op(row_op, CheckedSite { rows, item: None }))
    }

    /// An operation, which must work on what is there: rows of values, or results at hand.
    fn row_op(&mut self, row_op: &RowOp, site: CheckedSite) -> Checked {
        let (place, facts) = (self.place.clone(), row_op.facts());
        self.place = format!("{place}, {}", facts.name);
        self.ensure(facts.is_on_results == site.item.is_some(), || {
            let expected = if site.item.is_some() { "the results at hand" } else { "rows of values" };
            format!("works on something else than {expected}")
        })?;
        row_op.code().check(self, site)?;
        self.place = place;
        Ok(())
    }

    /// The steps of a part, whose results are such rows: those of slots where experts are `routed`.
    fn epilogue(&mut self, part: &MatrixPart, rows: CountedRows, routed: Option<RoutedExperts>) -> Checked {
        let place = self.place.clone();
        let (n, rows_per_item) = (part.mats[0].n, part.rows_per_item);
        let mut item = CheckedItem { n, rows_per_item, units: part.mats.len(), is_routed: routed.is_some() };
        for mat in &part.mats {
            if mat.adapter.is_some() {
                CheckedSite { rows, item: Some(item) }.has_tokens(self)?;
            }
            self.adapter(mat, rows, routed.map_or(0, |routed| routed.experts))?;
        }
        for (index, step) in part.epilogue.iter().enumerate() {
            self.place = format!("{place}, step {index} of its epilogue");
            self.row_op(step, CheckedSite { rows, item: Some(item) })?;
            item.units = 1;
        }
        self.place = place;
        self.ensure(item.units == 1 && !part.epilogue.is_empty(), || "its results go nowhere".to_owned())
    }

    pub(super) fn body(&mut self, kernel: &Kernel) -> Checked {
        match &kernel.body {
            Body::Rows { domain, row_ops } => {
                "rows".clone_into(&mut self.place);
                self.row_ops(row_ops, CountedRows::from(*domain))
            }
            Body::Matmul { domain, input, parts } => {
                let rows = CountedRows::from(*domain);
                "matmul".clone_into(&mut self.place);
                self.access(*input, rows, RowAccess::Read)?;
                self.lists(kernel.max_rows, rows)?;
                let input = self.row(*input)?;
                self.ensure(!parts.is_empty(), || "no matrices".to_owned())?;
                self.ensure(matches!(input, RowType::F32(_)) || input.is_q8(), || {
                    format!("its input is {input:?}, expected f32 or q8")
                })?;
                for (index, part) in parts.iter().enumerate() {
                    self.place = format!("matmul, part {index}");
                    self.part(kernel, part, input, None)?;
                    self.epilogue(part, rows, None)?;
                }
                let matrices = parts.iter().map(|part| (part.mats[0].format, part.terms()));
                self.filled_panels(kernel, input, matrices, 1)
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
                        self.routed_input(
                            kernel,
                            *input,
                            rows == slots,
                            RoutedExperts { routing, experts, top_k },
                        )?;
                        experts
                    }
                    None => {
                        self.access(*input, rows, RowAccess::Read)?;
                        self.lists(kernel.max_rows, rows)?;
                        1
                    }
                };
                for (operand, kind, terms) in panels {
                    self.ensure((1..=2).contains(terms) && (*terms == 1 || routed.is_none()), || {
                        format!("panels of {terms} rows of q8 for each row")
                    })?;
                    self.panels(kernel, *operand, (*kind, *terms), *input, experts)?;
                }
                Ok(())
            }
            Body::Experts { input, input_slots, routing, experts, top_k, part, even_rows } => {
                "experts".clone_into(&mut self.place);
                let routed = RoutedExperts { routing: *routing, experts: *experts, top_k: *top_k };
                let rows = self.routed_input(kernel, *input, *input_slots, routed)?;
                self.ensure((1..=limit::BATCH).contains(even_rows), || {
                    format!("items as long as with one row up to {even_rows} rows")
                })?;
                self.part(kernel, part, rows, Some(routed))?;
                self.filled_panels(kernel, rows, [(part.mats[0].format, 1)], *experts)?;
                self.epilogue(part, CountedRows::Slots(*top_k), Some(routed))
            }
            Body::ExpertDown { input, routing, experts, top_k, mat, rows_per_item, residual, out } => {
                "expert_down".clone_into(&mut self.place);
                let routed = RoutedExperts { routing: *routing, experts: *experts, top_k: *top_k };
                let input = self.routed_input(kernel, *input, true, routed)?;
                let part = MatrixPart::down(mat, *rows_per_item);
                self.part(kernel, &part, input, Some(routed))?;
                self.filled_panels(kernel, input, [(mat.format, 1)], *experts)?;
                self.adapter(mat, CountedRows::Slots(*top_k), *experts)?;
                if let Some(residual) = residual {
                    self.reads(*residual, RowType::F32(mat.n), CountedRows::Tokens)?;
                }
                self.writes(*out, RowType::F32(mat.n), CountedRows::Tokens)
            }
            Body::Shrink { input, routed, input_slots, lora_targets, row_ops, by_rows } => {
                "shrink".clone_into(&mut self.place);
                self.ensure(*by_rows || row_ops.is_empty(), || {
                    "stages of its own, although its items are tiles".to_owned()
                })?;
                self.row_ops(row_ops, CountedRows::Tokens)?;
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
        kernel: &Kernel,
        input: RowType,
        matrices: impl IntoIterator<Item = (WeightFormat, usize)>,
        experts: usize,
    ) -> Checked {
        if kernel.panels.is_empty() {
            return Ok(());
        }
        let kind = |(format, terms)| Some((kernel.tiling.panels(input, format)?, terms));
        let kinds = one_after_the_other(matrices.into_iter().filter_map(kind));
        self.ensure(kinds.len() == kernel.panels.len(), || {
            format!("{} buffers of panels, expected {}", kernel.panels.len(), kinds.len())
        })?;
        kernel.panels.iter().zip(kinds).try_for_each(|(operand, (kind, terms))| {
            let bytes = terms * panel_bytes(kind, input.len(), kernel.max_rows, experts);
            self.panel_buffer(*operand, bytes, RowAccess::Read)
        })
    }

    /// A buffer of panels that the kernel fills.
    fn panels(
        &mut self,
        kernel: &Kernel,
        operand: OperandId,
        (kind, terms): (PanelKind, usize),
        input: ValId,
        experts: usize,
    ) -> Checked {
        let row = self.row(input)?;
        let fits = match kind {
            PanelKind::Bf16 => matches!(row, RowType::Bf16(_)),
            PanelKind::Q8 { .. } | PanelKind::Tiles(_) => (terms..=2).contains(&row.q8_terms()),
        };
        self.ensure(fits, || format!("panels of {} made of {row:?}", kind.name()))?;
        let bytes = terms * panel_bytes(kind, row.len(), kernel.max_rows, experts);
        self.panel_buffer(operand, bytes, RowAccess::Write)
    }

    /// The rows that experts read, and the routing. The lists have room for a row of each slot.
    fn routed_input(
        &mut self,
        kernel: &Kernel,
        input: ValId,
        slots: bool,
        routed: RoutedExperts,
    ) -> Checked<RowType> {
        self.routing(routed)?;
        let rows = if slots { CountedRows::Slots(routed.top_k) } else { CountedRows::Tokens };
        self.access(input, rows, RowAccess::Read)?;
        self.lists(kernel.max_rows, CountedRows::Slots(routed.top_k))?;
        self.row(input)
    }

    fn routing(&mut self, RoutedExperts { routing, experts, top_k }: RoutedExperts) -> Checked {
        let legal = (1..=limit::TOP_K).contains(&top_k) && (1..=limit::EXPERTS).contains(&experts);
        self.ensure(legal, || format!("the best {top_k} of {experts} experts"))?;
        self.reads(routing, RowType::Routing(top_k), CountedRows::Tokens)
    }

    /// Matrices whose rows are computed together: every item's rows lie inside each of them.
    fn part(
        &mut self,
        kernel: &Kernel,
        part: &MatrixPart,
        input: RowType,
        routed: Option<RoutedExperts>,
    ) -> Checked {
        let Some(first) = part.mats.first() else { return self.wrong("no matrix") };
        for mat in &part.mats {
            self.matrix(mat, input, routed.map_or(1, |routed| routed.experts))?;
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
        self.tiling(kernel.tiling, part, input)?;
        if part.interleaved {
            self.interleaved(part)?;
        }
        Ok(())
    }

    /// Panels hold q8 rows and one format at a time, or bf16 rows. Those for tiles hold q8 rows.
    fn tiling(&self, tiling: Tiling, part: &MatrixPart, input: RowType) -> Checked {
        let alike = part.mats.iter().all(|mat| mat.format == part.mats[0].format);
        let bf16 = matches!(input, RowType::Bf16(_));
        match tiling {
            Tiling::Dot => self.ensure(!bf16, || "bf16 rows by dots".to_owned()),
            Tiling::Gemm { least_rows, .. } => {
                let legal = least_rows > 0 && alike && (bf16 || input.is_q8());
                self.ensure(legal, || format!("panels of {input:?}, or of several formats at once"))
            }
            Tiling::Tiles { least_rows } => {
                let served = part.mats.iter().all(|mat| TileElement::serves(mat.format));
                let legal = least_rows > 0 && alike && served && input.is_q8();
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
            let rows = top_k.map_or(CountedRows::Tokens, CountedRows::Slots);
            self.writes(lora_target.out, RowType::F32(MAX_RANK), rows)?;
            let experts = routed.map_or(0, |routed| routed.experts);
            self.lora_target(lora_target.lora_target, Some(k), 0, experts, Some(lora_target.format))?;
        }
        Ok(())
    }
}
