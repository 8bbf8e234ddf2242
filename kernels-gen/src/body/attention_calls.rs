//! Calls of attention's micro-kernels: blocks and tokens that go together.

use super::attention::{CallSpan, ContextSegment, TokenRun};
use crate::emit::Emit;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use kernmill_plan::kv::{BLOCK_TOKENS, KvPlane};

/// Bytes of one head's keys or values per call of a micro-kernel, which stay in L1 for all tokens of a run.
const CALL_BYTES: usize = 8 << 10;

impl TokenRun<'_> {
    /// Calls `body` for a few blocks at a time, then for a few tokens or each token, with those of these
    /// blocks that it sees. Tokens go together where they see the same blocks, and also the same positions of
    /// them if `by_position`.
    pub(super) fn each_call(
        &self,
        e: &mut Emit,
        segment: &ContextSegment,
        tokens_per_call: usize,
        by_position: bool,
        body: impl Fn(&mut Emit, usize, &CallSpan),
    ) {
        let geometry = &self.body.geometry;
        let bytes = |plane| geometry.format(plane).elements_bytes(BLOCK_TOKENS * geometry.head_dim(plane));
        let blocks = (CALL_BYTES / bytes(KvPlane::K).max(bytes(KvPlane::V))).max(1) as i64;
        e.for_range(segment.first, segment.end, blocks, |e, first| {
            let end = e.add_imm(first, blocks);
            let span = |e: &mut Emit, token| {
                let view = self.view(e, segment, token);
                let first = e.b.ins().smax(first, view.first);
                let end = e.b.ins().smin(end, view.end);
                let blocks = e.b.ins().isub(end, first);
                let columns = self.columns(e, &view, first, blocks);
                CallSpan { token, first, blocks, columns }
            };
            let alone = |e: &mut Emit, span: &CallSpan| {
                let zero = e.i64(0);
                let some = e.icmp(IntCC::SignedGreaterThan, span.blocks, zero);
                e.if_then(some, |e| body(e, 1, span));
            };
            if tokens_per_call == 1 {
                return self.each_token(e, |e, token| {
                    let span = span(e, token);
                    alone(e, &span);
                });
            }
            let zero = e.i64(0);
            e.for_range(zero, self.tokens, tokens_per_call as i64, |e, token| {
                let last = e.add_imm(token, tokens_per_call as i64 - 1);
                let whole = e.icmp(IntCC::SignedLessThan, last, self.tokens);
                let (one, other) = (span(e, token), span(e, last));
                let mut same = vec![(one.first, other.first), (one.blocks, other.blocks)];
                if by_position {
                    same.extend([(one.columns.0, other.columns.0), (one.columns.1, other.columns.1)]);
                }
                let together = same.into_iter().fold(whole, |together, (one, other)| {
                    let equal = e.icmp(IntCC::Equal, one, other);
                    e.b.ins().band(together, equal)
                });
                let some = e.icmp(IntCC::SignedGreaterThan, one.blocks, zero);
                let together = e.b.ins().band(together, some);
                e.if_else(
                    together,
                    |e| body(e, tokens_per_call, &one),
                    |e| {
                        let end = e.add_imm(last, 1);
                        let end = e.min_u(end, self.tokens);
                        e.for_range(token, end, 1, |e, token| {
                            let span = span(e, token);
                            alone(e, &span);
                        });
                    },
                );
            });
        });
    }
}
