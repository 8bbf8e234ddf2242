//! The way of keys and values into the paged cache.

use super::kv_plane::HeadPlane;
use super::prelude::*;
use super::{kv, kv_integers};
use crate::cx::KvSlot;
use cranelift_codegen::ir::types::F32X4;
use kernmill_plan::kv::{KvGeometry, KvPlane, KvRow, LayerKind};

/// Keys or values into the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KvStoreRow<V = ValId, O = OperandId> {
    /// A row in the cache's format, copied; or the results at hand, which are one head, rounded.
    pub x: RowPlace<V>,
    /// The layer's pool.
    pub pool: O,
    /// Keys or values.
    pub plane: KvPlane,
    /// Which block table.
    pub kind: LayerKind,
    /// Shape of the blocks.
    pub geometry: KvGeometry,
}

impl<V, O> KvStoreRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts {
            head_dim: Some(self.geometry.head_dim(self.plane)),
            cached: Some(self.plane),
            ..RowOpFacts::on("kv_store", &self.x, None)
        }
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> KvStoreRow {
        let KvStoreRow { plane, kind, geometry, .. } = *self;
        let pool = names.operand(&self.pool);
        KvStoreRow { x: self.x.numbered(names), pool, plane, kind, geometry }
    }
}

impl RowOpCode for KvStoreRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let KvStoreRow { x, pool, plane, kind, geometry } = *self;
        check.rows_are(site.rows, CountedRows::Tokens)?;
        let (kv_heads, head_dim) = (geometry.kv_heads, geometry.head_dim(plane));
        let n = kv_heads.saturating_mul(head_dim);
        match (x, site.item) {
            (RowPlace::Row(x), _) => {
                check.reads(x, RowType::kv(KvRow::new(geometry.format(plane), head_dim), n), site.rows)?;
            }
            (RowPlace::Results, item) => {
                let (found, group) = (site.input(check, x)?, item.map_or(0, |item| item.rows_per_item));
                check.ensure(group == head_dim && found == n, || {
                    format!("{found} rows in items of {group}, expected {kv_heads} heads of {head_dim}")
                })?;
            }
        }
        check.geometry(geometry)?;
        check.kv(pool, kind, geometry, 0)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let KvStoreRow { x, pool, plane, kind, ref geometry } = *self;
        let from = site.place(e, cx, x);
        let slot = cx.kv_slot(e, pool, kind, geometry, site.row);
        match x {
            RowPlace::Row(_) => store_row(e, from, slot, plane, geometry),
            RowPlace::Results => write_head(e, from, slot, site.results().first.0, plane, geometry),
        }
    }

    fn work(&self, len: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        let elements = match self.x {
            RowPlace::Row(x) => len(x),
            RowPlace::Results => 0,
        };
        Some(RowWork { elements, weights: 0 })
    }
}

/// Copies a row of all heads, already in the cache's format, into the cache.
fn store_row(e: &mut Emit, x: Value, slot: KvSlot, plane: KvPlane, geometry: &KvGeometry) {
    let format = geometry.format(plane);
    e.for_count(geometry.kv_heads, |e, head| {
        let at = HeadPlane::new(e, slot, head, plane, geometry);
        if format.is_scaled() {
            return kv_integers::store_head(e, x, head, &at, geometry.kv_heads);
        }
        let source = e.at(x, head, format.elements_bytes(at.head_dim));
        let target = at.token_start(e);
        e.for_count(at.head_dim, |e, d| {
            let source = e.at(source, d, format.elements_bytes(1));
            let target = e.at(target, d, at.element_stride());
            let value = e.load(kv::element_type(format), source, 0);
            e.store(value, target, 0);
        });
    });
}

/// Writes one head's f32 `[head_dim]` into the cache, rounding to its format.
fn write_head(e: &mut Emit, x: Value, slot: KvSlot, head: Value, plane: KvPlane, geometry: &KvGeometry) {
    let at = HeadPlane::new(e, slot, head, plane, geometry);
    if at.format.is_scaled() {
        return kv_integers::write_head(e, x, &at);
    }
    let (target, stride) = (at.token_start(e), at.element_stride());
    e.for_count(at.head_dim / LANES, |e, i| {
        let source = e.at(x, i, LANES * 4);
        let target = e.at(target, i, LANES * stride);
        let value = e.load(F32X4, source, 0);
        match plane {
            KvPlane::V => kv::store(e, value, target, at.format),
            KvPlane::K => kv::scatter(e, value, target, stride, at.format),
        }
    });
}
