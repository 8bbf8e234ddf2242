//! Records of what each worker of an engine did and when, step by step, for `kernmill bench --timeline`.

use crate::profile::WorkDone;
use std::ops::Range;
use std::time::Instant;

/// The record of some batches. Times are nanoseconds since the beginning.
#[derive(Clone, Debug)]
pub struct Trace {
    /// When the recording began.
    pub began: Instant,
    /// The batches, in the order in which they were run.
    pub batches: Vec<TracedBatch>,
    /// The steps of all batches, each batch's in the order in which they were run.
    pub steps: Vec<TracedStep>,
    /// By worker, its calls in the order of time.
    pub workers: Vec<Vec<TracedCall>>,
    /// Batches that were run, and not recorded for want of room.
    pub left_out: u64,
}

/// A batch that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedBatch {
    /// Index of its class among the program's.
    pub class: usize,
    /// Tokens.
    pub tokens: u32,
    /// When the calling thread began to run it.
    pub begin: u64,
    /// When it had ended on all workers.
    pub end: u64,
    /// The part of [`Trace::steps`] that is about it.
    pub steps: Range<usize>,
}

/// A step of a batch, on all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedStep {
    /// Index among the class's steps, those of the logits behind the others.
    pub step: usize,
    /// Reads and multiply-adds of the step.
    pub work: WorkDone,
}

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The kernel of a step: its index in [`Trace::steps`].
    Step(usize),
    /// Moving the wanted rows together, which worker 0 does while the others wait.
    Gather,
    /// Handing out rows of logits, to the sampler.
    Rows,
}

/// Something that a worker did, and its waiting for the others behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// Index of the batch.
    pub batch: usize,
    /// The activity.
    pub activity: Activity,
    /// When the worker began.
    pub begin: u64,
    /// When it had done its share, and began to wait.
    pub done: u64,
    /// When it had passed the barrier.
    pub passed: u64,
}
