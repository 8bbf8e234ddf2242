//! The checker of kernel descriptions: shows, from a [`Kernel`] alone, that its body stays inside its
//! operands and its scratch, and says what these must be ([`Contract`]).
//!
//! It runs at every generation and shares no code with selection, which makes the descriptions, nor with the
//! bodies. For each stage and each step of an epilogue it knows how far one row or one work item goes, and
//! holds that to the sizes that the description states for its values and matrices.

mod attention;
mod bodies;
mod epilogue;
mod row_ops;
mod scratch;
#[cfg(test)]
mod tests;

use crate::kernel::{Body, Domain, Home, Kernel, OperandId, PROLOGUE_TOKENS, RowType, ValId};
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::contract::{Contract, Need};
use kernmill_plan::format::LINE;
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
type Checked<T = ()> = Result<T, Violation>;

/// Rows that are counted together: those of a batch, of its slots, or of a slab of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedRows {
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
enum RowAccess {
    Read,
    Write,
}

/// Checks a kernel.
///
/// # Errors
/// The first thing that it would do outside its operands, or that its body is not written for.
pub fn check(kernel: &Kernel) -> Result<Contract, Violation> {
    let mut checker = KernelChecker::new(kernel)?;
    checker.prologue()?;
    checker.body()?;
    checker.scratch()?;
    checker.contract()
}

struct KernelChecker<'k> {
    kernel: &'k Kernel,
    /// Rows that scratch has room for, if any value is homed there.
    scratch_rows: Option<CountedRows>,
    /// The demands on each operand, as far as they are known.
    needs: Vec<Option<Need>>,
    max_tokens: usize,
    max_context: usize,
    /// The place that is being checked.
    place: String,
}

impl<'k> KernelChecker<'k> {
    fn new(kernel: &'k Kernel) -> Checked<KernelChecker<'k>> {
        let scratch_rows = match &kernel.body {
            Body::Matmul { domain: Domain::LogitRows, .. } => Some(CountedRows::Logits),
            Body::Matmul { domain: Domain::Tokens, .. } | Body::Experts { .. } | Body::Shrink { .. } => {
                Some(CountedRows::Tokens)
            }
            _ => None,
        };
        let checker = KernelChecker {
            kernel,
            scratch_rows,
            needs: Vec::new(),
            max_tokens: limit::BATCH,
            max_context: limit::CONTEXT,
            place: "values".to_owned(),
        };
        for (id, val) in kernel.vals.iter().enumerate() {
            checker.row_size(id, val.row)?;
        }
        Ok(checker)
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Checked<T> {
        Err(Violation { place: self.place.clone(), message: message.into() })
    }

    fn ensure(&self, condition: bool, message: impl FnOnce() -> String) -> Checked {
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
            RowType::Q8(_) | RowType::Bf16(_) => (32, limit::WIDTH, 32),
            RowType::Routing(_) => (1, limit::TOP_K, 1),
        };
        let n = row.len();
        self.ensure((least..=most).contains(&n) && n.is_multiple_of(multiple), || {
            format!("value {id} is {row:?}, expected {least} to {most} elements, a multiple of {multiple}")
        })
    }

    /// The type of a value's rows.
    fn row(&self, id: ValId) -> Checked<RowType> {
        match self.kernel.vals.get(id) {
            Some(val) => Ok(val.row),
            None => self.wrong(format!("value {id} of {}", self.kernel.vals.len())),
        }
    }

    /// Columns of a value that must be f32.
    fn f32(&self, id: ValId) -> Checked<usize> {
        match self.row(id)? {
            RowType::F32(n) => Ok(n),
            other => self.wrong(format!("value {id} is {other:?}, expected f32")),
        }
    }

    /// A value must have rows of that type.
    fn is(&self, id: ValId, expected: RowType) -> Checked {
        let found = self.row(id)?;
        self.ensure(found == expected, || format!("value {id} is {found:?}, expected {expected:?}"))
    }

    /// Whole rows of a value are read or written, by the numbers of `rows`.
    fn access(&mut self, id: ValId, rows: CountedRows, access: RowAccess) -> Checked {
        let row = self.row(id)?;
        let operand = match self.kernel.vals[id].home {
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
        if rows == CountedRows::Tokens && !self.by_rows() {
            self.max_tokens = self.max_tokens.min(PROLOGUE_TOKENS);
        }
        self.ensure(operand.is_none() || !self.by_rows(), || {
            format!("value {id} is shared, and rows in scratch are those of a group")
        })?;
        match operand {
            // Worker 0 reads what it has written.
            Some(operand) => self.buffer(operand, row, Some(rows), RowAccess::Write),
            None => Ok(()),
        }
    }

    /// Whether rows in scratch are those of a group of tokens.
    fn by_rows(&self) -> bool {
        matches!(self.kernel.body, Body::Shrink { by_rows: true, .. })
    }

    /// An operand that is a buffer of such rows.
    fn buffer(
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
    fn weights(&mut self, operand: OperandId, bytes: usize) -> Checked {
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
    fn behind(&mut self, operand: OperandId, first: OperandId, distance: usize) -> Checked {
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
    fn panel_buffer(&mut self, operand: OperandId, bytes: usize, access: RowAccess) -> Checked {
        let (read, written) = (access == RowAccess::Read, access == RowAccess::Write);
        match self.known(operand)? {
            None => self.set(operand, Need::Panels { bytes: bytes as u64, read, written }),
            Some(known) => self.conflict(operand, known, "panels"),
        }
    }

    /// A table of which a row is read for each token id.
    fn table(&mut self, operand: OperandId, row_bytes: usize, rows: usize) -> Checked {
        let need = Need::Table { row_bytes: row_bytes as u64, rows: rows as u32 };
        match self.known(operand)? {
            Some(known) if known != need => self.conflict(operand, known, need.kind()),
            _ => self.set(operand, need),
        }
    }

    fn known(&self, operand: OperandId) -> Checked<Option<Need>> {
        self.ensure(operand < limit::OPERANDS, || {
            format!("operand {operand}, expected at most {}", limit::OPERANDS)
        })?;
        Ok(self.needs.get(operand).copied().flatten())
    }

    fn set(&mut self, operand: OperandId, need: Need) -> Checked {
        if self.needs.len() <= operand {
            self.needs.resize(operand + 1, None);
        }
        self.needs[operand] = Some(need);
        Ok(())
    }

    fn conflict<T>(&self, operand: OperandId, known: Need, used: &str) -> Checked<T> {
        self.wrong(format!("operand {operand} is used as {used}, and is {}", known.kind()))
    }

    /// Rows of a body's lists.
    fn lists(&mut self, rows: CountedRows) -> Checked {
        let room = self.kernel.max_rows;
        self.max_tokens = self.max_tokens.min(match rows {
            CountedRows::Tokens => room,
            CountedRows::Slots(k) => room / k.max(1),
            CountedRows::Logits => {
                let enough = room >= LOGIT_SLAB;
                self.ensure(enough, || format!("lists of {room} rows, expected {LOGIT_SLAB}"))?;
                self.max_tokens
            }
        });
        Ok(())
    }

    /// Values that nothing touches have operands too.
    fn contract(mut self) -> Checked<Contract> {
        "operands".clone_into(&mut self.place);
        for (id, val) in self.kernel.vals.iter().enumerate() {
            if let Home::Operand(operand) | Home::ScratchExceptWorker0(operand) = val.home
                && self.known(operand)?.is_none()
            {
                return self.wrong(format!("nothing reads or writes value {id}, operand {operand}"));
            }
        }
        let missing = self.needs.iter().position(Option::is_none);
        if let Some(missing) = missing {
            return self.wrong(format!("nothing uses operand {missing} of {}", self.needs.len()));
        }
        self.ensure(self.max_tokens > 0, || "there is no room for a token".to_owned())?;
        Ok(Contract {
            operands: self.needs.into_iter().flatten().collect(),
            scratch_bytes: crate::body::scratch_bytes(self.kernel) as u64,
            max_tokens: self.max_tokens as u32,
            max_context: self.max_context as u32,
            listed_tiles: self.kernel.body.listed_part().map_or(0, |part| part.items() as u32),
        })
    }
}

/// Whether bytes from one line to another are whole lines.
fn is_lines(bytes: usize) -> bool {
    bytes.is_multiple_of(LINE)
}
