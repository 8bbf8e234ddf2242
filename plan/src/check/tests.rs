use super::*;
use crate::adapter::{Adapters, LoraTarget, LoraTargetSlice, PackedAt};
use crate::contract::{Contract, Need};
use crate::format::WeightFormat;
use crate::kv::{KvFormat, KvGeometry, KvLayer, KvPair};
use crate::program::{RopeTable, StepWork, Symbol, TokenRows, WantedOnly, WeightReads};
use crate::target::Level;
use crate::vectors::ModelOutput;

fn buffer(name: &str, offset: u64, bytes: u64, first: u32, last: u32) -> Buffer {
    Buffer { name: name.to_owned(), offset, bytes, first, last }
}

/// A step of the kernel of that name.
fn step(label: &str, operands: Vec<Operand>, reads: &[u32], writes: &[u32]) -> Step {
    let kernel = KERNELS.iter().position(|(name, _)| *name == label).expect("one kernel for each step");
    Step {
        label: label.to_owned(),
        kernel: kernel as u32,
        operands,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        lora_targets: Vec::new(),
        work: StepWork::default(),
        weight_reads: WeightReads::default(),
    }
}

/// The functions, 64 bytes apart; `ukernel` is no kernel.
const KERNELS: [(&str, bool); 6] =
    [("embed", true), ("leaf", false), ("attend", true), ("mlp", true), ("norm", true), ("unembed", true)];

const GEOMETRY: KvGeometry =
    KvGeometry { kv_heads: 1, head_dim: 4, v_head_dim: 4, formats: KvPair::both(KvFormat::F32) };

/// The demands of each kernel: rows of 8 bytes for each token, of 16 for each wanted row.
fn contract(name: &str) -> Contract {
    let rows = |read| Need::Buffer { slots: 1, wanted: false, row_bytes: 8, read, written: !read };
    let wanted = |row_bytes, read| Need::Buffer { slots: 0, wanted: true, row_bytes, read, written: !read };
    let kv = Need::Kv { geometry: GEOMETRY, kind: Some(LayerKind::Sliding), view: 8 };
    let operands = match name {
        "embed" => vec![Need::Table { row_bytes: 16, rows: 1 }, rows(false)],
        "attend" => vec![rows(true), kv, Need::Rope { rotary_dim: 4 }],
        "mlp" => vec![rows(false), rows(true)],
        "norm" => vec![rows(true), wanted(16, false)],
        _ => vec![wanted(16, true), wanted(f32_row_stride(40) as u64, false)],
    };
    Contract {
        operands,
        scratch_bytes: 128,
        max_tokens: 8,
        max_context: 64,
        listed_tiles: 0,
        whole_texts: false,
    }
}

fn all_symbols() -> Vec<Symbol> {
    let symbol = |(index, (name, kernel)): (usize, &(&str, bool))| Symbol {
        name: (*name).to_owned(),
        offset: index as u64 * 64,
        size: 1,
        contract: kernel.then(|| contract(name)),
    };
    KERNELS.iter().enumerate().map(symbol).collect()
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
            wanted_only: None,
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
            output: ModelOutput::Logits,
            max_context: 64,
            kv: KvLayers {
                full: GEOMETRY,
                sliding: GEOMETRY,
                layers: vec![
                    KvLayer { kind: LayerKind::Full, window: None },
                    KvLayer { kind: LayerKind::Sliding, window: Some(8) },
                ],
            },
            ropes: vec![RopeTable { inv_freq: vec![1.0, 0.1], factor: 1.0 }],
            whole_texts: false,
            decode_bytes: 0,
            adapters: None,
        },
        classes: vec![class(1), class(8)],
        arena_bytes: 256 + 8 * stride,
        scratch_bytes: 128,
        weight_bytes: 640,
        code: CodeBlob { bytes: vec![0xc3; 5 * 64 + 1], symbols: all_symbols() },
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

/// Rows that are moved for the wanted ones: buffer `y` crosses step 2.
#[test]
fn rows_that_are_moved_are_there() {
    let with = |step: u32, buffer: u32, bytes: u64| {
        let mut program = sound();
        let rows = vec![TokenRows { buffer, bytes }];
        program.classes[1].wanted_only = Some(WantedOnly { step, rows });
        check_program(&program).map_err(|error| error.to_string())
    };
    assert_eq!(with(2, 1, 8), Ok(()));
    for (step, buffer, bytes, expected) in [
        (0, 1, 8, "to be the first for wanted rows alone, of 3 steps"),
        (3, 1, 8, "to be the first for wanted rows alone, of 3 steps"),
        (2, 5, 8, "moves rows of buffer 5 of 5"),
        (2, 1, 9, "moves rows of 9 bytes in `y`, 64 bytes"),
        (2, 1, u64::MAX, "moves rows of 18446744073709551615 bytes in `y`"),
        (2, 0, 8, "in `x`, 64 bytes that live over steps 0..=1"),
        (2, 2, 8, "in `x2`, 64 bytes that live over steps 2..=3"),
    ] {
        let message = with(step, buffer, bytes).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn model_facts() {
    assert!(matches!(broken(|p| p.model.vocab = 0), CheckError::Model { what: "vocab", .. }));
    assert!(matches!(broken(|p| p.model.max_context = 0), CheckError::Model { what: "max_context", .. }));
    assert!(matches!(broken(|p| p.model.kv.full.kv_heads = 0), CheckError::Model { .. }));
    assert!(matches!(broken(|p| p.model.kv.sliding.kv_heads = 0), CheckError::Model { .. }));
    assert!(matches!(
        broken(|p| p.model.kv.layers[1].window = Some(0)),
        CheckError::KvLayer { layer: 1, .. }
    ));
    assert!(matches!(
        broken(|p| p.model.kv.layers[0].window = Some(9)),
        CheckError::KvLayer { layer: 0, .. }
    ));
    assert!(matches!(broken(|p| p.model.ropes[0].inv_freq.clear()), CheckError::Rope { table: 0, .. }));
    assert!(matches!(broken(|p| p.model.ropes[0].factor = f64::NAN), CheckError::Rope { .. }));
}

#[test]
fn symbols() {
    for change in [
        |p: &mut Program| p.code.symbols[1].offset = 63,
        |p: &mut Program| p.code.symbols[5].size = 2,
        |p: &mut Program| p.code.symbols[5].size = u64::MAX,
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
        (|p| p.classes[0].steps[0].kernel = 6, "kernel 6 of 6 symbols"),
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

/// The need of operand `n` of kernel `symbol`.
fn need(program: &mut Program, symbol: usize, n: usize) -> &mut Need {
    &mut program.code.symbols[symbol].contract.as_mut().expect("a kernel").operands[n]
}

#[test]
fn steps_keep_to_the_contracts_of_their_kernels() {
    type Case = (fn(&mut Program), &'static str);
    let cases: [Case; 17] = [
        // Other kernels, other operands.
        (|p| p.classes[0].steps[0].kernel = 3, "operand 0: it is weights, its kernel takes a buffer"),
        (|p| p.classes[0].steps[1].kernel = 4, "3 operands, its kernel takes 2"),
        (|p| p.classes[0].steps[1].operands.truncate(2), "2 operands, its kernel takes 3"),
        (
            |p| p.classes[0].steps[1].operands.swap(1, 2),
            "operand 1: it is a rotary table, its kernel takes a KV pool",
        ),
        // Too small.
        (|p| p.scratch_bytes = 127, "its kernel uses 128 bytes of scratch, workers have 127"),
        (
            |p| p.classes[0].steps[0].operands[0] = Operand::Weights { offset: 64, bytes: 576 },
            "operand 0: 576 bytes, its kernel takes 640",
        ),
        (|p| p.classes[1].buffers[0].bytes = 63, "operand 1: 63 bytes, its kernel takes 64"),
        (|p| p.classes[1].buffers[3].bytes = 112, "operand 1: 112 bytes, its kernel takes 128"),
        (
            |p| {
                p.model.vocab = 41;
                p.weight_bytes = 656;
            },
            "operand 0: 640 bytes, its kernel takes 656",
        ),
        // Larger than the kernel is made for.
        (|p| p.classes[1].max_tokens = 9, "its kernel is for at most 8 tokens"),
        (|p| p.model.max_context = 65, "its kernel is for contexts of at most 64 tokens, the model's has 65"),
        // Another model.
        (
            |p| p.model.kv.layers[1].window = Some(7),
            "operand 1: its kernel reads 8 positions, the layer keeps 7",
        ),
        (
            |p| p.model.ropes[0].inv_freq.push(0.5),
            "operand 2: rotary table 0 is for heads of 6, its kernel's have 4",
        ),
        (
            |p| {
                let Need::Kv { kind, .. } = need(p, 2, 1) else { return };
                *kind = Some(LayerKind::Full);
            },
            "operand 1: KV layer 1 is Sliding, its kernel is for the other kind",
        ),
        // Buffers that others know nothing of.
        (|p| p.classes[0].steps[2].writes.clear(), "operand 0: buffer 2 is in neither `reads` nor `writes`"),
        (
            |p| {
                let Need::Buffer { written, .. } = need(p, 3, 1) else { return };
                *written = true;
            },
            "operand 1: its kernel writes buffer 1, which is not in `writes`",
        ),
        (
            |p| {
                p.classes[0].steps[2].operands[1] = Operand::Buffer(2);
                p.classes[0].steps[2].reads.push(2);
            },
            "operands 0 and 1 are one buffer, its kernel takes two",
        ),
    ];
    for (change, expected) in cases {
        let found = broken(change).to_string();
        assert!(found.ends_with(expected), "{found}\nexpected {expected}");
    }
    let geometry = broken(|p| p.model.kv.sliding.head_dim = 8).to_string();
    assert!(geometry.contains("head_dim: 4") && geometry.contains("head_dim: 8"), "{geometry}");
}

/// Two matrices whose tiles alternate are read from the first one's start.
#[test]
fn weights_lie_where_their_kernel_expects_them() {
    let pair = |second: u64| {
        let mut program = sound();
        program.weight_bytes = 2048;
        let embed = program.code.symbols[0].contract.as_mut().unwrap();
        embed.operands.push(Need::Weights { bytes: 64, behind: None });
        embed.operands.push(Need::Weights { bytes: 64, behind: Some((2, 64)) });
        for class in &mut program.classes {
            class.steps[0].operands.push(Operand::Weights { offset: 640, bytes: 128 });
            class.steps[0].operands.push(Operand::Weights { offset: second, bytes: 64 });
        }
        check_program(&program)
    };
    assert_eq!(pair(704), Ok(()));
    for offset in [640, 768, 0] {
        let error = pair(offset).unwrap_err().to_string();
        assert!(error.ends_with("operand 3: it does not start 64 bytes behind operand 2"), "{error}");
    }
}

#[test]
fn logits_are_a_buffer_that_a_logits_step_writes() {
    assert!(matches!(broken(|p| p.classes[0].logits = 64), CheckError::Logits { class: 1, offset: 64, .. }));
    // Kernels that ask for less than the runtime reads.
    let modest = |p: &mut Program| {
        *need(p, 0, 0) = Need::Table { row_bytes: 8, rows: 1 };
        let Need::Buffer { row_bytes, .. } = need(p, 5, 1) else { return };
        *row_bytes = 16;
    };
    let error = broken(|p| {
        modest(p);
        p.classes[1].buffers[4].bytes -= 1;
    });
    assert!(matches!(error, CheckError::Logits { class: 8, .. }));
    let error = broken(|p| {
        modest(p);
        p.model.vocab = 41 + 16;
    });
    assert!(matches!(error, CheckError::Logits { .. }));
}

/// A program that takes adapters at one LoRA target of experts, whose gate and up rows alternate.
fn with_adapters(change: impl FnOnce(&mut Adapters)) -> Program {
    let mut program = sound();
    let out = |first, offset| LoraTargetSlice {
        name: "gate".to_owned(),
        rows: 17,
        first,
        step: 2,
        weights: PackedAt { format: WeightFormat::Bf16, offset, tile_stride: 128, expert_stride: 256 },
    };
    let outs = vec![out(0, 0), out(1, 64)];
    let lora_target =
        LoraTarget { name: "layers.0.gate".to_owned(), tensor: "t".to_owned(), k: 4, experts: 2, outs };
    let mut adapters = Adapters { format: WeightFormat::F32, lora_targets: vec![lora_target] };
    program.weight_bytes = 640;
    change(&mut adapters);
    program.model.adapters = Some(adapters);
    program
}

#[test]
fn lora_targets_of_adapters() {
    assert_eq!(check_program(&with_adapters(|_| {})), Ok(()));
    type Fault = (fn(&mut Adapters), &'static str);
    let faults: [Fault; 10] = [
        (|a| a.format = WeightFormat::Int8, "adapter format is int8, expected f32 or bf16"),
        (|a| a.lora_targets[0].k = 6, "6 columns, expected a multiple of 4"),
        (|a| a.lora_targets[0].experts = u32::MAX, "4294967295 experts"),
        (|a| a.lora_targets[0].outs.clear(), "0 matrices, expected 1 or 2"),
        (|a| a.lora_targets[0].outs[1].rows = 0, "`gate` has 0 rows"),
        (|a| a.lora_targets[0].outs[1].first = 2, "`gate` takes row 34 of 34"),
        (|a| a.lora_targets[0].outs[1].step = 0, "`gate` takes row 1 again and again"),
        (|a| a.lora_targets[0].outs[1].weights.offset += 64, "`gate` ends at byte 640 of 639 of weights"),
        (|a| a.lora_targets[0].outs[0].weights.tile_stride = 64, "no legal place in the weights"),
        (
            |a| a.lora_targets[0].outs[0].weights.expert_stride = u64::MAX - 63,
            "no legal place in the weights",
        ),
    ];
    for (change, expected) in faults {
        let mut program = with_adapters(change);
        program.weight_bytes -= u64::from(expected.contains("639"));
        let error = check_program(&program).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut program = with_adapters(|_| {});
    program.classes[0].steps[0].lora_targets = vec![1];
    assert!(check_program(&program).unwrap_err().to_string().ends_with("LoRA target 1 of 1"));
    program.classes[0].steps[0].lora_targets = vec![0];
    program.classes[0].steps[0].operands.push(Operand::LoraTarget(7));
    assert!(check_program(&program).unwrap_err().to_string().ends_with("LoRA target 7 of 1"));
}

#[test]
fn kernels_are_for_lora_targets_of_their_shape() {
    let with = |need: Need| {
        let mut program = with_adapters(|_| {});
        let embed = program.code.symbols[0].contract.as_mut().unwrap();
        embed.operands.push(need);
        let add = |class: &mut TokenClass| class.steps[0].operands.push(Operand::LoraTarget(0));
        program.classes.iter_mut().for_each(add);
        check_program(&program).map_err(|error| error.to_string())
    };
    let lora_target = |columns, tiles, experts, format| {
        with(Need::LoraTarget { columns: Some(columns), tiles, experts, format: Some(format) })
    };
    let format = WeightFormat::F32;
    // Gate and up of 17 rows have two tiles each.
    assert_eq!(lora_target(4, 4, 2, format), Ok(()));
    assert_eq!(with(Need::LoraTarget { columns: None, tiles: 0, experts: 0, format: None }), Ok(()));
    for (found, expected) in [
        (lora_target(8, 4, 2, format), "the LoRA target has 4 columns, its kernel is for 8"),
        (lora_target(4, 5, 2, format), "the LoRA target has 4 tiles of rows, its kernel reads 5"),
        (lora_target(4, 4, 3, format), "the LoRA target has 2 experts, its kernel is for 3"),
        (lora_target(4, 4, 2, WeightFormat::Bf16), "adapters are f32, its kernel is for bf16"),
    ] {
        assert!(found.clone().unwrap_err().ends_with(expected), "{found:?}");
    }
}

#[test]
fn routings_are_no_more_than_steps() {
    let routing = crate::program::Routing { step: 0, buffer: 0, top_k: 1, experts: 4 };
    let with = |count: usize| {
        let mut program = sound();
        program.classes.iter_mut().for_each(|class| class.routings = vec![routing; count]);
        check_program(&program)
    };
    assert_eq!(with(3), Ok(()));
    assert_eq!(with(4), Err(CheckError::Count { what: "routings", found: 4, limit: 3 }));
}
