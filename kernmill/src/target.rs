//! Which instruction set is run.

use kernmill_plan::target::Level;

/// The instruction-set level for which code is generated, or taken out of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The best level that this CPU can run.
    #[default]
    Native,
    /// The given level.
    Level(Level),
}
