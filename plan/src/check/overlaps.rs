//! Buffers that are live together lie apart.

use super::CheckError;
use crate::program::{Buffer, TokenClass};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that buffers which are live together lie apart, by a sweep over the steps. Those that live at a
/// step lie one behind the other, so that a new one is held against its neighbours alone.
pub(super) fn check_overlaps(class: &TokenClass) -> Result<(), CheckError> {
    let filled = class.buffers.iter().filter(|buffer| buffer.bytes > 0);
    let mut starts: Vec<(&Buffer, u32)> = filled.map(|b| (b, live_until(class, b))).collect();
    starts.sort_by_key(|(b, _)| b.first);
    // By offset; and by the last step.
    let (mut live, mut ends) = (BTreeMap::<u64, &Buffer>::new(), BTreeSet::new());
    for (b, last) in starts {
        while let Some((end, offset)) = ends.first().copied().filter(|(end, _)| *end < b.first) {
            ends.remove(&(end, offset));
            live.remove(&offset);
        }
        let before = live.range(..=b.offset).next_back().filter(|(_, a)| a.offset + a.bytes > b.offset);
        if let Some((_, a)) = before.or_else(|| live.range(b.offset..b.offset + b.bytes).next()) {
            return Err(CheckError::Overlap {
                class: class.max_tokens,
                first: a.name.clone(),
                second: b.name.clone(),
                step: b.first,
            });
        }
        live.insert(b.offset, b);
        ends.insert((last, b.offset));
    }
    Ok(())
}

/// The last step at which a buffer's contents matter. The logits steps repeat slab by slab, so what they read
/// of the steps before must outlive all of them. (So must the slab itself, which `check_logits` sees to.)
fn live_until(class: &TokenClass, buffer: &Buffer) -> u32 {
    let before_slabs = class.steps.len() as u32;
    if buffer.first < before_slabs && buffer.last >= before_slabs {
        before_slabs + class.logit_steps.len() as u32 - 1
    } else {
        buffer.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(buffers: Vec<Buffer>) -> TokenClass {
        TokenClass {
            max_tokens: 1,
            buffers,
            steps: Vec::new(),
            logit_steps: Vec::new(),
            logits: 0,
            routings: Vec::new(),
            wanted_only: None,
        }
    }

    /// Whether two buffers share a byte at a step, by definition.
    fn overlap(a: &Buffer, b: &Buffer) -> bool {
        let bytes = |b: &Buffer| b.offset..b.offset + b.bytes;
        let steps = |b: &Buffer| b.first..=b.last;
        bytes(a).any(|byte| bytes(b).contains(&byte)) && steps(a).any(|step| steps(b).contains(&step))
    }

    proptest! {
        #[test]
        fn a_sweep_finds_what_all_pairs_would(
            drawn in prop::collection::vec((0u64..24, 0u64..6, 0u32..8, 0u32..3), 0..10),
        ) {
            let buffers: Vec<Buffer> = drawn
                .into_iter()
                .enumerate()
                .map(|(n, (offset, bytes, first, more))| {
                    Buffer { name: n.to_string(), offset, bytes, first, last: first + more }
                })
                .collect();
            let mut pairs =
                buffers.iter().enumerate().flat_map(|(n, a)| buffers[..n].iter().map(move |b| (a, b)));
            let expected = pairs.any(|(a, b)| overlap(a, b));
            match check_overlaps(&class(buffers.clone())) {
                Ok(()) => prop_assert!(!expected),
                Err(CheckError::Overlap { first, second, step, .. }) => {
                    let named = |name: String| buffers.iter().find(|b| b.name == name).unwrap();
                    let (a, b) = (named(first), named(second));
                    prop_assert!(overlap(a, b) && b.first == step);
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }

    /// All pairs of so many would take minutes.
    #[test]
    fn many_buffers_are_checked() {
        let count = 1 << 17;
        let apart = |n: u64| Buffer { name: String::new(), offset: 64 * n, bytes: 64, first: 0, last: 0 };
        let mut buffers: Vec<Buffer> = (0..count).map(apart).collect();
        assert_eq!(check_overlaps(&class(buffers.clone())), Ok(()));
        buffers.push(Buffer { bytes: 1, ..apart(count / 2) });
        assert!(matches!(check_overlaps(&class(buffers)), Err(CheckError::Overlap { .. })));
    }
}
