//! Checks that a memory plan is of the buffers that were asked for. Whether these share bytes while both are
//! live, or leave the arena, [`kernmill_plan::check`] sees in the whole program.

use super::{BufferRequest, MemoryPlan};
use kernmill_plan::program::Buffer;
use thiserror::Error;

/// The plan's buffers are not the requested ones: a bug of the planner.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("buffer {index} of the plan is {planned:?}, requested was {requested:?}")]
pub struct MemoryCheckError {
    /// Index.
    pub index: usize,
    /// The buffer that the plan has there, if any.
    pub planned: Option<Buffer>,
    /// The buffer that was asked for, if any.
    pub requested: Option<BufferRequest>,
}

/// Checks that a plan has exactly the requested buffers, each with its size and life.
///
/// # Errors
/// The first that differs.
pub fn check(requests: &[BufferRequest], plan: &MemoryPlan) -> Result<(), MemoryCheckError> {
    for index in 0..requests.len().max(plan.buffers.len()) {
        let (requested, planned) = (requests.get(index), plan.buffers.get(index));
        if !requested.zip(planned).is_some_and(|(requested, planned)| answers(requested, planned)) {
            let (planned, requested) = (planned.cloned(), requested.cloned());
            return Err(MemoryCheckError { index, planned, requested });
        }
    }
    Ok(())
}

/// Whether the buffer is the requested one.
fn answers(request: &BufferRequest, buffer: &Buffer) -> bool {
    request.name == buffer.name
        && request.bytes == buffer.bytes
        && request.first == buffer.first
        && request.last == buffer.last
}
