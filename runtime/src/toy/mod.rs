//! A toy program with hand-made kernels for the tests: its logits depend on every token that a query sees,
//! through both kinds of KV cache, so that a wrong position, block, window or hand-out shows.

mod code;
mod disk;
mod prefixes;
mod steps;
mod tests;
mod traces;

use crate::image::PlanImage;
use kernmill_os::region::WeightRegion;
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::contract::{Contract, Need};
use kernmill_plan::format::f32_row_stride;
use kernmill_plan::kv::{KvFormat, KvGeometry, KvLayer, KvLayers, KvPair, LayerKind};
use kernmill_plan::program::{
    Buffer, CodeBlob, ModelInfo, Operand, Program, Step, StepWork, Symbol, TokenClass, WeightReads,
};
use kernmill_plan::target::Level;
use kernmill_plan::vectors::ModelOutput;

pub(crate) const VOCAB: u32 = 300;
pub(crate) const WINDOW: u32 = 21;
pub(crate) const MAX_CONTEXT: u32 = 200;
/// `max_tokens` of the classes. Each makes one slab of logits.
const CLASSES: [u32; 3] = [1, 4, 20];
/// Classes with one more, which makes two slabs.
const WIDE_CLASSES: [u32; 4] = [1, 4, 20, 80];
const KINDS: [LayerKind; 2] = [LayerKind::Full, LayerKind::Sliding];

/// The plan, without a tokenizer.
pub(crate) fn image() -> PlanImage {
    image_of(&CLASSES)
}

/// The plan with a class that makes two slabs of logits.
pub(crate) fn wide_image() -> PlanImage {
    image_of(&WIDE_CLASSES)
}

fn image_of(classes: &[u32]) -> PlanImage {
    let mut weights = WeightRegion::anonymous(128).unwrap();
    for (kind, window) in [u32::MAX, WINDOW].into_iter().enumerate() {
        let params = [kind as u32, window, VOCAB, f32_row_stride(VOCAB as usize) as u32];
        for (i, p) in params.iter().enumerate() {
            weights.as_mut_slice()[kind * 64 + i * 4..][..4].copy_from_slice(&p.to_le_bytes());
        }
    }
    PlanImage::sealed(program(classes), weights.freeze().unwrap())
}

/// The logits after the last of `tokens`: what the kernels compute, in plain loops.
pub(crate) fn expected(tokens: &[u32]) -> Vec<f32> {
    let last = tokens.len() as u32 - 1;
    let sum = |window: u32| {
        let low = (last + 1).saturating_sub(window);
        (low..=last).fold(0u32, |sum, p| sum.wrapping_add((tokens[p as usize] + 1).wrapping_mul(p + 1)))
    };
    let x = sum(u32::MAX).wrapping_add(sum(WINDOW).wrapping_mul(31));
    (0..VOCAB).map(|v| (x.wrapping_add(v).wrapping_mul(0x9e37_79b1) >> 22) as f32).collect()
}

fn program(classes: &[u32]) -> Program {
    let classes: Vec<TokenClass> = classes.iter().map(|max_tokens| class(*max_tokens)).collect();
    let ends = classes.iter().flat_map(|class| &class.buffers).map(|buffer| buffer.offset + buffer.bytes);
    Program {
        level: Level::V3,
        model: ModelInfo {
            name: "toy".to_owned(),
            preset: "exact".to_owned(),
            vocab: VOCAB,
            output: ModelOutput::Logits,
            max_context: MAX_CONTEXT,
            kv: KvLayers {
                full: geometry(),
                sliding: geometry(),
                layers: vec![
                    KvLayer { kind: LayerKind::Full, window: None },
                    KvLayer { kind: LayerKind::Sliding, window: Some(WINDOW) },
                ],
            },
            ropes: Vec::new(),
            whole_texts: false,
            decode_bytes: 128,
            adapters: None,
        },
        arena_bytes: ends.max().unwrap_or(0),
        classes,
        scratch_bytes: 64,
        weight_bytes: 128,
        code: code(),
    }
}

fn code() -> CodeBlob {
    let mut blob = CodeBlob::default();
    for (name, offset, bytes) in code::FUNCTIONS {
        // int3 between functions.
        blob.bytes.resize(offset, 0xcc);
        blob.bytes.extend_from_slice(bytes);
        let (offset, size) = (offset as u64, bytes.len() as u64);
        blob.symbols.push(Symbol { name: name.to_owned(), offset, size, contract: contract(name) });
    }
    blob
}

/// The contract of the kernel of that name, if it is one. Its weights say which kind of layer it is for.
fn contract(name: &str) -> Option<Contract> {
    let geometry = geometry();
    let kv = |view| Need::Kv { geometry, kind: None, view };
    let params = Need::Weights { bytes: 16, behind: None };
    let sums = |read| Need::Buffer { slots: 1, wanted: false, row_bytes: 4, read, written: !read };
    let row_bytes = f32_row_stride(VOCAB as usize) as u64;
    let logits = Need::Buffer { slots: 0, wanted: true, row_bytes, read: false, written: true };
    let operands = match name {
        "store" => vec![kv(0), params],
        "sum" => vec![kv(WINDOW), params, sums(false)],
        "logits" => vec![sums(true), sums(true), params, logits],
        _ => return None,
    };
    Some(Contract {
        operands,
        scratch_bytes: 0,
        max_tokens: u32::MAX,
        max_context: u32::MAX,
        listed_tiles: 0,
        whole_texts: false,
    })
}

fn geometry() -> KvGeometry {
    KvGeometry { kv_heads: 1, head_dim: 2, v_head_dim: 2, formats: KvPair::both(KvFormat::F32) }
}

fn class(max_tokens: u32) -> TokenClass {
    let row_bytes = f32_row_stride(VOCAB as usize) as u64;
    let sums = (u64::from(max_tokens) * 4).next_multiple_of(128);
    let slab = u64::from(max_tokens.min(LOGIT_SLAB as u32)) * row_bytes;
    let kv = |kind: LayerKind| Operand::Kv { layer: kind.index() as u32, kind };
    let params = |kind: LayerKind| Operand::Weights { offset: kind.index() as u64 * 64, bytes: 16 };
    let step = |label: &str, kernel, operands, reads: &[u32], writes: &[u32]| Step {
        label: label.to_owned(),
        kernel,
        operands,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        lora_targets: Vec::new(),
        work: StepWork { shared_bytes: 16, row_macs: 3, ..StepWork::default() },
        weight_reads: WeightReads::default(),
    };
    let mut steps = Vec::new();
    for kind in KINDS {
        let out = kind.index() as u32;
        let label = |name: &str| format!("layers.{out}.{name}");
        steps.push(step(&label("store"), 1, vec![kv(kind), params(kind)], &[], &[]));
        let mut sum = step(&label("sum"), 2, vec![kv(kind), params(kind), Operand::Buffer(out)], &[], &[out]);
        sum.work.cache = Some(out);
        steps.push(sum);
    }
    let operands = vec![Operand::Buffer(0), Operand::Buffer(1), params(KINDS[0]), Operand::Buffer(2)];
    let buffer =
        |name: &str, offset, bytes, first| Buffer { name: name.to_owned(), offset, bytes, first, last: 4 };
    TokenClass {
        max_tokens,
        routings: Vec::new(),
        wanted_only: None,
        steps,
        logit_steps: vec![step("logits", 3, operands, &[0, 1], &[2])],
        logits: 2 * sums,
        buffers: vec![
            buffer("full", 0, sums, 1),
            buffer("sliding", sums, sums, 3),
            buffer("logits", 2 * sums, slab, 4),
        ],
    }
}
