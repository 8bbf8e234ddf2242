//! The parts of attention that are sums of integers: rounded queries, weights and weighted values.

use super::attention::{ContextSegment, LIST, TokenRun, TokenView};
use super::attention_scratch::query_bytes;
use super::attention_ukernels::{query_ukernel, value_ukernel};
use crate::emit::{Emit, LANES};
use crate::ukernel::{MicroKernel, VALUE_BLOCKS, WEIGHTS};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};

impl TokenRun<'_> {
    /// Where a token's queries are once they are rounded.
    pub(super) fn rounded_query(&self, e: &mut Emit, token: Value) -> Value {
        let queries = self.cx.body_scratch(e, self.areas.queries);
        e.at(queries, token, query_bytes(self.body))
    }

    /// Rounds the queries of all tokens, where scores are sums of integers.
    pub(super) fn round_queries(&self, e: &mut Emit) {
        let Some(ukernel) = query_ukernel(self.body) else { return };
        self.each_token(e, |e, token| {
            let (q, rounded) = (self.query(e, token), self.rounded_query(e, token));
            e.call(self.cx.ukernel(ukernel), &[q, rounded]);
        });
    }

    /// Weighted values of all tokens in one segment, where these are sums of integers: those of blocks that a
    /// token does not see have weights of 0.
    pub(super) fn integer_values(&self, e: &mut Emit, segment: &ContextSegment) {
        let lists = self.cx.body_scratch(e, self.areas.planes + LIST);
        let adding = self.cx.body_scratch(e, self.areas.adding);
        let zero = e.i64(0);
        let weights = self.scores(e, segment, zero, segment.first);
        let values = self.values(e, zero, segment.index);
        let value = self.cx.ukernel(value_ukernel(self.body, 1));
        e.for_range(segment.first, segment.end, VALUE_BLOCKS as i64, |e, first| {
            let before = e.b.ins().isub(first, segment.first);
            let (rows, weights) = (e.at(lists, before, 8), e.at(weights, before, WEIGHTS));
            let blocks = e.b.ins().isub(segment.end, first);
            let most = e.i64(VALUE_BLOCKS as i64);
            let blocks = e.min_u(blocks, most);
            e.call(value, &[rows, weights, values, blocks, self.tokens, adding]);
        });
        self.each_token(e, |e, token| {
            let view = self.view(e, segment, token);
            let some = e.icmp(IntCC::SignedLessThan, view.first, view.end);
            e.if_then(some, |e| self.weigh_integers(e, segment, token));
        });
    }

    /// Rounded weights of a token in a segment, with maxima, sums and factors: 0 of what the token does not
    /// see.
    pub(super) fn weigh(&self, e: &mut Emit, segment: &ContextSegment, token: Value, view: &TokenView) {
        let values = self.cx.body_scratch(e, self.areas.planes + LIST);
        let scores = self.scores(e, segment, token, segment.first);
        let blocks = e.b.ins().isub(segment.end, segment.first);
        let (from, to) = self.columns(e, view, segment.first, blocks);
        let own = self.weighing(e, token);
        let weights = self.cx.ukernel(MicroKernel::Weights { group: self.group });
        e.call(weights, &[values, scores, blocks, from, to, own]);
        let norms = self.norms(e, token, segment.index);
        e.for_count(self.group, |e, g| {
            for (number, norms) in norms.into_iter().enumerate() {
                let (own, norm) = (e.at(own, g, 4), e.at(norms, g, 4));
                let value = e.load(F32, own, number * self.group * 4);
                e.store(value, norm, 0);
            }
        });
    }

    /// Where a token's maxima, sums and factors in a segment are.
    fn weighing(&self, e: &mut Emit, token: Value) -> Value {
        let weighing = self.cx.body_scratch(e, self.areas.weighing);
        e.at(weighing, token, 3 * self.group * 4)
    }

    /// Makes f32 of a token's sums of integers in a segment, times the factors of its weights.
    fn weigh_integers(&self, e: &mut Emit, segment: &ContextSegment, token: Value) {
        let (values, factors) = (self.values(e, token, segment.index), self.weighing(e, token));
        let factors = e.add_imm(factors, (2 * self.group * 4) as i64);
        let head_dim = self.body.geometry.v_head_dim;
        e.for_count(self.group, |e, g| {
            let (values, factor) = (e.at(values, g, head_dim * 4), e.at(factors, g, 4));
            let factor = e.load_splat(factor, 0);
            e.for_count(head_dim / LANES, |e, vector| {
                let place = e.at(values, vector, LANES * 4);
                let sums = e.load(I32X4, place, 0);
                let sums = e.b.ins().fcvt_from_sint(F32X4, sums);
                let weighted = e.fmul(sums, factor);
                e.store(weighted, place, 0);
            });
        });
    }
}
