//! Attention: the queries, the cache, and how long a context its scratch has room for.

use super::checker::{Checked, CountedRows, KernelChecker, RowAccess};
use crate::kernel::{AttentionBody, RowType};
use kernmill_plan::format::{BLOCK, TILE_ROWS, f32_row_stride};
use kernmill_plan::kv::LayerKind;
use kernmill_plan::limit;
use kernmill_plan::numeric::ATTENTION_SEGMENT;

impl KernelChecker<'_> {
    pub(super) fn attention(&mut self, body: &AttentionBody) -> Checked {
        let AttentionBody { geometry, heads, causal, window, tile_tokens, max_segments, .. } = *body;
        self.geometry(geometry)?;
        let group = heads / geometry.kv_heads;
        let whole =
            heads.is_multiple_of(geometry.kv_heads) && (1..=limit::QUERIES_PER_KV_HEAD).contains(&group);
        self.ensure(whole, || format!("{heads} heads for {} KV heads", geometry.kv_heads))?;
        // The micro-kernels take whole vectors of a head.
        self.multiple(geometry.head_dim, TILE_ROWS)?;
        self.multiple(geometry.v_head_dim, TILE_ROWS)?;
        let n = heads * geometry.v_head_dim;
        if geometry.formats.v.descriptor().rotated {
            self.hadamard(n, geometry.v_head_dim)?;
        }
        self.reads(body.q, RowType::F32(heads * geometry.head_dim), CountedRows::Tokens)?;
        self.ensure(tile_tokens > 0 && max_segments > 0 && window != Some(0), || {
            format!("tiles of {tile_tokens} tokens, {max_segments} segments, a window of {window:?}")
        })?;
        // A sequence that runs whole is kept whole.
        let kept = window.filter(|_| causal);
        self.ensure((body.kind == LayerKind::Sliding) == kept.is_some(), || {
            format!("a {:?} layer with a window of {window:?}", body.kind)
        })?;
        self.whole_texts |= !causal;
        let seen = window.map(|window| if causal { window as usize } else { 2 * window as usize - 1 });
        self.segments(seen, tile_tokens, max_segments);
        self.kv(body.pool, body.kind, geometry, kept.unwrap_or(u32::MAX))?;
        if let Some(sinks) = body.sinks {
            self.weights(sinks, f32_row_stride(heads))?;
        }
        match self.row(body.out)? {
            RowType::Q8(columns) => {
                self.ensure(columns == n, || format!("{columns} columns of results, expected {n}"))?;
                self.multiple(group * geometry.v_head_dim, BLOCK)?;
            }
            RowType::F32(columns) => {
                self.ensure(columns == n && body.lora_input.is_none(), || {
                    format!("{columns} columns of f32 results, expected {n} and none kept besides")
                })?;
            }
            other => return self.wrong(format!("its results are {other:?}, expected f32 or q8")),
        }
        self.access(body.out, CountedRows::Tokens, RowAccess::Write)?;
        match &body.lora_input {
            Some(kept) => self.kept_rows(kept.out, &kept.lora_targets, n, CountedRows::Tokens),
            None => Ok(()),
        }
    }

    /// The longest context for whose segments there is room. Where a token sees `seen` positions through its
    /// window, a tile's tokens see `seen + tile - 1` in a row, wherever these are.
    fn segments(&mut self, seen: Option<usize>, tile_tokens: usize, max_segments: usize) {
        let seen = seen.map(|seen| seen + tile_tokens - 1);
        let always = seen.is_some_and(|seen| (seen - 1) / ATTENTION_SEGMENT + 2 <= max_segments);
        if !always {
            self.max_context = self.max_context.min(max_segments.saturating_mul(ATTENTION_SEGMENT));
        }
    }
}
