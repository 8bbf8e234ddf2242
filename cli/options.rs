//! Options that say how a model is compiled, and for what.

pub use crate::compiler::CompileArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernmill::Target;
use kernmill_tools::Level;
pub use kernmill_tools::values::size;

const NATIVE: &str = "native";

/// `--target`.
pub fn target_parser() -> impl TypedValueParser<Value = Target> {
    let names = std::iter::once(NATIVE).chain(Level::ALL.map(Level::name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .map(|name| Level::from_name(&name).map_or(Target::Native, Target::Level))
}
