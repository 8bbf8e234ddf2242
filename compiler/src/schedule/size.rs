//! Sizes that the program checker allows, checked where it can still be said what is too large.

use super::Schedule;
use kernmill_plan::limit;

/// A model with more of something than a program can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found} {what}, expected at most {limit}; {help}")]
pub struct SizeError {
    /// Step or class.
    pub place: String,
    /// The thing of which there is too much.
    pub what: &'static str,
    /// How many there are.
    pub found: usize,
    /// How many there may be.
    pub limit: usize,
    /// Advice that makes it fewer.
    pub help: &'static str,
}

/// Checks the sizes of all classes.
///
/// # Errors
/// The first size that is too large.
pub fn check_sizes(schedules: &[Schedule]) -> Result<(), SizeError> {
    schedules.iter().try_for_each(check_class)
}

fn check_class(schedule: &Schedule) -> Result<(), SizeError> {
    let class = || format!("class of up to {} tokens", schedule.max_tokens);
    let check = |place: &dyn Fn() -> String, what, found, limit, help| {
        if found <= limit { Ok(()) } else { Err(SizeError { place: place(), what, found, limit, help }) }
    };
    let help = "smaller chunks make batches smaller";
    check(&class, "tokens", schedule.max_tokens, limit::BATCH, help)?;
    let help = "fewer layers or nodes make fewer of them, and so does --no-adapters";
    check(&class, "values in buffers", schedule.buffers.len(), limit::BUFFERS, help)?;
    for step in schedule.steps.iter().chain(&schedule.logit_steps) {
        let place = || step.label.clone();
        let help = "a fused-op spec with fewer nodes makes smaller kernels";
        check(&place, "operands of a kernel", step.operands.len(), limit::OPERANDS, help)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::OperandRef;
    use crate::memory::BufferRequest;
    use crate::schedule::ScheduledStep;

    fn schedule(max_tokens: usize, buffers: usize, operands: usize) -> Schedule {
        let request = BufferRequest { name: "x".to_owned(), bytes: 64, first: 0, last: 0 };
        let step = ScheduledStep {
            label: "layers.0.x".to_owned(),
            kernel: 0,
            operands: vec![OperandRef::Rope(0); operands],
            reads: Vec::new(),
            writes: Vec::new(),
            lora_targets: Vec::new(),
            attends: None,
        };
        Schedule {
            max_tokens,
            steps: vec![step],
            logit_steps: Vec::new(),
            values: Vec::new(),
            buffers: vec![request; buffers],
            logits: 0,
            wanted_only: None,
        }
    }

    #[test]
    fn what_is_too_large_is_named_with_its_limit() {
        assert_eq!(check_sizes(&[schedule(1, 1, 1), schedule(1 << 16, 1 << 14, 256)]), Ok(()));
        for (tokens, buffers, operands, expected) in [
            (65537, 1, 1, "class of up to 65537 tokens: 65537 tokens, expected at most 65536"),
            (8, 16385, 1, "class of up to 8 tokens: 16385 values in buffers, expected at most 16384"),
            (8, 1, 257, "layers.0.x: 257 operands of a kernel, expected at most 256"),
        ] {
            let error = check_sizes(&[schedule(tokens, buffers, operands)]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
