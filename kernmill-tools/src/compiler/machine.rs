//! Machines that are not here, as `kernmill cpu --measure --json` described them there.

use kernmill::{Error, Result};
pub use kernmill_compiler::machine::{Description, ReachedSpeeds, SCHEMA};
use kernmill_os::files::read_named_text;
use kernmill_plan::limit;
use std::path::Path;

/// Reads the description of a machine.
///
/// # Errors
/// When the file cannot be read, or is no description: the message names the field that is wrong.
pub fn read_machine(path: &Path) -> Result<Description> {
    let text = read_named_text(path, limit::MACHINE_BYTES).map_err(Error::read(path))?;
    Description::parse(&text).map_err(|error| Error::input(path, error))
}
