//! Instruction sets of a plan, and what there is to say when it is written.

use kernmill::observe::Observer;
use kernmill::{Result, Target};
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::quant::Preset;
use kernmill_plan::target::Level;

/// Instruction sets that a plan is to have code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// The best that this CPU has.
    Native,
    /// All those of the preset.
    All,
    /// This one.
    Level(Level),
}

impl Targets {
    /// The level: `asked` if the user chose it, or else what is best on `machine`, if it is described.
    pub fn on(
        asked: Vec<Targets>,
        chosen: bool,
        machine: Option<&Description>,
        preset: Preset,
    ) -> Vec<Targets> {
        match machine {
            Some(machine) if !chosen => vec![Targets::Level(machine.level(preset))],
            _ => asked,
        }
    }

    /// The levels that are asked for together, ascending, each once.
    ///
    /// # Errors
    /// When this CPU has none of the levels, and the native one is asked for.
    pub fn levels(asked: &[Targets], preset: Preset, observer: &dyn Observer) -> Result<Vec<Level>> {
        let mut levels = Vec::new();
        for target in asked {
            match target {
                // With other presets, code for tiles gives the bits of the level below and was not timed.
                Targets::All if !preset.has_tiles() => {
                    levels.extend(Level::ALL.into_iter().filter(|level| !level.has_tiles()));
                }
                Targets::All => levels.extend(Level::ALL),
                Targets::Level(level) => levels.push(*level),
                Targets::Native => levels.push(Target::Native.runnable_level(preset, observer)?),
            }
        }
        Ok(Level::ALL.into_iter().filter(|level| levels.contains(level)).collect())
    }
}

/// The closing line about a plan of `bytes` bytes that was written in `seconds` seconds.
pub fn closing(levels: &[Level], bytes: u64, seconds: f64) -> String {
    let names = levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
    format!("a plan for {names}, in {seconds:.1} s ({:.2} GB/s)", bytes as f64 / 1e9 / seconds)
}

/// The target itself if the user chose it, or else the best one of `machine`, if it is described.
pub fn target_on(target: Target, chosen: bool, machine: Option<&Description>, preset: Preset) -> Target {
    match machine {
        Some(machine) if !chosen => Target::Level(machine.level(preset)),
        _ => target,
    }
}
