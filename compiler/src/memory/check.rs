//! Independent checker of memory plans: it sweeps over the steps and looks at what is live there.

use super::{BufferRequest, MemoryPlan};
use kernmill_plan::program::Buffer;
use thiserror::Error;

/// What is wrong with a memory plan. All of these are bugs of the planner or the scheduler.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CheckError {
    /// The offset is not a multiple of 64.
    #[error("buffer {buffer} is at offset {offset}, which is not a multiple of 64")]
    Misaligned {
        /// Buffer.
        buffer: String,
        /// Its offset.
        offset: u64,
    },
    /// It ends past the arena.
    #[error("buffer {buffer} at offset {offset} with {bytes} bytes ends past the arena of {arena} bytes")]
    OutOfBounds {
        /// Buffer.
        buffer: String,
        /// Its offset.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// The arena's size.
        arena: u64,
    },
    /// Its last step is before its first.
    #[error("buffer {buffer} is live from step {first} to step {last}")]
    NeverLive {
        /// Buffer.
        buffer: String,
        /// Its first step.
        first: u32,
        /// Its last step.
        last: u32,
    },
    /// Two buffers share bytes at one step.
    #[error("buffers {first} and {second} share bytes while both are live at step {step}")]
    Overlap {
        /// The one at the lower offset.
        first: String,
        /// The other.
        second: String,
        /// A step at which both are live.
        step: u32,
    },
    /// The plan's buffers are not the requested ones.
    #[error("buffer {index} of the plan is {planned:?}, requested was {requested:?}")]
    OtherBuffer {
        /// Index.
        index: usize,
        /// What the plan has there, if anything.
        planned: Option<Buffer>,
        /// What was asked for, if anything.
        requested: Option<BufferRequest>,
    },
}

/// Checks that a plan places exactly the requested buffers, soundly. What the steps do with them is
/// [`kernmill_plan::check`]'s business.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(requests: &[BufferRequest], plan: &MemoryPlan) -> Result<(), CheckError> {
    for index in 0..requests.len().max(plan.buffers.len()) {
        let (requested, planned) = (requests.get(index), plan.buffers.get(index));
        if !requested.zip(planned).is_some_and(|(requested, planned)| answers(requested, planned)) {
            let (planned, requested) = (planned.cloned(), requested.cloned());
            return Err(CheckError::OtherBuffer { index, planned, requested });
        }
    }
    check_buffers(&plan.buffers, plan.bytes)
}

/// Whether the buffer is the requested one.
fn answers(request: &BufferRequest, buffer: &Buffer) -> bool {
    request.name == buffer.name
        && request.bytes == buffer.bytes
        && request.first == buffer.first
        && request.last == buffer.last
}

/// Checks that buffers are aligned, lie in the arena, and share no byte with another one that is live at the same step.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_buffers(buffers: &[Buffer], arena_bytes: u64) -> Result<(), CheckError> {
    for buffer in buffers {
        check_alone(buffer, arena_bytes)?;
    }
    // Where two lives meet, one of them has just begun: looking at those steps is enough.
    let mut steps: Vec<u32> = buffers.iter().map(|buffer| buffer.first).collect();
    steps.sort_unstable();
    steps.dedup();
    for step in steps {
        check_step(buffers, step)?;
    }
    Ok(())
}

/// What can be said of a buffer without looking at others.
fn check_alone(buffer: &Buffer, arena: u64) -> Result<(), CheckError> {
    let &Buffer { ref name, offset, bytes, first, last } = buffer;
    if first > last {
        return Err(CheckError::NeverLive { buffer: name.clone(), first, last });
    }
    if !offset.is_multiple_of(64) {
        return Err(CheckError::Misaligned { buffer: name.clone(), offset });
    }
    if offset.checked_add(bytes).is_none_or(|end| end > arena) {
        return Err(CheckError::OutOfBounds { buffer: name.clone(), offset, bytes, arena });
    }
    Ok(())
}

/// No two of the buffers live at `step` share bytes.
fn check_step(buffers: &[Buffer], step: u32) -> Result<(), CheckError> {
    let is_live = |buffer: &&Buffer| (buffer.first..=buffer.last).contains(&step) && buffer.bytes > 0;
    let mut live: Vec<&Buffer> = buffers.iter().filter(is_live).collect();
    live.sort_by_key(|buffer| buffer.offset);
    // In order of offset, if any two overlap then so do two neighbours.
    for pair in live.windows(2) {
        if pair[0].offset + pair[0].bytes > pair[1].offset {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(CheckError::Overlap { first, second, step });
        }
    }
    Ok(())
}
