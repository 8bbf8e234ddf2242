//! Rotation of heads.

use super::prelude::*;
use cranelift_codegen::ir::types::{F32X4, I32X4};
use kernmill_plan::contract::Need;
use kernmill_plan::limit;

/// Which elements of a head rotate, and with which others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadRotation {
    /// Elements of a head.
    pub head_dim: usize,
    /// The first so many rotate, the others pass.
    pub rotary_dim: usize,
    /// Pairs of those that rotate.
    pub pairs: RopePairs,
}

/// Elements that rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopePairs {
    /// Each of the first half and the one at its place in the second half.
    Halves,
    /// Each even one and the next.
    Neighbours,
}

impl RopePairs {
    /// Every kind by its name in specs.
    pub const NAMED: [(&'static str, RopePairs); 2] =
        [("halves", RopePairs::Halves), ("neighbours", RopePairs::Neighbours)];
}

impl HeadRotation {
    /// Whole heads, by halves.
    pub fn whole(head_dim: usize) -> HeadRotation {
        HeadRotation { head_dim, rotary_dim: head_dim, pairs: RopePairs::Halves }
    }

    /// The places of both elements of pair `i`.
    pub fn pair(self, i: usize) -> (usize, usize) {
        match self.pairs {
            RopePairs::Halves => (i, i + self.rotary_dim / 2),
            RopePairs::Neighbours => (2 * i, 2 * i + 1),
        }
    }
}

/// Rotates each head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RopeRow<V = ValId, O = OperandId> {
    /// Read: whole heads; in an epilogue one.
    pub x: RowPlace<V>,
    /// The rotary table.
    pub table: O,
    /// The rotation.
    pub head: HeadRotation,
    /// Written; results in place.
    pub out: RowPlace<V>,
}

impl<V, O> RopeRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts { head_dim: Some(self.head.head_dim), ..RowOpFacts::on("rope", &self.x, self.out.row()) }
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> RopeRow {
        let out = self.out.written(names);
        let table = names.operand(&self.table);
        RopeRow { x: self.x.numbered(names), table, head: self.head, out }
    }
}

impl RowOpCode for RopeRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let RopeRow { x, table, head: HeadRotation { head_dim, rotary_dim, .. }, out } = *self;
        check.rows_are(site.rows, CountedRows::Tokens)?;
        let group = 2 * VECTOR;
        check.ensure((1..=limit::HEAD_DIM).contains(&head_dim) && head_dim.is_multiple_of(group), || {
            format!("heads of {head_dim}, expected a multiple of {group} up to {}", limit::HEAD_DIM)
        })?;
        check.ensure((1..=head_dim).contains(&rotary_dim) && rotary_dim.is_multiple_of(group), || {
            format!("{rotary_dim} elements rotate, expected a multiple of {group} up to {head_dim}")
        })?;
        // Rows of the table are read whole.
        match check.known(table)? {
            None => check.set(table, Need::Rope { rotary_dim: rotary_dim as u32 })?,
            Some(Need::Rope { rotary_dim: known }) if known as usize == rotary_dim => {}
            Some(other) => return check.conflict(table, other, "a rotary table of another size"),
        }
        let n = site.input(check, x)?;
        site.heads(check, n, head_dim)?;
        site.output(check, out, n)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (x, out) = (site.place(e, cx, self.x), site.place(e, cx, self.out));
        let HeadRotation { head_dim, rotary_dim, .. } = self.head;
        let table = cx.rope_row(e, self.table, rotary_dim, site.row);
        let heads = if site.item.is_some() { 1 } else { site.columns(cx, self.x) / head_dim };
        if heads == 1 {
            return self.rotate(e, x, table, out);
        }
        e.for_count(heads, |e, head| {
            let (x, out) = (e.at(x, head, head_dim * 4), e.at(out, head, head_dim * 4));
            self.rotate(e, x, table, out);
        });
    }
}

impl RopeRow {
    /// Rotates a head at `x` into `out`, which may be `x`.
    fn rotate(&self, e: &mut Emit, x: Value, table: Value, out: Value) {
        let HeadRotation { head_dim, rotary_dim, pairs } = self.head;
        match pairs {
            RopePairs::Halves => halves(e, x, table, out, rotary_dim),
            RopePairs::Neighbours => neighbours(e, x, table, out, rotary_dim),
        }
        if x != out && rotary_dim < head_dim {
            let offset = (rotary_dim * 4) as i64;
            let (x, out) = (e.add_imm(x, offset), e.add_imm(out, offset));
            floats::copy(e, x, out, head_dim - rotary_dim);
        }
    }
}

/// Rotates `n` f32 (a multiple of 8) at `x` into `out`, which may be `x`. `table` is `[cos; half][sin;
/// half]`.
fn halves(e: &mut Emit, x: Value, table: Value, out: Value, n: usize) {
    let half = n / 2;
    e.for_count(half / LANES, |e, i| {
        let (x, table, out) = (e.at(x, i, 16), e.at(table, i, 16), e.at(out, i, 16));
        let (lo, hi) = (e.load(F32X4, x, 0), e.load(F32X4, x, half * 4));
        let (cos, sin) = (e.load(F32X4, table, 0), e.load(F32X4, table, half * 4));
        let (lo_cos, hi_sin) = (e.fmul(lo, cos), e.fmul(hi, sin));
        let (hi_cos, lo_sin) = (e.fmul(hi, cos), e.fmul(lo, sin));
        let new_lo = e.fsub(lo_cos, hi_sin);
        let new_hi = e.fadd(hi_cos, lo_sin);
        e.store(new_lo, out, 0);
        e.store(new_hi, out, half * 4);
    });
}

/// Rotates pairs of neighbours, where [`halves`] rotates pairs of halves. A difference there is here a sum
/// with the other sign, which has the same bits.
fn neighbours(e: &mut Emit, x: Value, table: Value, out: Value, n: usize) {
    let half = n / 2;
    let minus = (-0.0f32).to_bits() as i32;
    let mut signs = [0; 16];
    signs.chunks_exact_mut(8).for_each(|pair| pair[..4].copy_from_slice(&minus.to_le_bytes()));
    e.for_count(half / LANES, |e, i| {
        let (x, table, out) = (e.at(x, i, 32), e.at(table, i, 16), e.at(out, i, 32));
        let (cos, sin) = (e.load(F32X4, table, 0), e.load(F32X4, table, half * 4));
        let signs = e.bytes(signs);
        let signs = e.cast(I32X4, signs);
        for (offset, order) in [(0, [0, 0, 1, 1]), (16, [2, 2, 3, 3])] {
            let (cos, sin) = (e.shuffle_words(cos, order), e.shuffle_words(sin, order));
            let sin = e.cast(I32X4, sin);
            let sin = e.b.ins().bxor(sin, signs);
            let sin = e.cast(F32X4, sin);
            let own = e.load(F32X4, x, offset);
            let other = e.swap_pairs(own);
            let (own, other) = (e.fmul(own, cos), e.fmul(other, sin));
            let rotated = e.fadd(own, other);
            e.store(rotated, out, offset);
        }
    });
}
