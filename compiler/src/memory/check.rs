//! Independent checker of memory plans: it sweeps over the steps and looks at what is live there.

use kernmill_plan::program::{Buffer, Step, TokenClass};
use thiserror::Error;

/// What is wrong with a memory plan. All of these are bugs of the planner or the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
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
    /// A step names a buffer that does not exist.
    #[error("step {step} ({label}) names buffer {index} of {count}")]
    NoSuchBuffer {
        /// Step.
        step: u32,
        /// Its label.
        label: String,
        /// Index it names.
        index: u32,
        /// Buffers there are.
        count: usize,
    },
    /// A step touches a buffer that is not live then.
    #[error("step {step} ({label}) touches buffer {buffer}, which is live from step {first} to step {last}")]
    NotLive {
        /// Step.
        step: u32,
        /// Its label.
        label: String,
        /// Buffer.
        buffer: String,
        /// Its first step.
        first: u32,
        /// Its last step.
        last: u32,
    },
    /// A step reads what no step up to it has written.
    #[error("step {step} ({label}) reads buffer {buffer}, which nothing has written")]
    Unwritten {
        /// Step.
        step: u32,
        /// Its label.
        label: String,
        /// Buffer.
        buffer: String,
    },
}

/// Checks that buffers are aligned, lie in the arena, and share no byte with another one that is live at the same step.
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

/// Checks a class's buffers, and that its steps touch them only while they are live and read only what is written.
///
/// A buffer may be written and read by one step (a kernel's hand-over between its own phases).
pub fn check_class(class: &TokenClass, arena_bytes: u64) -> Result<(), CheckError> {
    check_buffers(&class.buffers, arena_bytes)?;
    let mut written = vec![false; class.buffers.len()];
    for (number, step) in (0..).zip(class.steps.iter().chain(&class.logit_steps)) {
        for &index in &step.writes {
            live_buffer(class, number, step, index)?;
            written[index as usize] = true;
        }
        for &index in &step.reads {
            let buffer = live_buffer(class, number, step, index)?;
            if !written[index as usize] {
                let (label, buffer) = (step.label.clone(), buffer.name.clone());
                return Err(CheckError::Unwritten { step: number, label, buffer });
            }
        }
    }
    Ok(())
}

/// The buffer that a step names, if it is live then.
fn live_buffer<'a>(
    class: &'a TokenClass,
    number: u32,
    step: &Step,
    index: u32,
) -> Result<&'a Buffer, CheckError> {
    let label = || step.label.clone();
    let Some(buffer) = class.buffers.get(index as usize) else {
        let count = class.buffers.len();
        return Err(CheckError::NoSuchBuffer { step: number, label: label(), index, count });
    };
    if number < buffer.first || number > buffer.last {
        let (name, first, last) = (buffer.name.clone(), buffer.first, buffer.last);
        return Err(CheckError::NotLive { step: number, label: label(), buffer: name, first, last });
    }
    Ok(buffer)
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
