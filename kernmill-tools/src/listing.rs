//! Programs and plan files as text.

use crate::given::in_plan;
use kernmill::Target;
use kernmill::observe::{Observer, Unit};
use kernmill::why;
use kernmill::{Error, Result};
use kernmill_plan::contract::{Contract, Need};
use kernmill_plan::file::check::FileError;
use kernmill_plan::kv::{KvLayers, LayerKind};
use kernmill_plan::program::{Operand, Program, Step, TokenClass};
use kernmill_runtime::Plan;
use serde_json::{Value, json};
use std::fmt::Write;

/// Bytes of a listing of a plan after which lists are cut off: a stranger's plan may list a million buffers.
const MOST_TEXT: usize = 4 << 20;

/// Reads all of a plan, and compares every hash.
///
/// # Errors
/// When one does not fit, or the plan cannot be read.
pub fn verify(plan: &Plan, threads: usize, observer: &dyn Observer) -> Result<()> {
    let progress = observer.begin("verifying", Unit::Bytes, plan.metadata().weight_bytes);
    let verified = plan.file().verify(threads, &|bytes| progress.advance(bytes));
    verified.map_err(|source| in_plan(plan, source))
}

/// Index of a plan's target to show: the one asked for; or the one that runs here, or the first.
///
/// # Errors
/// When the plan does not have the one that is asked for.
pub fn shown(plan: &Plan, target: Target) -> Result<usize> {
    let targets = plan.targets();
    match target {
        Target::Native => Ok(plan.choose(None).unwrap_or(0)),
        Target::Level(level) => {
            targets.iter().position(|target| target.name == level.name()).ok_or_else(|| {
                let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
                let what = format!("no target {}; the plan has {}", level.name(), names.join(", "));
                Error::input(plan.path(), what)
            })
        }
    }
}

/// A program's classes, buffers, steps and symbols.
pub fn program(program: &Program) -> String {
    let mut text = String::new();
    push_program(&mut text, program, usize::MAX);
    text
}

/// Adds a line for each of a list, without those that begin behind `most` bytes of the text.
fn push_list<T>(
    text: &mut String,
    most: usize,
    list: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    mut push: impl FnMut(&mut String, T),
) {
    let mut list = list.into_iter();
    while text.len() < most {
        let Some(next) = list.next() else { return };
        push(text, next);
    }
    if list.len() > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  ... and {} more", list.len());
    }
}

/// Adds a program, whose lists end at `most` bytes of the text.
fn push_program(text: &mut String, program: &Program, most: usize) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "program for {}: arena {} bytes, scratch {} bytes per worker, code {} bytes",
        program.level.name(),
        program.arena_bytes,
        program.scratch_bytes,
        program.code.bytes.len()
    );
    for class in &program.classes {
        push_class(text, program, class, most);
    }
    text.push_str("\nsymbols\n");
    push_list(text, most, &program.code.symbols, |text, symbol| {
        let kind = if symbol.contract.is_some() { "kernel" } else { "micro-kernel" };
        let _ = writeln!(text, "  {:>8} {:>7} {kind:6} {}", symbol.offset, symbol.size, symbol.name);
        if let Some(contract) = &symbol.contract {
            push_contract(text, contract);
        }
    });
}

/// Adds the demands of a kernel on the steps that call it, as the program checker holds them to it.
fn push_contract(text: &mut String, contract: &Contract) {
    let most = |value: u32| if value == u32::MAX { "any".to_owned() } else { value.to_string() };
    let needs: Vec<String> = contract.operands.iter().map(need).collect();
    let _ = writeln!(
        text,
        "  {:24} asks for {}; scratch {} bytes, tokens at most {}, context at most {}",
        "",
        needs.join(", "),
        contract.scratch_bytes,
        most(contract.max_tokens),
        most(contract.max_context)
    );
}

/// The demand on an operand, in the notation of [`operands`].
fn need(need: &Need) -> String {
    match *need {
        Need::Weights { bytes, behind: None } => format!("w[{bytes}]"),
        Need::Weights { bytes, behind: Some((other, at)) } => {
            format!("w[{bytes}, {at} behind operand {other}]")
        }
        Need::Table { row_bytes, rows: 1 } => format!("table[rows of {row_bytes}]"),
        Need::Table { row_bytes, rows } => format!("table[{rows} rows in {row_bytes}]"),
        Need::Buffer { slots, wanted, row_bytes, read, written } => {
            let rows = if wanted { "wanted".to_owned() } else { slots.to_string() };
            format!("b[{rows} x {row_bytes} {}]", uses(read, written))
        }
        Need::Panels { bytes, read, written } => format!("panels[{bytes} {}]", uses(read, written)),
        Need::Kv { geometry, view, .. } => match view {
            0 => format!("kv[{} bytes a block]", geometry.block_bytes()),
            u32::MAX => format!("kv[{} bytes a block, all read]", geometry.block_bytes()),
            view => format!("kv[{} bytes a block, {view} read]", geometry.block_bytes()),
        },
        Need::Rope { rotary_dim } => format!("rope[{rotary_dim}]"),
        Need::LoraTarget { experts, tiles, .. } => format!("site[{tiles} tiles, {experts} experts]"),
    }
}

/// `rw`, `r` or `w`.
fn uses(read: bool, written: bool) -> &'static str {
    match (read, written) {
        (true, true) => "rw",
        (true, false) => "r",
        _ => "w",
    }
}

fn push_class(text: &mut String, program: &Program, class: &TokenClass, most: usize) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\nclass of up to {} tokens, logits at arena offset {}",
        class.max_tokens, class.logits
    );
    push_list(text, most, class.buffers.iter().enumerate(), |text, (index, buffer)| {
        let _ = writeln!(
            text,
            "  b{index:<4} {:>10} +{:<10} steps {}..={}  {}",
            buffer.offset, buffer.bytes, buffer.first, buffer.last, buffer.name
        );
    });
    for (kind, steps, before) in
        [("step", &class.steps, 0), ("logits", &class.logit_steps, class.steps.len())]
    {
        push_list(text, most, steps.iter().enumerate(), |text, (index, step)| {
            let kernel = program.code.symbols.get(step.kernel as usize).map_or("?", |symbol| &symbol.name);
            let _ = writeln!(
                text,
                "  {kind} {:<4} {:24} {kernel} ({})",
                before + index,
                step.label,
                operands(step)
            );
        });
    }
}

fn operands(step: &Step) -> String {
    let one = |operand: &Operand| match *operand {
        Operand::Weights { offset, bytes } => format!("w[{offset}+{bytes}]"),
        Operand::Buffer(id) => format!("b{id}"),
        Operand::Kv { layer, kind } => format!("kv{layer}:{kind:?}").to_lowercase(),
        Operand::Rope(table) => format!("rope{table}"),
        Operand::LoraTarget(lora_target) => format!("site{lora_target}"),
    };
    step.operands.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Header, sections, tensors and targets of a plan file as text, and the program of target number `shown`.
///
/// # Errors
/// When a section of the plan cannot be read or is damaged.
pub fn plan(plan: &Plan, shown: Option<usize>) -> Result<String> {
    let (file, metadata) = (plan.file(), plan.metadata());
    let model = &metadata.model;
    let mut text = format!(
        "plan {}: {} bytes, written by {}\nmodel {}, preset {}, vocabulary {}, longest context {}, chunk {}{}\n",
        plan.path().display(),
        file.weights().end(),
        metadata.producer,
        model.name,
        model.preset,
        model.vocab,
        model.max_context,
        metadata.chunk,
        if metadata.fused { "" } else { ", not fused" },
    );
    if model.vectors().is_some() {
        let _ = writeln!(text, "makes {}", model.output);
    }
    let _ = writeln!(
        text,
        "weights {} bytes, of which one token reads {}; end tokens {:?}",
        metadata.weight_bytes, model.decode_bytes, metadata.end_tokens
    );
    let _ = writeln!(text, "keys and values {}", kv_text(&model.kv));
    text.push_str("\nsection               offset          bytes  blake3\n");
    push_list(&mut text, MOST_TEXT, file.sections(), |text, section| {
        let hash = blake3_text(&section.hash);
        let _ = writeln!(text, "{:16} {:>11} {:>14}  {hash}", section.name(), section.offset, section.bytes);
    });
    let width = metadata.tensors.iter().map(|tensor| tensor.name.len()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        text,
        "\n{:width$}  {:18} format  {:>14} {:>14}  error at 4 bits",
        "tensor", "shape", "offset", "bytes"
    );
    push_list(&mut text, MOST_TEXT, &metadata.tensors, |text, tensor| {
        let shape = format!("{:?}", tensor.shape);
        let error = tensor.int4_error.map_or_else(String::new, |error| format!("  {error:.4}"));
        let _ = writeln!(
            text,
            "{:width$}  {shape:18} {:6}  {:>14} {:>14}{error}",
            tensor.name, tensor.format, tensor.offset, tensor.bytes
        );
    });
    text.push_str("\ntargets\n");
    for (index, target) in plan.targets().iter().enumerate() {
        let _ = writeln!(text, "  {index} {}: {}", target.name, target.fit);
    }
    match (plan.distrust(), plan.choose(None)) {
        (Some(reason), _) => {
            let _ = writeln!(text, "the machine code is not trusted: {reason}");
        }
        (None, Ok(target)) => {
            let _ = writeln!(text, "{}", why(plan, target));
        }
        (None, Err(error)) => {
            let _ = writeln!(text, "{error}");
        }
    }
    if let Some(target) = shown {
        let (shown, _) = file.program(target).map_err(|source| in_plan(plan, source))?;
        text.push('\n');
        push_program(&mut text, &shown, MOST_TEXT);
    }
    Ok(text)
}

/// Formats of the cache, and what a token of the context takes in it.
fn kv_text(kv: &KvLayers) -> String {
    format!("{}: {} bytes of cache for a token of the context", kv.formats(), context_bytes(kv))
}

/// Bytes of cache that a token takes in the layers that see the whole context.
fn context_bytes(kv: &KvLayers) -> usize {
    let full = kv.layers.iter().filter(|layer| layer.kind == LayerKind::Full).count();
    full * kv.full.token_bytes()
}

/// A plan's sections, targets and tensors as JSON, with what the kernels of each program ask for.
///
/// # Errors
/// When a section of the plan cannot be read or is damaged.
pub fn plan_json(plan: &Plan) -> Result<Value> {
    let (file, metadata) = (plan.file(), plan.metadata());
    let sections = file.sections().iter().map(|section| {
        json!({
            "section": section.name(),
            "offset": section.offset,
            "bytes": section.bytes,
            "blake3": blake3_text(&section.hash),
        })
    });
    let mut targets = Vec::new();
    for (index, (target, info)) in plan.targets().into_iter().zip(&metadata.targets).enumerate() {
        targets.push(json!({
            "level": target.name,
            "features": info.features,
            "abi": info.abi,
            "fit": target.fit.to_string(),
            "kernels": kernels_json(plan, index)?,
        }));
    }
    Ok(json!({
        "bytes": file.weights().end(),
        "producer": metadata.producer,
        "model": metadata.model.name,
        "preset": metadata.model.preset,
        "vocabulary": metadata.model.vocab,
        "makes": metadata.model.output.to_string(),
        "max_context": metadata.model.max_context,
        "chunk": metadata.chunk,
        "kv_format": metadata.model.kv.formats().to_string(),
        "kv_token_bytes": context_bytes(&metadata.model.kv),
        "fused": metadata.fused,
        "weight_bytes": metadata.weight_bytes,
        "decode_bytes": metadata.model.decode_bytes,
        "end_tokens": metadata.end_tokens,
        "sections": sections.collect::<Vec<_>>(),
        "tensors": metadata.tensors,
        "targets": targets,
        "runs": plan.choose(None).ok().map(|target| &metadata.targets[target].level),
        "distrust": plan.distrust().map(|reason| reason.to_string()),
    }))
}

/// A target's kernels, and what each asks of the steps that call it; null for a level that this version does
/// not know.
fn kernels_json(plan: &Plan, target: usize) -> Result<Value> {
    let program = match plan.file().program(target) {
        Ok((program, _)) => program,
        Err(FileError::Level { .. }) => return Ok(Value::Null),
        Err(source) => return Err(in_plan(plan, source)),
    };
    let kernels = program.code.symbols.iter().filter_map(|symbol| {
        let contract = symbol.contract.as_ref()?;
        Some(json!({ "name": symbol.name, "offset": symbol.offset, "bytes": symbol.size, "contract": contract }))
    });
    Ok(kernels.collect())
}

fn blake3_text(hash: &[u8]) -> String {
    let mut text = String::with_capacity(hash.len() * 2);
    for byte in hash {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    if hash.iter().all(|byte| *byte == 0) { "by piece".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_how_many_more_there_are() {
        let listed = |most: usize, count: usize| {
            let mut text = String::from("title\n");
            push_list(&mut text, most, 0..count, |text, n| text.push_str(&format!("  {n}\n")));
            text
        };
        assert_eq!(listed(usize::MAX, 3), "title\n  0\n  1\n  2\n");
        assert_eq!(listed(10, 3), "title\n  0\n  ... and 2 more\n");
        assert_eq!(listed(14, 2), "title\n  0\n  1\n");
        assert_eq!(listed(3, 1_000_000), "title\n  ... and 1000000 more\n");
        assert_eq!(listed(3, 0), "title\n");
    }
}
