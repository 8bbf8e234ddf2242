//! Epilogues: what becomes of an item's results, column by column of the values that it goes to.

use super::bodies::RoutedExperts;
use super::{Checked, CountedRows, KernelChecker, RowAccess};
use crate::kernel::{Epilogue, MatrixPart, RowType};
use kernmill_plan::format::BLOCK;

/// Floats that the loops over an item's results take at a time, at most.
const VECTORS: usize = 8;

impl KernelChecker<'_> {
    /// The steps of a part, whose results are such rows: those of slots where experts are `routed`.
    pub(super) fn epilogue(
        &mut self,
        part: &MatrixPart,
        rows: CountedRows,
        routed: Option<RoutedExperts>,
    ) -> Checked {
        let place = self.place.clone();
        for mat in &part.mats {
            if mat.adapter.is_some() {
                self.batch_rows(rows, routed)?;
            }
            self.adapter(mat, rows, routed.map_or(0, |routed| routed.experts))?;
        }
        let mut units = part.mats.len();
        for (index, step) in part.epilogue.iter().enumerate() {
            self.place = format!("{place}, step {index} of its epilogue");
            match step {
                Epilogue::Map { .. } => {}
                _ => self.ensure(units == 1, || format!("{units} units, expected them to be combined"))?,
            }
            self.step(part, step, units, rows, routed)?;
            units = 1;
        }
        self.place = place;
        self.ensure(units == 1 && !part.epilogue.is_empty(), || "its results go nowhere".to_owned())
    }

    /// Positions and adapters are those of a token: rows must be tokens', or slots of routed ones.
    fn batch_rows(&self, rows: CountedRows, routed: Option<RoutedExperts>) -> Checked {
        let known = rows == CountedRows::Tokens || matches!((rows, routed), (CountedRows::Slots(_), Some(_)));
        self.ensure(known, || format!("its rows are {rows:?}, of which no token is known"))
    }

    fn step(
        &mut self,
        part: &MatrixPart,
        step: &Epilogue,
        units: usize,
        rows: CountedRows,
        routed: Option<RoutedExperts>,
    ) -> Checked {
        let (n, rows_per_item) = (part.mats[0].n, part.rows_per_item);
        match step {
            Epilogue::Map { expr, inputs } => {
                self.expression(expr, units + inputs.len())?;
                for input in inputs {
                    self.is(*input, RowType::F32(n))?;
                    self.access(*input, rows, RowAccess::Read)?;
                }
                Ok(())
            }
            Epilogue::Rope { table } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                self.multiple(n, rows_per_item)?;
                self.rope(*table, rows_per_item)
            }
            Epilogue::Hadamard { head_dim } => {
                self.ensure(rows_per_item == *head_dim, || {
                    format!("items of {rows_per_item} rows, heads of {head_dim}")
                })?;
                self.hadamard(n, *head_dim)
            }
            Epilogue::Store { out } => {
                self.is(*out, RowType::F32(n))?;
                self.access(*out, rows, RowAccess::Write)
            }
            Epilogue::SaveLoraInput(lora_input) => {
                if !lora_input.lora_targets.is_empty() {
                    self.batch_rows(rows, routed)?;
                }
                self.lora_input(lora_input, n, rows)
            }
            Epilogue::Quantize { out } => {
                self.multiple(rows_per_item, BLOCK)?;
                self.multiple(n, rows_per_item)?;
                self.is(*out, RowType::Q8(n))?;
                self.access(*out, rows, RowAccess::Write)
            }
            Epilogue::Bf16Cast { out } => {
                self.multiple(rows_per_item, VECTORS)?;
                self.multiple(n, rows_per_item)?;
                self.is(*out, RowType::Bf16(n))?;
                self.access(*out, rows, RowAccess::Write)
            }
            Epilogue::KvCast { to, out } => {
                let row = RowType::kv(*to, n);
                self.is(*out, row)?;
                self.ensure(!to.format.is_scaled(), || {
                    format!("rounds to {to}, whose heads are rounded where they are whole")
                })?;
                // The last item's padding is stored too.
                let stored = to.bytes(n.next_multiple_of(rows_per_item));
                let stride = row.stride();
                self.ensure(stored <= stride, || format!("{stored} bytes of a row, which has {stride}"))?;
                self.access(*out, rows, RowAccess::Write)
            }
            Epilogue::KvWrite { pool, plane: _, kind, geometry } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                let heads = geometry.kv_heads.saturating_mul(geometry.head_dim);
                self.ensure(rows_per_item == geometry.head_dim && n == heads, || {
                    format!(
                        "{n} rows in items of {rows_per_item}, expected {} heads of {}",
                        geometry.kv_heads, geometry.head_dim
                    )
                })?;
                self.kv_write(*pool, *kind, *geometry)
            }
        }
    }
}
