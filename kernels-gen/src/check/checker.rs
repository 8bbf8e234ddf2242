//! The state of a check: what values are, and what is known of each operand.

use crate::values::{Domain, Home, OperandId, PROLOGUE_TOKENS, RowType, Val, ValId};
use kernmill_plan::contract::Need;
use kernmill_plan::limit;

/// A problem of a description, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Violation {
    /// The part of the kernel, and the value or operand.
    pub place: String,
    /// The problem, and what was expected.
    pub message: String,
}

/// Result of checks.
pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// Rows that are counted together: those of a batch, of its slots, or of a slab of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedRows {
    /// One for each token.
    Tokens,
    /// So many for each token.
    Slots(usize),
    /// One for each wanted row.
    Logits,
}

impl From<Domain> for CountedRows {
    fn from(domain: Domain) -> CountedRows {
        match domain {
            Domain::Tokens => CountedRows::Tokens,
            Domain::Slots(k) => CountedRows::Slots(k),
            Domain::LogitRows => CountedRows::Logits,
        }
    }
}

/// The kind of access to a value's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowAccess {
    Read,
    Write,
}

/// All that a kernel is known to touch so far. Operations and bodies say what they read and write.
pub(crate) struct KernelChecker<'k> {
    vals: &'k [Val],
    /// Rows that scratch has room for, if any value is homed there.
    scratch_rows: Option<CountedRows>,
    /// Whether rows in scratch are those of a group of tokens.
    by_rows: bool,
    /// The demands on each operand, as far as they are known.
    pub(super) needs: Vec<Option<Need>>,
    /// Bytes that row operations keep in scratch, one at a time.
    pub(super) work: usize,
    pub(super) max_tokens: usize,
    pub(super) max_context: usize,
    /// Whether tokens read those that follow.
    pub(super) whole_texts: bool,
    /// The place that is being checked.
    pub(super) place: String,
}

impl<'k> KernelChecker<'k> {
    pub(super) fn new(
        vals: &'k [Val],
        scratch_rows: Option<CountedRows>,
        by_rows: bool,
    ) -> Checked<KernelChecker<'k>> {
        let checker = KernelChecker {
            vals,
            scratch_rows,
            by_rows,
            needs: Vec::new(),
            work: 0,
            max_tokens: limit::BATCH,
            max_context: limit::CONTEXT,
            whole_texts: false,
            place: "values".to_owned(),
        };
        for (id, val) in vals.iter().enumerate() {
            checker.row_size(id, val.row)?;
        }
        Ok(checker)
    }

    pub(crate) fn wrong<T>(&self, message: impl Into<String>) -> Checked<T> {
        Err(Violation { place: self.place.clone(), message: message.into() })
    }

    pub(crate) fn ensure(&self, condition: bool, message: impl FnOnce() -> String) -> Checked {
        if condition { Ok(()) } else { self.wrong(message()) }
    }

    /// A row's own size: whole blocks where it has blocks, and small enough that no product of sizes
    /// overflows.
    fn row_size(&self, id: ValId, row: RowType) -> Checked {
        // The wanted rows' logits alone are wider than activations.
        let (least, most, multiple) = match row {
            RowType::F32(_) => (1, limit::VOCAB, 1),
            RowType::F16(_) => (1, limit::WIDTH, 1),
            RowType::Kv(row, _) if row.format.is_scaled() => {
                let head = row.head_dim;
                self.ensure((1..=limit::HEAD_DIM).contains(&head) && head.is_multiple_of(4), || {
                    format!("value {id} is {row:?}, whose heads have {head} elements")
                })?;
                (head, limit::WIDTH, head)
            }
            RowType::Kv(..) => (1, limit::WIDTH, 1),
            RowType::Q8(_) | RowType::Q8x2(_) | RowType::Bf16(_) => (32, limit::WIDTH, 32),
            RowType::Routing(_) => (1, limit::TOP_K, 1),
        };
        let n = row.len();
        self.ensure((least..=most).contains(&n) && n.is_multiple_of(multiple), || {
            format!("value {id} is {row:?}, expected {least} to {most} elements, a multiple of {multiple}")
        })
    }

    /// The type of a value's rows.
    pub(crate) fn row(&self, id: ValId) -> Checked<RowType> {
        match self.vals.get(id) {
            Some(val) => Ok(val.row),
            None => self.wrong(format!("value {id} of {}", self.vals.len())),
        }
    }

    /// Columns of a value that must be f32.
    pub(crate) fn f32(&self, id: ValId) -> Checked<usize> {
        match self.row(id)? {
            RowType::F32(n) => Ok(n),
            other => self.wrong(format!("value {id} is {other:?}, expected f32")),
        }
    }

    /// A value must have rows of that type.
    pub(crate) fn is(&self, id: ValId, expected: RowType) -> Checked {
        let found = self.row(id)?;
        self.ensure(found == expected, || format!("value {id} is {found:?}, expected {expected:?}"))
    }

    /// Whole rows of a value are read or written, by the numbers of `rows`.
    pub(crate) fn access(&mut self, id: ValId, rows: CountedRows, access: RowAccess) -> Checked {
        let row = self.row(id)?;
        let operand = match self.vals[id].home {
            Home::Operand(operand) => return self.buffer(operand, row, Some(rows), access),
            Home::Scratch => None,
            Home::ScratchExceptWorker0(operand) => Some(operand),
        };
        self.ensure(self.scratch_rows == Some(rows), || {
            format!(
                "value {id} is in scratch, whose rows are {:?}, and its rows are {rows:?}",
                self.scratch_rows
            )
        })?;
        if rows == CountedRows::Tokens && !self.by_rows {
            self.max_tokens = self.max_tokens.min(PROLOGUE_TOKENS);
        }
        self.ensure(operand.is_none() || !self.by_rows, || {
            format!("value {id} is shared, and rows in scratch are those of a group")
        })?;
        match operand {
            // Worker 0 reads what it has written.
            Some(operand) => self.buffer(operand, row, Some(rows), RowAccess::Write),
            None => Ok(()),
        }
    }

    /// Such rows of a value are read.
    pub(crate) fn reads(&mut self, id: ValId, row: RowType, rows: CountedRows) -> Checked {
        self.is(id, row)?;
        self.access(id, rows, RowAccess::Read)
    }

    /// Such rows of a value are written.
    pub(crate) fn writes(&mut self, id: ValId, row: RowType, rows: CountedRows) -> Checked {
        self.is(id, row)?;
        self.access(id, rows, RowAccess::Write)
    }

    /// A row operation keeps so many bytes in scratch.
    pub(crate) fn keeps(&mut self, bytes: usize) {
        self.work = self.work.max(bytes);
    }

    /// An operand that is a buffer of such rows.
    pub(crate) fn buffer(
        &mut self,
        operand: OperandId,
        row: RowType,
        rows: Option<CountedRows>,
        access: RowAccess,
    ) -> Checked {
        let (slots_now, wanted_now) = match rows {
            Some(CountedRows::Tokens) => (1, false),
            Some(CountedRows::Slots(k)) => (k as u32, false),
            Some(CountedRows::Logits) => (0, true),
            None => (0, false),
        };
        let (read_now, written_now) = (access == RowAccess::Read, access == RowAccess::Write);
        let stride = row.stride() as u64;
        let new = match self.known(operand)? {
            None => Need::Buffer {
                slots: slots_now,
                wanted: wanted_now,
                row_bytes: stride,
                read: read_now,
                written: written_now,
            },
            Some(Need::Buffer { slots, wanted, row_bytes, read, written }) if row_bytes == stride => {
                Need::Buffer {
                    slots: slots.max(slots_now),
                    wanted: wanted || wanted_now,
                    row_bytes,
                    // A later stage may read what an earlier one has written of the same row.
                    read: read || read_now && !written,
                    written: written || written_now,
                }
            }
            Some(other) => return self.conflict(operand, other, "rows of another size"),
        };
        self.set(operand, new)
    }

    /// The first `bytes` bytes of an operand are read as weights.
    pub(crate) fn weights(&mut self, operand: OperandId, bytes: usize) -> Checked {
        let new = match self.known(operand)? {
            None => Need::Weights { bytes: bytes as u64, behind: None },
            Some(Need::Weights { bytes: known, behind }) => {
                Need::Weights { bytes: known.max(bytes as u64), behind }
            }
            Some(other) => return self.conflict(operand, other, "weights"),
        };
        self.set(operand, new)
    }

    /// Weights that start `distance` bytes behind the start of `first`.
    pub(crate) fn behind(&mut self, operand: OperandId, first: OperandId, distance: usize) -> Checked {
        match self.known(operand)? {
            Some(Need::Weights { bytes, behind }) => {
                let wanted = (first as u32, distance as u64);
                self.ensure(first != operand && behind.is_none_or(|known| known == wanted), || {
                    format!("operand {operand} alternates with operand {first} and with another")
                })?;
                self.set(operand, Need::Weights { bytes, behind: Some(wanted) })
            }
            _ => self.wrong(format!("operand {operand} is not the second of two matrices")),
        }
    }

    /// A buffer of panels, which are nobody's rows.
    pub(crate) fn panel_buffer(&mut self, operand: OperandId, bytes: usize, access: RowAccess) -> Checked {
        let (read, written) = (access == RowAccess::Read, access == RowAccess::Write);
        match self.known(operand)? {
            None => self.set(operand, Need::Panels { bytes: bytes as u64, read, written }),
            Some(known) => self.conflict(operand, known, "panels"),
        }
    }

    /// A table. A row of it is read for each token id.
    pub(crate) fn table(&mut self, operand: OperandId, row_bytes: usize, rows: usize) -> Checked {
        let need = Need::Table { row_bytes: row_bytes as u64, rows: rows as u32 };
        match self.known(operand)? {
            Some(known) if known != need => self.conflict(operand, known, need.kind()),
            _ => self.set(operand, need),
        }
    }

    /// A table of `rows` rows, with one for each position.
    pub(crate) fn by_position(&mut self, operand: OperandId, rows: usize, bytes: usize) -> Checked {
        self.max_context = self.max_context.min(rows);
        self.weights(operand, bytes)
    }

    pub(crate) fn known(&self, operand: OperandId) -> Checked<Option<Need>> {
        self.ensure(operand < limit::OPERANDS, || {
            format!("operand {operand}, expected at most {}", limit::OPERANDS)
        })?;
        Ok(self.needs.get(operand).copied().flatten())
    }

    pub(crate) fn set(&mut self, operand: OperandId, need: Need) -> Checked {
        if self.needs.len() <= operand {
            self.needs.resize(operand + 1, None);
        }
        self.needs[operand] = Some(need);
        Ok(())
    }

    pub(crate) fn conflict<T>(&self, operand: OperandId, known: Need, used: &str) -> Checked<T> {
        self.wrong(format!("operand {operand} is used as {used}, and is {}", known.kind()))
    }
}
