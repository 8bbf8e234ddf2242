//! The last stage: schedules, memory plans and code as one [`Program`].

use crate::emit::step_costs::step_work;
use crate::ir::rope::inv_freq;
use crate::ir::{Attention, Graph, LoraTargetNode, OperandRef, Role, TensorId};
use crate::passes::layout::WeightLayout;
use crate::passes::memory::MemoryPlan;
use crate::passes::schedule::{Kernels, Schedule, ScheduledStep};
use kernmill_kernels_gen::generate::Generated;
use kernmill_kernels_gen::weight_reads::weight_reads;
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetSlice, PackedAt};
use kernmill_plan::kv::{KvFormat, KvGeometry, KvLayer, KvLayers, KvPair, LayerKind};
use kernmill_plan::program::{
    ItemReads, ModelInfo, Operand, Program, RopeTable, Routing, Step, StepWork, TokenClass, WeightReads,
};
use kernmill_plan::target::Level;
use kernmill_plan::vectors::ModelOutput;

/// Facts about the model that the runtime needs.
pub fn model_info(graph: &Graph, layout: &WeightLayout, preset: &str) -> ModelInfo {
    let ropes = graph.ropes.iter().map(|rope| {
        let (inv_freq, factor) = inv_freq(rope);
        RopeTable { inv_freq, factor }
    });
    ModelInfo {
        name: graph.name.clone(),
        preset: preset.to_owned(),
        vocab: graph.vocab as u32,
        output: match graph.vectors {
            Some(form) => ModelOutput::Vectors { width: graph.value(graph.output).ty.cols() as u32, form },
            None => ModelOutput::Logits,
        },
        max_context: graph.max_context as u32,
        whole_texts: graph.whole_texts(),
        kv: kv_layers(graph),
        ropes: ropes.collect(),
        decode_bytes: decode_bytes(graph, layout),
        adapters: adapters(graph, layout),
    }
}

/// The attention layers that have a cache.
/// Blocks of a kind that no layer has are shaped as those of the other.
fn kv_layers(graph: &Graph) -> KvLayers {
    let attentions = || graph.nodes.iter().filter_map(|node| node.op.attention()).filter(|a| !a.shared);
    let none = KvGeometry { kv_heads: 1, head_dim: 16, formats: KvPair::both(KvFormat::F32) };
    let geometry = |kind| {
        let own = attentions().find(|a| a.layer_kind() == kind).or_else(|| attentions().next());
        own.map_or(none, Attention::geometry)
    };
    KvLayers {
        full: geometry(LayerKind::Full),
        sliding: geometry(LayerKind::Sliding),
        layers: attentions().map(|a| KvLayer { kind: a.layer_kind(), window: a.kept() }).collect(),
    }
}

/// The LoRA targets of the graph's adapters, and where their weights are.
fn adapters(graph: &Graph, layout: &WeightLayout) -> Option<Adapters> {
    let out = |id: &TensorId| {
        let tensor = graph.tensor(*id);
        let placement = layout.placement(*id);
        let rows = tensor.shape[tensor.row_dim()];
        let (first, step) = tensor.source.rows.first_and_step(rows).expect("a LoRA target's are");
        LoraTargetSlice {
            name: tensor.name.clone(),
            rows: rows as u32,
            first: first as u32,
            step: step as u32,
            weights: PackedAt {
                format: tensor.format,
                offset: placement.offset,
                tile_stride: placement.tile_stride,
                expert_stride: placement.expert_stride,
            },
        }
    };
    let lora_target = |lora_target: LoraTargetNode| {
        let tensor = graph.tensor(lora_target.tensors[0]);
        LoraTarget {
            name: tensor.name.strip_suffix(".weight").unwrap_or(&tensor.name).to_owned(),
            tensor: tensor.source.name.clone(),
            k: tensor.shape[tensor.shape.len() - 1] as u32,
            experts: if tensor.role == Role::ExpertMatrix { tensor.shape[0] as u32 } else { 0 },
            outs: lora_target.tensors.iter().map(out).collect(),
        }
    };
    let format = graph.adapter_format()?;
    Some(Adapters { format, lora_targets: graph.lora_targets().into_iter().map(lora_target).collect() })
}

/// Bytes of weights that one token reads: every dense tensor, the chosen experts, one row of each table.
fn decode_bytes(graph: &Graph, layout: &WeightLayout) -> u64 {
    let top_k = |tensor: TensorId| {
        graph.nodes.iter().find(|node| node.tensors.contains(&tensor)).map_or(1, |node| {
            let routing = node.inputs.get(1).map(|value| graph.value(*value).ty.cols());
            routing.unwrap_or(1) as u64
        })
    };
    (0..graph.tensors.len() as u32)
        .map(TensorId)
        .map(|id| {
            let tensor = graph.tensor(id);
            let cols = *tensor.shape.last().unwrap_or(&0);
            match tensor.role {
                Role::Matrix => tensor.format.matrix_bytes(tensor.shape[0], cols) as u64,
                Role::ExpertMatrix => tensor.format.matrix_bytes(tensor.shape[1], cols) as u64 * top_k(id),
                Role::Vector => cols as u64 * 4,
                Role::ExpertVector => cols as u64 * 4 * top_k(id),
                Role::Table => layout.placement(id).tile_stride,
            }
        })
        .sum()
}

/// Puts a program together.
pub fn assemble(
    graph: &Graph,
    model: ModelInfo,
    layout: &WeightLayout,
    (schedules, kernels): (&[Schedule], &Kernels),
    arenas: &[MemoryPlan],
    generated: Generated,
    level: Level,
) -> Program {
    let classes = schedules
        .iter()
        .zip(arenas)
        .map(|(schedule, arena)| {
            let routings = routings(graph, schedule);
            let steps = |list: &[ScheduledStep]| {
                list.iter()
                    .map(|step| {
                        let work = step_work(graph, layout, step, &routings);
                        let reads = weight_reads(kernels.kernel(step.kernel));
                        assemble_step(schedule, step, layout, work, reads)
                    })
                    .collect()
            };
            TokenClass {
                max_tokens: schedule.max_tokens as u32,
                steps: steps(&schedule.steps),
                logit_steps: steps(&schedule.logit_steps),
                logits: arena.buffers[schedule.logits as usize].offset,
                buffers: arena.buffers.clone(),
                routings,
                wanted_only: schedule.wanted_only.clone(),
            }
        })
        .collect();
    Program {
        level,
        model,
        classes,
        arena_bytes: arenas.iter().map(|arena| arena.bytes).max().unwrap_or(0),
        scratch_bytes: generated.scratch_bytes as u64,
        weight_bytes: layout.bytes,
        code: generated.blob,
    }
}

/// The steps that choose experts.
fn routings(graph: &Graph, schedule: &Schedule) -> Vec<Routing> {
    let mut list = Vec::new();
    // Copies for adapters choose the same experts again.
    let steps = schedule.steps.iter().enumerate().filter(|(_, step)| step.lora_targets.is_empty());
    for (index, step) in steps {
        for buffer in &step.writes {
            let OperandRef::Value(value) = schedule.contents[*buffer as usize] else { continue };
            let router = graph.nodes.iter().find(|node| node.output == value);
            if let Some((node, router)) = router.and_then(|node| Some((node, node.op.router()?))) {
                let experts = graph.value(node.inputs[0]).ty.cols() as u32;
                list.push(Routing { step: index as u32, buffer: *buffer, top_k: router.k, experts });
            }
        }
    }
    list
}

fn assemble_step(
    schedule: &Schedule,
    step: &ScheduledStep,
    layout: &WeightLayout,
    work: StepWork,
    mut weight_reads: WeightReads,
) -> Step {
    let of_expert = |part: &ItemReads| part.operands.iter().any(|reads| reads.expert_stride > 0);
    if weight_reads.parts.iter().any(of_expert) {
        weight_reads.routing = work.routing;
    }
    let operand = |operand: &OperandRef| match operand {
        OperandRef::Tensor(tensor) => {
            let placement = layout.placement(*tensor);
            Operand::Weights { offset: placement.offset, bytes: placement.bytes }
        }
        OperandRef::Value(_) | OperandRef::Panels(_) => {
            let index = schedule.contents.iter().position(|other| other == operand);
            Operand::Buffer(index.expect("every value of a step has a buffer") as u32)
        }
        OperandRef::Kv(layer, kind) => Operand::Kv { layer: *layer, kind: *kind },
        OperandRef::Rope(index) => Operand::Rope(*index),
        OperandRef::LoraTarget(lora_target) => Operand::LoraTarget(*lora_target),
    };
    Step {
        label: step.label.clone(),
        kernel: step.kernel,
        operands: step.operands.iter().map(operand).collect(),
        reads: step.reads.clone(),
        writes: step.writes.clone(),
        lora_targets: step.lora_targets.clone(),
        work,
        weight_reads,
    }
}
