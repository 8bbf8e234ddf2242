//! A sound kernel of every kind.

use crate::expr::testing::var;
use crate::kernel::{
    AttentionBody, Body, Domain, Home, Kernel, KvPlane, Mat, MatAdapter, MatrixPart, RowOp, RowType,
    ShrinkLoraTarget, Tiling, Val, ValId,
};
use crate::panel_kind::PanelKind;
use crate::row_op::{
    ElementwiseRow, HeadRotation, KvStoreRow, LinearRow, NormRow, RopeRow, RoundRow, RoundTo, RouterScores,
    RowPlace, SelectRow, StoreRow, TopKRow,
};
use crate::ukernel::gemm_q8::DotStep;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::{KvFormat, KvGeometry, KvPair, LayerKind};

pub const GEOMETRY: KvGeometry =
    KvGeometry { kv_heads: 2, head_dim: 32, v_head_dim: 32, formats: KvPair::both(KvFormat::F16) };
pub const FULL: LayerKind = LayerKind::Full;
pub const GEMM: Tiling = Tiling::Gemm { least_rows: 4, products: DotStep::K4 };

pub fn val(row: RowType, operand: usize) -> Val {
    Val { row, home: Home::Operand(operand) }
}

pub fn scratch(row: RowType) -> Val {
    Val { row, home: Home::Scratch }
}

pub fn mat(operand: usize, format: WeightFormat, n: usize, k: usize) -> Mat {
    let tile_stride = format.tile(k).bytes();
    Mat { operand, format, n, k, tile_stride, expert_stride: 0, bias: None, term: 0, adapter: None }
}

/// The results at hand, stored.
pub fn store(out: ValId) -> StoreRow {
    StoreRow::results(out)
}

/// The results at hand, which are a head of 32, rotated.
pub fn turn(table: usize) -> RowOp {
    RopeRow { x: RowPlace::Results, table, head: HeadRotation::whole(32), out: RowPlace::Results }.into()
}

/// The results at hand into the cache.
pub fn write(pool: usize, plane: KvPlane) -> RowOp {
    KvStoreRow { x: RowPlace::Results, pool, plane, kind: FULL, geometry: GEOMETRY }.into()
}

/// The best k of so many experts, chosen with a bias.
pub fn top_k(x: ValId, experts: usize, k: usize, out: ValId) -> TopKRow {
    let scores = RouterScores::Sigmoid;
    let groups = None;
    TopKRow { x, bias: Some(5), experts, k, groups, scores, normalise: true, scale: None, out }
}

fn norm(x: ValId, out: ValId) -> RowOp {
    let (x, out) = (RowPlace::Row(x), RowPlace::Row(out));
    NormRow { x, weight: Some(1), bias: None, eps: 1e-5.into(), head_dim: None, is_centred: false, out }
        .into()
}

pub fn part(mats: Vec<Mat>, rows_per_item: usize, epilogue: Vec<RowOp>) -> MatrixPart {
    MatrixPart { mats, interleaved: false, rows_per_item, epilogue }
}

/// Norm and rounding by every worker, then queries, which are rotated, keys, which go to the cache, and a
/// gate, 40 columns that are stored.
pub fn projections() -> Kernel {
    let int8 = |operand, n| mat(operand, WeightFormat::Int8, n, 64);
    let mut gate = int8(4, 40);
    gate.bias = Some(5);
    gate.adapter = Some(MatAdapter { lora_target: 10, shrunk: 5, format: WeightFormat::Bf16, first_tile: 3 });
    Kernel {
        vals: vec![
            val(RowType::F32(64), 0),
            scratch(RowType::F32(64)),
            scratch(RowType::Q8(64)),
            val(RowType::F32(128), 8),
            val(RowType::F32(40), 9),
            val(RowType::F32(MAX_RANK), 11),
        ],
        prologue: vec![norm(0, 1), RoundRow { x: RowPlace::Row(1), to: RoundTo::Q8, out: 2 }.into()],
        body: Body::Matmul {
            domain: Domain::Tokens,
            input: 2,
            parts: vec![
                part(vec![int8(2, 128)], 32, vec![turn(6), store(3).into()]),
                part(vec![int8(3, 64)], 32, vec![turn(6), write(7, KvPlane::K)]),
                part(vec![gate], 16, vec![store(4).into()]),
            ],
        },
        max_rows: 8,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// Interleaved gate and up of 4 experts, of which a token chooses 2, rounded.
pub fn gate_up() -> Kernel {
    let tile = WeightFormat::Mxfp4.tile(64).bytes();
    let half = |operand| Mat {
        tile_stride: 2 * tile,
        expert_stride: 12 * tile,
        bias: Some(operand + 2),
        ..mat(operand, WeightFormat::Mxfp4, 96, 64)
    };
    let product = var(0) * var(1);
    let epilogue = vec![
        ElementwiseRow { expr: product, inputs: vec![], vectors: vec![], out: RowPlace::Results }.into(),
        RoundRow { x: RowPlace::Results, to: RoundTo::Q8, out: 2 }.into(),
    ];
    Kernel {
        vals: vec![val(RowType::Q8(64), 0), val(RowType::Routing(2), 1), val(RowType::Q8(96), 6)],
        prologue: Vec::new(),
        body: Body::Experts {
            input: 0,
            input_slots: false,
            routing: 1,
            experts: 4,
            top_k: 2,
            part: MatrixPart { interleaved: true, ..part(vec![half(2), half(3)], 32, epilogue) },
            even_rows: 4,
        },
        max_rows: 64,
        tiling: GEMM,
        panels: Vec::new(),
    }
}

/// The panels of these experts' rows.
pub fn panels() -> Kernel {
    let kind = PanelKind::Q8 { format: WeightFormat::Mxfp4, products: DotStep::K4 };
    Kernel {
        vals: vec![val(RowType::Q8(64), 0), val(RowType::Routing(2), 1)],
        body: Body::Panels {
            domain: Domain::Tokens,
            input: 0,
            routed: Some((1, 4, 2)),
            panels: vec![(2, kind, 1)],
        },
        prologue: Vec::new(),
        ..gate_up()
    }
}

/// Down of these experts, added to a residual.
pub fn down() -> Kernel {
    let tile = WeightFormat::Mxfp4.tile(96).bytes();
    Kernel {
        vals: vec![
            val(RowType::Q8(96), 0),
            val(RowType::Routing(2), 1),
            val(RowType::F32(64), 3),
            val(RowType::F32(64), 4),
        ],
        prologue: Vec::new(),
        body: Body::ExpertDown {
            input: 0,
            routing: 1,
            experts: 4,
            top_k: 2,
            mat: Mat { expert_stride: 4 * tile, ..mat(2, WeightFormat::Mxfp4, 64, 96) },
            rows_per_item: 16,
            residual: Some(2),
            out: 3,
        },
        max_rows: 64,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// Six heads over two KV heads through a window, rounded, kept for an adapter.
pub fn attention() -> Kernel {
    Kernel {
        vals: vec![val(RowType::F32(192), 0), val(RowType::Q8(192), 2), val(RowType::F32(192), 3)],
        prologue: Vec::new(),
        body: Body::Attention(AttentionBody {
            q: 0,
            pool: 1,
            kind: LayerKind::Sliding,
            geometry: GEOMETRY,
            heads: 6,
            scale: 1.0.into(),
            softcap: Some(50.0.into()),
            causal: true,
            window: Some(100),
            tile_tokens: 4,
            by_runs: false,
            max_segments: 2,
            sinks: Some(5),
            out: 1,
            lora_input: Some(StoreRow { lora_targets: vec![4], ..store(2) }),
        }),
        max_rows: 1,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// The A of the chosen experts' adapters, behind norm, router and top-k.
pub fn shrink() -> Kernel {
    let lora_target = ShrinkLoraTarget { lora_target: 4, format: WeightFormat::F32, out: 4 };
    Kernel {
        vals: vec![
            val(RowType::F32(64), 0),
            scratch(RowType::F32(64)),
            scratch(RowType::F32(4)),
            scratch(RowType::Routing(2)),
            val(RowType::F32(MAX_RANK), 3),
        ],
        prologue: Vec::new(),
        body: Body::Shrink {
            input: 1,
            routed: Some((3, 4, 2)),
            input_slots: false,
            lora_targets: vec![lora_target],
            row_ops: vec![
                norm(0, 1),
                LinearRow { x: 1, mat: mat(2, WeightFormat::F32, 4, 64), out: 2 }.into(),
                top_k(2, 4, 2, 3).into(),
            ],
            by_rows: true,
        },
        max_rows: 1,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// A stage over rows, from value 0 to value 1.
pub fn rows(domain: Domain, from: RowType, to: RowType, row_op: RowOp) -> Kernel {
    Kernel {
        vals: vec![val(from, 0), val(to, 1)],
        prologue: Vec::new(),
        body: Body::Rows { domain, row_ops: vec![row_op] },
        max_rows: 1,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}

/// Wanted rows, normed by every worker, times the unembedding.
pub fn logits() -> Kernel {
    Kernel {
        vals: vec![
            val(RowType::F32(64), 0),
            scratch(RowType::F32(64)),
            scratch(RowType::F32(64)),
            val(RowType::F32(1000), 3),
        ],
        prologue: vec![SelectRow { x: 0, out: 1 }.into(), norm(1, 2)],
        body: Body::Matmul {
            domain: Domain::LogitRows,
            input: 2,
            parts: vec![part(vec![mat(2, WeightFormat::Bf16, 1000, 64)], 16, vec![store(3).into()])],
        },
        max_rows: 64,
        tiling: Tiling::Dot,
        panels: Vec::new(),
    }
}
