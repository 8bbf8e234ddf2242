//! Row-wise stages: what each reads and writes of a row.

use super::{Checked, CountedRows, KernelChecker, RowAccess};
use crate::expr::Expr;
use crate::kernel::{Body, Home, RowOp, RowType, ValId};
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::contract::Need;
use kernmill_plan::format::{BLOCK, Decode, TILE_ROWS, f32_row_stride};
use kernmill_plan::kv::{KvFormat, KvGeometry, KvRow, LayerKind};
use kernmill_plan::limit;

/// Floats that the loops over a row take at a time.
const VECTOR: usize = 4;

impl KernelChecker<'_> {
    /// The stages that every worker runs before the body.
    pub(super) fn prologue(&mut self) -> Checked {
        "prologue".clone_into(&mut self.place);
        let kernel = self.kernel;
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
            let own = row_op.out().is_some_and(|out| {
                kernel.vals.get(*out).is_some_and(|val| !matches!(val.home, Home::Operand(_)))
            });
            self.ensure(own, || format!("{} writes no value of the worker's own", name(row_op)))?;
            self.row_op(row_op, rows)?;
        }
        Ok(())
    }

    /// A stage over such rows.
    pub(super) fn row_op(&mut self, row_op: &RowOp, rows: CountedRows) -> Checked {
        let part = self.place.clone();
        self.place = format!("{part}, {}", name(row_op));
        self.one_row_op(row_op, rows)?;
        self.place = part;
        Ok(())
    }

    fn one_row_op(&mut self, row_op: &RowOp, rows: CountedRows) -> Checked {
        match row_op {
            RowOp::Embed { table, format, row_bytes, out } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                let n = self.f32(*out)?;
                let (row, rows_together) = match format.decode() {
                    Decode::Plain(decode) => (n * decode.bytes(), 1),
                    Decode::Block(parts) => {
                        self.multiple(n, parts.columns())?;
                        (format.tile(n).bytes(), TILE_ROWS)
                    }
                };
                self.multiple(n, VECTOR)?;
                self.ensure(*row_bytes >= row, || {
                    format!("rows of the table are {row_bytes} bytes apart and have {row}")
                })?;
                self.table(*table, *row_bytes, rows_together)?;
                self.access(*out, rows, RowAccess::Write)
            }
            RowOp::RmsNorm { x, weight, eps: _, out } => {
                let n = self.f32(*x)?;
                self.multiple(n, TILE_ROWS)?;
                self.weights(*weight, n * 4)?;
                self.through(*x, *out, RowType::F32(n), rows)
            }
            RowOp::Quantize { x, out } => {
                let n = self.f32(*x)?;
                self.multiple(n, BLOCK)?;
                self.through(*x, *out, RowType::Q8(n), rows)
            }
            RowOp::Bf16Cast { x, out } => {
                let n = self.f32(*x)?;
                self.multiple(n, 2 * VECTOR)?;
                self.through(*x, *out, RowType::Bf16(n), rows)
            }
            RowOp::Elementwise { expr, inputs, out } => {
                let n = self.f32(*out)?;
                self.expression(expr, inputs.len())?;
                for input in inputs {
                    self.is(*input, RowType::F32(n))?;
                    self.access(*input, rows, RowAccess::Read)?;
                }
                self.access(*out, rows, RowAccess::Write)
            }
            RowOp::Rope { x, table, head_dim, out } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                let n = self.f32(*x)?;
                self.rope(*table, *head_dim)?;
                self.multiple(n, *head_dim)?;
                self.through(*x, *out, RowType::F32(n), rows)
            }
            RowOp::Hadamard { x, head_dim, out } => {
                let n = self.f32(*x)?;
                self.hadamard(n, *head_dim)?;
                self.through(*x, *out, RowType::F32(n), rows)
            }
            RowOp::KvCast { x, to, out } => {
                let n = self.f32(*x)?;
                self.multiple(n, if to.format.is_scaled() { to.head_dim } else { VECTOR })?;
                self.through(*x, *out, RowType::kv(*to, n), rows)
            }
            RowOp::KvStore { x, pool, plane, kind, geometry } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                let n = geometry.kv_heads.saturating_mul(geometry.head_dim);
                self.is(*x, RowType::kv(KvRow::new(geometry.format(*plane), geometry.head_dim), n))?;
                self.access(*x, rows, RowAccess::Read)?;
                self.kv_write(*pool, *kind, *geometry)
            }
            RowOp::Linear { x, mat, out } => {
                let input = self.row(*x)?;
                self.matrix(mat, input, None)?;
                if mat.adapter.is_some() {
                    self.rows_are(rows, CountedRows::Tokens)?;
                }
                self.adapter(mat, CountedRows::Tokens, 0)?;
                self.access(*x, rows, RowAccess::Read)?;
                self.is(*out, RowType::F32(mat.n))?;
                self.access(*out, rows, RowAccess::Write)
            }
            RowOp::TopK { x, experts, k, out } => {
                self.ensure((1..=limit::TOP_K.min(*experts)).contains(k), || {
                    format!("the best {k} of {experts}, expected 1 to {}", limit::TOP_K.min(*experts))
                })?;
                self.is(*x, RowType::F32(*experts))?;
                self.through(*x, *out, RowType::Routing(*k), rows)
            }
            RowOp::SelectRow { x, out } => {
                self.rows_are(rows, CountedRows::Logits)?;
                let n = self.f32(*x)?;
                self.access(*x, CountedRows::Tokens, RowAccess::Read)?;
                self.is(*out, RowType::F32(n))?;
                self.access(*out, rows, RowAccess::Write)
            }
            RowOp::ExpertSum { y, routing, top_k, out } => {
                self.rows_are(rows, CountedRows::Tokens)?;
                let n = self.f32(*y)?;
                self.is(*routing, RowType::Routing(*top_k))?;
                self.access(*routing, rows, RowAccess::Read)?;
                self.access(*y, CountedRows::Slots(*top_k), RowAccess::Read)?;
                self.is(*out, RowType::F32(n))?;
                self.access(*out, rows, RowAccess::Write)
            }
        }
    }

    /// Reads whole rows of `x` and writes such rows of `out`.
    fn through(&mut self, x: ValId, out: ValId, row: RowType, rows: CountedRows) -> Checked {
        self.access(x, rows, RowAccess::Read)?;
        self.is(out, row)?;
        self.access(out, rows, RowAccess::Write)
    }

    pub(super) fn rows_are(&self, found: CountedRows, expected: CountedRows) -> Checked {
        self.ensure(found == expected, || format!("its rows are {found:?}, expected {expected:?}"))
    }

    pub(super) fn multiple(&self, n: usize, of: usize) -> Checked {
        self.ensure(of > 0 && n > 0 && n.is_multiple_of(of), || {
            format!("{n} columns, expected a multiple of {of}")
        })
    }

    /// An expression reads no more than it is given.
    pub(super) fn expression(&self, expr: &Expr, inputs: usize) -> Checked {
        let vars = variables(expr);
        self.ensure(vars <= inputs, || format!("its expression reads {vars} inputs, there are {inputs}"))
    }

    /// Whole heads, which are whole blocks of a transform.
    pub(super) fn hadamard(&self, n: usize, head_dim: usize) -> Checked {
        let whole = (1..=limit::HEAD_DIM).contains(&head_dim) && head_dim.is_multiple_of(32);
        self.ensure(whole, || format!("heads of {head_dim}, expected a multiple of 32"))?;
        self.multiple(n, head_dim)
    }

    /// A rotary table whose rows are read whole.
    pub(super) fn rope(&mut self, table: usize, head_dim: usize) -> Checked {
        self.ensure(
            head_dim > 0 && head_dim <= limit::HEAD_DIM && head_dim.is_multiple_of(2 * VECTOR),
            || {
                format!(
                    "heads of {head_dim}, expected a multiple of {} up to {}",
                    2 * VECTOR,
                    limit::HEAD_DIM
                )
            },
        )?;
        match self.known(table)? {
            None => self.set(table, Need::Rope { head_dim: head_dim as u32 }),
            Some(Need::Rope { head_dim: known }) if known as usize == head_dim => Ok(()),
            Some(other) => self.conflict(table, other, "a rotary table of another size"),
        }
    }

    /// A token's keys or values go into the cache.
    pub(super) fn kv_write(&mut self, pool: usize, kind: LayerKind, geometry: KvGeometry) -> Checked {
        self.geometry(geometry)?;
        self.kv(pool, kind, geometry, 0)
    }

    /// A layer's pool, of whose cache a token reads `view` positions.
    pub(super) fn kv(&mut self, pool: usize, kind: LayerKind, geometry: KvGeometry, view: u32) -> Checked {
        let new = match self.known(pool)? {
            None => Need::Kv { geometry, kind: Some(kind), view },
            Some(Need::Kv { geometry: g, kind: k, view: seen }) if g == geometry && k == Some(kind) => {
                Need::Kv { geometry, kind: Some(kind), view: seen.max(view) }
            }
            Some(other) => return self.conflict(pool, other, "another KV pool"),
        };
        self.set(pool, new)
    }

    pub(super) fn geometry(&self, geometry: KvGeometry) -> Checked {
        let KvGeometry { kv_heads, head_dim, formats } = geometry;
        let whole = |format: KvFormat| head_dim.is_multiple_of(format.descriptor().head_multiple);
        let legal = (1..=limit::KV_HEADS).contains(&kv_heads)
            && (1..=limit::HEAD_DIM).contains(&head_dim)
            && head_dim.is_multiple_of(VECTOR)
            && whole(formats.k)
            && whole(formats.v);
        self.ensure(legal, || format!("{kv_heads} KV heads of {head_dim} elements in {formats}"))
    }

    /// A bias is read in whole tiles, those of experts one behind the other.
    pub(super) fn bias(&mut self, operand: usize, n: usize, experts: usize) -> Checked {
        self.weights(operand, experts.max(1) * f32_row_stride(n))
    }

    /// Shrunk rows of adapters.
    pub(super) fn is_shrunk(&self, id: ValId) -> Checked {
        self.is(id, RowType::F32(MAX_RANK))
    }
}

/// One more than the highest variable of an expression.
fn variables(expr: &Expr) -> usize {
    let own = if let Expr::Var(i) = expr { i + 1 } else { 0 };
    expr.children().into_iter().map(variables).fold(own, usize::max)
}

fn name(row_op: &RowOp) -> &'static str {
    match row_op {
        RowOp::Embed { .. } => "embed",
        RowOp::RmsNorm { .. } => "rms_norm",
        RowOp::Quantize { .. } => "quantize",
        RowOp::Bf16Cast { .. } => "bf16_cast",
        RowOp::Elementwise { .. } => "elementwise",
        RowOp::Rope { .. } => "rope",
        RowOp::Hadamard { .. } => "hadamard",
        RowOp::KvCast { .. } => "kv_cast",
        RowOp::KvStore { .. } => "kv_store",
        RowOp::Linear { .. } => "linear",
        RowOp::TopK { .. } => "top_k",
        RowOp::SelectRow { .. } => "select_row",
        RowOp::ExpertSum { .. } => "expert_sum",
    }
}
