//! The checker of kernel descriptions: shows, from a [`Kernel`] alone, that its body stays inside its
//! operands and its scratch, and says what these must be ([`Contract`]).
//!
//! It runs at every generation and shares no code with selection, which makes the descriptions, nor with the
//! code that bodies and operations are made by. How far an operation on a row, or on an item's results, goes,
//! its file in `row_op/` says; the rest is here. It is held to the sizes that the description states for its
//! values and matrices.

mod attention;
mod bodies;
pub(crate) mod checker;
pub(crate) mod rules;
mod scratch;
#[cfg(test)]
mod tests;

use crate::kernel::{Body, Domain, Home, Kernel};
use checker::{Checked, CountedRows, KernelChecker};
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::contract::Contract;

pub use checker::Violation;

/// Checks a kernel.
///
/// # Errors
/// The first thing that it would do outside its operands, or that its body is not written for.
pub fn check(kernel: &Kernel) -> Result<Contract, Violation> {
    let mut checker = touched(kernel)?;
    checker.scratch(kernel)?;
    checker.contract(kernel)
}

/// All that a kernel touches.
fn touched(kernel: &Kernel) -> Checked<KernelChecker<'_>> {
    let scratch_rows = match &kernel.body {
        Body::Matmul { domain: Domain::LogitRows, .. } => Some(CountedRows::Logits),
        Body::Matmul { domain: Domain::Tokens, .. } | Body::Experts { .. } | Body::Shrink { .. } => {
            Some(CountedRows::Tokens)
        }
        _ => None,
    };
    let by_rows = matches!(kernel.body, Body::Shrink { by_rows: true, .. });
    let mut checker = KernelChecker::new(&kernel.vals, scratch_rows, by_rows)?;
    checker.prologue(kernel)?;
    checker.body(kernel)?;
    Ok(checker)
}

impl KernelChecker<'_> {
    /// Rows of a body's lists, which have room for so many.
    fn lists(&mut self, room: usize, rows: CountedRows) -> Checked {
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
    fn contract(mut self, kernel: &Kernel) -> Checked<Contract> {
        "operands".clone_into(&mut self.place);
        for (id, val) in kernel.vals.iter().enumerate() {
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
            scratch_bytes: crate::body::scratch_bytes(kernel) as u64,
            max_tokens: self.max_tokens as u32,
            max_context: self.max_context as u32,
            whole_texts: self.whole_texts,
            listed_tiles: kernel.body.listed_part().map_or(0, |part| part.items() as u32),
        })
    }
}
