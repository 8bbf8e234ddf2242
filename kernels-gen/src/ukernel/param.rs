//! Parameters of micro-kernels: which memory is read and written from each, as data.

use kernmill_plan::kv::BLOCK_TOKENS;

/// Whether tiles are configured when a micro-kernel is called, and when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileState {
    /// At the call.
    pub before: bool,
    /// At the return.
    pub after: bool,
}

/// One parameter of a micro-kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// A number.
    Number,
    /// A place that may be prefetched from and is neither read nor written.
    Ahead,
    /// A pointer to memory that is read.
    Read(Region),
    /// A pointer to memory that is written and never read.
    Write(Region),
    /// A pointer to memory that is read and written.
    Update(Region),
    /// A pointer to a list of pointers.
    Rows(RowPointers),
    /// A pointer to `rows` pointers; `bytes` bytes from `offset` on behind each are read and written.
    Targets {
        /// Pointers in the list.
        rows: Amount,
        /// Where in a row its piece starts.
        offset: Amount,
        /// Bytes of the piece.
        bytes: usize,
    },
}

/// A list of pointers to memory that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPointers {
    /// Pointers in the list.
    pub rows: Amount,
    /// Bytes of each row.
    pub bytes: usize,
    /// Pointers behind these, to memory that may be prefetched and is not read.
    pub ahead: usize,
    /// The numbers `first` and `end`, where only these tokens are read, counted from the first row's on, 16
    /// to a row.
    pub tokens: Option<(usize, usize)>,
}

impl RowPointers {
    /// The bytes of each row that are read in a call with these arguments.
    pub fn pieces(&self, args: &[u64]) -> Vec<std::ops::Range<usize>> {
        let rows = usize::try_from(self.rows.value(args)).unwrap_or(0);
        let (first, end) =
            self.tokens.map_or((0, usize::MAX), |(first, end)| (args[first] as usize, args[end] as usize));
        let token = self.bytes / BLOCK_TOKENS;
        let inside =
            |bound: usize, row: usize| bound.saturating_sub(row * BLOCK_TOKENS).min(BLOCK_TOKENS) * token;
        (0..rows)
            .map(|row| match self.tokens {
                Some(_) => inside(first, row)..inside(end, row).max(inside(first, row)),
                None => 0..self.bytes,
            })
            .collect()
    }
}

/// Memory seen from a pointer: a piece, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where the first piece starts.
    pub start: Amount,
    /// Bytes of a piece. None when not positive.
    pub bytes: Amount,
    /// How many pieces and how far apart, for each dimension of repetition.
    pub repeat: Vec<(Amount, Amount)>,
    /// Alignment of the pointer that the micro-kernel relies on.
    pub align: usize,
}

/// A number of bytes or pieces: a constant, and multiples of parameters (by index).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The constant.
    pub constant: i64,
    /// Parameter and factor.
    pub terms: Vec<(usize, i64)>,
    /// Divisor of the sum of both; 0 for not at all.
    pub per: i64,
}

impl Amount {
    /// Value of the amount for a call with these arguments.
    pub fn value(&self, args: &[u64]) -> i64 {
        let sum =
            self.terms.iter().fold(self.constant, |sum, (param, factor)| sum + args[*param] as i64 * factor);
        sum / self.per.max(1)
    }

    pub(crate) fn per(self, per: usize) -> Amount {
        Amount { per: per as i64, ..self }
    }

    pub(crate) fn times(param: usize, factor: usize) -> Amount {
        Amount { terms: vec![(param, factor as i64)], ..Amount::default() }
    }

    pub(crate) fn param(param: usize) -> Amount {
        Amount::times(param, 1)
    }
}

impl From<usize> for Amount {
    fn from(constant: usize) -> Amount {
        Amount { constant: constant as i64, ..Amount::default() }
    }
}

impl Region {
    pub(crate) fn new(bytes: impl Into<Amount>) -> Region {
        Region { start: 0.into(), bytes: bytes.into(), repeat: Vec::new(), align: 1 }
    }

    pub(crate) fn starting_at(mut self, start: Amount) -> Region {
        self.start = start;
        self
    }

    pub(crate) fn times(mut self, count: impl Into<Amount>, stride: impl Into<Amount>) -> Region {
        self.repeat.push((count.into(), stride.into()));
        self
    }

    pub(crate) fn aligned(mut self, align: usize) -> Region {
        self.align = align;
        self
    }

    /// The pieces as (offset from the pointer, bytes) for a call with these arguments.
    pub fn pieces(&self, args: &[u64]) -> Vec<(i64, usize)> {
        let bytes = usize::try_from(self.bytes.value(args)).unwrap_or(0);
        if bytes == 0 {
            return Vec::new();
        }
        let mut pieces = vec![(self.start.value(args), bytes)];
        for (count, stride) in &self.repeat {
            let (count, stride) = (count.value(args), stride.value(args));
            pieces = pieces
                .iter()
                .flat_map(|(offset, bytes)| (0..count).map(move |i| (offset + i * stride, *bytes)))
                .collect();
        }
        pieces
    }
}
