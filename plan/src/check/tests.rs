use super::*;
use crate::adapter::{Adapters, PackedAt, Site, SiteOut};
use crate::format::WeightFormat;
use crate::kv::{KvElem, KvGeometry, KvLayer};
use crate::program::{Ahead, RopeTable, StepWork, Symbol};
use crate::target::Level;

fn buffer(name: &str, offset: u64, bytes: u64, first: u32, last: u32) -> Buffer {
    Buffer { name: name.to_owned(), offset, bytes, first, last }
}

fn step(label: &str, operands: Vec<Operand>, reads: &[u32], writes: &[u32]) -> Step {
    Step {
        label: label.to_owned(),
        kernel: 0,
        operands,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        sites: Vec::new(),
        work: StepWork::default(),
        ahead: Ahead::default(),
    }
}

/// Two classes of: 0 embed -> x; 1 attend x -> y; 2 mlp y -> x2; | 3 norm x2 -> n; 4 unembed n -> logits.
fn sound() -> Program {
    let vocab = 40;
    let stride = f32_row_stride(vocab as usize) as u64;
    let class = |max_tokens: u32| {
        let rows = u64::from(max_tokens.min(16));
        let kv = Operand::Kv { layer: 1, kind: LayerKind::Sliding };
        TokenClass {
            max_tokens,
            routings: Vec::new(),
            steps: vec![
                step(
                    "embed",
                    vec![Operand::Weights { offset: 0, bytes: 640 }, Operand::Buffer(0)],
                    &[],
                    &[0],
                ),
                step("attend", vec![Operand::Buffer(0), kv, Operand::Rope(0)], &[0], &[1]),
                step("mlp", vec![Operand::Buffer(2), Operand::Buffer(1)], &[1], &[2]),
            ],
            logit_steps: vec![
                step("norm", vec![Operand::Buffer(2), Operand::Buffer(3)], &[2], &[3]),
                step("unembed", vec![Operand::Buffer(3), Operand::Buffer(4)], &[3], &[4]),
            ],
            logits: 256,
            buffers: vec![
                buffer("x", 0, 64, 0, 1),
                buffer("y", 64, 64, 1, 2),
                buffer("x2", 0, 64, 2, 3),
                buffer("n", 128, 128, 3, 4),
                buffer("logits", 256, rows * stride, 4, 4),
            ],
        }
    };
    Program {
        level: Level::V3,
        model: ModelInfo {
            name: "tiny".to_owned(),
            preset: "exact".to_owned(),
            vocab,
            max_context: 64,
            kv: KvLayers {
                geometry: KvGeometry { kv_heads: 1, head_dim: 4, elem: KvElem::F32 },
                layers: vec![
                    KvLayer { kind: LayerKind::Full, window: None },
                    KvLayer { kind: LayerKind::Sliding, window: Some(8) },
                ],
            },
            ropes: vec![RopeTable { inv_freq: vec![1.0, 0.1], factor: 1.0 }],
            decode_bytes: 0,
            adapters: None,
        },
        classes: vec![class(1), class(8)],
        arena_bytes: 256 + 8 * stride,
        scratch_bytes: 0,
        weight_bytes: 640,
        code: CodeBlob {
            bytes: vec![0xc3; 65],
            symbols: vec![
                Symbol { name: "kernel".to_owned(), offset: 0, size: 1, kernel: true },
                Symbol { name: "leaf".to_owned(), offset: 64, size: 1, kernel: false },
            ],
        },
    }
}

/// The error of a sound program after one change.
fn broken(change: impl FnOnce(&mut Program)) -> CheckError {
    let mut program = sound();
    change(&mut program);
    check_program(&program).expect_err("the change is a fault")
}

#[test]
fn a_sound_program_passes() {
    assert_eq!(check_program(&sound()), Ok(()));
}

#[test]
fn model_facts() {
    assert!(matches!(broken(|p| p.model.vocab = 0), CheckError::Model { what: "vocab", .. }));
    assert!(matches!(broken(|p| p.model.max_context = 0), CheckError::Model { what: "max_context", .. }));
    assert!(matches!(broken(|p| p.model.kv.geometry.kv_heads = 0), CheckError::Model { .. }));
    assert!(matches!(
        broken(|p| p.model.kv.layers[1].window = Some(0)),
        CheckError::KvLayer { layer: 1, .. }
    ));
    assert!(matches!(
        broken(|p| p.model.kv.layers[0].window = Some(9)),
        CheckError::KvLayer { layer: 0, .. }
    ));
    assert!(matches!(broken(|p| p.model.ropes[0].inv_freq.push(0.0)), CheckError::Rope { table: 0, .. }));
    assert!(matches!(broken(|p| p.model.ropes[0].factor = f64::NAN), CheckError::Rope { .. }));
}

#[test]
fn symbols() {
    for change in [
        |p: &mut Program| p.code.symbols[1].offset = 63,
        |p: &mut Program| p.code.symbols[1].size = 2,
        |p: &mut Program| p.code.symbols[1].size = u64::MAX,
        |p: &mut Program| p.code.symbols[0].size = 65,
        |p: &mut Program| p.code.symbols.swap(0, 1),
        |p: &mut Program| p.code.symbols[0].size = 0,
    ] {
        assert!(matches!(broken(change), CheckError::Symbol { .. }));
    }
}

#[test]
fn classes_ascend() {
    assert!(matches!(broken(|p| p.classes.clear()), CheckError::Classes { .. }));
    assert!(matches!(broken(|p| p.classes[0].max_tokens = 0), CheckError::Classes { class: 0, .. }));
    assert!(matches!(
        broken(|p| p.classes[1].max_tokens = 1),
        CheckError::Classes { class: 1, max_tokens: 1, previous: 1 }
    ));
}

#[test]
fn buffers_lie_in_the_arena() {
    for change in [
        |p: &mut Program| p.classes[0].buffers[1].offset = 32,
        |p: &mut Program| p.classes[1].buffers[3].offset = u64::MAX - 63,
        |p: &mut Program| p.arena_bytes -= 1,
        |p: &mut Program| p.classes[0].buffers[1].last = 5,
        |p: &mut Program| p.classes[0].buffers[1].first = 3,
    ] {
        assert!(matches!(broken(change), CheckError::Buffer { .. }));
    }
    let error = broken(|p| p.classes[0].buffers[1].first = 0);
    assert_eq!(
        error.to_string(),
        "class 1, buffer `y`: step 0 is its first, but does not write it",
        "a life starts with a write"
    );
}

#[test]
fn live_buffers_do_not_share_bytes() {
    assert_eq!(
        broken(|p| p.classes[1].buffers[1].offset = 0),
        CheckError::Overlap { class: 8, first: "x".to_owned(), second: "y".to_owned(), step: 1 }
    );
}

#[test]
fn what_a_logits_step_reads_survives_every_slab() {
    // `x2` dies at step 3 and `logits` is born at step 4, but the second slab reads `x2` again.
    let error = broken(|p| {
        p.classes[1].logits = 0;
        p.classes[1].buffers[4].offset = 0;
    });
    assert_eq!(
        error,
        CheckError::Overlap { class: 8, first: "x2".to_owned(), second: "logits".to_owned(), step: 4 }
    );
}

#[test]
fn steps_refer_to_what_is_there() {
    let kv = |layer, kind| Operand::Kv { layer, kind };
    type Case = (fn(&mut Program), &'static str);
    let cases: [Case; 8] = [
        (|p| p.classes[0].steps[0].kernel = 2, "kernel 2 of 2 symbols"),
        (|p| p.classes[0].steps[0].kernel = 1, "`leaf` does not follow the kernel ABI"),
        (|p| p.weight_bytes = 639, "operand 0: 640 bytes at 0 pass the weight region's end at 639"),
        (|p| p.classes[0].steps[2].operands[0] = Operand::Buffer(9), "operand 0: buffer 9 of 5"),
        (
            |p| p.classes[0].steps[2].operands[0] = Operand::Buffer(0),
            "operand 0: buffer 0 is in neither `reads` nor `writes`",
        ),
        (|p| p.classes[0].steps[1].operands[2] = Operand::Rope(1), "operand 2: rotary table 1 of 1"),
        (
            |p| p.classes[0].steps[2].reads.push(0),
            "uses buffer `x` at step 2, which is live over steps 0..=1",
        ),
        (|p| p.classes[0].steps[2].reads.push(7), "uses buffer 7 of 5"),
    ];
    for (change, message) in cases {
        match broken(change) {
            CheckError::Step { message: found, .. } => assert_eq!(found, message),
            other => panic!("{other}"),
        }
    }
    for operand in [kv(2, LayerKind::Full), kv(0, LayerKind::Sliding)] {
        assert!(matches!(broken(|p| p.classes[0].steps[1].operands[1] = operand), CheckError::Step { .. }));
    }
    let weights = Operand::Weights { offset: u64::MAX - 63, bytes: 64 };
    assert!(matches!(broken(|p| p.classes[0].steps[0].operands[0] = weights), CheckError::Step { .. }));
}

#[test]
fn logits_are_a_buffer_that_a_logits_step_writes() {
    assert!(matches!(broken(|p| p.classes[0].logits = 64), CheckError::Logits { class: 1, offset: 64, .. }));
    assert!(matches!(broken(|p| p.classes[1].buffers[4].bytes -= 1), CheckError::Logits { class: 8, .. }));
    assert!(matches!(broken(|p| p.model.vocab = 41 + 16), CheckError::Logits { .. }));
}

/// A program that takes adapters at one site of experts, whose gate and up rows alternate.
fn with_adapters(change: impl FnOnce(&mut Adapters)) -> Program {
    let mut program = sound();
    let out = |first, offset| SiteOut {
        name: "gate".to_owned(),
        rows: 17,
        first,
        step: 2,
        weights: PackedAt { format: WeightFormat::Bf16, offset, tile_stride: 128, expert_stride: 256 },
    };
    let outs = vec![out(0, 0), out(1, 64)];
    let site = Site { name: "layers.0.gate".to_owned(), tensor: "t".to_owned(), k: 4, experts: 2, outs };
    let mut adapters = Adapters { format: WeightFormat::F32, sites: vec![site] };
    program.weight_bytes = 640;
    change(&mut adapters);
    program.model.adapters = Some(adapters);
    program
}

#[test]
fn sites_of_adapters() {
    assert_eq!(check_program(&with_adapters(|_| {})), Ok(()));
    type Fault = (fn(&mut Adapters), &'static str);
    let faults: [Fault; 10] = [
        (|a| a.format = WeightFormat::Int8, "adapter format is int8, expected f32 or bf16"),
        (|a| a.sites[0].k = 6, "6 columns, expected a multiple of 4"),
        (|a| a.sites[0].experts = u32::MAX, "4294967295 experts"),
        (|a| a.sites[0].outs.clear(), "0 matrices, expected 1 or 2"),
        (|a| a.sites[0].outs[1].rows = 0, "`gate` has 0 rows"),
        (|a| a.sites[0].outs[1].first = 2, "`gate` takes row 34 of 34"),
        (|a| a.sites[0].outs[1].step = 0, "`gate` takes row 1 again and again"),
        (|a| a.sites[0].outs[1].weights.offset += 64, "`gate` ends at byte 640 of 639 of weights"),
        (|a| a.sites[0].outs[0].weights.tile_stride = 64, "no legal place in the weights"),
        (|a| a.sites[0].outs[0].weights.expert_stride = u64::MAX - 63, "no legal place in the weights"),
    ];
    for (change, expected) in faults {
        let mut program = with_adapters(change);
        program.weight_bytes -= u64::from(expected.contains("639"));
        let error = check_program(&program).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut program = with_adapters(|_| {});
    program.classes[0].steps[0].sites = vec![1];
    assert!(check_program(&program).unwrap_err().to_string().ends_with("adapter site 1 of 1"));
    program.classes[0].steps[0].sites = vec![0];
    program.classes[0].steps[0].operands.push(Operand::Site(7));
    assert!(check_program(&program).unwrap_err().to_string().ends_with("adapter site 7 of 1"));
}
