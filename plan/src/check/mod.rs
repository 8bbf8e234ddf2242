//! The program checker: proves, from the program alone, that running it stays inside the memory that the
//! runtime gives it, as far as each kernel keeps to its contract ([`crate::contract`]).
//!
//! It shares no code with the scheduler and the memory planner. The runtime runs it before anything else,
//! because what follows is machine code that trusts its operands. That kernels keep to their contracts is
//! shown where they are generated, from their descriptions; machine code that somebody else made is not run
//! (`docs/user/security.md`).

use crate::abi::LOGIT_SLAB;
use crate::format::{LINE, f32_row_stride};
use crate::kv::{KvLayers, LayerKind};
use crate::limit as most;
use crate::program::{Buffer, CodeBlob, ModelInfo, Operand, Program, Step, TokenClass, WeightReads};

mod adapters;
mod contracts;
mod overlaps;
#[cfg(test)]
mod tests;
mod wanted;

/// A problem of a program, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A model fact is out of range.
    #[error("model: {what} is {found}, expected {expected}")]
    Model {
        /// Name of the fact.
        what: &'static str,
        /// Value of the fact.
        found: String,
        /// The legal values.
        expected: String,
    },
    /// A KV layer's kind and window disagree.
    #[error(
        "KV layer {layer}: {kind:?} with window {window:?}, expected a window of at least 1 for sliding layers only"
    )]
    KvLayer {
        /// Which layer.
        layer: usize,
        /// Kind of the layer.
        kind: LayerKind,
        /// Window of the layer.
        window: Option<u32>,
    },
    /// A rotary table has no legal size or is not finite.
    #[error("rotary table {table}: {message}")]
    Rope {
        /// Which table.
        table: usize,
        /// The problem.
        message: String,
    },
    /// An operand that should be a LoRA target is something else.
    #[error("LoRA target {lora_target} `{name}`: {message}")]
    LoraTarget {
        /// Index.
        lora_target: usize,
        /// Name.
        name: String,
        /// The problem.
        message: String,
    },
    /// A symbol is not where functions may be.
    #[error("symbol {symbol} `{name}`: {message}")]
    Symbol {
        /// Index.
        symbol: usize,
        /// Name.
        name: String,
        /// The problem.
        message: String,
    },
    /// Token classes are not ascending, or missing.
    #[error("token class {class}: max_tokens {max_tokens}, expected more than {previous}")]
    Classes {
        /// Index.
        class: usize,
        /// Largest batch of the class.
        max_tokens: u32,
        /// Largest batch of the class before, or 0.
        previous: u32,
    },
    /// There is more of something than any model needs: checking it would take longer than running it.
    #[error("{found} {what}, expected at most {limit}")]
    Count {
        /// Plural name of the things that are too many, such as `steps`.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many are legal.
        limit: usize,
    },
    /// A buffer lies outside the arena or is misaligned.
    #[error("class {class}, buffer `{buffer}`: {message}")]
    Buffer {
        /// Class's `max_tokens`.
        class: u32,
        /// Name.
        buffer: String,
        /// The problem.
        message: String,
    },
    /// Two buffers share bytes while both are live.
    #[error(
        "class {class}: buffers `{first}` and `{second}` share arena bytes and are both live at step {step}"
    )]
    Overlap {
        /// Class's `max_tokens`.
        class: u32,
        /// One buffer.
        first: String,
        /// The other.
        second: String,
        /// First step at which both are live.
        step: u32,
    },
    /// A step refers to something that is not there.
    #[error("class {class}, step `{step}`: {message}")]
    Step {
        /// Class's `max_tokens`.
        class: u32,
        /// Label.
        step: String,
        /// The problem.
        message: String,
    },
    /// The logits slab is not a live buffer.
    #[error("class {class}: logits at arena offset {offset}: {message}")]
    Logits {
        /// Class's `max_tokens`.
        class: u32,
        /// Arena offset.
        offset: u64,
        /// The problem.
        message: String,
    },
}

/// Checks a whole program.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_program(program: &Program) -> Result<(), CheckError> {
    check_model(&program.model)?;
    if let Some(adapters) = &program.model.adapters {
        adapters::check(adapters, program.weight_bytes)?;
    }
    check_code(&program.code)?;
    limit("token classes", program.classes.len(), most::CLASSES)?;
    let mut previous = 0;
    if program.classes.is_empty() {
        return Err(CheckError::Classes { class: 0, max_tokens: 0, previous });
    }
    for (class, c) in program.classes.iter().enumerate() {
        if c.max_tokens <= previous {
            return Err(CheckError::Classes { class, max_tokens: c.max_tokens, previous });
        }
        limit("tokens of a batch", c.max_tokens as usize, most::BATCH)?;
        previous = c.max_tokens;
        check_class(program, c)?;
    }
    Ok(())
}

fn limit(what: &'static str, found: usize, limit: usize) -> Result<(), CheckError> {
    if found <= limit { Ok(()) } else { Err(CheckError::Count { what, found, limit }) }
}

fn limit_message(what: &'static str, found: usize, most: usize) -> Result<(), String> {
    limit(what, found, most).map_err(|error| error.to_string())
}

fn check_model(model: &ModelInfo) -> Result<(), CheckError> {
    let in_range = |what, value: u64, low: u64, high: u64| {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(CheckError::Model { what, found: value.to_string(), expected: format!("{low}..={high}") })
    };
    in_range("vocab", model.vocab.into(), 1, most::VOCAB as u64)?;
    in_range("row_width", model.row_width() as u64, 1, most::VOCAB as u64)?;
    in_range("max_context", model.max_context.into(), 1, most::CONTEXT as u64)?;
    if model.whole_texts && model.vectors().is_none() {
        let (found, expected) = ("logits".to_owned(), "vectors, where texts run whole".to_owned());
        return Err(CheckError::Model { what: "output", found, expected });
    }
    let KvLayers { full, sliding, layers } = &model.kv;
    let least = u64::from(!layers.is_empty());
    for geometry in [full, sliding] {
        in_range("kv_heads", geometry.kv_heads as u64, least, most::KV_HEADS as u64)?;
        in_range("head_dim", geometry.head_dim as u64, least, most::HEAD_DIM as u64)?;
        in_range("v_head_dim", geometry.v_head_dim as u64, least, most::HEAD_DIM as u64)?;
    }
    for (layer, l) in layers.iter().enumerate() {
        let legal = match l.kind {
            LayerKind::Full => l.window.is_none(),
            LayerKind::Sliding => l.window.is_some_and(|w| w >= 1),
        };
        if !legal {
            return Err(CheckError::KvLayer { layer, kind: l.kind, window: l.window });
        }
    }
    for (table, rope) in model.ropes.iter().enumerate() {
        let wrong = |message: String| Err(CheckError::Rope { table, message });
        if !(1..=most::HEAD_DIM / 2).contains(&rope.inv_freq.len()) {
            let found = rope.inv_freq.len();
            return wrong(format!("{found} frequencies, expected 1 to {}", most::HEAD_DIM / 2));
        }
        if !rope.factor.is_finite() || rope.inv_freq.iter().any(|f| !f.is_finite()) {
            return wrong("a factor or frequency is not finite".to_owned());
        }
    }
    Ok(())
}

fn check_code(code: &CodeBlob) -> Result<(), CheckError> {
    let mut end = 0u64;
    for (symbol, s) in code.symbols.iter().enumerate() {
        let wrong = |message: String| Err(CheckError::Symbol { symbol, name: s.name.clone(), message });
        if !s.offset.is_multiple_of(LINE as u64) {
            return wrong(format!("offset {} is not a multiple of {LINE}", s.offset));
        }
        if s.offset < end {
            return wrong(format!(
                "offset {} lies before byte {end}, where the symbol before ends",
                s.offset
            ));
        }
        if s.size == 0 {
            return wrong("has no bytes".to_owned());
        }
        if let Some(Err(message)) = s.contract.as_ref().map(contracts::check_contract) {
            return wrong(message);
        }
        end = s.offset.saturating_add(s.size);
        if end > code.bytes.len() as u64 {
            return wrong(format!("ends at byte {end} of {} bytes of code", code.bytes.len()));
        }
    }
    Ok(())
}

fn check_class(program: &Program, class: &TokenClass) -> Result<(), CheckError> {
    let steps = || class.steps.iter().chain(&class.logit_steps);
    limit("buffers", class.buffers.len(), most::BUFFERS)?;
    limit("routings", class.routings.len(), class.steps.len())?;
    for step in steps() {
        limit("buffers that a step reads", step.reads.len(), most::OPERANDS)?;
        limit("buffers that a step writes", step.writes.len(), most::OPERANDS)?;
        limit("operands of a step", step.operands.len(), most::OPERANDS)?;
        limit("operands read whole", step.weight_reads.whole.len(), most::OPERANDS)?;
        limit("parts of work items", step.weight_reads.parts.len(), most::OPERANDS)?;
        for part in &step.weight_reads.parts {
            limit("operands of work items", part.operands.len(), most::OPERANDS)?;
        }
    }
    for buffer in &class.buffers {
        check_buffer(program, class, buffer)?;
    }
    for (index, step) in steps().enumerate() {
        check_step(program, class, index as u32, step)?;
    }
    wanted::check_wanted_only(class).map_err(|(step, message)| CheckError::Step {
        class: class.max_tokens,
        step,
        message,
    })?;
    check_first_writes(class)?;
    check_logits(program, class)?;
    check_routings(program, class)?;
    overlaps::check_overlaps(class)
}

/// Routings are read by the runtime itself, right after their step.
fn check_routings(program: &Program, class: &TokenClass) -> Result<(), CheckError> {
    let shape = |class: &TokenClass| -> Vec<(u32, u32)> {
        class.routings.iter().map(|routing| (routing.top_k, routing.experts)).collect()
    };
    if program.classes.first().is_some_and(|first| shape(first) != shape(class)) {
        let message = "its routings are not those of the first class".to_owned();
        return Err(CheckError::Step { class: class.max_tokens, step: "routings".to_owned(), message });
    }
    for routing in &class.routings {
        let wrong = |step: &str, message: String| {
            Err(CheckError::Step { class: class.max_tokens, step: step.to_owned(), message })
        };
        let Some(step) = class.steps.get(routing.step as usize) else {
            return wrong("routings", format!("step {} of {}", routing.step, class.steps.len()));
        };
        let needed = u64::from(class.max_tokens) * u64::from(routing.top_k);
        let needed = needed.saturating_mul(8);
        let fits = class.buffers.get(routing.buffer as usize).is_some_and(|buffer| buffer.bytes >= needed);
        if !(1..=most::EXPERTS as u32).contains(&routing.experts) {
            let message = format!("{} experts, expected 1..={}", routing.experts, most::EXPERTS);
            return wrong(&step.label, message);
        }
        if !fits || !step.writes.contains(&routing.buffer) {
            let message = format!("writes no routing of {needed} bytes into buffer {}", routing.buffer);
            return wrong(&step.label, message);
        }
    }
    Ok(())
}

fn check_buffer(program: &Program, class: &TokenClass, buffer: &Buffer) -> Result<(), CheckError> {
    let wrong =
        |message| Err(CheckError::Buffer { class: class.max_tokens, buffer: buffer.name.clone(), message });
    if !buffer.offset.is_multiple_of(LINE as u64) {
        return wrong(format!("offset {} is not a multiple of {LINE}", buffer.offset));
    }
    match buffer.offset.checked_add(buffer.bytes) {
        Some(end) if end <= program.arena_bytes => {}
        _ => {
            return wrong(format!(
                "{} bytes at {} pass the arena's end at {}",
                buffer.bytes, buffer.offset, program.arena_bytes
            ));
        }
    }
    let count = class.steps.len() + class.logit_steps.len();
    if buffer.first > buffer.last || buffer.last as usize >= count {
        return wrong(format!(
            "live over steps {}..={}, expected ascending and below {count}",
            buffer.first, buffer.last
        ));
    }
    Ok(())
}

fn check_step(program: &Program, class: &TokenClass, index: u32, step: &Step) -> Result<(), CheckError> {
    let wrong =
        |message| Err(CheckError::Step { class: class.max_tokens, step: step.label.clone(), message });
    let Some(symbol) = program.code.symbols.get(step.kernel as usize) else {
        return wrong(format!("kernel {} of {} symbols", step.kernel, program.code.symbols.len()));
    };
    let Some(contract) = &symbol.contract else {
        return wrong(format!("`{}` does not follow the kernel ABI", symbol.name));
    };
    for id in step.reads.iter().chain(&step.writes) {
        match class.buffers.get(*id as usize) {
            Some(b) if (b.first..=b.last).contains(&index) => {}
            Some(b) => {
                return wrong(format!(
                    "uses buffer `{}` at step {index}, which is live over steps {}..={}",
                    b.name, b.first, b.last
                ));
            }
            None => return wrong(format!("uses buffer {id} of {}", class.buffers.len())),
        }
    }
    for lora_target in &step.lora_targets {
        if let Err(message) = check_lora_target_index(&program.model, *lora_target) {
            return wrong(message);
        }
    }
    for (n, operand) in step.operands.iter().enumerate() {
        if let Err(message) = check_operand(program, class, step, operand) {
            return wrong(format!("operand {n}: {message}"));
        }
    }
    if let Err(message) = contracts::check_step(program, class, step, contract) {
        return wrong(message);
    }
    check_weight_reads(class, step).or_else(wrong)
}

fn check_weight_reads(class: &TokenClass, step: &Step) -> Result<(), String> {
    let WeightReads { whole, parts, routing, own_items: _ } = &step.weight_reads;
    let of_items = parts.iter().flat_map(|part| &part.operands).map(|reads| &reads.operand);
    for operand in whole.iter().chain(of_items) {
        if !matches!(step.operands.get(*operand as usize), Some(Operand::Weights { .. })) {
            return Err(format!("reads operand {operand} as weights, which it is not"));
        }
    }
    match routing {
        Some(index) if *index as usize >= class.routings.len() => {
            Err(format!("reads weights by routing {index} of {}", class.routings.len()))
        }
        _ => Ok(()),
    }
}

fn check_operand(
    program: &Program,
    class: &TokenClass,
    step: &Step,
    operand: &Operand,
) -> Result<(), String> {
    let model = &program.model;
    match *operand {
        Operand::Weights { offset, bytes } => {
            if !offset.is_multiple_of(LINE as u64) {
                return Err(format!("weight offset {offset} is not a multiple of {LINE}"));
            }
            match offset.checked_add(bytes) {
                Some(end) if end <= program.weight_bytes => Ok(()),
                _ => Err(format!(
                    "{bytes} bytes at {offset} pass the weight region's end at {}",
                    program.weight_bytes
                )),
            }
        }
        Operand::Buffer(id) if id as usize >= class.buffers.len() => {
            Err(format!("buffer {id} of {}", class.buffers.len()))
        }
        Operand::Buffer(id) if !step.reads.contains(&id) && !step.writes.contains(&id) => {
            Err(format!("buffer {id} is in neither `reads` nor `writes`"))
        }
        Operand::Buffer(_) => Ok(()),
        Operand::Kv { layer, kind } => match model.kv.layers.get(layer as usize) {
            Some(l) if l.kind == kind => Ok(()),
            Some(l) => Err(format!("KV layer {layer} as {kind:?}, it is {:?}", l.kind)),
            None => Err(format!("KV layer {layer} of {}", model.kv.layers.len())),
        },
        Operand::Rope(table) if table as usize >= model.ropes.len() => {
            Err(format!("rotary table {table} of {}", model.ropes.len()))
        }
        Operand::Rope(_) => Ok(()),
        Operand::LoraTarget(lora_target) => check_lora_target_index(model, lora_target),
    }
}

fn check_lora_target_index(model: &ModelInfo, lora_target: u32) -> Result<(), String> {
    let lora_targets = model.adapters.as_ref().map_or(0, |adapters| adapters.lora_targets.len());
    if (lora_target as usize) < lora_targets {
        Ok(())
    } else {
        Err(format!("LoRA target {lora_target} of {lora_targets}"))
    }
}

/// A buffer's life starts with a write; nothing is read before.
fn check_first_writes(class: &TokenClass) -> Result<(), CheckError> {
    for (id, buffer) in class.buffers.iter().enumerate() {
        let first = class.steps.iter().chain(&class.logit_steps).nth(buffer.first as usize);
        if first.is_none_or(|step| !step.writes.contains(&(id as u32))) {
            return Err(CheckError::Buffer {
                class: class.max_tokens,
                buffer: buffer.name.clone(),
                message: format!("step {} is its first, but does not write it", buffer.first),
            });
        }
    }
    Ok(())
}

fn check_logits(program: &Program, class: &TokenClass) -> Result<(), CheckError> {
    let wrong = |message| Err(CheckError::Logits { class: class.max_tokens, offset: class.logits, message });
    let rows = LOGIT_SLAB.min(class.max_tokens as usize);
    let needed = (rows * f32_row_stride(program.model.row_width())) as u64;
    let end = class.steps.len() + class.logit_steps.len();
    let Some(id) = class
        .buffers
        .iter()
        .position(|b| b.offset == class.logits && b.bytes >= needed && b.last as usize + 1 == end)
    else {
        return wrong(format!(
            "no buffer of {needed} bytes ({rows} rows) lies there up to the last logits step"
        ));
    };
    if !class.logit_steps.iter().any(|step| step.writes.contains(&(id as u32))) {
        return wrong(format!("no logits step writes `{}`", class.buffers[id].name));
    }
    Ok(())
}
