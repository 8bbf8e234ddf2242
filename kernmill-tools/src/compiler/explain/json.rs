//! A compiled model as JSON.

use super::code::functions;
use super::crowds::CrowdSpeeds;
use super::facts::{PageContent, members, weights};
use super::kinds::{BatchShape, StepKind};
use super::layers::{GroupOf, LayerGroup, layer, layer_kinds};
use kernmill_compiler::ir::{NodeId, ValueId};
use kernmill_compiler::passes::fuse::Group;
use kernmill_compiler::passes::memory::MemoryPlan;
use kernmill_compiler::passes::schedule::ScheduledStep;
use kernmill_compiler::passes::select;
use kernmill_plan::program::{Buffer, Step, TokenClass};
use serde_json::{Value, json};

/// All that is known. The older fields of `--json` stand on the outermost level.
pub fn json(facts: &PageContent<'_>) -> Value {
    let (compiled, program) = (facts.compiled, &facts.compiled.program);
    let machine = compiled.model.machine();
    let memory = facts.memory;
    let mut all = json!(select::explain(&compiled.model, &compiled.selections, &compiled.ukernels));
    let more = json!({
        "model": program.model.name,
        "preset": program.model.preset,
        "makes": program.model.output.to_string(),
        "target": program.level.name(),
        "assumed_formats": facts.assumed,
        "layers": program.model.kv.layers.len(),
        "vocabulary": facts.graph.vocab,
        "max_context": facts.graph.max_context,
        "nodes": compiled.fused.graph.nodes.len(),
        "machine": {
            "cpu": facts.machine.map(|machine| &machine.cpu),
            "workers": facts.simulated.workers,
            "gb_per_s": facts.simulated.rates.attainable(facts.simulated.workers),
            "tops_per_s": facts.peak().map(|peak| peak / 1e12),
            "step_us": machine.barrier / 1e3,
            "nodes": facts.machine.map(|machine| machine.nodes),
            "hidden_pairs": facts.machine.map(|machine| machine.hidden_pairs),
        },
        "memory": {
            "context": memory.context,
            "weights": memory.weights,
            "kv": memory.kv,
            "kv_per_token": facts.kv_token_bytes(),
            "arena": program.arena_bytes,
            "scratch_per_worker": program.scratch_bytes,
            "working": memory.working,
            "total": memory.total(),
            "available": memory.available,
            "longest_context_that_fits": memory.fits,
        },
        "code": { "kernels": compiled.kernels.list.len(), "bytes": program.code.bytes.len() },
        "decode_bytes": program.model.decode_bytes,
        "estimate": facts.batches.iter().map(|one| batch(facts, one)).collect::<Vec<_>>(),
        "by_workers": facts.crowds.iter().map(CrowdSpeeds::json).collect::<Vec<_>>(),
        "layer_kinds": layer_kinds(compiled).iter().map(|kind| layer_kind(facts, kind)).collect::<Vec<_>>(),
        "groups": groups(facts),
        "values": values(facts),
        "steps": steps(facts),
        "arenas": arenas(facts),
        "functions": functions(compiled),
        "near_misses": facts.missed,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

fn batch(facts: &PageContent<'_>, batch: &BatchShape) -> Value {
    let kind = |kind: &StepKind| {
        json!({
            "kind": kind.name,
            "steps": kind.steps,
            "microseconds": kind.times.ns / 1e3,
            "percent": kind.times.ns / batch.ns() * 100.0,
            "weight_bytes": kind.weight_bytes,
            "cache_bytes": kind.cache_bytes,
            "macs": kind.macs,
            "waiting_percent": kind.times.waits / kind.times.ns * 100.0,
            "limit": kind.limit.name(),
            "ukernel": kind.ukernel,
        })
    };
    json!({
        "tokens": batch.tokens,
        "depth": batch.depth,
        "microseconds": batch.ns() / 1e3,
        "bytes": batch.bytes(),
        "macs": batch.macs(),
        "tokens_per_second": batch.tokens_per_second(),
        "at_most_by_memory": batch.memory_bound(),
        "at_most_by_arithmetic": facts.peak().map(|peak| batch.arithmetic_bound(peak)),
        "limit": batch.limit().name(),
        "kinds": batch.kinds.iter().map(kind).collect::<Vec<_>>(),
    })
}

fn layer_kind(facts: &PageContent<'_>, kind: &LayerGroup) -> Value {
    let layers = &facts.compiled.program.model.kv.layers;
    json!({
        "layers": kind.layers,
        "window": layers.get(kind.layers[0]).and_then(|layer| layer.window),
        "groups": kind.groups,
    })
}

fn groups(facts: &PageContent<'_>) -> Vec<Value> {
    let fused = &facts.compiled.fused;
    let graph = &fused.graph;
    let names =
        |values: &[ValueId]| values.iter().map(|value| graph.value(*value).name.as_str()).collect::<Vec<_>>();
    let ops = |part: &'static str, nodes: &[NodeId]| {
        let op = |id: &NodeId| {
            let node = graph.node(*id);
            json!({ "part": part, "op": node.kind().name, "text": graph.node_text(node) })
        };
        nodes.iter().map(op).collect::<Vec<_>>()
    };
    let group = |group: &Group| {
        let parts =
            [ops("prologue", &group.prologue), ops("root", &group.roots), ops("epilogue", &group.epilogue)];
        json!({
            "name": group.name(),
            "rule": group.rule,
            "layer": layer(fused, group),
            "members": members(fused, group),
            "nodes": group.members().len(),
            "ops": parts.concat(),
            "inputs": names(&group.inputs),
            "outputs": names(&group.outputs),
        })
    };
    fused.groups.iter().map(group).collect()
}

/// Values that go from group to group, the graph's input and output among them.
fn values(facts: &PageContent<'_>) -> Vec<Value> {
    let fused = &facts.compiled.fused;
    let mut all: Vec<ValueId> =
        fused.groups.iter().flat_map(|group| group.inputs.iter().chain(&group.outputs)).copied().collect();
    all.sort_unstable();
    all.dedup();
    let value = |id: &ValueId| {
        let value = fused.graph.value(*id);
        json!({ "name": value.name, "type": value.ty.text() })
    };
    all.iter().map(value).collect()
}

/// Weights of a step in one format.
fn in_format((format, bytes): (&str, u64)) -> Value {
    json!({ "format": format, "bytes": bytes })
}

/// The steps of every class.
fn steps(facts: &PageContent<'_>) -> Vec<Value> {
    let program = &facts.compiled.program;
    let groups = GroupOf::new(&facts.compiled.fused);
    let mut all = Vec::new();
    for (class, schedule) in program.classes.iter().zip(&facts.compiled.schedules) {
        let mut push = |step: &Step, scheduled: &ScheduledStep, logits: bool| {
            let name = program.code.symbols.get(step.kernel as usize).map(|symbol| &symbol.name);
            all.push(json!({
                "class": class.max_tokens,
                "label": step.label,
                "kernel": name,
                "group": groups.step(schedule, scheduled),
                "logits": logits,
                "for_adapters": !step.lora_targets.is_empty(),
                "weights": weights(facts.compiled, scheduled).into_iter().map(in_format).collect::<Vec<_>>(),
                "shared_bytes": step.work.shared_bytes,
                "row_bytes": step.work.row_bytes,
                "row_macs": step.work.row_macs,
                "expert_bytes": step.work.expert_bytes,
                "expert_macs": step.work.expert_macs,
            }));
        };
        class.steps.iter().zip(&schedule.steps).for_each(|(step, own)| push(step, own, false));
        class.logit_steps.iter().zip(&schedule.logit_steps).for_each(|(step, own)| push(step, own, true));
    }
    all
}

/// The arena of every class. Steps are numbered through those of the class, logit steps last.
fn arenas(facts: &PageContent<'_>) -> Vec<Value> {
    let compiled = facts.compiled;
    let arena = |(class, arena): (&TokenClass, &MemoryPlan)| {
        let buffer = |buffer: &Buffer| {
            json!({
                "name": buffer.name,
                "offset": buffer.offset,
                "bytes": buffer.bytes,
                "first": buffer.first,
                "last": buffer.last,
            })
        };
        json!({
            "class": class.max_tokens,
            "bytes": arena.bytes,
            "at_least": arena.lower_bound,
            "buffers": class.buffers.iter().map(buffer).collect::<Vec<_>>(),
        })
    };
    compiled.program.classes.iter().zip(&compiled.arenas).map(arena).collect()
}
