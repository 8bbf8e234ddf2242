//! Steps against the contracts of the kernels that they call.

use super::limit_message;
use crate::contract::{Contract, Need};
use crate::format::TILE_ROWS;
use crate::kv::LayerKind;
use crate::limit;
use crate::program::{Operand, Program, Step, TokenClass};

/// Checks a contract by itself.
pub(super) fn check_contract(contract: &Contract) -> Result<(), String> {
    limit_message("operands", contract.operands.len(), limit::OPERANDS)
}

/// Checks that a step gives its kernel what the contract asks for. Each operand has been found inside its
/// region before.
pub(super) fn check_step(
    program: &Program,
    class: &TokenClass,
    step: &Step,
    contract: &Contract,
) -> Result<(), String> {
    let model = &program.model;
    let (found, needed) = (step.operands.len(), contract.operands.len());
    if found != needed {
        return Err(format!("{found} operands, its kernel takes {needed}"));
    }
    if class.max_tokens > contract.max_tokens {
        return Err(format!("its kernel is for at most {} tokens", contract.max_tokens));
    }
    if model.max_context > contract.max_context {
        return Err(format!(
            "its kernel is for contexts of at most {} tokens, the model's has {}",
            contract.max_context, model.max_context
        ));
    }
    if contract.whole_texts && !model.whole_texts {
        return Err("its kernel is for texts that run whole, which the model does not ask for".to_owned());
    }
    if program.scratch_bytes < contract.scratch_bytes {
        return Err(format!(
            "its kernel uses {} bytes of scratch, workers have {}",
            contract.scratch_bytes, program.scratch_bytes
        ));
    }
    for (n, (operand, need)) in step.operands.iter().zip(&contract.operands).enumerate() {
        check_operand(program, class, step, operand, need).map_err(|what| format!("operand {n}: {what}"))?;
        let same = |other: &Operand| matches!(operand, Operand::Buffer(_)) && other == operand;
        // A kernel may read one value while its workers write another.
        if let Some(other) = step.operands[..n].iter().position(same) {
            return Err(format!("operands {other} and {n} are one buffer, its kernel takes two"));
        }
    }
    Ok(())
}

fn check_operand(
    program: &Program,
    class: &TokenClass,
    step: &Step,
    operand: &Operand,
    need: &Need,
) -> Result<(), String> {
    let model = &program.model;
    match (*operand, *need) {
        (Operand::Weights { offset, bytes }, Need::Weights { bytes: needed, behind }) => {
            enough(bytes, needed)?;
            match behind {
                Some((other, distance)) => check_behind(step, offset, other, distance),
                None => Ok(()),
            }
        }
        (Operand::Weights { bytes, .. }, Need::Table { row_bytes, rows }) => {
            enough(bytes, u64::from(model.vocab).div_ceil(u64::from(rows.max(1))).saturating_mul(row_bytes))
        }
        (Operand::Buffer(id), Need::Buffer { read, written, .. } | Need::Panels { read, written, .. }) => {
            let Some(buffer) = class.buffers.get(id as usize) else {
                return Err(format!("buffer {id} of {}", class.buffers.len()));
            };
            if read && !step.reads.contains(&id) {
                return Err(format!("its kernel reads buffer {id}, which is not in `reads`"));
            }
            if written && !step.writes.contains(&id) {
                return Err(format!("its kernel writes buffer {id}, which is not in `writes`"));
            }
            enough(buffer.bytes, need.buffer_bytes(class.max_tokens))
        }
        (Operand::Kv { layer, kind }, Need::Kv { geometry, kind: wanted, view }) => {
            let found = model.kv.geometry(kind);
            if geometry != *found {
                return Err(format!("its kernel is for {geometry:?}, the model has {found:?}"));
            }
            if wanted.is_some_and(|wanted| wanted != kind) {
                return Err(format!("KV layer {layer} is {kind:?}, its kernel is for the other kind"));
            }
            let window = model.kv.layers.get(layer as usize).and_then(|layer| layer.window);
            match window.filter(|window| kind == LayerKind::Sliding && *window < view) {
                Some(window) => Err(format!("its kernel reads {view} positions, the layer keeps {window}")),
                None => Ok(()),
            }
        }
        (Operand::Rope(table), Need::Rope { rotary_dim }) => {
            let elements = model.ropes.get(table as usize).map_or(0, |rope| rope.inv_freq.len() * 2);
            if elements == rotary_dim as usize {
                return Ok(());
            }
            Err(format!("rotary table {table} is for heads of {elements}, its kernel's have {rotary_dim}"))
        }
        (Operand::LoraTarget(lora_target), Need::LoraTarget { .. }) => {
            check_lora_target(program, lora_target, need)
        }
        (operand, need) => Err(format!("it is {}, its kernel takes {}", kind_of(&operand), need.kind())),
    }
}

fn check_behind(step: &Step, offset: u64, other: u32, distance: u64) -> Result<(), String> {
    match step.operands.get(other as usize) {
        Some(Operand::Weights { offset: first, .. }) if first.checked_add(distance) == Some(offset) => Ok(()),
        _ => Err(format!("it does not start {distance} bytes behind operand {other}")),
    }
}

fn check_lora_target(program: &Program, lora_target: u32, need: &Need) -> Result<(), String> {
    let Need::LoraTarget { columns, tiles, experts, format } = *need else { return Ok(()) };
    let adapters = program.model.adapters.as_ref();
    let Some((adapters, found)) =
        adapters.and_then(|all| Some((all, all.lora_targets.get(lora_target as usize)?)))
    else {
        return Err(format!("there is no LoRA target {lora_target}"));
    };
    if let Some(format) = format.filter(|format| *format != adapters.format) {
        return Err(format!("adapters are {}, its kernel is for {}", adapters.format.name(), format.name()));
    }
    if let Some(columns) = columns.filter(|columns| *columns != found.k) {
        return Err(format!("the LoRA target has {} columns, its kernel is for {columns}", found.k));
    }
    let rows = found.outs.iter().map(|out| u64::from(out.rows).div_ceil(TILE_ROWS as u64)).sum::<u64>();
    if u64::from(tiles) > rows {
        return Err(format!("the LoRA target has {rows} tiles of rows, its kernel reads {tiles}"));
    }
    if experts > found.experts {
        return Err(format!("the LoRA target has {} experts, its kernel is for {experts}", found.experts));
    }
    Ok(())
}

fn enough(found: u64, needed: u64) -> Result<(), String> {
    if found >= needed { Ok(()) } else { Err(format!("{found} bytes, its kernel takes {needed}")) }
}

fn kind_of(operand: &Operand) -> &'static str {
    match operand {
        Operand::Weights { .. } => "weights",
        Operand::Buffer(_) => "a buffer",
        Operand::Kv { .. } => "a KV pool",
        Operand::Rope(_) => "a rotary table",
        Operand::LoraTarget(_) => "a LoRA target",
    }
}
