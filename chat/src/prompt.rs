//! Ids of a rendered conversation.

/// Token ids that an engine continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Offsets into `ids` at which messages begin, ascending, and the end. A later prompt of the same
    /// conversation is likely to differ from one of them on: these are the places to keep a checkpoint.
    pub boundaries: Vec<usize>,
}

impl Prompt {
    /// Notes that a message begins or ends after the ids so far.
    pub(crate) fn mark(&mut self) {
        let here = self.ids.len();
        if here > 0 && self.boundaries.last() != Some(&here) {
            self.boundaries.push(here);
        }
    }
}
