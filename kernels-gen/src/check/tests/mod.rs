//! Sound kernels of every kind pass, with the needs that they have; each of them with one thing wrong is
//! refused.

use super::check;
use crate::expr::Expr;
use crate::expr::testing::var;
use crate::kernel::{
    AttentionBody, Body, Domain, Home, Kernel, KvPlane, Mat, MatrixPart, RowOp, RowType, ShrinkLoraTarget,
    Tiling, ValId,
};
use crate::row_op::{
    ElementwiseRow, EmbedRow, HeadRotation, NormRow, RopeRow, RoundRow, RoundTo, RowPlace, SelectRow,
    StoreRow,
};
use crate::ukernel::gemm_q8::DotStep;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::contract::Need;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::{KvFormat, KvRow};
use samples::*;

mod samples;

fn buffer(slots: u32, row_bytes: u64, read: bool) -> Need {
    Need::Buffer { slots, wanted: false, row_bytes, read, written: !read }
}

fn weights(bytes: usize) -> Need {
    Need::Weights { bytes: bytes as u64, behind: None }
}

#[test]
fn needs_are_what_bodies_touch() {
    let contract = check(&projections()).unwrap();
    let tile = WeightFormat::Int8.tile(64).bytes();
    let lora_target =
        Need::LoraTarget { columns: None, tiles: 6, experts: 0, format: Some(WeightFormat::Bf16) };
    let kv = Need::Kv { geometry: GEOMETRY, kind: Some(FULL), view: 0 };
    assert_eq!(
        contract.operands,
        [
            buffer(1, 256, true),
            weights(256),
            weights(8 * tile),
            weights(4 * tile),
            // 40 rows are three tiles.
            weights(3 * tile),
            weights(192),
            Need::Rope { rotary_dim: 32 },
            kv,
            buffer(1, 512, false),
            buffer(1, 192, false),
            lora_target,
            buffer(1, 4 * MAX_RANK as u64, true),
        ]
    );
    assert_eq!((contract.max_tokens, contract.max_context), (8, 1 << 24));

    let contract = check(&gate_up()).unwrap();
    let tile = WeightFormat::Mxfp4.tile(64).bytes() as u64;
    // Of the last expert's last tile on, the other matrix's tile is not its own.
    let bytes = 48 * tile - tile;
    assert_eq!(contract.operands[2], Need::Weights { bytes, behind: None });
    assert_eq!(contract.operands[3], Need::Weights { bytes, behind: Some((2, tile)) });
    assert_eq!(contract.operands[4..6], [weights(4 * 384), weights(4 * 384)]);
    assert_eq!(contract.operands[6], buffer(2, RowType::Q8(96).stride() as u64, false));
    assert_eq!(contract.max_tokens, 32);

    let contract = check(&down()).unwrap();
    assert_eq!(contract.operands[0], buffer(2, RowType::Q8(96).stride() as u64, true));
    assert_eq!(contract.operands[3..], [buffer(1, 256, true), buffer(1, 256, false)]);

    let contract = check(&attention()).unwrap();
    assert_eq!(contract.max_context, 1 << 24, "a window's segments do not depend on the context");
    let Need::Kv { view: 100, .. } = contract.operands[1] else { panic!("{contract:?}") };
    let with_segments = |max_segments| {
        let mut kernel = attention();
        let Body::Attention(body) = &mut kernel.body else { unreachable!() };
        (body.window, body.kind, body.max_segments) = (None, FULL, max_segments);
        check(&kernel).unwrap().max_context
    };
    assert_eq!([1, 3].map(with_segments), [1024, 3072]);
    // Tokens that see what follows see as much on either side of them, and their texts run whole.
    let mut kernel = attention();
    let Body::Attention(body) = &mut kernel.body else { unreachable!() };
    (body.causal, body.kind) = (false, FULL);
    let contract = check(&kernel).unwrap();
    let Need::Kv { view: u32::MAX, .. } = contract.operands[1] else { panic!("{contract:?}") };
    assert!(contract.whole_texts && contract.max_context == 1 << 24);

    let contract = check(&shrink()).unwrap();
    assert_eq!(contract.operands[3], buffer(2, 4 * MAX_RANK as u64, false));
    let lora_target =
        Need::LoraTarget { columns: Some(64), tiles: 0, experts: 4, format: Some(WeightFormat::F32) };
    assert_eq!(contract.operands[4], lora_target);
    // The bias of the choice is read in whole tiles.
    assert_eq!(contract.operands[5], weights(64));

    let contract = check(&logits()).unwrap();
    let out = Need::Buffer { slots: 0, wanted: true, row_bytes: 4032, read: false, written: true };
    assert_eq!(contract.operands[3], out);
    assert_eq!(contract.operands[0], buffer(1, 256, true));

    let embed = EmbedRow { table: 0, format: WeightFormat::Bf16, row_bytes: 128, positions: None, out: 0 };
    let mut kernel = rows(Domain::Tokens, RowType::F32(64), RowType::F32(64), embed.into());
    kernel.vals = vec![val(RowType::F32(64), 1)];
    assert_eq!(
        check(&kernel).unwrap().operands,
        [Need::Table { row_bytes: 128, rows: 1 }, buffer(1, 256, false)]
    );
}

#[test]
fn what_a_kernel_writes_first_it_does_not_need() {
    let add = |x: ValId, out| -> RowOp {
        ElementwiseRow { expr: Expr::Var(0), inputs: vec![x], vectors: vec![], out: RowPlace::Row(out) }
            .into()
    };
    let mut kernel = rows(Domain::Slots(2), RowType::F32(20), RowType::F32(20), add(0, 1));
    let Body::Rows { row_ops, .. } = &mut kernel.body else { unreachable!() };
    row_ops.extend([add(1, 0), add(0, 1)]);
    let both = Need::Buffer { slots: 2, wanted: false, row_bytes: 128, read: true, written: true };
    assert_eq!(check(&kernel).unwrap().operands, [both, buffer(2, 128, false)]);
}

/// The error of a kernel after a change.
fn refused(mut kernel: Kernel, change: impl FnOnce(&mut Kernel)) -> String {
    change(&mut kernel);
    check(&kernel).expect_err("the change is a fault").to_string()
}

/// A part of a kernel of matrices.
fn nth(kernel: &mut Kernel, index: usize) -> &mut MatrixPart {
    match &mut kernel.body {
        Body::Matmul { parts, .. } => &mut parts[index],
        Body::Experts { part, .. } => part,
        other => panic!("{other:?}"),
    }
}

#[test]
fn items_divide_their_matrices() {
    type Case = (fn() -> Kernel, fn(&mut Kernel), &'static str);
    let cases: [Case; 9] = [
        // As a fourth projection in items of heads.
        (
            projections,
            |k| nth(k, 2).rows_per_item = 32,
            "part 2: items of 32 rows, expected a multiple of 16 that divides 48",
        ),
        (projections, |k| nth(k, 0).rows_per_item = 24, "items of 24 rows"),
        (projections, |k| nth(k, 0).rows_per_item = 0, "items of 0 rows"),
        (projections, |k| with_head(k, 16), "64 rows in items of 16, expected 2 heads of 32"),
        (projections, |k| nth(k, 1).rows_per_item = 64, "items of 64 rows, heads of 32"),
        (gate_up, |k| nth(k, 0).rows_per_item = 16, "16 columns, expected a multiple of 32"),
        (gate_up, |k| nth(k, 0).rows_per_item = 64, "items of 64 rows"),
        (down, |k| with_down(k, |rows_per_item, _| *rows_per_item = 48), "items of 48 rows"),
        (down, |k| with_down(k, |_, mat| mat.n = 40), "value 2 is F32(64), expected F32(40)"),
    ];
    for (kernel, change, expected) in cases {
        let found = refused(kernel(), change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

/// The second part, keys, with items of `rows_per_item` rows and without rotation.
fn with_head(kernel: &mut Kernel, rows_per_item: usize) {
    let part = nth(kernel, 1);
    part.rows_per_item = rows_per_item;
    part.epilogue.remove(0);
}

fn with_down(kernel: &mut Kernel, change: impl FnOnce(&mut usize, &mut Mat)) {
    let Body::ExpertDown { rows_per_item, mat, .. } = &mut kernel.body else { panic!("not a down") };
    change(rows_per_item, mat);
}

#[test]
fn values_have_the_rows_that_bodies_take() {
    type Case = (fn() -> Kernel, fn(&mut Kernel), &'static str);
    let cases: [Case; 14] = [
        // Too few columns, or too many.
        (projections, |k| k.vals[4].row = RowType::F32(32), "value 4 is F32(32), expected F32(40)"),
        (projections, |k| k.vals[2].row = RowType::Q8(32), "value 2 is Q8(32), expected Q8(64)"),
        (projections, |k| k.vals[5].row = RowType::F32(16), "value 5 is F32(16), expected F32"),
        (gate_up, |k| k.vals[2].row = RowType::Q8(64), "value 2 is Q8(64), expected Q8(96)"),
        (attention, |k| k.vals[0].row = RowType::F32(160), "value 0 is F32(160), expected F32(192)"),
        // Of the wrong kind.
        (gate_up, |k| k.vals[1].row = RowType::F32(2), "value 1 is F32(2), expected Routing(2)"),
        (gate_up, |k| k.vals[0].row = RowType::F32(64), "panels of F32(64)"),
        (down, |k| k.vals[3].row = RowType::F16(64), "value 3 is F16(64), expected F32(64)"),
        (attention, |k| k.vals[1].row = RowType::F16(192), "its results are F16(192)"),
        (logits, |k| k.vals[1].row = RowType::Routing(64), "value 1 is Routing(64), expected F32(64)"),
        // In scratch, which has no room for them.
        (gate_up, |k| k.vals[2].home = Home::Scratch, "value 2 is in scratch"),
        (down, |k| k.vals[0].home = Home::Scratch, "value 0 is in scratch"),
        (logits, |k| k.vals[0].home = Home::Scratch, "value 0 is in scratch"),
        (shrink, |k| k.vals[1].home = Home::ScratchExceptWorker0(5), "value 1 is shared"),
    ];
    for (kernel, change, expected) in cases {
        let found = refused(kernel(), change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

#[test]
fn matrices_lie_as_bodies_read_them() {
    type Case = (fn() -> Kernel, fn(&mut Kernel), &'static str);
    let cases: [Case; 13] = [
        (projections, |k| nth(k, 0).mats[0].k = 32, "a matrix of 128 rows and 32 columns, its input has 64"),
        (projections, |k| nth(k, 0).mats[0].n = 0, "a matrix of 0 rows"),
        (projections, |k| nth(k, 0).mats[0].format = WeightFormat::Bf16, "bf16 times Q8(64)"),
        (projections, |k| nth(k, 0).mats[0].tile_stride -= 64, "tiles of 1088 bytes are 1024 apart"),
        (projections, |k| nth(k, 0).mats[0].tile_stride = usize::MAX - 63, "more bytes than memory"),
        (gate_up, |k| nth(k, 0).mats[1].n = 64, "matrices of 96 and of 64 rows meet"),
        (
            gate_up,
            |k| nth(k, 0).mats[1].format = WeightFormat::Int4,
            "panels of Q8(64), or of several formats",
        ),
        (gate_up, |k| nth(k, 0).mats[1].expert_stride = 1, "experts are 1 bytes apart"),
        (gate_up, |k| nth(k, 0).mats[1].expert_stride += 64, "two matrices alternate"),
        (gate_up, |k| nth(k, 0).mats[0].tile_stride /= 2, "two matrices alternate"),
        (projections, |k| nth(k, 0).interleaved = true, "1 matrices alternate, expected two"),
        (gate_up, |k| nth(k, 0).mats[1].operand = 2, "operand 2 alternates with operand 2"),
        (down, |k| with_down(k, |_, mat| mat.expert_stride = 0), "experts are 0 bytes apart"),
    ];
    for (kernel, change, expected) in cases {
        let found = refused(kernel(), change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

/// The step that fills panels and the one that reads them ask for as many bytes: of 64 slots of four experts,
/// three have a row more than whole groups of six.
#[test]
fn panels_have_room_for_every_group() {
    let block = DotStep::K4.decoded(WeightFormat::Mxfp4).panel().block as u64;
    let bytes = (4 + (64 - 4) / 6) * 2 * block;
    let filled = check(&panels()).unwrap().operands[2];
    assert_eq!(filled, Need::Panels { bytes, read: false, written: true });
    let shared = Kernel { panels: vec![7], ..gate_up() };
    let read = check(&shared).unwrap().operands[7];
    assert_eq!(read, Need::Panels { bytes, read: true, written: false });
    for (kernel, change, expected) in [
        (shared.clone(), (|k| k.panels.push(8)) as fn(&mut Kernel), "2 buffers of panels, expected 1"),
        (shared.clone(), |k| k.panels = vec![0], "operand 0 is used as panels, and is a buffer"),
        (shared, |k| k.tiling = Tiling::Dot, "1 buffers of panels, expected 0"),
        (panels(), |k| k.vals[0].row = RowType::Bf16(64), "panels of q8 for mxfp4 made of Bf16(64)"),
        (panels(), |k| k.max_rows = 1, "there is no room for a token"),
    ] {
        let found = refused(kernel, change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

const TILES: Tiling = Tiling::Tiles { least_rows: 4 };

#[test]
fn tiles_multiply_q8_rows() {
    for kernel in [gate_up(), down(), projections()] {
        let sound = Kernel { tiling: TILES, ..kernel };
        assert!(check(&sound).is_ok());
        let found = refused(sound, |k| k.tiling = Tiling::Tiles { least_rows: 0 });
        assert!(found.contains("tiles of Q8("), "{found}");
    }
    let mut int8 = Kernel { tiling: TILES, ..down() };
    with_down(&mut int8, |_, m| {
        let expert_stride = 4 * WeightFormat::Int8.tile(96).bytes();
        *m = Mat { expert_stride, ..mat(2, WeightFormat::Int8, 64, 96) };
    });
    assert!(check(&int8).is_ok());
    // One panel serves a part, and panels have q8 rows.
    let of_two_formats = refused(Kernel { tiling: TILES, ..gate_up() }, |k| {
        nth(k, 0).mats[1].format = WeightFormat::Int4;
    });
    assert!(of_two_formats.contains("or of several formats at once"), "{of_two_formats}");
    let of_bf16 = refused(Kernel { tiling: TILES, ..down() }, |k| k.vals[0].row = RowType::Bf16(96));
    assert!(of_bf16.contains("tiles of Bf16(96)"), "{of_bf16}");
}

#[test]
fn an_operand_is_one_thing() {
    type Case = (fn() -> Kernel, fn(&mut Kernel), &'static str);
    let cases: [Case; 7] = [
        (projections, |k| nth(k, 2).mats[0].bias = Some(0), "operand 0 is used as weights, and is a buffer"),
        (
            projections,
            |k| k.vals[3].home = Home::Operand(2),
            "operand 2 is used as rows of another size, and is weights",
        ),
        (projections, |k| k.vals[4].home = Home::Operand(8), "operand 8 is used as rows of another size"),
        (projections, |k| nth(k, 1).epilogue[0] = turn(7), "operand 7 is used as another KV pool"),
        (
            shrink,
            |k| with_lora_targets(k, |lora_target| lora_target.lora_target = 3),
            "operand 3 is used as another LoRA target",
        ),
        (down, |k| k.vals.push(val(RowType::F32(64), 5)), "nothing reads or writes value 4"),
        (down, |k| k.vals[3].home = Home::Operand(5), "nothing uses operand 4"),
    ];
    for (kernel, change, expected) in cases {
        let found = refused(kernel(), change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

fn with_lora_targets(kernel: &mut Kernel, change: impl Fn(&mut ShrinkLoraTarget)) {
    let Body::Shrink { lora_targets, .. } = &mut kernel.body else { panic!("not a shrink") };
    lora_targets.iter_mut().for_each(change);
}

#[test]
fn epilogues_and_row_ops_work_on_what_is_there() {
    type Case = (fn() -> Kernel, fn(&mut Kernel), &'static str);
    let cases: [Case; 12] = [
        (gate_up, |k| drop(nth(k, 0).epilogue.remove(0)), "2 units, expected them to be combined"),
        (gate_up, |k| nth(k, 0).epilogue.clear(), "its results go nowhere"),
        (
            gate_up,
            |k| {
                let expr = var(0) * var(1) * var(2);
                nth(k, 0).epilogue[0] =
                    ElementwiseRow { expr, inputs: vec![], vectors: vec![], out: RowPlace::Results }.into();
            },
            "its expression reads 3 inputs, there are 2",
        ),
        (gate_up, |k| nth(k, 0).epilogue[1] = write(6, KvPlane::V), "its rows are Slots(2), expected Tokens"),
        // Rows where results are at hand, and the other way round; and an operation that knows rows only.
        (
            projections,
            |k| nth(k, 2).epilogue[0] = StoreRow { x: RowPlace::Row(0), ..store(4) }.into(),
            "part 2, step 0 of its epilogue, store: works on something else than the results at hand",
        ),
        (
            projections,
            |k| nth(k, 2).epilogue[0] = SelectRow { x: 4, out: 4 }.into(),
            "select_rows: works on something else than the results at hand",
        ),
        (
            projections,
            |k| k.prologue[1] = RoundRow { x: RowPlace::Results, to: RoundTo::Q8, out: 2 }.into(),
            "prologue, quantize_q8: works on something else than rows of values",
        ),
        (
            projections,
            |k| {
                let Body::Matmul { domain, .. } = &mut k.body else { return };
                *domain = Domain::LogitRows;
            },
            "lists of 8 rows, expected 64",
        ),
        (
            projections,
            |k| k.prologue[1] = RoundRow { x: RowPlace::Row(1), to: RoundTo::Q8, out: 3 }.into(),
            "quantize_q8 writes no value of the worker's own",
        ),
        (logits, |k| k.max_rows = 63, "lists of 63 rows, expected 64"),
        (gate_up, |k| k.max_rows = 1, "there is no room for a token"),
        (projections, |k| k.vals[1].row = RowType::F32(40), "value 1 is F32(40), expected F32(64)"),
    ];
    for (kernel, change, expected) in cases {
        let found = refused(kernel(), change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    let (x, out) = (0, 1);
    let round = |to| RoundRow { x: RowPlace::Row(x), to, out }.into();
    let turned = |head| RopeRow { x: RowPlace::Row(x), table: 2, head, out: RowPlace::Row(out) }.into();
    let rope = |head_dim| turned(HeadRotation::whole(head_dim));
    let row_ops: [(RowType, RowType, RowOp, &str); 8] = [
        (RowType::F32(40), RowType::Q8(64), round(RoundTo::Q8), "40 columns, expected a multiple of 32"),
        (
            RowType::F32(24),
            RowType::F32(24),
            NormRow {
                x: RowPlace::Row(x),
                weight: Some(2),
                bias: None,
                eps: 0.0.into(),
                head_dim: None,
                is_centred: false,
                out: RowPlace::Row(out),
            }
            .into(),
            "a multiple of 16",
        ),
        (RowType::F32(48), RowType::F32(48), rope(32), "a multiple of 32"),
        (RowType::F32(48), RowType::F32(48), rope(12), "heads of 12"),
        (
            RowType::F32(6),
            RowType::F16(6),
            round(RoundTo::Kv(KvRow::new(KvFormat::F16, 0))),
            "6 columns, expected a multiple of 4",
        ),
        (RowType::F32(8), RowType::Routing(9), top_k(x, 8, 9, out).into(), "the best 9 of 8"),
        (RowType::F32(8), RowType::Routing(2), top_k(x, 9, 2, out).into(), "value 0 is F32(8)"),
        (
            RowType::F32(8),
            RowType::F32(8),
            SelectRow { x, out }.into(),
            "its rows are Tokens, expected Logits",
        ),
    ];
    for (from, to, row_op, expected) in row_ops {
        let found = check(&rows(Domain::Tokens, from, to, row_op)).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

#[test]
fn attention_has_heads_segments_and_a_window() {
    let refused = |change: fn(&mut AttentionBody)| {
        refused(attention(), |kernel| {
            let Body::Attention(body) = &mut kernel.body else { unreachable!() };
            change(body);
        })
    };
    type Case = (fn(&mut AttentionBody), &'static str);
    let cases: [Case; 8] = [
        (|a| a.causal = false, "a Sliding layer with a window of Some(100)"),
        (|a| a.heads = 5, "5 heads for 2 KV heads"),
        (|a| a.heads = 258, "258 heads for 2 KV heads"),
        (|a| a.geometry.head_dim = 24, "24 columns, expected a multiple of 16"),
        (|a| a.geometry.kv_heads = 0, "0 KV heads"),
        (|a| a.max_segments = 0, "0 segments"),
        (|a| a.window = Some(0), "a window of Some(0)"),
        (|a| a.kind = FULL, "a Full layer with a window of Some(100)"),
    ];
    for (change, expected) in cases {
        let found = refused(change);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

/// The count here is the generator's, but for the gaps between areas, which begin on lines.
#[test]
fn scratch_holds_what_bodies_keep_there() {
    let tiles = [gate_up(), down()].map(|kernel| Kernel { tiling: TILES, ..kernel });
    let shared = Kernel { panels: vec![7], ..gate_up() };
    let kernels = [projections(), panels(), gate_up(), shared, down(), attention(), shrink(), logits()];
    for kernel in kernels.into_iter().chain(tiles) {
        let least = super::touched(&kernel).unwrap().least_scratch(&kernel);
        let taken = crate::body::scratch_bytes(&kernel);
        assert!((least..least + 16 * 64).contains(&taken), "{taken} bytes for {least}: {:?}", kernel.body);
    }
}
