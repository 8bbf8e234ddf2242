//! Arena planning: buffers that are never live at the same step may share bytes.
//!
//! [`plan_memory`] places them. [`check::check`] sees that these are the buffers that were asked for, and
//! [`kernmill_plan::check`] that they are apart, neither with code of the planner.

pub mod check;

use kernmill_plan::program::Buffer;
use std::fmt;
use thiserror::Error;

/// Alignment of every buffer: a cache line, so that no two buffers share one.
const ALIGN: u64 = 64;

/// A buffer that wants a place. Steps are numbered through a class's steps and then its logit steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// Name for listings.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// First step that touches it.
    pub first: u32,
    /// Last step that touches it, inclusive.
    pub last: u32,
}

/// Placed buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPlan {
    /// The requests in their order, with offsets.
    pub buffers: Vec<Buffer>,
    /// Bytes of the arena, a multiple of 64.
    pub bytes: u64,
    /// The largest sum of the (padded) sizes of buffers live at one step: no plan is smaller.
    pub lower_bound: u64,
}

/// A request that cannot be placed. Both are bugs of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// The interval is empty.
    #[error("buffer {name} is live from step {first} to step {last}, which is before it")]
    EmptyInterval {
        /// Buffer.
        name: String,
        /// First step of the buffer.
        first: u32,
        /// Last step of the buffer.
        last: u32,
    },
    /// Sizes past 64 bits.
    #[error("buffer {name} of {bytes} bytes does not fit the address space")]
    TooLarge {
        /// Buffer.
        name: String,
        /// Size of the buffer.
        bytes: u64,
    },
}

/// Places buffers: the largest first, each into the smallest gap that holds it between the buffers that live
/// beside it, or above them.
pub fn plan_memory(requests: &[BufferRequest]) -> Result<MemoryPlan, MemoryError> {
    requests.iter().try_for_each(check_request)?;
    let total: u128 = requests.iter().map(|request| u128::from(padded(request))).sum();
    if total > u128::from(u64::MAX / 2) {
        let largest = requests.iter().max_by_key(|request| request.bytes).expect("an empty sum is 0");
        return Err(MemoryError::TooLarge { name: largest.name.clone(), bytes: largest.bytes });
    }
    let mut offsets: Vec<Option<u64>> = vec![None; requests.len()];
    for index in placing_order(requests) {
        let beside = neighbours(requests, &offsets, index);
        offsets[index] = Some(best_fit(beside, padded(&requests[index])));
    }
    let buffers: Vec<Buffer> = requests
        .iter()
        .zip(offsets)
        .map(|(request, offset)| Buffer {
            name: request.name.clone(),
            offset: offset.expect("every buffer is placed"),
            bytes: request.bytes,
            first: request.first,
            last: request.last,
        })
        .collect();
    let ends = requests.iter().zip(&buffers).map(|(request, buffer)| buffer.offset + padded(request));
    Ok(MemoryPlan { bytes: ends.max().unwrap_or(0), lower_bound: lower_bound(requests), buffers })
}

fn check_request(request: &BufferRequest) -> Result<(), MemoryError> {
    let &BufferRequest { ref name, bytes, first, last } = request;
    if first > last {
        return Err(MemoryError::EmptyInterval { name: name.clone(), first, last });
    }
    if bytes > u64::MAX / 4 {
        return Err(MemoryError::TooLarge { name: name.clone(), bytes });
    }
    Ok(())
}

/// Bytes that a buffer takes up.
fn padded(request: &BufferRequest) -> u64 {
    request.bytes.next_multiple_of(ALIGN)
}

/// Indices of the requests, the largest first; ties by first step, then by index.
fn placing_order(requests: &[BufferRequest]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(padded(&requests[index])), requests[index].first));
    order
}

/// Byte spans of the placed buffers that are live at a step at which request `index` is.
fn neighbours(requests: &[BufferRequest], offsets: &[Option<u64>], index: usize) -> Vec<(u64, u64)> {
    let own = &requests[index];
    let placed = requests.iter().zip(offsets).filter_map(|(request, &offset)| Some((request, offset?)));
    placed
        .filter(|(request, _)| request.first <= own.last && own.first <= request.last)
        .map(|(request, offset)| (offset, offset + padded(request)))
        .collect()
}

/// Offset of the smallest gap of at least `bytes` between the spans, or past the last one.
fn best_fit(mut spans: Vec<(u64, u64)>, bytes: u64) -> u64 {
    spans.sort_unstable();
    let mut best: Option<(u64, u64)> = None; // (gap, offset)
    let mut free_from = 0;
    for (start, end) in spans {
        let gap = start.saturating_sub(free_from);
        if start >= free_from && gap >= bytes && best.is_none_or(|(smallest, _)| gap < smallest) {
            best = Some((gap, free_from));
        }
        free_from = free_from.max(end);
    }
    best.map_or(free_from, |(_, offset)| offset)
}

/// The largest sum of padded sizes live at one step.
fn lower_bound(requests: &[BufferRequest]) -> u64 {
    let live_at =
        |step: u32| requests.iter().filter(move |request| request.first <= step && step <= request.last);
    // The sum only grows where a buffer's life begins.
    requests.iter().map(|request| live_at(request.first).map(padded).sum()).max().unwrap_or(0)
}

/// The listing of `--emit memory`: buffers in order of first step, then offset; sizes in bytes.
impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12} {:>12} {:>11}  name", "offset", "bytes", "steps")?;
        let mut order: Vec<&Buffer> = self.buffers.iter().collect();
        order.sort_by_key(|buffer| (buffer.first, buffer.offset));
        for buffer in order {
            let steps = format!("{}..{}", buffer.first, buffer.last);
            writeln!(f, "{:>12} {:>12} {steps:>11}  {}", buffer.offset, buffer.bytes, buffer.name)?;
        }
        writeln!(f, "arena {} bytes, lower bound {} bytes", self.bytes, self.lower_bound)
    }
}

#[cfg(test)]
mod tests;
