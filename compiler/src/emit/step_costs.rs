//! Reads and multiply-adds of each step, for reports.

use crate::ir::{Graph, OperandRef, Role};
use crate::passes::layout::WeightLayout;
use crate::passes::schedule::ScheduledStep;
use kernmill_plan::program::{Routing, StepWork};

/// The work of a step of a class with these routings.
pub fn step_work(
    graph: &Graph,
    layout: &WeightLayout,
    step: &ScheduledStep,
    routings: &[Routing],
) -> StepWork {
    let mut work = StepWork { cache: step.attends, ..StepWork::default() };
    for (at, operand) in step.operands.iter().enumerate() {
        let OperandRef::Tensor(id) = operand else { continue };
        if step.operands[..at].contains(operand) {
            continue;
        }
        let tensor = graph.tensor(*id);
        let cols = *tensor.shape.last().unwrap_or(&0);
        let matrix = |rows: usize| (tensor.format.matrix_bytes(rows, cols) as u64, (rows * cols) as u64);
        match tensor.role {
            Role::Matrix => {
                let (bytes, macs) = matrix(tensor.shape[0]);
                (work.shared_bytes, work.row_macs) = (work.shared_bytes + bytes, work.row_macs + macs);
            }
            Role::ExpertMatrix => {
                let (bytes, macs) = matrix(tensor.shape[1]);
                (work.expert_bytes, work.expert_macs) = (work.expert_bytes + bytes, work.expert_macs + macs);
            }
            Role::Vector => work.shared_bytes += cols as u64 * 4,
            Role::ExpertVector => work.expert_bytes += cols as u64 * 4,
            Role::Table => work.row_bytes += layout.placement(*id).tile_stride,
        }
    }
    if work.expert_bytes > 0 {
        let used = |routing: &Routing| step.reads.iter().chain(&step.writes).any(|b| *b == routing.buffer);
        work.routing = routings.iter().position(used).map(|index| index as u32);
    }
    work
}
