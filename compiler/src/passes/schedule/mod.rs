//! Schedule: kernel uses as steps, with each buffer's life; kernels that are equal share code.
//!
//! The limits of the program's checker are checked here first, where it is still known which part is too
//! large.

use crate::ir::{Graph, OperandRef};
use crate::passes::memory::BufferRequest;
use crate::passes::select::{KernelUse, Selection, max_rows, row_stride};
use kernmill_kernels_gen::kernel::{Body, Kernel, RowOp};
use kernmill_plan::limit;
use kernmill_plan::program::{TokenRows, WantedOnly};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// Every distinct kernel of all classes, with its symbol name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    /// Symbol name and kernel.
    pub list: Vec<(String, Kernel)>,
    index: HashMap<Kernel, u32>,
}

impl Kernels {
    /// The kernel of that index.
    pub fn kernel(&self, index: u32) -> &Kernel {
        &self.list[index as usize].1
    }

    /// Index of an equal kernel, added if new.
    fn intern(&mut self, stem: &str, kernel: &Kernel) -> u32 {
        if let Some(index) = self.index.get(kernel) {
            return *index;
        }
        let index = self.list.len() as u32;
        self.list.push((format!("{stem}_{index}"), kernel.clone()));
        self.index.insert(kernel.clone(), index);
        index
    }
}

/// A step before addresses are known.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledStep {
    /// Name for listings.
    pub label: String,
    /// Index into [`Kernels::list`].
    pub kernel: u32,
    /// Operands in the kernel's order.
    pub operands: Vec<OperandRef>,
    /// Indices into [`Schedule::buffers`] of the buffers that the step reads.
    pub reads: Vec<u32>,
    /// Indices into [`Schedule::buffers`] of the buffers that the step writes.
    pub writes: Vec<u32>,
    /// LoRA targets that it is there for alone; none when it always runs.
    pub lora_targets: Vec<u32>,
    /// Layer whose cached keys and values it attends to.
    pub attends: Option<u32>,
}

/// One token class's steps and buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Largest batch.
    pub max_tokens: usize,
    /// Steps over the batch.
    pub steps: Vec<ScheduledStep>,
    /// Steps over one slab of wanted rows.
    pub logit_steps: Vec<ScheduledStep>,
    /// Contents of the arena's buffers, in order of first use: values, and panels.
    pub contents: Vec<OperandRef>,
    /// Sizes and lives of the buffers, in the order of `contents`.
    pub buffers: Vec<BufferRequest>,
    /// Index of the logits' buffer.
    pub logits: u32,
    /// From where on only the wanted rows matter.
    pub wanted_only: Option<WantedOnly>,
}

/// Schedules of all classes over one list of kernels.
pub fn schedule_all(graph: &Graph, selections: &[Selection]) -> (Vec<Schedule>, Kernels) {
    let mut kernels = Kernels::default();
    let schedules = selections.iter().map(|one| schedule(graph, one, &mut kernels)).collect();
    (schedules, kernels)
}

/// Schedules a class.
pub fn schedule(graph: &Graph, selection: &Selection, kernels: &mut Kernels) -> Schedule {
    let (slab, batch): (Vec<&KernelUse>, Vec<&KernelUse>) =
        selection.uses.iter().partition(|one| one.per_slab);
    let total = (batch.len() + slab.len()) as u32;
    let mut lives =
        Lives { graph, max_tokens: selection.max_tokens, contents: Vec::new(), buffers: Vec::new() };
    let served = graph.served_lora_targets();
    let mut at = 0;
    let mut scheduled = |uses: &[&KernelUse], last_of_read: Option<u32>, lives: &mut Lives| {
        let mut steps = Vec::with_capacity(uses.len());
        for (index, one) in uses.iter().enumerate() {
            // Panels are filled for the next step alone.
            let fills = matches!(one.kernel.body, Body::Panels { .. });
            let served_by = if fills { uses.get(index + 1).unwrap_or(one) } else { one };
            // Slab steps repeat: what they read from before them must outlive them all.
            let reads = one.reads.iter().map(|buffer| lives.touch(*buffer, at, last_of_read)).collect();
            let writes = one.writes.iter().map(|buffer| lives.touch(*buffer, at, None)).collect();
            steps.push(ScheduledStep {
                label: one.label.clone(),
                kernel: kernels.intern(&one.stem, &one.kernel),
                operands: one.operands.clone(),
                reads,
                writes,
                lora_targets: lora_targets(served_by, &served),
                attends: attends(one),
            });
            at += 1;
        }
        steps
    };
    let steps = scheduled(&batch, None, &mut lives);
    let logit_steps = scheduled(&slab, Some(total.saturating_sub(1)), &mut lives);
    let logits = lives.touch(OperandRef::Value(graph.output), total.saturating_sub(1), None);
    let wanted_only = wanted_only(&batch, &lives);
    Schedule {
        max_tokens: selection.max_tokens,
        steps,
        logit_steps,
        contents: lives.contents,
        buffers: lives.buffers,
        logits,
        wanted_only,
    }
}

/// Behind the last step that writes the KV cache, later tokens need nothing of a row, so that only the wanted
/// ones matter.
fn wanted_only(batch: &[&KernelUse], lives: &Lives<'_>) -> Option<WantedOnly> {
    let step = batch.iter().rposition(|one| writes_cache(&one.kernel))? as u32 + 1;
    if step as usize == batch.len() {
        return None;
    }
    let buffers = lives.contents.iter().zip(&lives.buffers).enumerate();
    let crossing = buffers.filter(|(_, (_, buffer))| buffer.first < step && buffer.last >= step);
    let rows = crossing.filter_map(|(index, (contents, _))| {
        let OperandRef::Value(value) = contents else { return None };
        let ty = lives.graph.value(*value).ty;
        Some(TokenRows { buffer: index as u32, bytes: (max_rows(ty, 1) * row_stride(ty)) as u64 })
    });
    Some(WantedOnly { step, rows: rows.collect() })
}

fn writes_cache(kernel: &Kernel) -> bool {
    let writes = |op: &RowOp| op.facts().cached.is_some();
    let body = match &kernel.body {
        Body::Matmul { parts, .. } => parts.iter().flat_map(|part| &part.epilogue).any(writes),
        body => body.row_ops().iter().any(writes),
    };
    body || kernel.prologue.iter().any(writes)
}

/// The LoRA targets that all of what a kernel writes is for; none when something is for other steps.
fn lora_targets(one: &KernelUse, served: &[Option<BTreeSet<u32>>]) -> Vec<u32> {
    let of = |buffer: &OperandRef| match buffer {
        OperandRef::Value(value) => served[(value.0 as usize).checked_sub(1)?].as_ref(),
        _ => None,
    };
    let all: Option<Vec<&BTreeSet<u32>>> = one.writes.iter().map(of).collect();
    let all: BTreeSet<u32> = all.unwrap_or_default().into_iter().flatten().copied().collect();
    all.into_iter().collect()
}

/// The layer that an attention kernel reads.
fn attends(one: &KernelUse) -> Option<u32> {
    match (&one.kernel.body, one.operands.iter().find(|operand| matches!(operand, OperandRef::Kv(..)))) {
        (Body::Attention(_), Some(OperandRef::Kv(layer, _))) => Some(*layer),
        _ => None,
    }
}

/// Buffers and their lives so far.
struct Lives<'a> {
    graph: &'a Graph,
    max_tokens: usize,
    contents: Vec<OperandRef>,
    buffers: Vec<BufferRequest>,
}

impl Lives<'_> {
    /// A value's buffer, or panels', live at step `at` (and until `until`).
    fn touch(&mut self, contents: OperandRef, at: u32, until: Option<u32>) -> u32 {
        let last = until.unwrap_or(at).max(at);
        if let Some(index) = self.contents.iter().position(|other| *other == contents) {
            let buffer = &mut self.buffers[index];
            buffer.last = buffer.last.max(last);
            return index as u32;
        }
        let (name, bytes) = match contents {
            OperandRef::Value(value) => {
                let (value, ty) = (self.graph.value(value), self.graph.value(value).ty);
                (value.name.clone(), (max_rows(ty, self.max_tokens) * row_stride(ty)) as u64)
            }
            OperandRef::Panels(panels) => (format!("panels.{}.{}", panels.group, panels.part), panels.bytes),
            other => unreachable!("{other:?} is no buffer"),
        };
        self.contents.push(contents);
        self.buffers.push(BufferRequest { name, bytes, first: at, last });
        self.contents.len() as u32 - 1
    }
}

/// The listing of `--emit schedule`: a barrier after every line.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "class of up to {} tokens", self.max_tokens)?;
        let names = |list: &[u32]| {
            list.iter().map(|i| self.buffers[*i as usize].name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let mut line = |i: usize, step: &ScheduledStep, note: &str| {
            let (reads, writes) = (names(&step.reads), names(&step.writes));
            writeln!(f, "{i:>5} {note}{} = kernel {} ({reads}) -> ({writes})", step.label, step.kernel)
        };
        for (i, step) in self.steps.iter().enumerate() {
            line(i, step, "")?;
        }
        for (i, step) in self.logit_steps.iter().enumerate() {
            line(self.steps.len() + i, step, "per slab: ")?;
        }
        Ok(())
    }
}

/// A model with more of something than a program can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found} {what}, expected at most {limit}; {help}")]
pub struct SizeError {
    /// Step or class.
    pub place: String,
    /// Plural name of the things that are too many, such as `steps`.
    pub what: &'static str,
    /// How many there are.
    pub found: usize,
    /// How many there may be.
    pub limit: usize,
    /// Advice that makes it fewer.
    pub help: &'static str,
}

/// Checks the sizes of all classes.
///
/// # Errors
/// The first size that is too large.
pub fn check_sizes(schedules: &[Schedule]) -> Result<(), SizeError> {
    schedules.iter().try_for_each(check_class)
}

fn check_class(schedule: &Schedule) -> Result<(), SizeError> {
    let class = || format!("class of up to {} tokens", schedule.max_tokens);
    let check = |place: &dyn Fn() -> String, what, found, limit, help| {
        if found <= limit { Ok(()) } else { Err(SizeError { place: place(), what, found, limit, help }) }
    };
    let help = "smaller chunks make batches smaller";
    check(&class, "tokens", schedule.max_tokens, limit::BATCH, help)?;
    let help = "fewer layers or nodes make fewer of them, and so does --no-adapters";
    check(&class, "values in buffers", schedule.buffers.len(), limit::BUFFERS, help)?;
    for step in schedule.steps.iter().chain(&schedule.logit_steps) {
        let place = || step.label.clone();
        let help = "a fused-op spec with fewer nodes makes smaller kernels";
        check(&place, "operands of a kernel", step.operands.len(), limit::OPERANDS, help)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OperandRef;
    use crate::passes::memory::BufferRequest;
    use crate::passes::schedule::ScheduledStep;

    fn schedule(max_tokens: usize, buffers: usize, operands: usize) -> Schedule {
        let request = BufferRequest { name: "x".to_owned(), bytes: 64, first: 0, last: 0 };
        let step = ScheduledStep {
            label: "layers.0.x".to_owned(),
            kernel: 0,
            operands: vec![OperandRef::Rope(0); operands],
            reads: Vec::new(),
            writes: Vec::new(),
            lora_targets: Vec::new(),
            attends: None,
        };
        Schedule {
            max_tokens,
            steps: vec![step],
            logit_steps: Vec::new(),
            contents: Vec::new(),
            buffers: vec![request; buffers],
            logits: 0,
            wanted_only: None,
        }
    }

    #[test]
    fn what_is_too_large_is_named_with_its_limit() {
        assert_eq!(check_sizes(&[schedule(1, 1, 1), schedule(1 << 16, 1 << 14, 256)]), Ok(()));
        for (tokens, buffers, operands, expected) in [
            (65537, 1, 1, "class of up to 65537 tokens: 65537 tokens, expected at most 65536"),
            (8, 16385, 1, "class of up to 8 tokens: 16385 values in buffers, expected at most 16384"),
            (8, 1, 257, "layers.0.x: 257 operands of a kernel, expected at most 256"),
        ] {
            let error = check_sizes(&[schedule(tokens, buffers, operands)]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
