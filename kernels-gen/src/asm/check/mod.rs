//! Proves of an assembled micro-kernel, from its bytes alone, that it keeps to its contract. Runs at every
//! generation.
//!
//! Two parts: `decode` looks at each instruction by itself (what the CPU must offer, what no micro-kernel may
//! do) and at the shape of the code (branches, constants behind it); `flow` follows values along every path:
//! where each address comes from, what the stack holds, which registers have been written. It refuses code
//! that it cannot follow. Lengths of accesses are not its business: the tests with guard pages see to those.
//! Loops are not shown to end.

mod decode;
mod flow;
mod state;
#[cfg(test)]
mod tests;
mod uses;

use crate::ukernel::param::{Param, TileState};
use iced_x86::{Formatter, Instruction, NasmFormatter, Register};
use kernmill_plan::target::Features;

/// Where a micro-kernel breaks which rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{instruction}` at {offset:#x}: {rule}")]
pub struct AsmViolation {
    /// From the micro-kernel's first byte.
    pub offset: u64,
    /// The instruction as text.
    pub instruction: String,
    /// The rule that it breaks.
    pub rule: SafetyRule,
}

/// A rule for micro-kernels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SafetyRule {
    /// Bytes that are no instruction.
    #[error("not an instruction")]
    Undecodable,
    /// A branch to somewhere else than an instruction of the micro-kernel.
    #[error("branches must stay at instructions of the micro-kernel")]
    Branch,
    /// The end of the micro-kernel without a return.
    #[error("the micro-kernel must end in a return")]
    RunsOff,
    /// Calls, indirect jumps, interrupts.
    #[error("only conditional and direct jumps and a plain return may change the flow")]
    ControlFlow,
    /// Code that no path leads to.
    #[error("no path leads here, and constants lie behind the code")]
    Unreached,
    /// An instruction of a feature that it may not use.
    #[error("{0} is not among the features that it may use")]
    Feature(String),
    /// Vector instructions without VEX or EVEX.
    #[error("vector instructions must be VEX or EVEX encoded")]
    Legacy,
    /// Rounding, exceptions, denormals: MXCSR and the x87 control word.
    #[error("floating-point control is never changed")]
    FloatControl,
    /// A rounding mode in the instruction.
    #[error("rounding is to nearest even")]
    Rounding,
    /// DF.
    #[error("the direction flag is never changed")]
    Direction,
    /// Lock and repeat prefixes, segments, string and privileged instructions, gathers and scatters.
    #[error("{0} are not used by micro-kernels")]
    Foreign(&'static str),
    /// The stack pointer changed by something else than push, pop, or a constant.
    #[error("the stack pointer moves by push, pop, and constants only")]
    StackPointer,
    /// Memory of the stack that the micro-kernel does not own, nor has parameters in.
    #[error(
        "only what the micro-kernel has pushed may be read and written, and its parameters there be read whole"
    )]
    Stack,
    /// The stack differs between two paths to one place.
    #[error("paths meet here with different stacks")]
    StackMeet,
    /// A return with something left on the stack.
    #[error("the stack must be balanced at the return")]
    Unbalanced,
    /// A callee-saved register changed.
    #[error("{0:?} does not hold the caller's value at the return")]
    CalleeSaved(Register),
    /// Upper halves of vector registers in use.
    #[error("vzeroupper must come between the last wide vector and the return")]
    UpperHalves,
    /// Tiles without a configuration, or one that is there or not against the contract.
    #[error(
        "tiles are configured from constants before use, and at the call and the return as the contract says"
    )]
    Tiles,
    /// An address that comes from no pointer of the contract.
    #[error("the address does not come from one pointer of the contract")]
    Address,
    /// A load through a pointer that the contract does not read.
    #[error("parameter {0} is not for reading")]
    Load(usize),
    /// A store through a pointer that the contract does not write.
    #[error("parameter {0} is not for writing")]
    Store(usize),
    /// A store through a pointer from a list of rows, or to the constants.
    #[error("rows and constants are not for writing")]
    StoreReadOnly,
    /// Constants that are not behind the code, inside the micro-kernel.
    #[error("constants must lie behind the code, inside the micro-kernel")]
    Constant,
    /// A register that has no defined value.
    #[error("{0:?} has no value of its own here")]
    Undefined(Register),
    /// Arithmetic on a pointer that gives no pointer.
    #[error("{0:?} is a pointer and is used as a number")]
    PointerAsNumber(Register),
}

/// Checks an assembled micro-kernel against the parameters of its contract, its use of tiles, and the
/// features that it may use.
///
/// # Errors
/// The first violation found.
pub fn check(
    bytes: &[u8],
    params: &[Param],
    tiles: TileState,
    features: Features,
) -> Result<(), AsmViolation> {
    let code = decode::decode(bytes, features)?;
    flow::follow(&code, bytes.len() as u64, params, tiles)
}

fn violation(instruction: &Instruction, rule: SafetyRule) -> AsmViolation {
    let mut text = String::new();
    NasmFormatter::new().format(instruction, &mut text);
    AsmViolation { offset: instruction.ip(), instruction: text, rule }
}
