//! Scratch: what a body keeps there, counted from the description, against what the generator takes for it.

use super::checker::{Checked, KernelChecker};
use crate::body;
use crate::kernel::{
    AttentionBody, Body, Domain, Home, Kernel, MatrixPart, PROLOGUE_TOKENS, RowType, Tiling,
};
use crate::panel_kind::PanelKind;
use crate::ukernel::gemm_bf16::{DECODED_TILE as BF16_TILE, GROUP as BF16_GROUP, PANEL_BLOCK, PANEL_ROWS};
use crate::ukernel::gemm_q8::GROUP;
use crate::ukernel::gemm_tiles::{self, TileElement};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE, TILES_PER_CALL};
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::format::{BLOCK, TILE_ROWS};
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::numeric::ATTENTION_SEGMENT;

/// Bytes of a pointer.
const POINTER: usize = 8;

impl KernelChecker<'_> {
    pub(super) fn scratch(&mut self, kernel: &Kernel) -> Checked {
        "scratch".clone_into(&mut self.place);
        let (least, taken) = (self.least_scratch(kernel), body::scratch_bytes(kernel));
        self.ensure(taken >= least, || format!("{taken} bytes, its body keeps {least} there"))
    }

    /// Bytes that a kernel keeps in scratch, without gaps.
    pub(super) fn least_scratch(&self, kernel: &Kernel) -> usize {
        let rows = match &kernel.body {
            Body::Matmul { domain: Domain::LogitRows, .. } => LOGIT_SLAB,
            _ => PROLOGUE_TOKENS,
        };
        let homed = kernel.vals.iter().filter(|val| !matches!(val.home, Home::Operand(_)));
        let values: usize = homed.map(|val| val.row.stride() * rows).sum();
        let rows = kernel.max_rows;
        let of_body = match &kernel.body {
            Body::Rows { .. } | Body::Shrink { .. } => 0,
            Body::Matmul { input, parts, .. } => {
                let lists = kernel.vals[*input].row.q8_terms().max(1);
                lists * rows * POINTER + products(kernel, parts, kernel.vals[*input].row, 1)
            }
            Body::Panels { routed: None, input, .. } => {
                kernel.vals[*input].row.q8_terms().max(1) * rows * POINTER
            }
            Body::Panels { routed: Some((_, experts, _)), .. } => sorted(*experts, rows),
            Body::Experts { input, experts, part, .. } => {
                let part = std::slice::from_ref(part);
                sorted(*experts, rows) + products(kernel, part, kernel.vals[*input].row, *experts)
            }
            Body::ExpertDown { input, experts, mat, rows_per_item, .. } => {
                let part = MatrixPart::down(mat, *rows_per_item);
                // Besides, where each entry goes, and its weight.
                let aims = rows * (POINTER + 4);
                sorted(*experts, rows) + aims + products(kernel, &[part], kernel.vals[*input].row, *experts)
            }
            Body::Attention(attention) => of_attention(attention),
        };
        values + self.work + of_body
    }
}

/// A batch's slots sorted by expert: counts, starts, panels and active ones; entries, and pointers to their
/// rows.
fn sorted(experts: usize, rows: usize) -> usize {
    4 * experts * 4 + rows * (4 + POINTER)
}

/// Results of a few rows by dots, and what panels take.
fn products(kernel: &Kernel, parts: &[MatrixPart], input: RowType, experts: usize) -> usize {
    let (rows, tiling) = (kernel.max_rows, kernel.tiling);
    let result_bytes = |part: &MatrixPart| part.mats.len() * part.rows_per_item * 4;
    let most = |bytes: &dyn Fn(&MatrixPart) -> usize| parts.iter().map(bytes).max().unwrap_or(0);
    let tokens = MicroKernel::dot_tokens(input.is_q8())[0];
    let kind = |part: &MatrixPart| Some((tiling.panels(input, part.mats[0].format)?, part.terms()));
    let kinds = one_after_the_other(parts.iter().filter_map(kind));
    let own = if kernel.panels.is_empty() { &kinds[..] } else { &[] };
    let panels: usize =
        own.iter().map(|(kind, terms)| terms * panel_bytes(*kind, input.len(), rows, experts)).sum();
    let dots = tokens * most(&|part| result_bytes(part) * together(part));
    let of_products = match (input, tiling) {
        (RowType::Bf16(_), _) => 2 * BF16_TILE + rows.next_multiple_of(BF16_GROUP) * most(&result_bytes),
        (_, Tiling::Gemm { products, .. }) => {
            let tile = most(&|part| {
                part.mats.iter().map(|mat| products.decoded(mat.format).tile_bytes()).max().unwrap_or(0)
            });
            dots + 4 * tile + rows * most(&result_bytes)
        }
        (_, Tiling::Tiles { .. }) => {
            let decoded = 4 * most(&|part| TileElement::of(part.mats[0].format).decoded_tile());
            let products = gemm_tiles::PRODUCTS * gemm_tiles::PRODUCT_BYTES;
            dots + decoded + products + rows.next_multiple_of(gemm_tiles::PANEL_ROWS) * most(&result_bytes)
        }
        (_, Tiling::Dot) => dots,
    };
    panels + of_products
}

/// Kinds of panels in turn, each once for neighbours of it, with the most rows of q8 that one of them takes.
pub(super) fn one_after_the_other(
    kinds: impl Iterator<Item = (PanelKind, usize)>,
) -> Vec<(PanelKind, usize)> {
    let mut runs: Vec<(PanelKind, usize)> = Vec::new();
    for (kind, terms) in kinds {
        match runs.last_mut() {
            Some((last, most)) if *last == kind => *most = terms.max(*most),
            _ => runs.push((kind, terms)),
        }
    }
    runs
}

/// Bytes of the panels of `rows` rows of `k`: an expert's last group may have a single row.
pub(super) fn panel_bytes(kind: PanelKind, k: usize, rows: usize, experts: usize) -> usize {
    let (group, block) = match kind {
        PanelKind::Q8 { format, products } => (GROUP, products.decoded(format).panel().block),
        PanelKind::Bf16 => (PANEL_ROWS, PANEL_BLOCK),
        PanelKind::Tiles(element) => (gemm_tiles::PANEL_ROWS, element.panel_block()),
    };
    let groups = rows.checked_sub(experts).map_or(rows, |rest| experts + rest / group);
    groups * (k / BLOCK) * block
}

/// Items whose results dots leave side by side.
fn together(part: &MatrixPart) -> usize {
    let tiles = part.rows_per_item / TILE_ROWS;
    let by_head = part.epilogue.iter().any(|op| op.facts().head_dim.is_some());
    let single = part.mats.len() == 1 && !by_head;
    let run = TILES_PER_CALL / tiles.max(1);
    let items = part.mats[0].n.div_ceil(part.rows_per_item);
    if single && TILES_PER_CALL.is_multiple_of(tiles.max(1)) && run >= 1 && items >= run {
        run.max(1)
    } else {
        1
    }
}

fn of_attention(body: &AttentionBody) -> usize {
    let (group, v_head_dim) = (body.heads / body.geometry.kv_heads, body.geometry.v_head_dim);
    let planes = (2 * (ATTENTION_SEGMENT / BLOCK_TOKENS) + BLOCKS_AHEAD) * POINTER;
    // A factor of each head's weights.
    let factors = if body.geometry.formats.v.is_scaled() { group * 4 } else { 0 };
    // Of each segment the weighted values, a maximum and a sum.
    let segment = group * (v_head_dim + 2) * 4;
    // Rounded queries of a token: a byte for each element, a factor and a sum for each head.
    let queries = match body.geometry.formats.k.is_scaled() {
        true => group * (body.geometry.head_dim + 8),
        false => 0,
    };
    planes
        + body.tile_tokens * (queries + factors)
        + body.tile_tokens * (group * SCORE_STRIDE + body.max_segments * segment)
        + group * v_head_dim * 4
}
