//! A compiled model as JSON.

use super::facts::{Facts, members};
use super::kinds::{Batch, Kind};
use kernmill_compiler::select;
use kernmill_plan::program::Step;
use serde_json::{Value, json};

/// All that is known. What `--json` had before stands on the outermost level.
pub fn json(facts: &Facts<'_>) -> Value {
    let (compiled, program) = (facts.compiled, &facts.compiled.program);
    let machine = compiled.model.machine();
    let memory = facts.memory;
    let mut all = json!(select::explain(&compiled.model, &compiled.selections, &compiled.ukernels));
    let more = json!({
        "model": program.model.name,
        "preset": program.model.preset,
        "target": program.level.name(),
        "assumed_formats": facts.assumed,
        "layers": program.model.kv.layers.len(),
        "vocabulary": facts.graph.vocab,
        "max_context": facts.graph.max_context,
        "nodes": compiled.fused.graph.nodes.len(),
        "machine": {
            "cpu": facts.machine.map(|machine| &machine.cpu),
            "workers": machine.workers,
            "gb_per_s": machine.bytes() * machine.workers as f64,
            "tops_per_s": facts.peak().map(|peak| peak / 1e12),
            "step_us": machine.barrier / 1e3,
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
        "groups": groups(facts),
        "steps": steps(facts),
        "near_misses": facts.missed,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

fn batch(facts: &Facts<'_>, batch: &Batch) -> Value {
    let kind = |kind: &Kind| {
        json!({
            "kind": kind.name,
            "steps": kind.steps,
            "microseconds": kind.ns / 1e3,
            "percent": kind.ns / batch.ns() * 100.0,
            "weight_bytes": kind.weight_bytes,
            "cache_bytes": kind.cache_bytes,
            "macs": kind.macs,
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

fn groups(facts: &Facts<'_>) -> Vec<Value> {
    let fused = &facts.compiled.fused;
    let names = |values: &[kernmill_compiler::graph::ValueId]| {
        values.iter().map(|value| fused.graph.value(*value).name.clone()).collect::<Vec<_>>()
    };
    let group = |group: &kernmill_compiler::fuse::Group| {
        json!({
            "name": group.name(),
            "rule": group.rule,
            "members": members(fused, group),
            "nodes": group.members().len(),
            "inputs": names(&group.inputs),
            "outputs": names(&group.outputs),
        })
    };
    fused.groups.iter().map(group).collect()
}

/// The steps of every class.
fn steps(facts: &Facts<'_>) -> Vec<Value> {
    let program = &facts.compiled.program;
    let mut all = Vec::new();
    for class in &program.classes {
        let mut push = |step: &Step, logits: bool| {
            let name = program.code.symbols.get(step.kernel as usize).map(|symbol| &symbol.name);
            all.push(json!({
                "class": class.max_tokens,
                "label": step.label,
                "kernel": name,
                "logits": logits,
                "for_adapters": !step.lora_targets.is_empty(),
                "shared_bytes": step.work.shared_bytes,
                "row_bytes": step.work.row_bytes,
                "row_macs": step.work.row_macs,
                "expert_bytes": step.work.expert_bytes,
                "expert_macs": step.work.expert_macs,
            }));
        };
        class.steps.iter().for_each(|step| push(step, false));
        class.logit_steps.iter().for_each(|step| push(step, true));
    }
    all
}
