//! Where a tensor's data comes from: which checkpoint tensors, and which of their rows.

use std::borrow::Cow;
use std::ops::Range;

/// Stands in the name of a checkpoint tensor for the number of an expert.
pub const EXPERT: &str = "{expert}";

/// Which rows of the checkpoint tensor's row dimension (the last but one, or the only one) a tensor takes: of
/// every `of` rows those from `first` to `end`. Of tensors with experts, the rows are each expert's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowSelect {
    of: usize,
    first: usize,
    end: usize,
}

impl RowSelect {
    /// Every row.
    pub const ALL: RowSelect = RowSelect { of: 1, first: 0, end: 1 };
    /// 0, 2, 4, ... (gate rows of an interleaved gate_up matrix).
    pub const EVEN: RowSelect = RowSelect { of: 2, first: 0, end: 1 };
    /// 1, 3, 5, ... (up rows).
    pub const ODD: RowSelect = RowSelect { of: 2, first: 1, end: 2 };

    /// The rows `take` of every `of`; `None` where there are no such rows.
    pub fn new(of: usize, take: Range<usize>) -> Option<RowSelect> {
        let whole = take == (0..of);
        let is_some = take.start < take.end && take.end <= of;
        is_some.then_some(if whole {
            RowSelect::ALL
        } else {
            RowSelect { of, first: take.start, end: take.end }
        })
    }

    /// Rows of the checkpoint tensor in a period.
    pub fn of(self) -> usize {
        self.of
    }

    /// The rows of a period that are taken.
    pub fn take(self) -> Range<usize> {
        self.first..self.end
    }

    /// Rows that are taken of a period.
    pub fn width(self) -> usize {
        self.end - self.first
    }

    /// The checkpoint tensor's row that is row `row` of those taken.
    pub fn row(self, row: usize) -> usize {
        row / self.width() * self.of + self.first + row % self.width()
    }

    /// Rows that the checkpoint tensor has where `rows` are taken; `None` where the periods are not whole, or
    /// the number is beyond all limits.
    pub fn stored(self, rows: usize) -> Option<usize> {
        if rows.is_multiple_of(self.width()) { (rows / self.width()).checked_mul(self.of) } else { None }
    }

    /// Where `rows` taken rows are a step apart: the first of them, and that step.
    pub fn first_and_step(self, rows: usize) -> Option<(usize, usize)> {
        match self.width() {
            1 => Some((self.first, self.of)),
            width if width >= rows => Some((self.first, 1)),
            _ => None,
        }
    }

    /// Whether the two together take each row once.
    pub fn completes(self, other: RowSelect) -> bool {
        let (low, high) = if self.first < other.first { (self, other) } else { (other, self) };
        self.of == other.of && low.first == 0 && low.end == high.first && high.end == self.of
    }
}

/// Where a tensor's data comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSource {
    /// Checkpoint tensor; for MXFP4 of two tensors the `_blocks` one. With [`EXPERT`] in it there is a tensor
    /// for each expert.
    pub name: String,
    /// Checkpoint tensor of MXFP4 scales; `None` where the tensor's blocks have their scales, as in GGUF
    /// files.
    pub scales: Option<String>,
    /// Rows taken.
    pub rows: RowSelect,
    /// Whether the checkpoint stores the matrix the other way round, `[k, n]`; rows are still those of `[n,
    /// k]`.
    pub transposed: bool,
}

impl TensorSource {
    /// Whether every expert has a checkpoint tensor of its own.
    pub fn is_gathered(&self) -> bool {
        self.name.contains(EXPERT)
    }
}

/// The name of the checkpoint tensor that has the data of an expert.
pub fn of_expert(name: &str, expert: usize) -> Cow<'_, str> {
    match name.contains(EXPERT) {
        true => name.replace(EXPERT, &expert.to_string()).into(),
        false => name.into(),
    }
}
