//! Which tokens a text was made of.

use std::collections::VecDeque;
use std::ops::Range;

/// Which tokens the text that comes out of a reader was made of. A reader leaves marks and space around parts
/// out, and holds back what may become a mark; the bytes that are left come in the tokens' order.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    /// Tokens that have come.
    count: usize,
    /// Bytes of the last tokens, whose text has not come out.
    pending: VecDeque<usize>,
    /// Bytes of the last token that came out, which are still to come.
    rest: usize,
    /// Tokens whose text came out and waits for the end of what may be a stop string.
    held: Range<usize>,
}

impl Sources {
    /// Adds a token of so many bytes; `None` for one that ends the text.
    pub(super) fn push(&mut self, bytes: Option<usize>) {
        self.count += 1;
        self.pending.extend(bytes);
    }

    /// A part begins with `bytes` bytes of text: only the last tokens that have as many can belong to it.
    pub(super) fn begin(&mut self, bytes: usize) {
        let (mut kept, mut known) = (0, 0);
        for size in self.pending.iter().rev() {
            if known >= bytes {
                break;
            }
            known += size;
            kept += 1;
        }
        self.pending.drain(..self.pending.len() - kept);
        self.rest = 0;
        let first = self.count - kept;
        self.held = first..first;
    }

    /// So many bytes of text have come out.
    pub(super) fn take(&mut self, bytes: usize) {
        while self.rest < bytes {
            let Some(size) = self.pending.pop_front() else { break };
            self.rest += size;
            self.held.end += 1;
        }
        self.rest = self.rest.saturating_sub(bytes);
    }

    /// The tokens of all text that has come out since the last time.
    pub(super) fn release(&mut self) -> Range<usize> {
        let end = self.held.end;
        std::mem::replace(&mut self.held, end..end)
    }
}
